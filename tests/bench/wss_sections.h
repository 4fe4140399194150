// The parts of the wss benchmark, in the order they are run.
#pragma once

#include "tests/bench/wss_contest.h"

namespace windlass::bench {

void echo_bars(Run& run, Identity& identity);
void session_bars(Run& run, Identity& identity);
void neighbour_bars(Run& run, Identity& identity);
void durable_table(Run& run, Identity& identity);
void idle_bars(Run& run, Identity& identity);
void flatness_bars(Run& run, Identity& identity);
void storm_bars(Run& run, Identity& identity);

struct Section {
  std::string_view name;  // as --only wants it
  void (*measure)(Run&, Identity&);
};
inline constexpr Section kSections[] = {
    {"echo", echo_bars},        {"session", session_bars}, {"neighbours", neighbour_bars},
    {"durable", durable_table}, {"idle", idle_bars},       {"flatness", flatness_bars},
    {"storm", storm_bars}};

// This program was started by a section to be the other side.
bool serves(int argc, char** argv);
bool plays_storm_workers(int argc, char** argv);

}  // namespace windlass::bench
