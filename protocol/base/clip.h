// Shortens text to a bound without cutting a character in two, so that what was UTF-8 stays UTF-8.
#pragma once

#include <cstddef>
#include <string_view>

#include "protocol/base/utf8.h"

namespace windlass {

inline std::string_view clip(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  const auto continues = [&](std::size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U;
  };
  while (bytes_max > 0 && continues(bytes_max)) --bytes_max;
  return text.substr(0, bytes_max);
}

// Somebody's words as they may stand in a frame.
inline std::string_view sayable(std::string_view text, std::size_t bytes_max) {
  return is_utf8(text) ? clip(text, bytes_max) : clip("what was given is not text", bytes_max);
}

}  // namespace windlass
