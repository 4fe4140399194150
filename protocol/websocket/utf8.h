// UTF-8 as RFC 3629 defines it: no overlong forms, no surrogates, nothing above U+10FFFF. Checked a piece at
// a time, so that a text message is refused at its first bad byte and not when its last fragment arrives.
#pragma once

#include <cstdint>

#include "protocol/base/bytes.h"

namespace windlass::websocket {

class Utf8Checker {
 public:
  // False as soon as no continuation could make the text so far valid. After false, only reset() helps.
  [[nodiscard]] bool handle_bytes(BytesView bytes);

  // Whether the text so far ends between two characters.
  bool is_complete() const { return needed_ == 0; }

  void reset() { *this = Utf8Checker{}; }

 private:
  const char* finish_character(const char* at, const char* end);
  bool begin_character(unsigned char lead);

  std::uint8_t needed_ = 0;     // continuation bytes still to come
  std::uint8_t lowest_ = 0x80;  // bounds of the next one: the second byte of a character may be narrower
  std::uint8_t highest_ = 0xBF;
};

[[nodiscard]] bool is_utf8(BytesView text);

}  // namespace windlass::websocket
