// What the file of one run says, as text: empty, "begun", or "begun" and how it ended. The watcher marks the
// beginning before the program starts, so an empty file of a dead watcher means that nothing happened.
#pragma once

#include <string>
#include <variant>

#include "protocol/base/bytes.h"
#include "worker-agent/core/run.h"

namespace windlass::agent {

inline constexpr std::string_view kBegun = "begun\n";

std::string encode_outcome(const RunOutcome& outcome);  // to be appended after kBegun

enum class RunProgress : std::uint8_t { NotBegun, Begun };
// A record that is torn or damaged is Begun: whatever it was to say, the program may have taken effect.
std::variant<RunProgress, RunOutcome> parse_run_record(BytesView record);

}  // namespace windlass::agent
