// Memory that runs short: intake pauses, the oldest workers go, and all of it comes back.
#include "runtime/core/recovery.h"
#include "tests/unit/runtime/core/core_bench.h"

namespace windlass::runtime {
namespace {

void measure_memory(CoreBench& bench, double utilization) {
  bench.core.handle_memory(utilization, bench.now);
  bench.poll();
}

TEST(Memory, ElevatedIsSaidOnceAndChangesNothing) {
  CoreBench bench;
  bench.ready("a");
  measure_memory(bench, 0.75);
  measure_memory(bench, 0.76);
  EXPECT_EQ(bench.count(Note::Kind::MemoryPressure), 1U);
  EXPECT_EQ(bench.count(Signal::Kind::ScaleDown), 1U);
  EXPECT_TRUE(bench.submit("i1"));
  EXPECT_EQ(bench.core.free_slots(bench.app), 9U);
}

TEST(Memory, CriticalPausesIntakeAndLetsWorkGoOn) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a");
  ASSERT_TRUE(bench.submit("before"));
  measure_memory(bench, 0.95);
  EXPECT_EQ(bench.submit("i1").error().code, ErrorCode::LimitCapacity);
  EXPECT_EQ(bench.core.free_slots(bench.app), 0U) << "listeners take nothing either";
  EXPECT_EQ(bench.core.health().level, RuntimeHealth::Level::Degraded);
  bench.respond(channel, "before");
  EXPECT_EQ(bench.outcome("before")->settlement, Settlement::Complete);
  EXPECT_EQ(bench.state("a"), WorkerState::Ready) << "the pause may be enough";
}

TEST(Memory, NobodyIsReadyWhileNoInvocationIsTaken) {
  CoreBench bench;
  bench.ready("a");
  for (const bool is_critical : {false, true, false}) {
    measure_memory(bench, is_critical ? 0.95 : 0.1);
    EXPECT_EQ(bench.core.health().ready_workers, is_critical ? 0U : 1U);
    EXPECT_EQ(bench.job_host(bench.app)->ready, is_critical ? 0U : 1U);
    EXPECT_EQ(bench.state("a"), WorkerState::Ready) << "the worker itself is well";
  }
  bench.core.stop(bench.now);
  EXPECT_EQ(bench.core.health().ready_workers, 0U);
}

TEST(Memory, ResumesBelowTheLowerBoundOnly) {
  CoreBench bench;
  bench.ready("a");
  measure_memory(bench, 0.91);
  measure_memory(bench, 0.86);
  EXPECT_FALSE(bench.submit("i1"));
  measure_memory(bench, 0.85);
  EXPECT_TRUE(bench.submit("i1"));
  EXPECT_EQ(bench.core.health().level, RuntimeHealth::Level::Healthy);
}

TEST(Memory, DrainsTheOldestWorkersWhileItStaysCritical) {
  CoreBench bench;
  for (const char* id : {"d", "c", "b", "a"}) {
    bench.ready(id, "v1", {});
    bench.advance(seconds{1});
  }
  measure_memory(bench, 0.95);
  bench.advance(seconds{9});
  measure_memory(bench, 0.95);
  EXPECT_EQ(bench.count(Note::Kind::WorkerDraining), 0U) << "not before ten seconds";
  bench.advance(seconds{1});
  measure_memory(bench, 0.95);
  EXPECT_EQ(bench.state("d"), WorkerState::Draining);
  EXPECT_EQ(bench.state("c"), WorkerState::Draining);
  EXPECT_EQ(bench.state("b"), WorkerState::Ready);
  EXPECT_EQ(bench.state("a"), WorkerState::Ready);
  bench.advance(seconds{10});
  EXPECT_EQ(bench.state("d"), WorkerState::Disconnected);
  EXPECT_EQ(bench.count(Signal::Kind::Replace), 0U) << "it is to be less";
  measure_memory(bench, 0.95);
  EXPECT_EQ(bench.state("b"), WorkerState::Draining);
}

TEST(Memory, LetsWorkersFinishBeforeTheyGo) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a", "v1", {});
  ASSERT_TRUE(bench.submit("i1"));
  measure_memory(bench, 0.95);
  bench.advance(seconds{10});
  measure_memory(bench, 0.95);
  EXPECT_EQ(bench.state("a"), WorkerState::Draining);
  EXPECT_TRUE(bench.sent_to<Terminate>(channel).empty());
  bench.respond(channel, "i1");
  EXPECT_EQ(bench.outcome("i1")->settlement, Settlement::Complete);
  EXPECT_EQ(bench.sent_to<Terminate>(channel).size(), 1U);
}

