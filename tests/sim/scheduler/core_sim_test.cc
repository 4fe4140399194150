// What a world of the scheduler's core must be so that a failure can be looked at. The many worlds themselves
// are windlass-scheduler-sim's.
#include <gtest/gtest.h>

#include "tests/sim/scheduler/core_world.h"
#include "tests/sim/scheduler/fleet_world.h"

namespace windlass::sim {
namespace {

TEST(SchedulerCoreWorlds, AreTheSameForTheSameSeed) {
  CoreWorld first{7};
  CoreWorld second{7};
  EXPECT_FALSE(first.run().has_value());
  EXPECT_FALSE(second.run().has_value());
  EXPECT_EQ(first.stats().commits, second.stats().commits);
  EXPECT_EQ(first.stats().accepted, second.stats().accepted);
  EXPECT_EQ(first.stats().resent, second.stats().resent);
}

TEST(SchedulerFleetWorlds, AreTheSameForTheSameSeed) {
  FleetWorld first{7};
  FleetWorld second{7};
  EXPECT_FALSE(first.run().has_value());
  EXPECT_FALSE(second.run().has_value());
  EXPECT_EQ(first.stats().assigned, second.stats().assigned);
  EXPECT_EQ(first.stats().reloads, second.stats().reloads);
}

}  // namespace
}  // namespace windlass::sim
