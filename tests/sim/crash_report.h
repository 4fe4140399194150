// A world that crashes, or never ends, takes its process along. Its seed and commit must be known all the
// same: they are made ready before the world begins, and a signal handler has only to write them.
#pragma once

#include <chrono>
#include <cstdint>

#include "tests/sim/seed_run.h"

namespace windlass::sim {

// From now on a signal that ends the process says first which world it was.
void report_crashes(const SimProgram& program);
// The same for a handler of one's own, which may call nothing that allocates.
void write_crash(int signal);
// The world that runs from now on, and its time begins.
void begin_world(std::uint64_t seed, std::chrono::milliseconds time_max = kWorldTimeMax);
// No world runs, so none is to blame.
void end_world();

}  // namespace windlass::sim