TEST(Memory, TellsAgentsToBringNoOtherWorker) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a", "v1", {});
  measure_memory(bench, 0.95);
  bench.advance(seconds{10});
  measure_memory(bench, 0.95);
  ASSERT_EQ(bench.sent_to<StayDown>(channel).size(), 1U);
  EXPECT_EQ(bench.sent_to<StayDown>(channel)[0]->reason, "memory pressure is critical");
  EXPECT_TRUE(bench.sent_to<StayDown>(channel)[0]->is_for_memory);
  EXPECT_EQ(bench.core.health().memory_pressure, "critical");
  const auto is_stay = [](const Send& each) { return std::holds_alternative<StayDown>(each.message); };
  const auto is_end = [](const Send& each) { return std::holds_alternative<Terminate>(each.message); };
  EXPECT_LT(std::ranges::find_if(bench.sent, is_stay), std::ranges::find_if(bench.sent, is_end));
}

TEST(Memory, AnOrderCountsForMoreThanTheWantOfMemory) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a", "v1", {});
  ASSERT_TRUE(bench.submit("i1"));
  measure_memory(bench, 0.95);
  bench.advance(seconds{10});
  measure_memory(bench, 0.95);
  ASSERT_EQ(bench.state("a"), WorkerState::Draining);
  ASSERT_TRUE(bench.core.drain(WorkerId{"a"}, "scale down", bench.now));
  bench.respond(channel, "i1");
  ASSERT_EQ(bench.sent_to<StayDown>(channel).size(), 1U);
  EXPECT_FALSE(bench.sent_to<StayDown>(channel)[0]->is_for_memory) << "nobody may resume it by himself";
  measure_memory(bench, 0.1);
  EXPECT_EQ(bench.core.health().memory_pressure, "normal");
}

TEST(Memory, SparesTheOnlyWorkerOfAnApplicationAsLongAsThereAreOthers) {
  CoreBench bench;
  bench.ready("only", "v1", {});
  bench.advance(seconds{1});
  bench.app = {"other", "m1"};
  for (const char* id : {"a", "b", "c"}) bench.ready(id, "v1", {});
  measure_memory(bench, 0.95);
  bench.advance(seconds{10});
  measure_memory(bench, 0.95);
  EXPECT_EQ(bench.state("only"), WorkerState::Ready);
  EXPECT_EQ(bench.count(Note::Kind::WorkerDraining), 2U);
}

TEST(Memory, DoesNotDrainBothWorkersOfAnApplicationWhileAnotherHasMore) {
  CoreBench bench;
  for (const char* id : {"a1", "a2"}) bench.ready(id, "v1", {});
  bench.advance(seconds{1});
  bench.app = {"other", "m1"};
  for (const char* id : {"b1", "b2", "b3"}) bench.ready(id, "v1", {});
  measure_memory(bench, 0.95);
  bench.advance(seconds{10});
  measure_memory(bench, 0.95);
  EXPECT_EQ(bench.state("a1"), WorkerState::Draining);
  EXPECT_EQ(bench.state("a2"), WorkerState::Ready);
  EXPECT_EQ(bench.state("b1"), WorkerState::Draining);
}

TEST(Memory, PressureHasBoundsThatDoNotFlap) {
  const RuntimeOptions options;
  using enum MemoryPressure;
  EXPECT_EQ(pressure_of(0.70, Normal, options), Normal);
  EXPECT_EQ(pressure_of(0.71, Normal, options), Elevated);
  EXPECT_EQ(pressure_of(0.90, Elevated, options), Elevated);
  EXPECT_EQ(pressure_of(0.91, Elevated, options), Critical);
  EXPECT_EQ(pressure_of(0.86, Critical, options), Critical);
  EXPECT_EQ(pressure_of(0.85, Critical, options), Elevated);
  EXPECT_EQ(pressure_of(0.10, Critical, options), Normal);
}

}  // namespace
}  // namespace windlass::runtime
