#include "worker-agent/adapters/worker_config.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace windlass::agent {
namespace {

std::string problem(std::string_view text) {
  const auto config = parse_worker_config(text, "/w");
  return config ? std::string{} : config.error().reason;
}

TEST(WorkerConfig, AWorkersDescriptionIsRead) {
  const auto config = parse_worker_config(
      R"({"description":{"language":"node","extensions":[".js"],"defaultExecutablePath":"node",
          "defaultWorkerPath":"src/main.js","arguments":["--x"],"workerIndexing":"true"},
          "processOptions":{"processStartupTimeout":"00:01:30","environmentReloadTimeout":"00:02:00"},
          "profiles":[{"anything":true}]})",
      "/w");
  ASSERT_TRUE(config.has_value()) << config.error().reason;
  EXPECT_EQ(config->language, "node");
  EXPECT_EQ(config->executable, "node");
  EXPECT_EQ(config->worker_path, "src/main.js");
  EXPECT_EQ(config->arguments, std::vector<std::string>{"--x"});
  EXPECT_TRUE(config->has_indexing);
  EXPECT_EQ(config->start_timeout, seconds{90});
  EXPECT_EQ(config->reload_timeout, seconds{120});
}

TEST(WorkerConfig, AWorkerThatIsAProgramItselfIsNotItsOwnArgument) {
  const auto config = parse_worker_config(
      R"({"description":{"language":"native","defaultExecutablePath":"w","defaultWorkerPath":"w"}})", "/w");
  ASSERT_TRUE(config.has_value()) << config.error().reason;
  EXPECT_EQ(config->worker_path, "");
}

TEST(WorkerConfig, PlaceholdersOfAPathAreFilledIn) {
  const std::string text = R"({"description":{"language":"python","defaultExecutablePath":"python3",
      "defaultRuntimeVersion":"3.11","defaultWorkerPath":"%FUNCTIONS_WORKER_RUNTIME_VERSION%/{os}/{architecture}/worker.py"}})";
  ::unsetenv("FUNCTIONS_WORKER_RUNTIME_VERSION");
  auto config = parse_worker_config(text, "/w");
  ASSERT_TRUE(config.has_value()) << config.error().reason;
#if defined(__aarch64__)
  EXPECT_EQ(config->worker_path, "3.11/LINUX/Arm64/worker.py");
#else
  EXPECT_EQ(config->worker_path, "3.11/LINUX/X64/worker.py");
#endif
  ::setenv("FUNCTIONS_WORKER_RUNTIME_VERSION", "3.12", 1);
  config = parse_worker_config(text, "/w");
  ::unsetenv("FUNCTIONS_WORKER_RUNTIME_VERSION");
  ASSERT_TRUE(config.has_value()) << config.error().reason;
  EXPECT_TRUE(config->worker_path.starts_with("3.12/"));
  EXPECT_EQ(config->version, "3.12");
  EXPECT_NE(
      problem(R"({"description":{"language":"x","defaultExecutablePath":"{planet}/x"}})").find("placeholder"),
      std::string::npos);
}

TEST(WorkerConfig, WhatIsWrongIsSaidWithTheFilesName) {
  for (
      const char* text :
      {"", "[]", "{}", R"({"description":{"language":"node"}})",
       R"({"description":{"defaultExecutablePath":"n"}})",
       R"({"description":{"language":"No De","defaultExecutablePath":"n"}})",
       R"({"description":{"language":"node","defaultExecutablePath":"%X%/n"}})",
       R"({"description":{"language":"node","defaultExecutablePath":"n"},"processOptions":{"processStartupTimeout":"soon"}})"}) {
    EXPECT_NE(problem(text).find("worker.config.json"), std::string::npos) << text << ": " << problem(text);
  }
}

TEST(WorkerConfig, AMissingFolderIsNamed) {
  const auto config = load_worker_config("/there/is/none");
  ASSERT_FALSE(config.has_value());
  EXPECT_NE(config.error().reason.find("/there/is/none/worker.config.json"), std::string::npos);
}

}  // namespace
}  // namespace windlass::agent
