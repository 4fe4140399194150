#include "worker-agent/native/arguments.h"

#include <charconv>
#include <map>
#include <optional>
#include <string_view>

#include "worker-agent/native/limits.h"

namespace windlass::native {
namespace {

using Options = std::map<std::string_view, std::string_view>;

Error bad_argument(std::string reason) {
  return {ErrorCode::ProtoSchema, Blame::Peer, std::move(reason)};
}

Options options_of(std::span<const char* const> arguments) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string_view word = arguments[i];
    if (!word.starts_with("--")) continue;
    word.remove_prefix(2);
    if (const auto equals = word.find('='); equals != std::string_view::npos) {
      options[word.substr(0, equals)] = word.substr(equals + 1);
    } else if (i + 1 < arguments.size() && !std::string_view(arguments[i + 1]).starts_with("--")) {
      options[word] = arguments[++i];
    }
  }
  return options;
}

// The newer name first.
std::string_view either(const Options& options, std::string_view name, std::string_view older) {
  if (const auto found = options.find(name); found != options.end()) return found->second;
  if (const auto found = options.find(older); found != options.end()) return found->second;
  return {};
}

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

Result<std::string> target_of(const Options& options) {
  if (const auto uri = options.find("functions-uri"); uri != options.end()) {
    const auto scheme = uri->second.find("://");
    if (scheme == std::string_view::npos) {
      return bad_argument("--functions-uri '" + std::string(uri->second) +
                          "' has no scheme; write http://HOST:PORT/");
    }
    std::string_view authority = uri->second.substr(scheme + 3);
    authority = authority.substr(0, authority.find_first_of("/?#"));
    if (authority.empty()) return bad_argument("--functions-uri names no host; write http://HOST:PORT/");
    return std::string(authority);
  }
  const auto host = options.find("host");
  const auto port = options.find("port");
  if (host == options.end() || port == options.end() || host->second.empty()) {
    return bad_argument("where the host listens is missing: --functions-uri, or --host and --port");
  }
  const auto number = number_of(port->second);
  if (!number || *number < 1 || *number > 65535) return bad_argument("--port is no number from 1 to 65535");
  const bool bare_v6 = host->second.find(':') != std::string_view::npos && !host->second.starts_with('[');
  const std::string name = bare_v6 ? "[" + std::string(host->second) + "]" : std::string(host->second);
  return name + ":" + std::string(port->second);
}

}  // namespace

Result<Arguments> parse_arguments(std::span<const char* const> arguments) {
  const Options options = options_of(arguments);
  Arguments parsed;
  auto target = target_of(options);
  if (!target) return target.error();
  parsed.target = std::move(*target);
  parsed.worker_id = either(options, "functions-worker-id", "workerId");
  if (parsed.worker_id.empty())
    return bad_argument("the worker's id is missing: --functions-worker-id or --workerId");
  parsed.request_id = either(options, "functions-request-id", "requestId");
  if (parsed.request_id.empty()) {
    return bad_argument("the request's id is missing: --functions-request-id or --requestId");
  }
  const auto bytes = number_of(either(options, "functions-grpc-max-message-length", "grpcMaxMessageLength"));
  if (!bytes || *bytes < 1) {
    return bad_argument(
        "the largest message is missing or no number above 0: --functions-grpc-max-message-length or "
        "--grpcMaxMessageLength");
  }
  parsed.message_bytes_max = std::min(*bytes, kMessageBytesMax);
  if (const auto threads = options.find("threads"); threads != options.end()) {
    const auto number = number_of(threads->second);
    if (!number || *number < 1 || *number > kThreadsMax) {
      return bad_argument("--threads is no number from 1 to " + std::to_string(kThreadsMax));
    }
    parsed.threads = static_cast<unsigned>(*number);
  }
  return parsed;
}

}  // namespace windlass::native
