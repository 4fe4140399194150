#include "runtime/core/log_levels.h"

#include <algorithm>
#include <array>

namespace windlass::runtime {
namespace {

std::string in_small_letters(std::string_view text) {
  std::string small{text};
  std::ranges::transform(small, small.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return small;
}

// What a worker says of itself is the host's, as in Azure.
std::string category_of(const Log& log, std::string_view function) {
  if (log.source != LogSource::User) return "host";
  if (function.empty()) return "function";
  return "function." + in_small_letters(function) + ".user";
}

}  // namespace

std::optional<LogLevel> read_log_level(std::string_view text) {
  constexpr std::array<std::string_view, 7> kNames = {"trace", "debug",    "information", "warning",
                                                      "error", "critical", "none"};
  const auto* const found = std::ranges::find(kNames, in_small_letters(text));
  if (found == kNames.end()) return std::nullopt;
  return static_cast<LogLevel>(found - kNames.begin());
}

void LogLevels::set(std::string_view category, LogLevel least) {
  least_.insert_or_assign(in_small_letters(category), least);
}

bool LogLevels::takes(const Log& log, std::string_view function) const {
  if (least_.empty()) return true;
  const std::string category = category_of(log, function);
  auto found = least_.end();
  for (std::string_view part = category; found == least_.end() && !part.empty();) {
    found = least_.find(part);
    const std::size_t dot = part.rfind('.');
    part = part.substr(0, dot == std::string_view::npos ? 0 : dot);
  }
  if (found == least_.end()) found = least_.find("default");
  return found == least_.end() || (found->second != LogLevel::None && log.level >= found->second);
}

}  // namespace windlass::runtime
