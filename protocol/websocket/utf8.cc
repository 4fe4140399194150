#include "protocol/websocket/utf8.h"

#include <cstring>

namespace windlass::websocket {
namespace {

constexpr std::uint64_t kHighBits = 0x8080808080808080ULL;

// The first byte at or after `at` that is not ASCII, found 32 bytes at a time.
const char* skip_ascii(const char* at, const char* end) {
  while (end - at >= 32) {
    std::uint64_t words[4];
    std::memcpy(words, at, sizeof words);
    if (((words[0] | words[1] | words[2] | words[3]) & kHighBits) != 0) break;
    at += sizeof words;
  }
  while (end - at >= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    if ((word & kHighBits) != 0) break;
    at += sizeof word;
  }
  while (at != end && static_cast<unsigned char>(*at) < 0x80) ++at;
  return at;
}

constexpr bool is_continuation(unsigned char byte) {
  return (byte & 0xC0U) == 0x80;
}

// Bytes of the character at `at`, of which four bytes may be read; 0 if it is not one.
std::size_t character_bytes(const char* at) {
  unsigned char b[4];
  std::memcpy(b, at, sizeof b);
  if (b[0] < 0xC2) return 0;  // a stray continuation byte or an overlong pair
  if (b[0] < 0xE0) return is_continuation(b[1]) ? 2 : 0;
  if (b[0] < 0xF0) {
    const unsigned code = ((b[0] & 0x0FU) << 12U) | ((b[1] & 0x3FU) << 6U);
    const bool formed = is_continuation(b[1]) && is_continuation(b[2]);
    return formed && code >= 0x800 && (code < 0xD800 || code > 0xDFFF) ? 3 : 0;
  }
  const unsigned code = ((b[0] & 0x0FU) << 18U) | ((b[1] & 0x3FU) << 12U);
  const bool formed = is_continuation(b[1]) && is_continuation(b[2]) && is_continuation(b[3]);
  return formed && code >= 0x10000 && code <= 0x10FFFF ? 4 : 0;
}

}  // namespace

bool Utf8Checker::handle_bytes(BytesView bytes) {
  const char* at = bytes.data();
  const char* const end = at + bytes.size();
  if (needed_ > 0) {
    at = finish_character(at, end);
    if (at == nullptr) return false;
  }
  for (;;) {
    at = skip_ascii(at, end);
    while (end - at >= 4 && static_cast<unsigned char>(*at) >= 0x80) {
      const std::size_t size = character_bytes(at);
      if (size == 0) return false;
      at += size;
    }
    if (at == end) return true;
    if (end - at >= 4) continue;  // ASCII again
    // Within the last three bytes a character may be cut, so they go through the piecewise rules.
    if (static_cast<unsigned char>(*at) >= 0x80) {
      if (!begin_character(static_cast<unsigned char>(*at))) return false;
      at = finish_character(at + 1, end);
      if (at == nullptr) return false;
    }
  }
}

// Takes continuation bytes until the character or the input ends; nullptr at a byte that cannot follow.
const char* Utf8Checker::finish_character(const char* at, const char* end) {
  while (needed_ > 0 && at != end) {
    const auto byte = static_cast<unsigned char>(*at);
    if (byte < lowest_ || byte > highest_) return nullptr;
    lowest_ = 0x80;
    highest_ = 0xBF;
    --needed_;
    ++at;
  }
  return at;
}

// The bounds are table 3-7 of the Unicode standard: they shut out overlong forms, surrogates and what lies
// above U+10FFFF at the second byte.
bool Utf8Checker::begin_character(unsigned char lead) {
  if (lead < 0xC2 || lead > 0xF4) return false;
  needed_ = lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
  lowest_ = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  highest_ = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  return true;
}

bool is_utf8(BytesView text) {
  Utf8Checker checker;
  return checker.handle_bytes(text) && checker.is_complete();
}

}  // namespace windlass::websocket
