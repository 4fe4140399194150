// The parts of the wss benchmark, in the order they are run.
#pragma once

#include "tests/bench/wss_contest.h"

namespace windlass::bench {

void echo_bars(Run& run, Identity& identity);
void session_bars(Run& run, Identity& identity);

}  // namespace windlass::bench
