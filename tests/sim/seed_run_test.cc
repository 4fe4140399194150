// Which seeds a run takes, and what it says about itself.
#include "tests/sim/seed_run.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace windlass::sim {
namespace {

constexpr SimProgram kProgram{"windlass-some-sim", "some ", "how to use it\n"};

ReadRun read(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "windlass-some-sim");
  std::vector<char*> values;
  for (std::string& each : arguments) values.push_back(each.data());
  return read_run(kProgram, static_cast<int>(values.size()), values.data());
}

TEST(SeedRun, BeginsElsewhereEachTimeUnlessItIsToldWhere) {
  const std::uint64_t first = read({"--seeds", "3"}).run.first;
  bool differs = false;
  for (int i = 0; i < 1000 && !differs; ++i) differs = read({"--seeds", "3"}).run.first != first;
  EXPECT_TRUE(differs);
  EXPECT_EQ(read({"--seeds", "3", "--first", "42"}).run.first, 42U);
}

TEST(SeedRun, TakesItsSeedsInTurnAndSharesThemAmongProcesses) {
  const SeedRun run = read({"--first", "10", "--seeds", "5"}).run;
  std::vector<std::uint64_t> all;
  for (std::uint64_t job = 0; job < 2; ++job) {
    Seeds seeds{run, job, 2};
    while (const auto seed = seeds.next()) all.push_back(*seed);
  }
  EXPECT_EQ(all, (std::vector<std::uint64_t>{10, 12, 14, 11, 13}));
}

TEST(SeedRun, MayBeBoundedByTimeAlone) {
  const ReadRun read_minutes = read({"--minutes", "5"});
  ASSERT_FALSE(read_minutes.exit_code);
  EXPECT_EQ(read_minutes.run.minutes, std::chrono::minutes{5});
  Seeds seeds{read_minutes.run};
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(seeds.next().has_value());
}

TEST(SeedRun, AnswersMisuseWithOneSentence) {
  for (const auto& wrong : std::vector<std::vector<std::string>>{{},
                                                                 {"--seeds"},
                                                                 {"--seeds", "0"},
                                                                 {"--seeds", "1x"},
                                                                 {"--minutes", "0"},
                                                                 {"--first", "1"},
                                                                 {"--nope", "1"}}) {
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(read(wrong).exit_code, 2);
    EXPECT_TRUE(::testing::internal::GetCapturedStderr().starts_with("windlass-some-sim: "));
  }
}

TEST(SeedRun, NamesSeedAndCommitOfAFailure) {
  ::testing::internal::CaptureStdout();
  print_failure(kProgram, 4711, "converges", "w1 is not ready");
  const std::string text = ::testing::internal::GetCapturedStdout();
  EXPECT_NE(text.find("seed 4711 at commit " + source_commit()), std::string::npos) << text;
  EXPECT_NE(text.find("./dev sim some --seed 4711"), std::string::npos) << text;
}

}  // namespace
}  // namespace windlass::sim
