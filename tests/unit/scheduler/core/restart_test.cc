#include "tests/unit/scheduler/core/core_fixture.h"

namespace windlass {
namespace {

using Ids = std::vector<std::string>;

class Restart : public CoreTest {};

TEST_F(Restart, SendsUnfinishedCommandsAgainInTheirOrder) {
  const SessionRef session = open(kWorker);
  for (const char* id : {"z", "m", "a"}) submit(kWorker, id, R"({ "spaces" : 1 })");
  settle();
  deliver_result(session, "m");
  settle();
  restart();
  EXPECT_EQ(state("z"), CommandState::Waiting);
  EXPECT_EQ(state("m"), CommandState::Done);
  open(kWorker);
  const Effects effects = settle();
  EXPECT_EQ(sent_ids(effects), (Ids{"z", "a"}));
  EXPECT_EQ(effects.sends[0].message.payload(), R"({ "spaces" : 1 })")
      << "byte for byte, for the worker's journal";
  EXPECT_EQ(events<Dispatched>(effects)[0].cause, DispatchCause::Restarted);
}

TEST_F(Restart, TakesAResultThatComesBeforeTheCommandWasSentAgain) {
  open(kWorker);
  submit(kWorker, "a");
  settle();
  restart();
  const SessionRef session = open(kWorker);
  deliver_result(session, "a");
  const Effects effects = settle();
  EXPECT_TRUE(effects.sends.empty());
  EXPECT_EQ(state("a"), CommandState::Done);
}

TEST_F(Restart, ForgetsASubmissionThatWasNeverCommitted) {
  submit(kWorker, "a");
  ASSERT_TRUE(core_->poll_effects().has_value());
  restart();
  EXPECT_EQ(core_->outbox().size(), 0U);
}

TEST_F(Restart, GoesOnCountingTheTimeOfCommands) {
  submit(kWorker, "a", "{}", seconds{10});
  settle();
  pass(seconds{4});
  // Another machine's steady clock.
  now_.steady = Instant{seconds{77}};
  restart();
  EXPECT_EQ(core_->poll_timeout(), now_.steady + seconds{6});
  now_.wall += seconds{20};
  restart();
  core_->handle_timeout(now_);
  settle();
  EXPECT_EQ(state("a"), CommandState::Failed) << "it ran out while nobody was there";
}

TEST_F(Restart, DoesNotSendWhatRanOutOfTimeMeanwhileHoweverSoonItsWorkerComes) {
  submit(kWorker, "a", "{}", seconds{10});
  settle();
  now_.wall += seconds{20};
  restart();
  open(kWorker);  // before any alarm
  EXPECT_TRUE(settle().sends.empty());
  EXPECT_EQ(state("a"), CommandState::Failed);
}

TEST_F(Restart, NeverGivesACommandMoreTimeThanItHad) {
  submit(kWorker, "a", "{}", seconds{10});
  settle();
  now_.wall -= seconds{100'000};
  restart();
  EXPECT_EQ(core_->poll_timeout(), now_.steady + seconds{10}) << "the wall clock was set back";
}

TEST_F(Restart, NumbersNewCommandsAfterTheOldOnes) {
  submit(kWorker, "a");
  settle();
  restart();
  submit(kWorker, "b");
  settle();
  open(kWorker);
  EXPECT_EQ(sent_ids(settle()), (Ids{"a", "b"}));
}

TEST_F(Restart, AppliesSmallerBoundsToWhatItFinds) {
  const SessionRef session = open(kWorker);
  for (const char* id : {"a", "b", "c"}) submit(kWorker, id);
  settle();
  for (const char* id : {"a", "b", "c"}) deliver_result(session, id);
  settle();
  options_.finished_per_tenant_max = 1;
  restart();
  settle();
  EXPECT_EQ(rows("command/"), 1U);
  EXPECT_EQ(state("c"), CommandState::Done);
}

TEST_F(Restart, RefusesAStoreItCannotReadAndNamesTheRow) {
  image_->rows["command/acme/a"] = "{}";
  const auto core = SchedulerCore::restore(options_, *MemoryStore{image_}.load(), 1, now_);
  ASSERT_FALSE(core.has_value());
  EXPECT_EQ(core.error().code, ErrorCode::StoreInvalid);
  EXPECT_NE(core.error().reason.find("command/acme/a"), std::string::npos);
}

TEST_F(Restart, RefusesTwoRowsOfOneNumber) {
  submit(kWorker, "a");
  settle();
  image_->rows["command/acme/b"] = image_->rows["command/acme/a"];
  EXPECT_FALSE(SchedulerCore::restore(options_, *MemoryStore{image_}.load(), 1, now_).has_value());
}

TEST_F(Restart, RemembersTheInboxAndDoesNotTakeAMessageTwice) {
  const SessionRef session = open(kWorker);
  deliver(session, {.type = "biz.event", .id = "e1", .payload = "{}"});
  settle();
  restart();
  const SessionRef next = open(kWorker);
  deliver(next, {.type = "biz.event", .id = "e1", .payload = "{}"});
  deliver(next, {.type = "biz.event", .id = "e2", .payload = "{}"});
  const Effects effects = settle();
  EXPECT_EQ(effects.owns.back().next, 2U);
  EXPECT_EQ(rows("message/"), 2U);
  ASSERT_EQ(events<FrameIgnored>(effects).size(), 1U);
  EXPECT_EQ(events<FrameIgnored>(effects)[0].why, Ignored::DuplicateMessage);
}

//= IDM-2
TEST_F(Restart, KeepsTheFirstOfTwoMessagesWithOneIdAndTellsThemApart) {
  const SessionRef session = open(kWorker);
  deliver(session, {.type = "biz.event", .id = "e1", .payload = R"({"n":1})"});
  settle();
  deliver(session, {.type = "biz.event", .id = "e1", .payload = R"({"n":2})"});
  const Effects effects = settle();
  ASSERT_EQ(events<FrameIgnored>(effects).size(), 1U);
  EXPECT_EQ(events<FrameIgnored>(effects)[0].why, Ignored::ConflictingMessage);
  core_->inbox().for_each({},
                          [](const InboxRecord& record) { EXPECT_EQ(record.message.payload, R"({"n":1})"); });
}

}  // namespace
}  // namespace windlass
