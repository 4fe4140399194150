// Runs worlds over many seeds, in several processes, and says what they saw. A world that broke a promise, or
// crashed, is run again with its log on, so that the last lines before the failure can be shown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tests/sim/stats.h"

namespace windlass::sim {

struct RunOptions {
  std::uint64_t first = 1;
  std::uint64_t count = 1;
  unsigned jobs = 2;
  bool quiet = false;  // no progress, no log of a failure
};

struct Failure {
  std::uint64_t seed = 0;
  std::string oracle;  // "crash" when the process died
  std::string what;
};

struct RunResult {
  Stats stats;
  std::uint64_t seeds = 0;
  std::optional<Failure> failure;
};

RunResult run_seeds(const RunOptions& options);

// One world with its whole log on stdout. The exit code of the program.
int replay(std::uint64_t seed);

// Prints the counters in columns; false when the waiting times before dials are bunched.
bool print_summary(const RunResult& result, double wall_seconds);

}  // namespace windlass::sim
