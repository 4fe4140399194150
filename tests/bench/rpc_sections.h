// The parts of the rpc benchmark, in the order they are run.
#pragma once

#include "tests/bench/bar.h"
#include "tests/bench/identity.h"

namespace windlass::bench {

void relay_bars(Run& run, Identity& identity);
void channel_bars(Run& run, Identity& identity);
void worker_memory_bars(Run& run, Identity& identity);
void switch_bars(Run& run, Identity& identity);

struct RpcSection {
  std::string_view name;  // as --only wants it
  void (*measure)(Run&, Identity&);
};
inline constexpr RpcSection kRpcSections[] = {{"relay", relay_bars},
                                              {"channels", channel_bars},
                                              {"memory", worker_memory_bars},
                                              {"switch", switch_bars}};

// This program was started by a section to be the other side.
bool plays_runtime_alone(int argc, char** argv);

}  // namespace windlass::bench
