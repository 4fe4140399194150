#include "protocol/shell/config_values.h"

#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
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

std::optional<Digest> parse_sha256(std::string_view text) {
  const auto digit = [](char c) -> std::optional<int> {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return std::nullopt;
  };
  Digest digest{};
  if (text.size() != 2 * digest.size()) return std::nullopt;
  for (std::size_t i = 0; i < digest.size(); ++i) {
    const auto high = digit(text[2 * i]);
    const auto low = digit(text[2 * i + 1]);
    if (!high || !low) return std::nullopt;
    digest[i] = static_cast<std::uint8_t>(*high * 16 + *low);
  }
  return digest;
}

std::optional<WallTime> parse_day(const std::string& text) {
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  int used = 0;
  const bool is_date = std::sscanf(text.c_str(), "%4d-%2u-%2u%n", &year, &month, &day, &used) == 3 &&
                       static_cast<std::size_t>(used) == text.size();
  const std::chrono::year_month_day date{std::chrono::year{year}, std::chrono::month{month},
                                         std::chrono::day{day}};
  if (!is_date || !date.ok()) return std::nullopt;
  return std::chrono::time_point_cast<milliseconds>(std::chrono::sys_days{date});
}

std::string duration_text(Duration duration) {
  const auto count = static_cast<std::uint64_t>(duration.count());
  std::size_t i = kTimeUnits.size() - 1;
  while (i > 0 && count % kTimeUnits[i].factor != 0) --i;
  return std::to_string(count / kTimeUnits[i].factor) + std::string{kTimeUnits[i].name};
}

}  // namespace windlass
