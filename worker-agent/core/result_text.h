// The payloads of biz.result. Every one that is not an echo has "ok"; what failed has "code" and "reason", or
// the exit code of a program.
#pragma once

#include <string>
#include <string_view>

#include "protocol/base/error_code.h"
#include "worker-agent/core/run.h"

namespace windlass::agent {

std::string refusal_text(ErrorCode code, std::string_view reason);

// Output that is not UTF-8 is given with U+FFFD in place of each wrong byte. At most `bytes_max`, whatever
// the escapes add: output is shortened to fit.
std::string outcome_text(const RunOutcome& outcome, std::size_t bytes_max);

// The error that an outcome stands for; none for a program that ran to its end.
std::string_view outcome_code(const RunOutcome& outcome);

// As UTF-8, each byte that is none replaced: what programs print may be anything.
std::string mended(std::string_view text);

}  // namespace windlass::agent
