// UTF-8 as RFC 3629 defines it: no overlong forms, no surrogates, nothing above U+10FFFF. Checked a piece at
// a time, so that a text message is refused at its first bad byte and not when its last fragment arrives.
#pragma once

#include <cstdint>

#include "protocol/base/bytes.h"

namespace windlass {

class Utf8Checker {
 public:
  // False as soon as no continuation could make the text so far valid. False stays false.
  [[nodiscard]] bool handle_bytes(BytesView bytes);

  // Whether the text so far is valid and ends between two characters.
  bool is_complete() const { return state_ == kBetween; }

 private:
  // States are bit positions in the rows of the transition table (utf8.cc).
  static constexpr std::uint64_t kWrong = 0;
  static constexpr std::uint64_t kBetween = 6;
  friend struct Utf8Table;

  std::uint64_t state_ = kBetween;
};

[[nodiscard]] bool is_utf8(BytesView text);

}  // namespace windlass
