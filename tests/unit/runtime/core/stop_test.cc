// The end of a runtime: nothing is taken any more, what is under way may end, everything has its outcome.
#include "tests/unit/runtime/core/core_bench.h"

namespace windlass::runtime {
namespace {

RuntimeOptions one_slot() {
  RuntimeOptions options;
  options.slots_per_worker = 1;
  return options;
}

void stop(CoreBench& bench) {
  bench.core.stop(bench.now);
  bench.poll();
}

TEST(Stop, RefusesWhatIsNewAndEndsWhatWaits) {
  CoreBench bench{one_slot()};
  bench.ready("a");
  ASSERT_TRUE(bench.submit("running"));
  ASSERT_TRUE(bench.submit("waiting"));
  stop(bench);
  EXPECT_EQ(bench.outcome("waiting")->cause, Cause::Stopping);
  EXPECT_EQ(bench.outcome("waiting")->settlement, Settlement::Abandon);
  EXPECT_EQ(bench.outcome("running"), nullptr);
  EXPECT_EQ(bench.submit("late").error().code, ErrorCode::SessionDraining);
  EXPECT_EQ(bench.core.free_slots(bench.app), 0U);
  EXPECT_EQ(bench.core.health().level, RuntimeHealth::Level::Unhealthy);
}

TEST(Stop, ClosesEveryChannelOnceTheLastInvocationEnded) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a");
  const ChannelId idle = bench.placeholder("b");
  const ChannelId nobody = bench.open();
  ASSERT_TRUE(bench.submit("i1"));
  stop(bench);
  bench.advance(seconds{1});
  EXPECT_TRUE(bench.closed.empty());
  bench.respond(channel, "i1");
  EXPECT_EQ(bench.outcome("i1")->settlement, Settlement::Complete);
  bench.advance(Duration{});
  for (const ChannelId each : {channel, idle, nobody}) EXPECT_TRUE(bench.is_closed(each));
  for (const CloseChannel& close : bench.closed) EXPECT_TRUE(close.is_clean);
  EXPECT_EQ(bench.count(Signal::Kind::Replace), 0U);
}

TEST(Stop, WithNothingUnderWayIsAtOnce) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a");
  stop(bench);
  EXPECT_TRUE(bench.is_closed(channel));
  EXPECT_EQ(bench.state("a"), WorkerState::Disconnected);
}

TEST(Stop, WaitsNoLongerThanTheDrainTime) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a");
  ASSERT_TRUE(bench.submit("i1"));
  stop(bench);
  bench.advance(milliseconds{29'999});
  EXPECT_EQ(bench.outcome("i1"), nullptr);
  bench.advance(milliseconds{1});
  EXPECT_EQ(bench.outcome("i1")->cause, Cause::Stopping);
  EXPECT_TRUE(bench.is_closed(channel));
  EXPECT_EQ(bench.core.in_flight(), 0U);
}

TEST(Stop, CountsAnswersThatASwitchHolds) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a");
  ASSERT_TRUE(bench.submit("held"));
  ASSERT_TRUE(bench.submit("open"));
  WorkerSpecialized other = bench.specialized("a");
  other.application.job_host.application_id = "other";
  bench.say(channel, other);
  bench.respond(channel, "held");
  stop(bench);
  EXPECT_EQ(bench.outcome("held"), nullptr);
  bench.advance(seconds{30});
  EXPECT_EQ(bench.outcome("held")->settlement, Settlement::Complete);
  EXPECT_EQ(bench.outcome("open")->cause, Cause::Stopping);
  EXPECT_TRUE(bench.is_closed(channel));
}

TEST(Stop, EndsRetriesAndStartsNone) {
  auto retried = std::make_shared<Function>(*make_function("one"));
  retried->has_retry = true;
  retried->retry.retries_max = 9;
  retried->retry.delay = seconds{1};
  CoreBench bench;
  bench.functions = {retried};
  const ChannelId channel = bench.ready("a");
  ASSERT_TRUE(bench.submit("delayed"));
  ASSERT_TRUE(bench.submit("running"));
  bench.respond(channel, "delayed", failure("boom"));
  stop(bench);
  EXPECT_EQ(bench.outcome("delayed")->cause, Cause::Stopping);
  bench.respond(channel, "running", failure("boom"));
  EXPECT_EQ(bench.outcome("running")->cause, Cause::FunctionFailed);
}

TEST(Stop, AsksForNoReplacementOfAWorkerThatDies) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a");
  Invocation again = bench.invocation("i1");
  again.is_idempotent = true;
  ASSERT_TRUE(bench.submit(again));
  stop(bench);
  bench.end(channel, ChannelEnd::Unavailable);
  EXPECT_EQ(bench.outcome("i1")->cause, Cause::WorkerLost);
  EXPECT_EQ(bench.count(Signal::Kind::Replace), 0U);
}

TEST(Stop, TurnsNewChannelsAndWorkersAway) {
  CoreBench bench;
  bench.ready("a");
  ASSERT_TRUE(bench.submit("i1"));
  const ChannelId open = bench.open();
  stop(bench);
  bench.say(open, StartStream{WorkerId{"b"}});
  EXPECT_TRUE(bench.is_closed(open));
  EXPECT_FALSE(bench.worker("b"));
  EXPECT_TRUE(bench.is_closed(bench.open()));
}

}  // namespace
}  // namespace windlass::runtime
