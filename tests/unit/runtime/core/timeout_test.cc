// Invocations that take too long, and what becomes of their worker.
#include "tests/unit/runtime/core/core_bench.h"

namespace windlass::runtime {
namespace {

Invocation with_timeout(const CoreBench& bench, const std::string& id, Duration timeout) {
  Invocation invocation = bench.invocation(id);
  invocation.timeout = timeout;
  return invocation;
}

RuntimeOptions tolerant() {
  RuntimeOptions options;
  options.recycle_on_timeout = false;
  return options;
}

const TextMap& cancels() {
  static const TextMap kCapabilities = {{"HandlesInvocationCancelMessage", "true"}};
  return kCapabilities;
}

TEST(Timeouts, GiveTheLastWorkerUpAndUrgentlyAskForAnother) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a");
  ASSERT_TRUE(bench.submit(with_timeout(bench, "hung", seconds{10})));
  ASSERT_TRUE(bench.submit("other"));
  bench.advance(milliseconds{9'999});
  EXPECT_TRUE(bench.outcomes.empty());
  bench.advance(milliseconds{1});
  EXPECT_EQ(bench.outcome("hung")->cause, Cause::TimedOut);
  ASSERT_EQ(bench.count(Signal::Kind::Replace), 1U) << "at once, not after the grace";
  EXPECT_EQ(bench.outcome("other"), nullptr) << "another's timeout is not its own";
  bench.advance(milliseconds{1'999});
  EXPECT_TRUE(bench.sent_to<Terminate>(channel).empty());
  bench.advance(milliseconds{1});
  EXPECT_EQ(bench.outcome("other")->cause, Cause::WorkerLost);
  EXPECT_EQ(bench.sent_to<Terminate>(channel).size(), 1U);
  ASSERT_TRUE(bench.is_closed(channel));
  EXPECT_FALSE(bench.closed.back().is_clean);
  EXPECT_EQ(bench.state("a"), WorkerState::Abandoned);
  ASSERT_EQ(bench.count(Signal::Kind::Replace), 1U);
  EXPECT_TRUE(bench.signals.back().is_urgent());
  bench.advance(seconds{299});
  EXPECT_TRUE(bench.worker("a"));
  bench.advance(seconds{1});
  EXPECT_FALSE(bench.worker("a")) << "cleaned up after five minutes";
}

TEST(Timeouts, LetWhatElseTheWorkerRunsEnd) {
  CoreBench bench;
  const ChannelId slow = bench.ready("a");
  ASSERT_TRUE(bench.submit(with_timeout(bench, "hung", seconds{10})));
  ASSERT_TRUE(bench.submit("other"));
  const ChannelId next = bench.ready("b");
  bench.advance(seconds{10});
  EXPECT_EQ(bench.state("a"), WorkerState::Draining);
  ASSERT_TRUE(bench.submit("new"));
  EXPECT_EQ(bench.channel_of("new"), next) << "nothing new for a worker that goes";
  bench.advance(seconds{1});
  bench.respond(slow, "other");
  EXPECT_EQ(bench.outcome("other")->settlement, Settlement::Complete);
  bench.advance(milliseconds{1});
  EXPECT_EQ(bench.state("a"), WorkerState::Abandoned) << "nobody is left to wait for";
  EXPECT_EQ(bench.sent_to<Terminate>(slow).size(), 1U);
  EXPECT_EQ(bench.count(Signal::Kind::Replace), 1U);
}

TEST(Timeouts, OfSeveralGiveOneGrace) {
  CoreBench bench;
  bench.ready("a");
  ASSERT_TRUE(bench.submit(with_timeout(bench, "one", seconds{10})));
  ASSERT_TRUE(bench.submit(with_timeout(bench, "two", seconds{11})));
  ASSERT_TRUE(bench.submit("other"));
  bench.advance(milliseconds{11'999});
  EXPECT_EQ(bench.outcome("two")->cause, Cause::TimedOut);
  EXPECT_EQ(bench.state("a"), WorkerState::Draining);
  bench.advance(milliseconds{1});
  EXPECT_EQ(bench.state("a"), WorkerState::Abandoned);
  EXPECT_EQ(bench.outcome("other")->cause, Cause::WorkerLost);
}

TEST(Timeouts, GiveNoGraceToWhatTimedOutToo) {
  CoreBench bench;
  bench.ready("a");
  ASSERT_TRUE(bench.submit(with_timeout(bench, "one", seconds{10})));
  ASSERT_TRUE(bench.submit(with_timeout(bench, "two", seconds{11})));
  bench.advance(seconds{11});
  bench.advance(milliseconds{1});
  EXPECT_EQ(bench.outcome("two")->cause, Cause::TimedOut);
  EXPECT_EQ(bench.state("a"), WorkerState::Abandoned);
  EXPECT_EQ(bench.count(Signal::Kind::Replace), 1U);
}

// Left in the past, the grace looked like an alarm that came late, and all who were away had their time anew.
TEST(Timeouts, GiveTheGraceAnewToAWorkerThatWasAway) {
  CoreBench bench;
  const ChannelId slow = bench.ready("a");
  const ChannelId away = bench.ready("b");
  bench.core.handle_detached(away, bench.now);
  ASSERT_TRUE(bench.submit(with_timeout(bench, "hung", seconds{10})));
  ASSERT_TRUE(bench.submit("other"));
  bench.advance(seconds{10});
  bench.core.handle_detached(slow, bench.now);
  bench.advance(seconds{10});
  bench.core.handle_attached(slow, bench.now);
  bench.advance(seconds{1});
  bench.respond(slow, "other");
  EXPECT_EQ(bench.outcome("other")->settlement, Settlement::Complete);
  bench.advance(milliseconds{23'999});
  EXPECT_EQ(bench.state("b"), WorkerState::Ready);
  bench.advance(milliseconds{1});
  EXPECT_EQ(bench.state("b"), WorkerState::Abandoned) << "away for lost_after";
}

TEST(Timeouts, EndTheWorkerAtOnceWhereNobodyElseWaits) {
  CoreBench bench;
  bench.ready("a");
  ASSERT_TRUE(bench.submit(with_timeout(bench, "hung", seconds{10})));
  bench.advance(seconds{10});
  EXPECT_EQ(bench.state("a"), WorkerState::Abandoned);
}

TEST(Timeouts, GiveIdempotentWorkOfThatWorkerToAnother) {
  CoreBench bench;
  const ChannelId slow = bench.ready("a");
  ASSERT_TRUE(bench.submit(with_timeout(bench, "hung", seconds{10})));
  Invocation again = bench.invocation("again");
  again.is_idempotent = true;
  ASSERT_TRUE(bench.submit(again));
  ASSERT_EQ(bench.channel_of("again"), slow);
  const ChannelId other = bench.ready("b");
  bench.advance(seconds{10});
  EXPECT_EQ(bench.channel_of("again"), slow) << "it may still end there";
  bench.advance(seconds{2});
  EXPECT_EQ(bench.channel_of("again"), other);
  bench.respond(other, "again");
  EXPECT_EQ(bench.outcome("again")->settlement, Settlement::Complete);
  EXPECT_EQ(bench.outcome("again")->tries, 2U);
}

TEST(Timeouts, AreFiveMinutesUnlessSaidOtherwiseAndTenAtMost) {
  CoreBench bench;
  bench.ready("a", "v1", {});
  bench.ready("b", "v1", {});
  ASSERT_TRUE(bench.submit("plain"));
  ASSERT_TRUE(bench.submit(with_timeout(bench, "endless", seconds{36'000})));
  bench.advance(milliseconds{299'999});
  EXPECT_EQ(bench.outcome("plain"), nullptr);
  bench.advance(milliseconds{1});
  EXPECT_EQ(bench.outcome("plain")->cause, Cause::TimedOut);
  bench.advance(milliseconds{299'999});
  EXPECT_EQ(bench.outcome("endless"), nullptr);
  bench.advance(milliseconds{1});
  EXPECT_EQ(bench.outcome("endless")->cause, Cause::TimedOut);
}

TEST(Timeouts, AWorkerThatMayStayIsToldToCancelAndKeepsTheSlotUntilItAnswers) {
  CoreBench bench{tolerant()};
  const ChannelId channel = bench.ready("a", "v1", cancels());
  ASSERT_TRUE(bench.submit(with_timeout(bench, "i1", seconds{1})));
  bench.advance(seconds{1});
  EXPECT_EQ(bench.outcome("i1")->cause, Cause::TimedOut);
  EXPECT_EQ(bench.state("a"), WorkerState::Ready);
  ASSERT_EQ(bench.sent_to<InvocationCancel>(channel).size(), 1U);
  EXPECT_EQ(bench.core.free_slots(bench.app), 9U) << "the function may still run";
  bench.respond(channel, "i1");
  EXPECT_EQ(bench.core.free_slots(bench.app), 10U);
  EXPECT_EQ(bench.count(Note::Kind::UnknownResponse), 1U);
}

TEST(Timeouts, ThreeInARowRecycleAWorkerThatMayStay) {
  CoreBench bench{tolerant()};
  const ChannelId channel = bench.ready("a", "v1", cancels());
  const auto time_out = [&](const std::string& id) {
    ASSERT_TRUE(bench.submit(with_timeout(bench, id, seconds{1})));
    bench.advance(seconds{1});
    EXPECT_EQ(bench.outcome(id)->cause, Cause::TimedOut);
  };
  time_out("i1");
  time_out("i2");
  ASSERT_TRUE(bench.submit("good"));
  bench.respond(channel, "good");
  time_out("i3");
  time_out("i4");
  EXPECT_EQ(bench.state("a"), WorkerState::Ready) << "an answer came between";
  time_out("i5");
  EXPECT_EQ(bench.state("a"), WorkerState::Draining);
  for (const char* id : {"i1", "i2", "i3", "i4"}) bench.respond(channel, id);
  EXPECT_TRUE(bench.sent_to<Terminate>(channel).empty());
  bench.respond(channel, "i5");
  EXPECT_EQ(bench.sent_to<Terminate>(channel).size(), 1U) << "nothing is left to wait for";
  bench.advance(seconds{5});
  EXPECT_TRUE(bench.is_closed(channel));
  ASSERT_EQ(bench.count(Signal::Kind::Replace), 1U);
  EXPECT_TRUE(bench.signals.back().is_urgent());
}

TEST(Timeouts, ARecycledWorkerThatDoesNotFinishIsGivenUpAfterTheDrainTime) {
  RuntimeOptions options = tolerant();
  options.recycle_on_consecutive_timeouts = 1;
  CoreBench bench{options};
  const ChannelId channel = bench.ready("a", "v1", cancels());
  ASSERT_TRUE(bench.submit(with_timeout(bench, "hung", seconds{1})));
  bench.advance(seconds{1});
  EXPECT_EQ(bench.state("a"), WorkerState::Draining);
  bench.advance(seconds{30});
  EXPECT_EQ(bench.state("a"), WorkerState::Abandoned);
  EXPECT_TRUE(bench.is_closed(channel));
  EXPECT_EQ(bench.count(Signal::Kind::Replace), 1U);
}

TEST(Timeouts, OfWhatNeverReachedTheWorkerAreNotItsFault) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a", "v1", {});
  ASSERT_TRUE(bench.core.submit(with_timeout(bench, "i1", seconds{3}), bench.now));
  bench.block(channel);
  bench.advance(seconds{3});
  EXPECT_EQ(bench.outcome("i1")->cause, Cause::TimedOut);
  EXPECT_EQ(bench.state("a"), WorkerState::Ready);
  bench.unblock(channel);
  EXPECT_TRUE(bench.sent_to<InvocationRequest>(channel).empty());
  EXPECT_EQ(bench.core.free_slots(bench.app), 10U);
}

TEST(Timeouts, WaitingForASlotIsLimitedToo) {
  RuntimeOptions options;
  options.slots_per_worker = 1;
  CoreBench bench{options};
  bench.ready("a", "v1", {});
  ASSERT_TRUE(bench.submit("running"));
  ASSERT_TRUE(bench.submit("waiting"));
  bench.advance(seconds{60});
  EXPECT_EQ(bench.outcome("waiting")->cause, Cause::Overloaded);
  EXPECT_EQ(bench.outcome("waiting")->settlement, Settlement::Abandon);
  EXPECT_EQ(bench.outcome("running"), nullptr);
}

// What has no time of its own any more, here because its answer is held by a switch that cannot go on.
TEST(Timeouts, OrphansAreSwept) {
  RuntimeOptions options;
  options.orphan_after = seconds{100};
  options.lost_after = seconds{3600};
  CoreBench bench{options};
  const ChannelId channel = bench.ready("a", "v1", {});
  ASSERT_TRUE(bench.submit("i1"));
  WorkerSpecialized other = bench.specialized("a");
  other.application.job_host.application_id = "other";
  bench.say(channel, other);
  bench.respond(channel, "i1");
  bench.core.handle_detached(channel, bench.now);
  bench.advance(milliseconds{119'999});
  EXPECT_EQ(bench.outcome("i1"), nullptr);
  bench.advance(milliseconds{1});
  ASSERT_NE(bench.outcome("i1"), nullptr) << "the second sweep";
  EXPECT_EQ(bench.outcome("i1")->cause, Cause::Orphaned);
  EXPECT_EQ(bench.outcome("i1")->settlement, Settlement::Abandon);
  EXPECT_EQ(bench.worker("a")->in_flight, 1U) << "its answer is still held";
  bench.core.handle_attached(channel, bench.now);
  bench.say(channel, MetadataResponse{success(), false, bench.functions});
  EXPECT_EQ(bench.worker("a")->in_flight, 0U);
}

TEST(Timeouts, WhatMayRunForAnHourIsNoOrphan) {
  RuntimeOptions options;
  options.invocation_timeout_max = seconds{3600};
  CoreBench bench{options};
  const ChannelId channel = bench.ready("a", "v1", {});
  ASSERT_TRUE(bench.submit(with_timeout(bench, "i1", seconds{3600})));
  ASSERT_TRUE(bench.submit(with_timeout(bench, "i2", seconds{3600})));
  bench.advance(milliseconds{3'599'999});
  EXPECT_TRUE(bench.outcomes.empty());
  bench.respond(channel, "i1");
  EXPECT_EQ(bench.outcome("i1")->settlement, Settlement::Complete);
  bench.advance(milliseconds{1});
  EXPECT_EQ(bench.outcome("i2")->cause, Cause::TimedOut);
}

TEST(Timeouts, WhatWaitsForALongRetryIsNoOrphan) {
  RuntimeOptions options;
  options.orphan_after = seconds{100};
  CoreBench bench{options};
  auto retried = std::make_shared<Function>(*make_function("one"));
  retried->has_retry = true;
  retried->retry.retries_max = 1;
  retried->retry.delay = seconds{3600};
  bench.functions = {retried};
  const ChannelId channel = bench.ready("a", "v1", {});
  ASSERT_TRUE(bench.submit("i1"));
  bench.respond(channel, "i1", failure("boom"));
  bench.advance(seconds{3599});
  EXPECT_EQ(bench.sent_to<InvocationRequest>(channel).size(), 1U);
  bench.advance(seconds{1});
  EXPECT_EQ(bench.sent_to<InvocationRequest>(channel).size(), 2U);
}

}  // namespace
}  // namespace windlass::runtime
