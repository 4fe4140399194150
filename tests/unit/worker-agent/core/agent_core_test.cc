// The agent's decisions one by one; agent_random_test.cc puts them together.
#include "worker-agent/core/agent_core.h"

#include <gtest/gtest.h>

namespace windlass::agent {
namespace {

constexpr std::string_view kRun = R"({"name":"touch","args":["x"]})";

class AgentCoreTest : public ::testing::Test {
 protected:
  static AgentConfig config() {
    AgentConfig config;
    config.rules = {{.name = "touch", .program = "/bin/touch", .args = {}, .arg_patterns = {"[a-z]"}}};
    config.max_parallel = 2;
    config.owned_max = 4;
    return config;
  }

  void establish(std::uint64_t handle) { core.handle({SessionHandle{handle}, Established{}}, now); }
  void deliver(std::string_view type, std::string_view id, std::string_view payload) {
    core.handle(
        {SessionHandle{1}, Delivered{next_seq++, Message{{.type = type, .id = id, .payload = payload}}}},
        now);
  }
  void end(std::vector<Message> returned) {
    Ended ended;
    ended.code = "E.TIMEOUT";
    ended.returned = std::move(returned);
    core.handle({SessionHandle{1}, std::move(ended)}, now);
  }
  // Syncs as long as there is something to sync.
  void sync() {
    while (auto batch = core.poll_batch(now)) {
      log = batch->replaces ? batch->bytes : log + batch->bytes;
      core.handle_committed(now);
    }
  }
  std::vector<RunRequest> runs() {
    std::vector<RunRequest> all;
    while (auto run = core.poll_run()) all.push_back(*run);
    return all;
  }
  // Sends everything; each as "corr payload".
  std::vector<std::string> send() {
    std::vector<std::string> all;
    while (const Message* message = core.poll_result()) {
      all.push_back(std::string{message->corr()} + " " + std::string{message->payload()});
      core.handle_sent(sent_seq++);
    }
    return all;
  }
  Seq owned() {
    while (const auto own = core.poll_own()) owned_next = own->next;
    return owned_next;
  }

