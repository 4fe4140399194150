#include "runtime/core/log_levels.h"

#include <gtest/gtest.h>

namespace windlass::runtime {
namespace {

bool takes(const LogLevels& levels, LogLevel level, std::string_view function,
           LogSource source = LogSource::User) {
  Log log;
  log.level = level;
  log.source = source;
  return levels.takes(log, function);
}

TEST(LogLevels, WriteEverythingWhereNothingIsSaid) {
  const LogLevels levels;
  EXPECT_TRUE(takes(levels, LogLevel::Trace, "greet"));
  LogLevels host;
  host.set("Host", LogLevel::Error);
  EXPECT_TRUE(takes(host, LogLevel::Trace, "greet"));
  EXPECT_FALSE(takes(host, LogLevel::Warning, "greet", LogSource::System));
}

TEST(LogLevels, TheLongestCategoryCounts) {
  LogLevels levels;
  levels.set("default", LogLevel::Critical);
  levels.set("Function", LogLevel::Error);
  levels.set("function.Greet", LogLevel::Warning);
  levels.set("Function.greet.User", LogLevel::Information);
  levels.set("Function.mute", LogLevel::None);
  EXPECT_TRUE(takes(levels, LogLevel::Information, "greet"));
  EXPECT_FALSE(takes(levels, LogLevel::Debug, "greet"));
  EXPECT_FALSE(takes(levels, LogLevel::Warning, "greeter")) << "a name that only begins alike";
  EXPECT_TRUE(takes(levels, LogLevel::Error, "greeter"));
  EXPECT_FALSE(takes(levels, LogLevel::Critical, "mute"));
  EXPECT_FALSE(takes(levels, LogLevel::Warning, ""));
  EXPECT_FALSE(takes(levels, LogLevel::Error, "greet", LogSource::System)) << "the default's";
  EXPECT_TRUE(takes(levels, LogLevel::Critical, "greet", LogSource::System));
}

TEST(LogLevels, HaveTheNamesOfAzure) {
  EXPECT_EQ(read_log_level("Information"), LogLevel::Information);
  EXPECT_EQ(read_log_level("none"), LogLevel::None);
  EXPECT_EQ(read_log_level("loud"), std::nullopt);
}

}  // namespace
}  // namespace windlass::runtime
