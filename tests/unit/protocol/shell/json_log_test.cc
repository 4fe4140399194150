#include "protocol/shell/json_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

namespace windlass {
namespace {

TEST(JsonLog, ALineIsOneObjectWhateverItsFieldsHold) {
  const std::string path = ::testing::TempDir() + "json_log_test_" + std::to_string(::getpid());
  {
    auto log = JsonLog::open({.level = LogLevel::Info, .file = path});
    ASSERT_TRUE(log);
    (*log)->set_common({{"tenant", "acme"}});
    (*log)->debug("not this one");
    (*log)->info("a frame", {{"id", "a\"\n\xff"}, {"corr", ""}, {"seq", std::uint64_t{7}}, {"ok", true}});
  }
  std::stringstream text;
  text << std::ifstream{path}.rdbuf();
  std::remove(path.c_str());
  const std::string line = text.str();
  EXPECT_EQ(line.substr(0, 7), R"({"ts":")");
  EXPECT_EQ(line.substr(line.find("\"level\"")),
            R"("level":"info","event":"a frame","tenant":"acme","id":"a\"\u000a\u00ff","seq":7,"ok":true})"
            "\n");
}

TEST(JsonLog, AFileThatCannotBeOpenedIsOneSentence) {
  const auto log = JsonLog::open({.level = LogLevel::Info, .file = "/dev/null/x"});
  ASSERT_FALSE(log);
  EXPECT_TRUE(log.error().reason.starts_with("The log file /dev/null/x cannot be opened"));
}

}  // namespace
}  // namespace windlass
