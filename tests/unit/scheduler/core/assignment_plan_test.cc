#include "scheduler/core/assignment_plan.h"

#include <gtest/gtest.h>

namespace windlass {
namespace {

PlacedWorker placed(const char* id, const char* runtime, Availability availability = Availability::Idle,
                    const char* language = "node") {
  return {InstanceId{id}, language, runtime, availability};
}

PlacedRuntime runtime(const char* id, bool serves_app = false) {
  return {InstanceId{id}, std::string{"wss://"} + id, 0, true, serves_app};
}

PlanRequest wanted(std::uint32_t workers) {
  return {
      .application_id = "hello", .language = "node", .workers = workers, .runtime = {}, .is_partial = false};
}

std::vector<std::string> ids(const AssignmentPlan& plan) {
  std::vector<std::string> all;
  for (const PlannedWorker& each : plan.workers) all.push_back(each.id.value());
  return all;
}

TEST(AssignmentPlan, TakesThoseOfTheRuntimeFirstAndThenMovesOthers) {
  const FleetView fleet{{placed("a", "r2"), placed("b", "r1"), placed("c", "r1")},
                        {runtime("r1"), runtime("r2")}};
  const auto plan = plan_assignment(fleet, wanted(3));
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->runtime.value(), "r1") << "it has most idle ones";
  EXPECT_EQ(ids(*plan), (std::vector<std::string>{"b", "c", "a"}));
  EXPECT_FALSE(plan->workers[0].moves);
  EXPECT_TRUE(plan->workers[2].moves);
}

TEST(AssignmentPlan, PrefersTheRuntimeThatServesTheApplication) {
  const FleetView fleet{{placed("a", "r1"), placed("b", "r1")}, {runtime("r1"), runtime("r2", true)}};
  const auto plan = plan_assignment(fleet, wanted(1));
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->runtime.value(), "r2");
  EXPECT_TRUE(plan->workers[0].moves);
}

TEST(AssignmentPlan, ObeysANamedRuntimeAndSaysWhichThereAre) {
  const FleetView fleet{{placed("a", "r1")}, {runtime("r1"), runtime("r2")}};
  PlanRequest request = wanted(1);
  request.runtime = "r2";
  EXPECT_EQ(plan_assignment(fleet, request)->runtime.value(), "r2");
  request.runtime = "r9";
  EXPECT_EQ(plan_assignment(fleet, request).error().reason, "no runtime 'r9' is connected; there are r1, r2");
}

TEST(AssignmentPlan, ChoosesNobodyButIdlePlaceholdersOfTheLanguage) {
  const FleetView fleet{
      {placed("a", "r1", Availability::Claimed), placed("b", "r1", Availability::Away),
       placed("c", "r1", Availability::Busy), placed("d", "r1", Availability::Draining),
       placed("e", "r1", Availability::Failed), placed("f", "r1", Availability::Idle, "native")},
      {runtime("r1")}};
  const auto plan = plan_assignment(fleet, wanted(1));
  ASSERT_FALSE(plan.has_value());
  EXPECT_EQ(
      plan.error().reason,
      "there are 0 idle placeholders of language 'node', 1 was asked for (1 assigned already, 1 busy with an "
      "application, 1 draining, 1 away, 1 failed)");
}

TEST(AssignmentPlan, GivesFewerOnlyWhenThatIsWanted) {
  const FleetView fleet{{placed("a", "r1")}, {runtime("r1")}};
  EXPECT_FALSE(plan_assignment(fleet, wanted(2)).has_value());
  PlanRequest request = wanted(2);
  request.is_partial = true;
  const auto plan = plan_assignment(fleet, request);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(ids(*plan), (std::vector<std::string>{"a"}));
  EXPECT_EQ(plan->shortfall, "there is 1 idle placeholder of language 'node', 2 were asked for");
}

TEST(AssignmentPlan, MovesNobodyToARuntimeWithoutAnAddress) {
  FleetView fleet{{placed("a", "r2"), placed("b", "r1")}, {runtime("r1", true)}};
  fleet.runtimes[0].url.clear();
  PlanRequest request = wanted(2);
  request.is_partial = true;
  EXPECT_EQ(ids(*plan_assignment(fleet, request)), (std::vector<std::string>{"b"}));
}

TEST(AssignmentPlan, PrefersARuntimeWithMemoryToOneThatServesTheApplication) {
  FleetView fleet{{placed("a", "r1"), placed("b", "r1")}, {runtime("r1", true), runtime("r2")}};
  fleet.runtimes[0].has_memory = false;
  EXPECT_EQ(plan_assignment(fleet, wanted(1))->runtime.value(), "r2");
  EXPECT_EQ(plan_runtime(fleet, wanted(1))->id.value(), "r2");
  PlanRequest request = wanted(1);
  request.runtime = "r1";
  EXPECT_EQ(plan_assignment(fleet, request)->runtime.value(), "r1") << "somebody knows what he does";
}

TEST(AssignmentPlan, UsesARuntimeThatIsShortOfMemoryWhereNoOtherCanTakeAWorker) {
  FleetView fleet{{placed("a", "r1")}, {runtime("r1", true), runtime("r2")}};
  fleet.runtimes[0].has_memory = false;
  fleet.runtimes[1].url.clear();
  PlanRequest request = wanted(1);
  EXPECT_EQ(plan_assignment(fleet, request)->runtime.value(), "r1") << "nobody can be sent to r2";
  fleet.runtimes.pop_back();
  EXPECT_EQ(plan_assignment(fleet, request)->runtime.value(), "r1");
  request.needs_memory = true;
  EXPECT_FALSE(plan_assignment(fleet, request).has_value());
}

TEST(AssignmentPlan, UsesNoRuntimeThatIsNotAvailable) {
  FleetView fleet{{placed("a", "r1")}, {runtime("r1")}};
  fleet.runtimes[0].is_available = false;
  EXPECT_FALSE(plan_assignment(fleet, wanted(1)).has_value());
  EXPECT_NE(plan_assignment({}, wanted(1)).error().reason.find("no runtime is connected"), std::string::npos);
}

}  // namespace
}  // namespace windlass
