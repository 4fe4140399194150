#include "protocol/http/host_name.h"

#include <algorithm>
#include <boost/beast/core/string.hpp>

namespace windlass {
namespace {

bool is_address(std::string_view name) {
  if (name.starts_with('[')) return name.ends_with(']');
  return !name.empty() &&
         std::ranges::all_of(name, [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
}

}  // namespace

std::string_view name_of_host(std::string_view host) {
  if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
  std::string_view name = host.substr(0, host.find(':'));
  if (name.ends_with('.')) name.remove_suffix(1);
  return name;
}

bool is_own_name(std::string_view name) {
  constexpr std::string_view kLocal = ".localhost";
  const auto is_under = [&] {
    return name.size() > kLocal.size() &&
           boost::beast::iequals(name.substr(name.size() - kLocal.size()), kLocal);
  };
  return is_address(name) || boost::beast::iequals(name, kLocal.substr(1)) || is_under();
}

}  // namespace windlass
