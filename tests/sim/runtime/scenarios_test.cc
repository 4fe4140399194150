// What the worlds of the runtime's core found, kept by the seed that showed it first.
#include <gtest/gtest.h>

#include "tests/sim/runtime/runtime_world.h"

namespace windlass::sim {
namespace {

std::string broken_rule(std::uint64_t seed) {
  RuntimeWorld world{seed, false};
  const auto broken = world.run();
  return broken ? broken->oracle + ": " + broken->what : "";
}

// An agent asked for a restart of its worker; the session was cut, and the time for draining ended while it
// was. The invocation that the worker had under way failed, though a resume would have brought its answer.
TEST(RuntimeScenario, ADrainingWorkerWhoseSessionIsCutIsNotLostForNothing) {
  for (const std::uint64_t seed : {9'000'109U, 9'005'457U, 9'015'692U}) EXPECT_EQ(broken_rule(seed), "");
}

// A worker that drains may not change its application. The oracle took the refusal for the change and did not
// know that the failure of the old JobHost still concerns the worker.
TEST(RuntimeScenario, AWorkerWhoseChangeWasRefusedFallsWithItsOldJobHost) {
  EXPECT_EQ(broken_rule(9'026'679), "");
}

}  // namespace
}  // namespace windlass::sim
