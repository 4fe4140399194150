// A thousand worlds of the scheduler's core; a failure prints its seed, and the seed alone replays it.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/sim/scheduler/core_world.h"

namespace windlass::sim {
namespace {

std::uint64_t seeds() {
  const char* const wanted = std::getenv("WINDLASS_CORE_SEEDS");
  return wanted == nullptr ? 1000 : std::strtoull(wanted, nullptr, 10);
}

TEST(SchedulerCoreWorlds, KeepEveryPromiseThroughCrashesAndFullDisks) {
  CoreStats sum;
  for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
    CoreWorld world{seed};
    const auto broken = world.run();
    ASSERT_FALSE(broken.has_value()) << "seed " << seed << ": '" << broken->oracle << "': " << broken->what;
    const CoreStats& stats = world.stats();
    sum.accepted += stats.accepted;
    sum.results += stats.results;
    sum.expired += stats.expired;
    sum.crashes += stats.crashes;
    sum.commits_failed += stats.commits_failed;
    sum.resent += stats.resent;
    sum.from_journal += stats.from_journal;
  }
  RecordProperty("accepted", std::to_string(sum.accepted));
  std::printf(
      "accepted %llu, results %llu, expired %llu, crashes %llu, commits failed %llu, sent again %llu, from "
      "journals %llu\n",
      static_cast<unsigned long long>(sum.accepted), static_cast<unsigned long long>(sum.results),
      static_cast<unsigned long long>(sum.expired), static_cast<unsigned long long>(sum.crashes),
      static_cast<unsigned long long>(sum.commits_failed), static_cast<unsigned long long>(sum.resent),
      static_cast<unsigned long long>(sum.from_journal));
  // The worlds must hurt, or they prove nothing.
  EXPECT_GT(sum.results, 10 * seeds());
  EXPECT_GT(sum.crashes, seeds());
  EXPECT_GT(sum.commits_failed, seeds());
  EXPECT_GT(sum.resent, seeds());
  EXPECT_GT(sum.from_journal, seeds() / 2);
  EXPECT_GT(sum.expired, seeds() / 10);
}

TEST(SchedulerCoreWorlds, AreTheSameForTheSameSeed) {
  CoreWorld first{7};
  CoreWorld second{7};
  EXPECT_FALSE(first.run().has_value());
  EXPECT_FALSE(second.run().has_value());
  EXPECT_EQ(first.stats().commits, second.stats().commits);
  EXPECT_EQ(first.stats().accepted, second.stats().accepted);
  EXPECT_EQ(first.stats().resent, second.stats().resent);
}

}  // namespace
}  // namespace windlass::sim
