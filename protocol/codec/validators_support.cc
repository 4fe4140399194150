// The hand-written conversions and refusals behind the generated validators.
#include <algorithm>
#include <bit>
#include <charconv>
#include <chrono>
#include <string>

#include "protocol/base/limits.h"
#include "protocol/codec/tape_reader.h"
#include "protocol/codec/validators.h"

namespace windlass::codec {

bool TapeReader::reject(const char* rule) {
  violation_.code = ErrorCode::ProtoSchema;
  violation_.pointer.clear();
  violation_.reason = rule;
  return false;
}

bool TapeReader::within(std::string_view name) {
  std::string step = "/";
  for (const char c : name) {
    if (c == '~') {
      step += "~0";
    } else if (c == '/') {
      step += "~1";
    } else {
      step += c;
    }
  }
  violation_.pointer.insert(0, step);
  return false;
}

bool TapeReader::within(std::size_t index) {
  return within(std::to_string(index));
}

namespace {

int digits(std::string_view text, std::size_t from, std::size_t count) {
  int value = 0;
  for (std::size_t i = from; i < from + count; ++i) value = value * 10 + (text[i] - '0');
  return value;
}

}  // namespace

//= ENV-6
WallTime parse_time(std::string_view text) {
  namespace chrono = std::chrono;
  // A leap day in a year without one, and second 60, are the following day and second.
  const chrono::sys_days day = chrono::year{digits(text, 0, 4)} /
                               chrono::month{static_cast<unsigned>(digits(text, 5, 2))} /
                               chrono::day{static_cast<unsigned>(digits(text, 8, 2))};
  WallTime time = chrono::time_point_cast<milliseconds>(day) + chrono::hours{digits(text, 11, 2)} +
                  chrono::minutes{digits(text, 14, 2)} + seconds{digits(text, 17, 2)};
  std::size_t at = 19;
  if (text[at] == '.') {
    int weight = 100;
    for (++at; text[at] >= '0' && text[at] <= '9'; ++at, weight /= 10) {
      time += milliseconds{(text[at] - '0') * weight};
    }
  }
  if (text[at] == 'Z') return time;
  const auto offset = chrono::hours{digits(text, at + 1, 2)} + chrono::minutes{digits(text, at + 4, 2)};
  return text[at] == '+' ? time - offset : time + offset;
}

void store_bits(AckBitmap& out, std::uint64_t bits) {
  for (; bits != 0; bits &= bits - 1) out.set(static_cast<std::size_t>(std::countr_zero(bits)));
}

//= ACK-2
void store_hex(AckBitmap& out, std::string_view text) {
  std::size_t base = 0;
  for (std::size_t i = text.size(); i-- > 0; base += 4) {
    const char c = text[i];
    const auto digit = static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
    for (std::size_t bit = 0; bit < 4; ++bit) {
      if (((digit >> bit) & 1U) != 0) out.set(base + bit);
    }
  }
}

//= REV-2
AckState& state_revision1(Ack& ack) {
  if (!ack.state) {
    ack.state.emplace();
    ack.state->credit = {limits::kWindowFramesRevision1Max, limits::kIntegerMax};
  }
  return *ack.state;
}

}  // namespace windlass::codec
