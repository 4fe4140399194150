// What a delivered business message asks of this agent. Parses; does nothing.
//   biz.echo  any payload: the result is the same payload
//   biz.exec  {"name": "backup", "args": ["daily"], "timeout_ms": 5000}: a program of the allow list
//   biz.worker.*  about the language worker (worker_command.h)
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "protocol/base/error_code.h"
#include "protocol/base/time.h"
#include "protocol/messages/message.h"
#include "worker-agent/core/run.h"
#include "worker-agent/core/worker_command.h"

namespace windlass::agent {

inline constexpr std::string_view kEcho = "biz.echo";
inline constexpr std::string_view kExec = "biz.exec";
inline constexpr std::string_view kResult = "biz.result";

inline constexpr std::size_t kArgumentsMax = 64;
inline constexpr std::size_t kArgumentBytesMax = 1024;  // bounds the time a pattern takes

// One program that the operator allows. A caller names the rule, never the program.
struct ExecRule {
  std::string name;
  std::string program;                    // an absolute path
  std::vector<std::string> args;          // fixed, before the caller's
  std::vector<std::string> arg_patterns;  // the caller gives exactly these, each matched as a whole
  Duration timeout = seconds{60};         // a caller may ask for less
  std::size_t output_bytes_max = 64 * 1024;
};

struct Echo {};
struct Refusal {
  ErrorCode code{};
  std::string reason;
};
using Command = std::variant<Echo, RunRequest, WorkerCommand, Refusal>;

// `has_worker`: this agent keeps a language worker.
Command parse_command(const Message& message, const std::vector<ExecRule>& rules, bool has_worker = false);

// Nothing, or why the pattern is none (RE2's regular expressions).
std::string pattern_problem(const std::string& pattern);

}  // namespace windlass::agent
