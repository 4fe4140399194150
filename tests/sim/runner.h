// Runs worlds over many seeds, in several processes, and says what they saw. A world that broke a promise, or
// crashed, is run again with its log on, so that the last lines before the failure can be shown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tests/sim/seed_run.h"
#include "tests/sim/stats.h"

namespace windlass::sim {

inline constexpr unsigned kJobsDefault = 2;  // where the number of cores is not known

enum class Noise : std::uint8_t { Quiet, Loud };  // loud: progress, and the log of a failure

struct Failure {
  std::uint64_t seed = 0;
  std::string oracle;  // "no-crash" when the process died
  std::string what;
};

struct RunResult {
  Stats stats;
  std::uint64_t seeds = 0;
  std::optional<Failure> failure;
};

RunResult run_seeds(const SeedRun& run, Noise noise);

// One world with its whole log on stdout. The exit code of the program.
int replay(const SimProgram& program, std::uint64_t seed);

// Prints the counters in columns; false when the waiting times before dials are bunched.
bool print_summary(const RunResult& result, double wall_seconds);

}  // namespace windlass::sim