  Instant now{};
  AgentCore core{config(), now};
  Bytes log;
  Seq next_seq = 0;
  Seq sent_seq = 0;
  Seq owned_next = 0;
};

using Texts = std::vector<std::string>;

TEST_F(AgentCoreTest, AnEchoAnswersItsPayloadAndIsOwnedOnceSent) {
  establish(1);
  deliver("biz.echo", "c-1", R"({"a":[1]})");
  sync();
  EXPECT_EQ(log, "");  // it has no effect: nothing to remember
  EXPECT_EQ(owned(), 0U);
  ASSERT_NE(core.poll_result(), nullptr);
  //= WRK-1
  //= WRK-2
  EXPECT_EQ(core.poll_result()->type(), "biz.result");
  EXPECT_NE(core.poll_result()->id(), "c-1");
  EXPECT_EQ(send(), Texts{R"(c-1 {"a":[1]})"});
  EXPECT_EQ(owned(), 1U);
}

//= IDM-2
TEST_F(AgentCoreTest, AnIdOfAnEchoIsNotTakenForAProgram) {
  establish(1);
  deliver("biz.echo", "c-1", kRun);
  deliver("biz.exec", "c-1", kRun);
  sync();
  EXPECT_TRUE(runs().empty());
  const Texts answers = send();
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_NE(answers[1].find("E.RESULT.DUPLICATE"), std::string::npos) << answers[1];
}

TEST_F(AgentCoreTest, AProgramRunsOnlyAfterItsRecordIsOnTheDisk) {
  establish(1);
  deliver("biz.exec", "c-1", kRun);
  EXPECT_TRUE(runs().empty());
  ASSERT_TRUE(core.poll_batch(now).has_value());
  EXPECT_TRUE(runs().empty());
  core.handle_committed(now);
  EXPECT_EQ(runs().size(), 1U);
}

TEST_F(AgentCoreTest, AResultLeavesOnlyAfterItsRecordIsOnTheDisk) {
  establish(1);
  deliver("biz.exec", "c-1", kRun);
  sync();
  core.handle_finished(runs().at(0).id, {}, now);
  EXPECT_EQ(send(), Texts{});
  ASSERT_TRUE(core.poll_batch(now).has_value());
  EXPECT_EQ(send(), Texts{});
  EXPECT_EQ(core.poll_finished_run(), std::nullopt);
  core.handle_committed(now);
  EXPECT_EQ(send().size(), 1U);
  EXPECT_TRUE(core.poll_finished_run().has_value());
}

TEST_F(AgentCoreTest, AJournalAnswerWaitsForTheRecordItRepeats) {
  establish(1);
  deliver("biz.exec", "c-1", kRun);
  sync();
  core.handle_finished(runs().at(0).id, {}, now);
  ASSERT_TRUE(core.poll_batch(now).has_value());
  deliver("biz.exec", "c-1", kRun);
  EXPECT_FALSE(core.poll_batch(now).has_value());
  EXPECT_EQ(send(), Texts{});
}

TEST_F(AgentCoreTest, TheJournalRemembersForAsLongAsALongResumeWindowMayRepeat) {
  Established established;
  established.resume_ttl = seconds{7200};
  core.handle({SessionHandle{1}, established}, now);
  deliver("biz.exec", "c-1", kRun);
  sync();
  core.handle_finished(runs().at(0).id, {}, now);
  sync();
  send();
  core.handle({SessionHandle{1}, Acknowledged{sent_seq}}, now);
  now += limits::kJournalTtl + seconds{3600};
  core.handle_timeout(now);
  deliver("biz.exec", "c-1", kRun);
  sync();
  //= IDM-3
  EXPECT_TRUE(runs().empty());
  EXPECT_EQ(send().size(), 1U) << "answered from the journal";
}

TEST_F(AgentCoreTest, FramesAreOwnedInOrderHoweverTheyFinish) {
  establish(1);
  deliver("biz.exec", "c-1", kRun);
  deliver("biz.echo", "c-2", "{}");
  sync();
  EXPECT_EQ(send(), Texts{"c-2 {}"});
  EXPECT_EQ(owned(), 2U);
}

TEST_F(AgentCoreTest, AFrameIsOwnedOnceItsBeginRecordIsOnTheDisk) {
  establish(1);
  deliver("biz.exec", "c-1", kRun);
  ASSERT_TRUE(core.poll_batch(now).has_value());
  EXPECT_EQ(owned(), 0U) << "not on the disk yet";
  core.handle_committed(now);
  //= ACK-1
  EXPECT_EQ(owned(), 1U) << "however long the program runs";
  EXPECT_EQ(runs().size(), 1U);
  deliver("biz.exec", "c-1", kRun);
  sync();
  EXPECT_EQ(owned(), 2U) << "the same again is nothing new to keep";
}

TEST_F(AgentCoreTest, OwnsNoMoreCommandsThanItHasRoomFor) {
  establish(1);
  for (int i = 0; i < 6; ++i) deliver("biz.exec", "c-" + std::to_string(i), kRun);
  sync();
  const auto first = runs();
  ASSERT_EQ(first.size(), 2U);
  EXPECT_EQ(owned(), 4U);
  core.handle_blocked();
  for (const RunRequest& run : first) core.handle_finished(run.id, {}, now);
  sync();
  EXPECT_EQ(owned(), 4U) << "results that cannot leave take the room of their commands";
  core.handle({SessionHandle{1}, Writable{}}, now);
  send();
  deliver("biz.exec", "c-6", kRun);
  sync();
  EXPECT_EQ(owned(), 6U);
}

TEST_F(AgentCoreTest, HasNothingToSayOnceEveryResultIsTheSchedulers) {
  establish(1);
  deliver("biz.exec", "c-1", kRun);
  sync();
  core.start_drain();
  EXPECT_FALSE(core.poll_drained());
  core.handle_finished(runs().at(0).id, {}, now);
  sync();
  send();
  EXPECT_TRUE(core.poll_drained());
  EXPECT_FALSE(core.has_nothing_to_say()) << "its result may not have arrived";
  core.handle({SessionHandle{1}, Acknowledged{sent_seq}}, now);
  EXPECT_TRUE(core.has_nothing_to_say());
}

TEST_F(AgentCoreTest, NoMoreProgramsRunAtOnceThanAreAllowed) {
  establish(1);
  for (const char* id : {"c-1", "c-2", "c-3"}) deliver("biz.exec", id, kRun);
  sync();
  const auto first = runs();
  ASSERT_EQ(first.size(), 2U);
  EXPECT_EQ(core.inflight(), 3U);
  core.handle_finished(first[0].id, {}, now);
  EXPECT_EQ(runs().size(), 1U);
}

TEST_F(AgentCoreTest, ACommandThatComesAgainRunsOnceAndIsAnsweredOnceWhileItsAnswerIsUnderWay) {
  establish(1);
  deliver("biz.exec", "c-1", kRun);
  deliver("biz.exec", "c-1", kRun);
  sync();
  const auto first = runs();
  ASSERT_EQ(first.size(), 1U);
  core.handle_finished(first[0].id, {}, now);
  sync();
  deliver("biz.exec", "c-1", kRun);
  sync();
  EXPECT_EQ(send().size(), 1U);
  EXPECT_EQ(owned(), 3U);
  core.handle({SessionHandle{1}, Acknowledged{1}}, now);
  deliver("biz.exec", "c-1", kRun);
  sync();
  EXPECT_EQ(send().size(), 1U);  // asked again after the answer was taken: told again
  EXPECT_TRUE(runs().empty());
}

TEST_F(AgentCoreTest, AnIdWithAnotherContentIsRefused) {
  establish(1);
  deliver("biz.exec", "c-1", kRun);
  deliver("biz.exec", "c-1", R"({"name":"touch","args":["y"]})");
  deliver("biz.echo", "c-2", R"({"a":1})");
  deliver("biz.echo", "c-2", R"({"a":2})");
  sync();
  const Texts sent = send();
  ASSERT_EQ(sent.size(), 3U);
  EXPECT_TRUE(sent[0].starts_with(R"(c-1 {"ok":false,"code":"E.RESULT.DUPLICATE")")) << sent[0];
  EXPECT_EQ(sent[1], R"(c-2 {"a":1})");
  EXPECT_TRUE(sent[2].starts_with(R"(c-2 {"ok":false,"code":"E.RESULT.DUPLICATE")")) << sent[2];
  EXPECT_EQ(runs().size(), 1U);
}

TEST_F(AgentCoreTest, AnUnknownTypeIsAnsweredWithItsCodeAndLeavesNoTrace) {
  establish(1);
  deliver("biz.unknown", "c-1", "{}");
  sync();
  EXPECT_EQ(log, "");
  //= WRK-2
  //= WRK-3
  EXPECT_TRUE(send().at(0).starts_with(R"(c-1 {"ok":false,"code":"E.CMD.UNKNOWN")"));
  EXPECT_EQ(owned(), 1U);
}

TEST_F(AgentCoreTest, ABlockedSessionIsNotAskedBeforeItIsWritable) {
  establish(1);
  deliver("biz.echo", "c-1", "{}");
  sync();
  core.handle_blocked();
  EXPECT_EQ(core.poll_result(), nullptr);
  EXPECT_EQ(owned(), 0U);
  core.handle({SessionHandle{1}, Writable{}}, now);
  EXPECT_NE(core.poll_result(), nullptr);
}

TEST_F(AgentCoreTest, WhatTheSchedulerDidNotTakeGoesAgainFirstOnTheNextSession) {
  establish(1);
  deliver("biz.echo", "c-1", R"({"n":1})");
  deliver("biz.echo", "c-2", R"({"n":2})");
  sync();
  const Message unacknowledged = *core.poll_result();
  core.handle_sent(0);
  end({unacknowledged});
  EXPECT_EQ(core.poll_result(), nullptr);
  establish(2);
  //= WRK-4
  EXPECT_EQ(send(), (Texts{R"(c-1 {"n":1})", R"(c-2 {"n":2})"}));
}

TEST_F(AgentCoreTest, WhatHadNotBegunWhenItsSessionEndedDoesNotBeginByItself) {
  establish(1);
  for (const char* id : {"c-1", "c-2", "c-3"}) deliver("biz.exec", id, kRun);
  sync();
  const auto running = runs();
  deliver("biz.exec", "c-4", kRun);
  ASSERT_TRUE(core.poll_batch(now).has_value());  // the record of c-4 is being written
  end({});
  core.handle_committed(now);
  sync();
  EXPECT_EQ(core.inflight(), 2U);
  for (const RunRequest& run : running) core.handle_finished(run.id, {}, now);
  EXPECT_TRUE(runs().empty());
  establish(1);
  next_seq = 0;
  deliver("biz.exec", "c-4", kRun);
  sync();
  EXPECT_EQ(runs().size(), 1U);
}

TEST_F(AgentCoreTest, AResultThatNoFrameCarriesIsReplacedByAnError) {
  establish(1);
  deliver("biz.echo", "c-1", "{}");
  sync();
  core.handle_unsendable(ErrorCode::LimitFrame, "too large");
  EXPECT_EQ(send(), Texts{R"(c-1 {"ok":false,"code":"E.LIMIT.FRAME","reason":"too large"})"});
}

TEST_F(AgentCoreTest, ADrainIsCompleteWhenNothingRunsAndEverythingIsSent) {
  establish(1);
  deliver("biz.exec", "c-1", kRun);
  core.handle({SessionHandle{1}, DrainRequested{"", seconds{5}}}, now);
  EXPECT_FALSE(core.poll_drained());
  sync();
  EXPECT_FALSE(core.poll_drained());
  core.handle_finished(runs().at(0).id, {}, now);
  EXPECT_FALSE(core.poll_drained());
  sync();
  EXPECT_FALSE(core.poll_drained());
  send();
  EXPECT_TRUE(core.poll_drained());
  EXPECT_FALSE(core.poll_drained());
}

TEST_F(AgentCoreTest, AfterARestartWhatNeverBeganIsNewAndWhatStillRunsIsWaitedFor) {
  establish(1);
  deliver("biz.exec", "c-1", kRun);
  deliver("biz.exec", "c-2", kRun);
  sync();
  AgentCore next{config(), now};
  const auto recovered = next.recover(log, now);
  ASSERT_TRUE(recovered);
  ASSERT_EQ(recovered->interrupted.size(), 2U);
  next.handle_never_begun(recovered->interrupted[0], now);
  next.handle_still_running(recovered->interrupted[1]);
  next.handle({SessionHandle{1}, Established{}}, now);
  for (const Seq seq : {0U, 1U}) {
    const std::string id = "c-" + std::to_string(seq + 1);
    next.handle({SessionHandle{1}, Delivered{seq, Message{{.type = kExec, .id = id, .payload = kRun}}}}, now);
  }
  while (next.poll_batch(now)) next.handle_committed(now);
  ASSERT_TRUE(next.poll_run().has_value());
  EXPECT_FALSE(next.poll_run().has_value());
  next.handle_finished(recovered->interrupted[1].run, {.end = RunEnd::Interrupted}, now);
  while (next.poll_batch(now)) next.handle_committed(now);
  ASSERT_NE(next.poll_result(), nullptr);
  EXPECT_EQ(next.poll_result()->corr(), "c-2");
}

TEST_F(AgentCoreTest, ACompactedLogSaysTheSame) {
  AgentConfig small = config();
  small.compact_bytes_min = 200;
  AgentCore compacting{small, now};
  compacting.handle({SessionHandle{1}, Established{}}, now);
  Bytes written;
  bool replaced = false;
  for (Seq seq = 0; seq < 20; ++seq) {
    const std::string id = "c-" + std::to_string(seq);
    compacting.handle({SessionHandle{1}, Delivered{seq, Message{{.type = kExec, .id = id, .payload = kRun}}}},
                      now);
    while (auto batch = compacting.poll_batch(now)) {
      replaced = replaced || batch->replaces;
      written = batch->replaces ? batch->bytes : written + batch->bytes;
      compacting.handle_committed(now);
    }
    if (const auto run = compacting.poll_run(); run && seq % 2 == 0)
      compacting.handle_finished(run->id, {}, now);
  }
  EXPECT_TRUE(replaced);
  const auto recovered = windlass::recover(written);
  ASSERT_TRUE(recovered) << recovered.error().reason;
  EXPECT_EQ(recovered->entries.size(), 20U);
}

}  // namespace
}  // namespace windlass::agent
