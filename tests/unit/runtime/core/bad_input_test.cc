// Peers that do not keep to the protocol: only their own channel is hurt.
#include "tests/unit/runtime/core/core_bench.h"

namespace windlass::runtime {
namespace {

// A good worker beside the bad one, with work under way that must not notice.
class Bystander {
 public:
  explicit Bystander(CoreBench& bench) : bench_(bench), channel_(bench.ready("good")) {
    EXPECT_TRUE(bench.submit("bystander"));
  }
  void expect_unhurt() {
    EXPECT_EQ(bench_.state("good"), WorkerState::Ready);
    EXPECT_EQ(bench_.outcome("bystander"), nullptr);
    bench_.respond(channel_, "bystander");
    EXPECT_EQ(bench_.outcome("bystander")->settlement, Settlement::Complete);
  }

 private:
  CoreBench& bench_;
  ChannelId channel_;
};

void expect_refused(const CoreBench& bench, ChannelId channel) {
  ASSERT_TRUE(bench.is_closed(channel));
  EXPECT_FALSE(std::ranges::find(bench.closed, channel, &CloseChannel::channel)->is_clean);
  EXPECT_EQ(bench.count(Note::Kind::BadMessage), 1U);
}

TEST(BadInput, AChannelThatDoesNotBeginWithStartStreamEnds) {
  CoreBench bench;
  Bystander bystander{bench};
  const ChannelId channel = bench.open();
  bench.say(channel, InitResponse{success(), {}, {}, {}, {}});
  expect_refused(bench, channel);
  bench.say(channel, StartStream{WorkerId{"late"}});
  EXPECT_FALSE(bench.worker("late"));
  bystander.expect_unhurt();
}

TEST(BadInput, AChannelMayClaimOnlyItsOwnWorkers) {
  for (const char* id : {"agent-2.1", "agent-10", "agent-1x.1", "agent-"}) {
    SCOPED_TRACE(id);
    CoreBench bench;
    const ChannelId channel = bench.open(true, "agent-1");
    bench.say(channel, StartStream{WorkerId{id}});
    expect_refused(bench, channel);
    EXPECT_TRUE(bench.core.workers().empty());
  }
  for (const char* id : {"agent-1", "agent-1.1", "agent-1.77"}) {
    CoreBench bench;
    const ChannelId channel = bench.open(true, "agent-1");
    bench.say(channel, StartStream{WorkerId{id}});
    EXPECT_FALSE(bench.is_closed(channel));
    EXPECT_TRUE(bench.worker(id));
  }
}

TEST(BadInput, AWorkerIdHasOneTo256Bytes) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{257}}) {
    CoreBench bench;
    const ChannelId channel = bench.open();
    bench.say(channel, StartStream{WorkerId{std::string(bytes, 'w')}});
    expect_refused(bench, channel);
  }
}

TEST(BadInput, AnIdInUseIsRefusedToTheSecondAndFreeWhenTheFirstIsGone) {
  CoreBench bench;
  const ChannelId first = bench.ready("a");
  const ChannelId second = bench.open();
  bench.say(second, StartStream{WorkerId{"a"}});
  expect_refused(bench, second);
  EXPECT_EQ(bench.state("a"), WorkerState::Ready);
  EXPECT_FALSE(bench.is_closed(first));
  bench.end(first, ChannelEnd::Closed);
  bench.ready("a");
  EXPECT_EQ(bench.state("a"), WorkerState::Ready);
}

TEST(BadInput, ASecondStartStreamEndsAStreamOfOneWorker) {
  CoreBench bench;
  const ChannelId channel = bench.dial_in();
  bench.say(channel, StartStream{WorkerId{"a"}});
  bench.say(channel, StartStream{WorkerId{"b"}});
  expect_refused(bench, channel);
  EXPECT_EQ(bench.state("a"), WorkerState::Abandoned);
  EXPECT_FALSE(bench.worker("b"));
}

TEST(BadInput, AnAgentMayStartAnotherWorkerOnItsChannel) {
  CoreBench bench;
  const ChannelId channel = bench.ready("agent.1");
  ASSERT_TRUE(bench.submit("i1"));
  bench.say(channel, StartStream{WorkerId{"agent.2"}});
  EXPECT_EQ(bench.state("agent.1"), WorkerState::Disconnected);
  EXPECT_EQ(bench.outcome("i1")->cause, Cause::WorkerLost);
  EXPECT_EQ(bench.state("agent.2"), WorkerState::Connecting);
  EXPECT_FALSE(bench.is_closed(channel));
}

