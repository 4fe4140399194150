// A JobHost that fails: recreated as long as that can help, then ended together with its workers.
#include "tests/unit/runtime/core/core_bench.h"

namespace windlass::runtime {
namespace {

void fail_host(CoreBench& bench) {
  bench.core.handle_job_host_failed(bench.app, "the listener broke", bench.now);
  bench.poll();
}

TEST(JobHostFailure, EndsItsInvocationsAndRunsAgain) {
  RuntimeOptions options;
  options.slots_per_worker = 1;
  CoreBench bench{options};
  const ChannelId channel = bench.ready("a");
  ASSERT_TRUE(bench.submit("running"));
  ASSERT_TRUE(bench.submit("waiting"));
  fail_host(bench);
  EXPECT_EQ(bench.outcome("running")->cause, Cause::JobHostFailed);
  EXPECT_EQ(bench.outcome("waiting")->cause, Cause::JobHostFailed);
  EXPECT_EQ(bench.outcome("waiting")->reason, "the listener broke");
  EXPECT_EQ(bench.count(Note::Kind::JobHostFailed), 1U);
  EXPECT_EQ(bench.job_host(bench.app)->state, JobHostState::Running);
  EXPECT_EQ(bench.state("a"), WorkerState::Ready);
  EXPECT_EQ(bench.core.free_slots(bench.app), 0U) << "the worker still runs what it was given";
  bench.respond(channel, "running");
  EXPECT_EQ(bench.core.free_slots(bench.app), 1U);
  ASSERT_TRUE(bench.submit("next"));
  bench.respond(channel, "next");
  EXPECT_EQ(bench.outcome("next")->settlement, Settlement::Complete);
}

TEST(JobHostFailure, HurtsNoOtherApplication) {
  CoreBench bench;
  bench.ready("a");
  const JobHostKey failed = bench.app;
  bench.app = {"other", "m1"};
  const ChannelId other = bench.ready("b");
  ASSERT_TRUE(bench.submit("i1"));
  bench.core.handle_job_host_failed(failed, "the listener broke", bench.now);
  bench.poll();
  EXPECT_EQ(bench.outcome("i1"), nullptr);
  bench.respond(other, "i1");
  EXPECT_EQ(bench.outcome("i1")->settlement, Settlement::Complete);
}

TEST(JobHostFailure, TheFourthEndsItsWorkersAndAsksForOthers) {
  CoreBench bench;
  const ChannelId first = bench.ready("a");
  const ChannelId second = bench.ready("b");
  for (int i = 0; i < 3; ++i) fail_host(bench);
  EXPECT_EQ(bench.state("a"), WorkerState::Ready);
  EXPECT_TRUE(bench.closed.empty());
  fail_host(bench);
  EXPECT_EQ(bench.state("a"), WorkerState::Abandoned);
  EXPECT_EQ(bench.state("b"), WorkerState::Abandoned);
  EXPECT_TRUE(bench.is_closed(first));
  EXPECT_TRUE(bench.is_closed(second));
  EXPECT_EQ(bench.sent_to<Terminate>(first).size(), 1U);
  EXPECT_EQ(bench.count(Signal::Kind::Replace), 2U);
  EXPECT_TRUE(bench.signals.back().is_urgent());
  ASSERT_TRUE(bench.submit("i1"));
  EXPECT_EQ(bench.outcome("i1")->cause, Cause::JobHostFailed);
}

TEST(JobHostFailure, AReplacementMakesItRunAgain) {
  CoreBench bench;
  bench.ready("a");
  for (int i = 0; i < 4; ++i) fail_host(bench);
  const ChannelId next = bench.ready("b");
  EXPECT_EQ(bench.sent_to<MetadataRequest>(next).size(), 1U);
  EXPECT_EQ(bench.job_host(bench.app)->state, JobHostState::Running);
  ASSERT_TRUE(bench.submit("i1"));
  bench.respond(next, "i1");
  EXPECT_EQ(bench.outcome("i1")->settlement, Settlement::Complete);
}

TEST(JobHostFailure, WithoutAReplacementItStops) {
  CoreBench bench;
  bench.ready("a");
  for (int i = 0; i < 4; ++i) fail_host(bench);
  bench.advance(seconds{61});
  EXPECT_FALSE(bench.job_host(bench.app));
}

TEST(JobHostFailure, FailuresFarApartAreNotCountedTogether) {
  CoreBench bench;
  bench.ready("a", "v1", {});
  for (int i = 0; i < 10; ++i) {
    fail_host(bench);
    EXPECT_EQ(bench.state("a"), WorkerState::Ready);
    bench.advance(seconds{301});
  }
  EXPECT_TRUE(bench.closed.empty());
}

}  // namespace
}  // namespace windlass::runtime
