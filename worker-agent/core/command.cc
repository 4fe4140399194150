#include "worker-agent/core/command.h"

#include <re2/re2.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <optional>

#include "protocol/crypto/digest.h"
#include "protocol/crypto/text_encoding.h"

namespace windlass::agent {
namespace {

struct ExecCall {
  std::string_view name;
  std::vector<std::string> args;
  std::optional<Duration> timeout;
};

Refusal malformed(std::string reason) {
  return {ErrorCode::ProtoSchema, std::move(reason)};
}

std::optional<Refusal> read_args(simdjson::dom::element value, std::vector<std::string>& args) {
  simdjson::dom::array array;
  if (value.get(array) != simdjson::SUCCESS) return malformed("args must be a list of texts");
  for (const simdjson::dom::element item : array) {
    std::string_view text;
    if (item.get(text) != simdjson::SUCCESS) return malformed("args must be a list of texts");
    if (args.size() == kArgumentsMax || text.size() > kArgumentBytesMax) {
      return malformed("args may be at most 64, of at most 1024 bytes each");
    }
    if (text.find('\0') != std::string_view::npos)
      return malformed("an argument may not contain a zero byte");
    args.emplace_back(text);
  }
  return std::nullopt;
}

std::optional<Refusal> read_call(simdjson::dom::object object, ExecCall& call) {
  for (const auto [key, value] : object) {
    if (key == "name") {
      if (value.get(call.name) != simdjson::SUCCESS) return malformed("name must be text");
    } else if (key == "args") {
      if (auto refusal = read_args(value, call.args)) return refusal;
    } else if (key == "timeout_ms") {
      std::uint64_t count = 0;
      if (value.get(count) != simdjson::SUCCESS || count == 0 || count > 86'400'000) {
        return malformed("timeout_ms must be a whole number from 1 to 86400000");
      }
      call.timeout = milliseconds{count};
    } else {
      return malformed("biz.exec takes name, args and timeout_ms, nothing else");
    }
  }
  if (call.name.empty()) return malformed("name is missing: it names one of the agent's exec rules");
  return std::nullopt;
}

// RE2's time grows with the argument alone, whatever the pattern.
re2::RE2::Options pattern_options() {
  re2::RE2::Options options;
  options.set_log_errors(false);
  return options;
}

bool matches(const std::string& argument, const std::string& pattern) {
  const re2::RE2 compiled{pattern, pattern_options()};
  return compiled.ok() && re2::RE2::FullMatch(argument, compiled);
}

RunId run_of(const Message& message) {
  const std::array<BytesView, 2> key{message.id(), message.corr()};
  return RunId{hex_encode(view_of(sha256_parts(key)))};
}

Command parse_exec(const Message& message, const std::vector<ExecRule>& rules) {
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  const std::string_view payload = message.payload();
  if (parser.parse(payload.data(), payload.size()).get(object) != simdjson::SUCCESS) {
    return malformed("the payload must be a JSON object");
  }
  ExecCall call;
  if (auto refusal = read_call(object, call)) return *std::move(refusal);
  const auto rule = std::ranges::find(rules, call.name, &ExecRule::name);
  if (rule == rules.end()) {
    return Refusal{ErrorCode::CmdUnknown, "no exec rule of this name is configured on this agent"};
  }
  if (call.args.size() != rule->arg_patterns.size()) {
    return malformed("this exec rule takes " + std::to_string(rule->arg_patterns.size()) + " args, not " +
                     std::to_string(call.args.size()));
  }
  for (std::size_t i = 0; i < call.args.size(); ++i) {
    if (matches(call.args[i], rule->arg_patterns[i])) continue;
    return malformed("args[" + std::to_string(i) + "] does not match the pattern of this exec rule");
  }
  RunRequest request{.id = run_of(message),
                     .program = rule->program,
                     .args = rule->args,
                     .timeout = std::min(call.timeout.value_or(rule->timeout), rule->timeout),
                     .output_bytes_max = rule->output_bytes_max};
  request.args.insert(request.args.end(), call.args.begin(), call.args.end());
  return request;
}

}  // namespace

Command parse_command(const Message& message, const std::vector<ExecRule>& rules, bool has_worker) {
  if (message.type() == kEcho) return Echo{};
  if (message.type() == kExec) return parse_exec(message, rules);
  if (is_worker_command(message.type())) {
    if (!has_worker) {
      return Refusal{ErrorCode::CmdUnknown,
                     "this agent keeps no language worker; set language_worker.folder in its settings"};
    }
    auto command = parse_worker_command(message.type(), message.payload(), run_of(message));
    if (!command) return Refusal{command.error().code, command.error().reason};
    return *std::move(command);
  }
  //= WRK-3
  return Refusal{ErrorCode::CmdUnknown, "this agent has no command of this type"};
}

std::string pattern_problem(const std::string& pattern) {
  const re2::RE2 compiled{pattern, pattern_options()};
  return compiled.ok() ? std::string{} : compiled.error();
}

}  // namespace windlass::agent
