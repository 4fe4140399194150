// What a run says about a world that takes its process along.
#include "tests/sim/crash_report.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

namespace windlass::sim {
namespace {

constexpr SimProgram kCrashingProgram{"windlass-some-sim", "some ", "how to use it\n"};

// Worlds that hold, up to seed 12, which has the planted bug.
class BadWorlds final : public Worlds {
 public:
  explicit BadWorlds(void (*bug)()) : bug_(bug) {}
  std::optional<BrokenPromise> run(std::uint64_t seed, bool) override {
    if (seed == 12) bug_();
    return std::nullopt;
  }
  void print_sum() const override {}
  bool hurt(std::uint64_t) const override { return true; }
  std::chrono::milliseconds time_max() const override { return std::chrono::milliseconds{200}; }

 private:
  void (*bug_)();
};

// Death tests read stderr.
int run_with(void (*bug)(), std::vector<std::string> arguments) {
  dup2(STDERR_FILENO, STDOUT_FILENO);
  arguments.insert(arguments.begin(), "windlass-some-sim");
  std::vector<char*> values;
  for (std::string& each : arguments) values.push_back(each.data());
  BadWorlds worlds{bug};
  return run_program(kCrashingProgram, worlds, {}, nullptr, static_cast<int>(values.size()), values.data());
}

std::string named(const std::string& oracle) {
  std::string commit = source_commit();
  if (commit.ends_with('+')) commit.insert(commit.size() - 1, "\\");
  return "seed 12 at commit " + commit + " broke the promise '" + oracle +
         "'\n.*replay it with: \\./dev sim some --seed 12\n";
}

const std::vector<std::string> kMany{"--first", "10", "--seeds", "5"};

TEST(CrashReport, NamesTheWorldThatAborts) {
  EXPECT_EXIT(run_with(&std::abort, kMany), ::testing::KilledBySignal(SIGABRT), named("no-crash"));
  EXPECT_EXIT(run_with(&std::abort, {"--seed", "12"}), ::testing::KilledBySignal(SIGABRT), named("no-crash"));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they end the process in their own way
int deeper(volatile int* depth) {
  *depth = *depth + 1;
  return *depth < 0 ? 0 : deeper(depth) + *depth;
}

TEST(CrashReport, NamesTheWorldThatRecursesForEver) {
  const auto recurse = [] {
    volatile int depth = 0;
    std::exit(deeper(&depth));
  };
  EXPECT_EXIT(run_with(recurse, kMany), ::testing::KilledBySignal(SIGSEGV), named("no-crash"));
}
#endif

TEST(CrashReport, NamesTheWorldThatDoesNotEnd) {
  const auto spin = [] {
    for (volatile bool goes_on = true; goes_on;) {
    }
  };
  EXPECT_EXIT(run_with(spin, kMany), ::testing::KilledBySignal(SIGPROF), named("every-world-ends"));
}

TEST(CrashReport, BlamesNoWorldOnceItIsOver) {
  const auto after_all = [] {
    dup2(STDERR_FILENO, STDOUT_FILENO);
    report_crashes(kCrashingProgram);
    begin_world(12);
    end_world();
    std::abort();
  };
  EXPECT_EXIT(after_all(), ::testing::KilledBySignal(SIGABRT), "^[^F]*$");
}

}  // namespace
}  // namespace windlass::sim
