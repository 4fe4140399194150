#include "protocol/codec/json_writer.h"

#include <charconv>
#include <chrono>
#include <cmath>

#include "protocol/base/check.h"

namespace windlass::codec {
namespace {

constexpr std::uint64_t kOnes = 0x0101010101010101U;
constexpr std::uint64_t kHighs = 0x8080808080808080U;

// Whether any of eight bytes must be escaped: a control character, a quote or a backslash.
bool any_needs_escape(std::uint64_t word) {
  const std::uint64_t quote = word ^ (kOnes * '"');
  const std::uint64_t backslash = word ^ (kOnes * '\\');
  const std::uint64_t found =
      ((word - kOnes * 0x20) & ~word) | ((quote - kOnes) & ~quote) | ((backslash - kOnes) & ~backslash);
  return (found & kHighs) != 0;
}

bool needs_escape(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\';
}

// Copies `value` and says whether that was right: nearly no text has anything to escape.
bool copy_plain(char* to, std::string_view value) {
  const char* from = value.data();
  const std::size_t size = value.size();
  if (size < sizeof(std::uint64_t)) {
    bool plain = true;
    for (std::size_t i = 0; i < size; ++i) {
      plain = plain && !needs_escape(from[i]);
      to[i] = from[i];
    }
    return plain;
  }
  bool escapes = false;
  const auto eight = [&](std::size_t at) {
    std::uint64_t word = 0;
    std::memcpy(&word, from + at, sizeof word);
    std::memcpy(to + at, &word, sizeof word);
    escapes = escapes || any_needs_escape(word);
  };
  std::size_t at = 0;
  for (; at + sizeof(std::uint64_t) <= size; at += sizeof(std::uint64_t)) eight(at);
  eight(size - sizeof(std::uint64_t));  // the rest, and some bytes once more
  return !escapes;
}

// Writes `value` with leading zeros.
template <std::size_t Count>
char* digits(char* to, unsigned value) {
  for (std::size_t i = Count; i-- > 0; value /= 10) to[i] = static_cast<char>('0' + value % 10);
  return to + Count;
}

}  // namespace

void JsonWriter::grow(std::size_t bytes) {
  const auto used = static_cast<std::size_t>(at_ - out_.data());
  out_.resize(std::max(used + bytes, out_.size() * 2));
  at_ = out_.data() + used;
  end_ = out_.data() + out_.size();
}

void JsonWriter::write(std::uint64_t value) {
  at_ = std::to_chars(at_, end_, value).ptr;
  *at_++ = ',';
}

void JsonWriter::write(double value) {
  CHECK(std::isfinite(value));
  at_ = std::to_chars(at_, end_, value).ptr;
  *at_++ = ',';
}

void JsonWriter::write(WallTime value, TimeStyle style) {
  namespace chrono = std::chrono;
  // Four digits hold the years 0 to 9999.
  constexpr chrono::sys_days kFirst = chrono::year{0} / 1 / 1;
  constexpr chrono::sys_days kEnd = chrono::year{10000} / 1 / 1;
  const WallTime time = std::clamp<WallTime>(value, kFirst, WallTime{kEnd} - milliseconds{1});
  const auto day = chrono::floor<chrono::days>(time);
  const chrono::year_month_day date{day};
  auto rest = static_cast<unsigned>((time - day).count());
  char* at = at_;
  *at++ = '"';
  at = digits<4>(at, static_cast<unsigned>(static_cast<int>(date.year())));
  *at++ = '-';
  at = digits<2>(at, static_cast<unsigned>(date.month()));
  *at++ = '-';
  at = digits<2>(at, static_cast<unsigned>(date.day()));
  *at++ = 'T';
  at = digits<2>(at, rest / 3'600'000);
  rest %= 3'600'000;
  *at++ = ':';
  at = digits<2>(at, rest / 60'000);
  rest %= 60'000;
  *at++ = ':';
  at = digits<2>(at, rest / 1000);
  *at++ = '.';
  at = digits<3>(at, rest % 1000);
  const std::string_view tail = style == TimeStyle::MillisecondsZ ? "Z\"," : "000+00:00\",";
  at_ = std::copy(tail.begin(), tail.end(), at);
}

void JsonWriter::quoted(std::string_view value) {
  *at_++ = '"';
  if (copy_plain(at_, value)) {
    at_ += value.size();
  } else {
    escaped(value);
  }
  *at_++ = '"';
  *at_++ = ',';
}

void JsonWriter::escaped(std::string_view value) {
  static constexpr char kHex[] = "0123456789abcdef";
  constexpr std::size_t kEscapeBytesMax = 6;
  make_room(value.size() * kEscapeBytesMax + 2);
  for (const char c : value) {
    if (!needs_escape(c)) {
      *at_++ = c;
      continue;
    }
    *at_++ = '\\';
    if (c == '"' || c == '\\') {
      *at_++ = c;
    } else if (c == '\n') {
      *at_++ = 'n';
    } else {
      const auto byte = static_cast<unsigned char>(c);
      for (const char digit : {'u', '0', '0', kHex[byte >> 4U], kHex[byte & 0xfU]}) *at_++ = digit;
    }
  }
}

}  // namespace windlass::codec
