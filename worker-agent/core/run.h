// A local program that is run for a command, as values: what to run, and how it went.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "protocol/base/ids.h"
#include "protocol/base/time.h"

namespace windlass::agent {

// Names a run for ever, and its file: the digest of the command's key in hex.
using RunId = StrongId<struct RunIdTag, std::string>;

struct RunRequest {
  RunId id;
  std::string program;
  std::vector<std::string> args;
  Duration timeout{};
  std::size_t output_bytes_max = 0;  // of standard output and standard error each
  friend bool operator==(const RunRequest&, const RunRequest&) = default;
};

enum class RunEnd : std::uint8_t {
  Exited,       // code is the exit code
  Signalled,    // code is the signal
  TimedOut,     // and was killed
  Stopped,      // killed because the agent was told to stop at once
  NotStarted,   // it took no effect; reason says why
  Interrupted,  // whoever watched it died: nobody knows whether it took effect
};

struct RunOutcome {
  RunEnd end = RunEnd::Exited;
  int code = 0;
  std::string standard_output = {};
  std::string standard_error = {};
  bool is_cut = false;  // there was more output than is kept
  Duration took{};
  std::string reason = {};
  friend bool operator==(const RunOutcome&, const RunOutcome&) = default;
};

}  // namespace windlass::agent
