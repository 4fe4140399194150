#include "scheduler/core/runtime_address.h"

#include <algorithm>
#include <optional>

namespace windlass {
namespace {

struct HostAndPort {
  std::string host;  // lower case, without brackets
  std::string port;  // empty: not said
};

std::string lower(std::string_view text) {
  std::string made{text};
  std::ranges::transform(made, made.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return made;
}

// "host", "host:port", "[v6]", "[v6]:port", or a bare IPv6 address.
std::optional<HostAndPort> split_address(std::string_view text) {
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view rest = text.substr(end + 1);
    if (!rest.empty() && !rest.starts_with(':')) return std::nullopt;
    return HostAndPort{lower(text.substr(1, end - 1)), std::string{rest.empty() ? rest : rest.substr(1)}};
  }
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || text.find(':', colon + 1) != std::string_view::npos) {
    return HostAndPort{lower(text), {}};
  }
  return HostAndPort{lower(text.substr(0, colon)), std::string{text.substr(colon + 1)}};
}

std::optional<HostAndPort> address_in(std::string_view url) {
  const std::size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return std::nullopt;
  const std::string_view name = url.substr(0, scheme);
  const bool is_known = name == "ws" || name == "wss" || name == "http" || name == "https";
  url.remove_prefix(scheme + 3);
  const std::string_view authority = url.substr(0, url.find_first_of("/?#"));
  // A name before an @ is no host, whoever reads it as one.
  if (!is_known || authority.empty() || authority.find_first_of("@\\ ") != std::string_view::npos) {
    return std::nullopt;
  }
  return split_address(authority);
}

bool is_name_of(std::string_view pattern, std::string_view host) {
  if (pattern == host) return true;
  if (!pattern.starts_with("*.")) return false;
  const std::size_t dot = host.find('.');
  return dot != std::string_view::npos && dot > 0 && host.substr(dot) == pattern.substr(1);
}

}  // namespace

bool is_vouched_for(std::string_view url, const std::vector<std::string>& addresses,
                    const std::vector<std::string>& certificate_names) {
  const auto said = address_in(url);
  if (!said || said->host.empty()) return false;
  for (const std::string& each : addresses) {
    if (each == "*") return true;
    const auto allowed = split_address(each);
    const bool is_port = allowed && (allowed->port.empty() || allowed->port == said->port);
    if (is_port && is_name_of(allowed->host, said->host)) return true;
  }
  return std::ranges::any_of(certificate_names, [&](std::string_view name) {
    if (name.starts_with("DNS:")) return is_name_of(lower(name.substr(4)), said->host);
    return name.starts_with("IP:") && lower(name.substr(3)) == said->host;
  });
}

bool is_runtime_address(std::string_view address) {
  if (address == "*") return true;
  const auto split = split_address(address);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return split && !split->host.empty() && split->host.find_first_of("/@ ") == std::string::npos &&
         split->host.rfind('*') != split->host.size() - 1 && std::ranges::all_of(split->port, is_digit);
}

}  // namespace windlass
