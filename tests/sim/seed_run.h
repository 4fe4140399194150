// What the simulators' command lines have in common: which seeds a run takes, for how long, and what it says
// about itself. A run that nobody gave a first seed draws one from the clock, so that every run sees worlds
// which no run saw before; it is printed, and --first repeats the run.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
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

struct PlantedBug {
  std::string_view name;
  std::string_view breaks;
};

struct BrokenPromise {
  std::string oracle;
  std::string what;
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

// A world that takes so much processor time does not end at all.
inline constexpr std::chrono::milliseconds kWorldTimeMax{60'000};

// Before the worlds: where the run begins, and on which commit.
void print_first_seed(const SeedRun& run);
// After one that failed: its seed, the commit it was found on, and how to see it again.
void print_failure(const SimProgram& program, std::uint64_t seed, std::string_view oracle,
                   std::string_view what);

// The worlds of one simulator, and the sum of what they saw.
class Worlds {
 public:
  virtual ~Worlds() = default;
  // Nothing: every promise held.
  virtual std::optional<BrokenPromise> run(std::uint64_t seed, bool is_logged) = 0;
  virtual void print_sum() const = 0;
  // The worlds must hurt, or they prove nothing.
  virtual bool hurt(std::uint64_t count) const = 0;
  // Of the processor, for one world.
  virtual std::chrono::milliseconds time_max() const { return kWorldTimeMax; }
};

// The whole program: many seeds, one seed again, or each planted bug until it is caught. `mutant` is the
// switch of the planted bugs; null where the program has none. The result is the exit code.
int run_program(const SimProgram& program, Worlds& worlds, std::span<const PlantedBug> bugs,
                std::string_view* mutant, int count, char** values);

// The commit that the sources are at, with a + where they have changes of their own; "unknown" outside of
// git.
std::string source_commit();

}  // namespace windlass::sim
