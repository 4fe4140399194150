#include "runtime/adapters/http_access.h"

#include <algorithm>
#include <utility>

#include "protocol/http/host_name.h"
#include "runtime/adapters/http_asked.h"

namespace windlass::runtime {
namespace {

bool is_one_of(const std::vector<Digest>& keys, const Digest& shown) {
  bool is_found = false;
  for (const Digest& each : keys) is_found |= constant_time_equal(view_of(each), view_of(shown));
  return is_found;
}

}  // namespace

bool HttpKeys::is_empty() const {
  return everywhere.admin.empty() && everywhere.host.empty() && applications.empty();
}

bool opens(const HttpKeys& keys, const HttpDoor& door, std::string_view shown) {
  if (shown.empty()) return false;
  const Digest digest = sha256(shown);
  bool is_good = is_one_of(keys.everywhere.admin, digest);
  const auto own = keys.applications.find(in_lower_case(door.application));
  if (own != keys.applications.end()) is_good |= is_one_of(own->second.admin, digest);
  if (door.level == AuthLevel::Admin) return is_good;
  is_good |= is_one_of(keys.everywhere.host, digest);
  if (own == keys.applications.end()) return is_good;
  is_good |= is_one_of(own->second.host, digest);
  const auto function = own->second.functions.find(in_lower_case(door.function));
  if (function != own->second.functions.end()) is_good |= is_one_of(function->second, digest);
  return is_good;
}

HttpHosts::HttpHosts(std::vector<std::string> names) : names_(std::move(names)) {
  for (std::string& each : names_) each = in_lower_case(each);
}

bool HttpHosts::allows(std::string_view host) const {
  const std::string_view name = name_of_host(host);
  if (is_own_name(name)) return true;
  return std::ranges::any_of(names_, [&](std::string_view each) {
    if (each == "*") return true;
    return each.starts_with("*.") ? name.ends_with(each.substr(1)) : name == each;
  });
}

HttpOrigins::HttpOrigins(std::vector<std::string> origins, bool with_credentials)
    : origins_(std::move(origins)), with_credentials_(with_credentials) {
  for (std::string& each : origins_) {
    each = in_lower_case(each);
    while (each.ends_with('/')) each.pop_back();
  }
}

bool HttpOrigins::names(std::string_view origin) const {
  const std::string lower = in_lower_case(origin);
  return std::ranges::any_of(origins_, [&](const std::string& each) { return each == "*" || each == lower; });
}

bool HttpOrigins::allows(std::string_view origin, std::string_view own) const {
  return origin.empty() || in_lower_case(origin) == own || names(origin);
}

TextPairs HttpOrigins::headers(std::string_view origin) const {
  if (origin.empty() || !names(origin)) return {};
  TextPairs headers{{"Access-Control-Allow-Origin", std::string{origin}}, {"Vary", "Origin"}};
  if (with_credentials_) headers.emplace_back("Access-Control-Allow-Credentials", "true");
  return headers;
}

TextPairs HttpOrigins::preflight_headers(std::string_view origin, std::string_view wanted_headers) const {
  TextPairs all = headers(origin);
  all.emplace_back("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
  if (!wanted_headers.empty()) all.emplace_back("Access-Control-Allow-Headers", std::string{wanted_headers});
  all.emplace_back("Access-Control-Max-Age", "600");
  return all;
}

}  // namespace windlass::runtime
