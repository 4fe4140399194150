// Durations and sizes as people write them in settings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/base/time.h"
#include "protocol/crypto/digest.h"

namespace windlass {

std::optional<Duration> parse_duration(std::string_view text);    // "250ms", "30s", "5m", "1h"
std::optional<std::uint64_t> parse_bytes(std::string_view text);  // "512", "64KiB", "8MiB", "1GiB"
std::optional<std::uint64_t> parse_integer(std::string_view text);
std::optional<double> parse_number(std::string_view text);
std::optional<bool> parse_boolean(std::string_view text);  // true, false

std::optional<Digest> parse_sha256(std::string_view text);   // 64 lower-case hex digits
std::optional<WallTime> parse_day(const std::string& text);  // "2027-01-31", its beginning in UTC

std::string duration_text(Duration duration);  // in the largest unit that fits exactly

}  // namespace windlass
