#include "scheduler/shell/config.h"

#include <gtest/gtest.h>

#include <fstream>

namespace windlass {
namespace {

ConfigOutcome read(const std::string& text) {
  const std::string path =
      ::testing::TempDir() + ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".toml";
  std::ofstream{path} << text;
  return read_config({.file = path});
}

// A reload takes over what is said of tenants, and not the time of all.
TEST(SchedulerConfig, EveryTenantThatIsNamedHasItsOwnTimeUntilItIsLost) {
  const auto [config, problems] =
      read("[session]\nlost_after = \"90s\"\n[tenants.acme]\nheartbeat = \"60s\"\n");
  EXPECT_EQ(config.core.lost_after, Duration{seconds{90}});
  ASSERT_TRUE(config.core.tenant_lost_after.contains(TenantId{"acme"}));
  EXPECT_EQ(config.core.tenant_lost_after.at(TenantId{"acme"}), Duration{seconds{90}});
}

}  // namespace
}  // namespace windlass
