#include "protocol/codec/json_writer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstddef>

#include "protocol/base/check.h"

namespace windlass::codec {
namespace {

bool needs_escape(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\';
}

void append_escaped(std::string& out, char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  static constexpr char kHex[] = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  out += "\\u00";
  out += kHex[byte >> 4U];
  out += kHex[byte & 0xfU];
}

// Writes `value` with leading zeros.
char* digits(char* to, std::uint64_t value, std::size_t count) {
  for (std::size_t i = count; i-- > 0; value /= 10) to[i] = static_cast<char>('0' + value % 10);
  return to + count;
}

}  // namespace

void JsonWriter::integer(std::string_view name, std::uint64_t value) {
  this->name(name);
  std::array<char, 20> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  out_.append(buffer.data(), end);
}

void JsonWriter::number(std::string_view name, double value) {
  CHECK(std::isfinite(value));
  this->name(name);
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  out_.append(buffer.data(), end);
}

void JsonWriter::time(std::string_view name, WallTime value, TimeStyle style) {
  namespace chrono = std::chrono;
  // Four digits hold the years 0 to 9999.
  constexpr chrono::sys_days kFirst = chrono::year{0} / 1 / 1;
  constexpr chrono::sys_days kEnd = chrono::year{10000} / 1 / 1;
  const WallTime time = std::clamp<WallTime>(value, kFirst, WallTime{kEnd} - milliseconds{1});
  const auto day = chrono::floor<chrono::days>(time);
  const chrono::year_month_day date{day};
  auto rest = static_cast<std::uint64_t>((time - day).count());
  std::array<char, 40> buffer;
  char* at = buffer.data();
  *at++ = '"';
  at = digits(at, static_cast<std::uint64_t>(static_cast<int>(date.year())), 4);
  *at++ = '-';
  at = digits(at, static_cast<unsigned>(date.month()), 2);
  *at++ = '-';
  at = digits(at, static_cast<unsigned>(date.day()), 2);
  *at++ = 'T';
  at = digits(at, rest / 3'600'000, 2);
  rest %= 3'600'000;
  *at++ = ':';
  at = digits(at, rest / 60'000, 2);
  rest %= 60'000;
  *at++ = ':';
  at = digits(at, rest / 1000, 2);
  *at++ = '.';
  at = digits(at, rest % 1000, 3);
  const std::string_view tail = style == TimeStyle::MillisecondsZ ? "Z\"" : "000+00:00\"";
  at = std::copy(tail.begin(), tail.end(), at);
  this->name(name);
  out_.append(buffer.data(), at);
}

void JsonWriter::quoted(std::string_view value) {
  out_ += '"';
  std::size_t from = 0;
  // Looks at every byte once without branching; nearly no text has anything to escape.
  bool any = false;
  for (const char c : value) any |= needs_escape(c);
  if (any) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (!needs_escape(value[i])) continue;
      out_.append(value, from, i - from);
      append_escaped(out_, value[i]);
      from = i + 1;
    }
  }
  out_.append(value, from);
  out_ += '"';
}

}  // namespace windlass::codec