TEST(BadInput, AMessageThatCannotBeReadCostsNothingElse) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a");
  ASSERT_TRUE(bench.submit("i1"));
  for (int i = 0; i < 1000; ++i) bench.core.handle_unreadable(channel, "no protobuf", bench.now);
  bench.poll();
  EXPECT_EQ(bench.count(Note::Kind::MessageUnreadable), 1U);
  EXPECT_FALSE(bench.is_closed(channel));
  EXPECT_EQ(bench.state("a"), WorkerState::Ready);
  bench.respond(channel, "i1");
  EXPECT_EQ(bench.outcome("i1")->settlement, Settlement::Complete);
}

TEST(BadInput, AChannelWhoseFirstMessageCannotBeReadEnds) {
  CoreBench bench;
  const ChannelId channel = bench.open();
  bench.core.handle_unreadable(channel, "no protobuf", bench.now);
  bench.poll();
  expect_refused(bench, channel);
}

TEST(BadInput, AnAnswerToNothingIsNotedAndDropped) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a");
  bench.respond(channel, "never-sent");
  EXPECT_EQ(bench.count(Note::Kind::UnknownResponse), 1U);
  EXPECT_TRUE(bench.outcomes.empty());
  EXPECT_EQ(bench.state("a"), WorkerState::Ready);
  EXPECT_EQ(bench.core.free_slots(bench.app), 10U);
}

TEST(BadInput, AFloodOfAnswersToNothingIsNotedOnceInAWhileAndInBrief) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a");
  const ChannelId other = bench.ready("b");
  for (int i = 0; i < 1000; ++i) bench.respond(channel, std::string(100'000, 'x'));
  ASSERT_EQ(bench.count(Note::Kind::UnknownResponse), 1U);
  EXPECT_LE(bench.notes.back().invocation.value().size(), 128U);
  bench.respond(other, "y");
  EXPECT_EQ(bench.count(Note::Kind::UnknownResponse), 2U) << "of another worker";
  bench.advance(seconds{10});
  bench.respond(channel, "z");
  ASSERT_EQ(bench.count(Note::Kind::UnknownResponse), 3U);
  EXPECT_NE(bench.notes.back().reason.find("999 more"), std::string::npos) << bench.notes.back().reason;
}

TEST(BadInput, TheSecondAnswerIsNotedAndDropped) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a");
  ASSERT_TRUE(bench.submit("i1"));
  bench.respond(channel, "i1");
  bench.respond(channel, "i1", failure("no, it failed"));
  EXPECT_EQ(bench.outcome("i1")->settlement, Settlement::Complete);
  EXPECT_EQ(bench.count(Note::Kind::UnknownResponse), 1U);
  EXPECT_EQ(bench.core.free_slots(bench.app), 10U);
}

TEST(BadInput, AnAnswerOfAnotherWorkerDoesNotCount) {
  CoreBench bench;
  const ChannelId owner = bench.ready("a");
  ASSERT_TRUE(bench.submit("i1"));
  const ChannelId other = bench.ready("b");
  bench.respond(other, "i1", failure("forged"));
  EXPECT_EQ(bench.outcome("i1"), nullptr);
  bench.respond(owner, "i1");
  EXPECT_EQ(bench.outcome("i1")->settlement, Settlement::Complete);
}

TEST(BadInput, GarbageEndsItsChannelAlone) {
  CoreBench bench;
  Bystander bystander{bench};
  const ChannelId channel = bench.ready("bad");
  ASSERT_TRUE(bench.submit("i1"));
  ASSERT_EQ(bench.channel_of("i1"), channel);
  bench.core.handle_bad_message(channel, "wrong wire type", bench.now);
  bench.poll();
  expect_refused(bench, channel);
  EXPECT_EQ(bench.state("bad"), WorkerState::Abandoned);
  EXPECT_EQ(bench.outcome("i1")->cause, Cause::WorkerLost);
  bystander.expect_unhurt();
}

