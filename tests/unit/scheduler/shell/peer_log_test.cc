// The rate of log lines that peers cause.
#include "scheduler/shell/peer_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace windlass {
namespace {

class PeerLogTest : public ::testing::Test {
 protected:
  PeerLogTest()
      : file(std::filesystem::temp_directory_path() / ("peer_log_test." + std::to_string(::getpid()))),
        log(*JsonLog::open({.level = LogLevel::Info, .file = file.string()})),
        peers(log.get()) {}
  ~PeerLogTest() override { std::filesystem::remove(file); }

  std::vector<std::string> lines() const {
    std::vector<std::string> found;
    std::ifstream in{file};
    for (std::string line; std::getline(in, line);) found.push_back(line);
    return found;
  }

  std::filesystem::path file;
  std::unique_ptr<JsonLog> log;
  PeerLog peers;
  Instant now{seconds{100}};
};

TEST_F(PeerLogTest, WritesWhatAppliesAndLeavesOutTheRest) {
  peers.say(PeerNews::FrameRefused,
            {.tenant = "acme", .sender_id = "i-1", .type = "biz.x", .code = "E.PROTO.SCHEMA", .seq = 0}, now);
  ASSERT_EQ(lines().size(), 1U);
  EXPECT_NE(
      lines()[0].find(R"("event":"a frame was refused","tenant":"acme","sender.id":"i-1","type":"biz.x",)"
                      R"("code":"E.PROTO.SCHEMA","seq":0})"),
      std::string::npos)
      << lines()[0];
}

TEST_F(PeerLogTest, BoundsWhatStrangersCauseAndSaysHowMuchWasLeftOut) {
  for (int i = 0; i < 10'000; ++i) peers.say(PeerNews::ConnectionRefused, {}, now);
  EXPECT_EQ(lines().size(), limits::kLogLinesBurst);
  now += limits::kLogLineRefill;
  peers.say(PeerNews::ConnectionRefused, {}, now);
  ASSERT_EQ(lines().size(), limits::kLogLinesBurst + 1);
  EXPECT_NE(lines().back().find(R"("left_out":9936)"), std::string::npos) << lines().back();
}

TEST_F(PeerLogTest, ALoudKindSilencesNoOther) {
  for (int i = 0; i < 10'000; ++i) peers.say(PeerNews::ConnectionRefused, {}, now);
  peers.say(PeerNews::SessionOpened, {.tenant = "acme"}, now);
  EXPECT_NE(lines().back().find("a session opened"), std::string::npos);
}

TEST_F(PeerLogTest, SaysNothingBelowItsLevel) {
  EXPECT_FALSE(peers.takes(PeerNews::MessageCame));
  peers.say(PeerNews::MessageCame, {.id = "m"}, now);
  EXPECT_TRUE(lines().empty());
}

}  // namespace
}  // namespace windlass
