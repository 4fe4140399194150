#include "protocol/shell/config_values.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace windlass {
namespace {

template <class T>
std::optional<T> parse_whole(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

// Longest names first, since "ms" ends with "s".
constexpr std::array<Unit, 4> kTimeUnits{
    {{"ms", 1'000'000}, {"s", 1'000'000'000}, {"m", 60'000'000'000}, {"h", 3'600'000'000'000}}};
constexpr std::array<Unit, 3> kByteUnits{{{"KiB", 1U << 10U}, {"MiB", 1U << 20U}, {"GiB", 1U << 30U}}};

template <std::size_t N>
std::optional<std::uint64_t> parse_units(std::string_view text, const std::array<Unit, N>& units) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  for (const Unit& unit : units) {
    if (!text.ends_with(unit.name)) continue;
    const auto count = parse_whole<std::uint64_t>(text.substr(0, text.size() - unit.name.size()));
    if (!count || *count > kMost / unit.factor) return std::nullopt;
    return *count * unit.factor;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Duration> parse_duration(std::string_view text) {
  const auto count = parse_units(text, kTimeUnits);
  if (!count) return std::nullopt;
  return Duration{static_cast<Duration::rep>(*count)};
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  if (const auto plain = parse_integer(text)) return plain;
  return parse_units(text, kByteUnits);
}

std::optional<std::uint64_t> parse_integer(std::string_view text) {
  return parse_whole<std::uint64_t>(text);
}

std::optional<double> parse_number(std::string_view text) {
  const auto value = parse_whole<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<bool> parse_boolean(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return std::nullopt;
}

std::string duration_text(Duration duration) {
  const auto count = static_cast<std::uint64_t>(duration.count());
  std::size_t i = kTimeUnits.size() - 1;
  while (i > 0 && count % kTimeUnits[i].factor != 0) --i;
  return std::to_string(count / kTimeUnits[i].factor) + std::string{kTimeUnits[i].name};
}

}  // namespace windlass
