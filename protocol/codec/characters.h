// Lengths as JSON Schema counts them: in characters, not in bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace windlass::codec {

// Of valid UTF-8.
inline std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

// A text has at most as many characters as bytes, so nearly every text is judged by its size.
template <std::size_t Least, std::size_t Most>
bool has_length(std::string_view text) {
  if (text.size() > Most && count_characters(text) > Most) return false;
  if constexpr (Least == 0) {
    return true;
  } else if constexpr (Least == 1) {
    return !text.empty();
  } else {
    return count_characters(text) >= Least;
  }
}

// Every byte lies between First and Last. No early exit, so that it is done many bytes at a time.
template <unsigned First, unsigned Last>
bool is_within(std::string_view text) {
  bool good = true;
  for (const char c : text) good &= static_cast<unsigned char>(c) - First <= Last - First;
  return good;
}

}  // namespace windlass::codec
