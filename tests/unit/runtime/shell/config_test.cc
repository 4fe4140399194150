#include "runtime/shell/config.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace windlass::runtime {
namespace {

RuntimeConfigOutcome read(const std::string& text) {
  const std::string path =
      ::testing::TempDir() + ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".toml";
  std::ofstream{path}.close();
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);  // tokens may stand in it
  std::ofstream{path} << "[session]\ncredentials_file = \"agents.toml\"\n" << text;
  return read_runtime_config({.file = path});
}

std::string all(const std::vector<std::string>& problems) {
  std::string text;
  for (const std::string& each : problems) text += each + "\n";
  return text;
}

TEST(RuntimeConfig, LittleIsNeededAndNothingLeavesTheMachine) {
  const auto [config, problems] = read("");
  EXPECT_EQ(all(problems), "");
  EXPECT_EQ(config.listen.host, "127.0.0.1");
  EXPECT_FALSE(config.http);
  EXPECT_FALSE(config.grpc);
  EXPECT_FALSE(config.scheduler);
}

TEST(RuntimeConfig, TheCoresNumbersHaveTheirOwnNames) {
  const auto [config, problems] = read(
      "[runtime]\nslots_per_worker = 3\nrouting = \"sticky\"\npending_timeout = \"7s\"\nmemory_drain = 0.5\n"
      "recycle_on_timeout = false\nworkers_max = 12\n");
  EXPECT_EQ(all(problems), "");
  EXPECT_EQ(config.core.slots_per_worker, 3U);
  EXPECT_EQ(config.core.routing, RoutingStrategy::Sticky);
  EXPECT_EQ(config.core.pending_timeout, Duration{seconds{7}});
  EXPECT_EQ(config.core.memory_drain, 0.5);
  EXPECT_FALSE(config.core.recycle_on_timeout);
  EXPECT_EQ(config.core.workers_max, 12U);
}

TEST(RuntimeConfig, ClearTextBeyondThisMachineIsRefused) {
  for (const char* section : {"server", "http", "grpc"}) {
    const auto outcome = read("[" + std::string{section} + "]\nlisten = \"0.0.0.0:0\"\n");
    EXPECT_NE(all(outcome.problems).find("clear text"), std::string::npos) << section;
  }
}

TEST(RuntimeConfig, StatusBeyondThisMachineNeedsATokenOrAWord) {
  const std::string admin = "[admin]\nlisten = \"0.0.0.0:0\"\n";
  EXPECT_NE(all(read(admin).problems).find("would answer everybody on the network"), std::string::npos);
  EXPECT_NE(all(read(admin + "token = \"sixteen-or-more-characters\"\n").problems).find("clear text"),
            std::string::npos);
  EXPECT_EQ(all(read(admin + "open = true\n").problems), "");
  EXPECT_EQ(all(read(admin + "token = \"sixteen-or-more-characters\"\nanywhere = true\n").problems), "");
}

TEST(RuntimeConfig, GrpcWithTlsWantsCertificatesOfWorkers) {
  const auto outcome = read("[grpc]\nlisten = \"0.0.0.0:0\"\ncertificate = \"c\"\nkey = \"k\"\n");
  EXPECT_NE(all(outcome.problems).find("client_authority"), std::string::npos);
}

TEST(RuntimeConfig, ApplicationsAreNamedBeforeTheyAreUsed) {
  const auto good = read(
      "[grpc]\napplication = \"shop\"\n[[application]]\nid = \"shop\"\ndirectory = \"/app\"\n"
      "environment = [\"A=1\", \"B=x=y\"]\n");
  EXPECT_EQ(all(good.problems), "");
  ASSERT_EQ(good.config.applications.size(), 1U);
  EXPECT_EQ(good.config.applications[0].environment.at("B"), "x=y");
  EXPECT_NE(all(read("[grpc]\napplication = \"shop\"\n").problems).find("grpc.application"),
            std::string::npos);
}

TEST(RuntimeConfig, ASchedulerNeedsATenantAndAToken) {
  const std::string problems = all(read("[scheduler]\nurl = \"ws://127.0.0.1:1\"\n").problems);
  EXPECT_NE(problems.find("tenant"), std::string::npos);
  EXPECT_NE(problems.find("token"), std::string::npos);
}

}  // namespace
}  // namespace windlass::runtime
