// Runs one program and writes down how it went, in a process of its own, so that neither the program nor the
// knowledge of its end is lost with the agent. Single-threaded: it may fork.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "protocol/base/time.h"
#include "worker-agent/core/run.h"

namespace windlass::agent {

struct WatchOptions {
  std::vector<std::string> command;  // program and arguments
  Duration timeout{};
  Duration grace = seconds{2};  // between SIGTERM and SIGKILL
  std::size_t output_bytes_max = 0;
};

// Starts the program in a process group of its own, with standard input closed. SIGTERM to this process ends
// the group early.
RunOutcome watch(const WatchOptions& options);

}  // namespace windlass::agent
