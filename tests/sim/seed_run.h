// What the simulators' command lines have in common: which seeds a run takes, for how long, and what it says
// about itself. A run that nobody gave a first seed draws one from the clock, so that every run sees worlds
// which no run saw before; it is printed, and --first repeats the run.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace windlass::sim {

struct SeedRun {
  std::uint64_t first = 0;
  std::optional<std::uint64_t> count;           // of worlds
  std::optional<std::chrono::minutes> minutes;  // then no new world begins
  std::optional<std::uint64_t> seed;            // this world alone, with its log
  unsigned jobs = 0;                            // processes; 0: as many as there are cores
  std::string mutant;
  bool catches_mutants = false;
  bool lists_mutants = false;
};

// The seeds of one run, or every `step`-th of them, until their number or the time is used up.
class Seeds final {
 public:
  explicit Seeds(const SeedRun& run, std::uint64_t from = 0, std::uint64_t step = 1);
  std::optional<std::uint64_t> next();

 private:
  using Clock = std::chrono::steady_clock;
  std::uint64_t first_;
  std::optional<std::uint64_t> count_;
  std::optional<Clock::time_point> end_;
  std::uint64_t at_;
  std::uint64_t step_;
};

struct SimProgram {
  std::string_view name;
  std::string_view dev_name;  // as ./dev sim calls it, with a space behind; empty: the default
  const char* help;
};

// The arguments, or the exit code of a program that has nothing more to do.
struct ReadRun {
  SeedRun run;
  std::optional<int> exit_code;
};
ReadRun read_run(const SimProgram& program, int count, char** values);

// Before the worlds: where the run begins.
void print_first_seed(const SeedRun& run);
// After one that failed: its seed, the commit it was found on, and how to see it again.
void print_failure(const SimProgram& program, std::uint64_t seed, std::string_view oracle,
                   std::string_view what);

// The commit that the sources are at, with a + where they have changes of their own; "unknown" outside of
// git.
std::string source_commit();

}  // namespace windlass::sim