TEST(BadInput, OnlyAgentsMaySayWorkerSpecialized) {
  CoreBench bench;
  const ChannelId channel = bench.dial_in();
  bench.say(channel, StartStream{WorkerId{"a"}});
  bench.say(channel, InitResponse{success(), {}, {}, {}, {}});
  bench.say(channel, bench.specialized("a"));
  expect_refused(bench, channel);
  EXPECT_FALSE(bench.job_host(bench.app));
}

TEST(BadInput, AnAgentSpeaksForItsOwnWorkerOnly) {
  CoreBench bench;
  Bystander bystander{bench};
  const ChannelId channel = bench.placeholder("a");
  bench.say(channel, bench.specialized("good"));
  expect_refused(bench, channel);
  bystander.expect_unhurt();
}

TEST(BadInput, MessagesOfUnknownChannelsChangeNothing) {
  CoreBench bench;
  Bystander bystander{bench};
  const ChannelId unknown{999};
  bench.say(unknown, StartStream{WorkerId{"a"}});
  bench.core.handle_bad_message(unknown, "garbage", bench.now);
  bench.core.handle_detached(unknown, bench.now);
  bench.core.handle_attached(unknown, bench.now);
  bench.core.handle_blocked(unknown, bench.now);
  bench.core.handle_writable(unknown, bench.now);
  bench.core.handle_unsendable(unknown, InvocationId{"bystander"}, "", bench.now);
  bench.core.handle_closed(unknown, ChannelEnd::Closed, "", bench.now);
  bench.poll();
  EXPECT_EQ(bench.core.workers().size(), 1U);
  bystander.expect_unhurt();
}

TEST(BadInput, AnswersNobodyAskedForChangeNothing) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a");
  bench.say(channel, InitResponse{failure("again"), {}, {}, {}, {}});
  bench.say(channel, MetadataResponse{success(), false, {make_function("other")}});
  bench.say(channel, LoadResponse{FunctionId{"one-id"}, failure("again")});
  bench.say(channel, ReloadResponse{failure("again"), {}, true});
  bench.say(channel, StatusResponse{"status-77"});
  EXPECT_EQ(bench.state("a"), WorkerState::Ready);
  EXPECT_EQ(bench.core.functions(bench.app).size(), 2U);
  ASSERT_TRUE(bench.submit("i1"));
  EXPECT_EQ(bench.sent_to<InvocationRequest>(channel).size(), 1U);
}

TEST(BadInput, LogsComeInOrderAndUserLogsOnlyUntilTheAnswer) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a");
  ASSERT_TRUE(bench.submit("i1"));
  const auto log = [&](const char* text, LogSource source = LogSource::User) {
    bench.say(channel, Log{InvocationId{"i1"}, source, LogLevel::Information, "", text, ""});
  };
  log("first");
  log("second");
  bench.respond(channel, "i1");
  log("too late");
  log("the system's", LogSource::System);
  ASSERT_EQ(bench.logs.size(), 3U);
  EXPECT_EQ(bench.logs[0].log.message, "first");
  EXPECT_EQ(bench.logs[0].function, "one");
  EXPECT_EQ(bench.logs[1].log.message, "second");
  EXPECT_EQ(bench.logs[2].log.message, "the system's");
}

TEST(BadInput, WhatCannotBeSentIsADeadLetterAndNotTheWorkersFault) {
  RuntimeOptions options;
  options.slots_per_worker = 1;
  CoreBench bench{options};
  const ChannelId channel = bench.ready("a");
  ASSERT_TRUE(bench.submit("huge"));
  ASSERT_TRUE(bench.submit("next"));
  bench.core.handle_unsendable(channel, InvocationId{"huge"}, "it has 200 MB; 128 MB is the limit",
                               bench.now);
  bench.poll();
  ASSERT_NE(bench.outcome("huge"), nullptr);
  EXPECT_EQ(bench.outcome("huge")->cause, Cause::TooLarge);
  EXPECT_EQ(bench.outcome("huge")->settlement, Settlement::DeadLetter);
  EXPECT_EQ(bench.outcome("huge")->reason, "it has 200 MB; 128 MB is the limit");
  EXPECT_EQ(bench.state("a"), WorkerState::Ready);
  EXPECT_EQ(bench.channel_of("next"), channel) << "the slot is free";
}

}  // namespace
}  // namespace windlass::runtime
