// Integers as bytes, highest first.
#pragma once

#include <cstddef>
#include <cstdint>

#include "protocol/base/bytes.h"

namespace windlass {

// The lowest `bytes` bytes of the value.
inline void append_big_endian(Bytes& out, std::uint64_t value, std::size_t bytes) {
  while (bytes > 0) out.push_back(static_cast<char>((value >> (8 * --bytes)) & 0xffU));
}

// Of at most 8 bytes; 0 of none.
inline std::uint64_t big_endian(BytesView bytes) {
  std::uint64_t value = 0;
  for (const char byte : bytes) value = (value << 8U) | static_cast<unsigned char>(byte);
  return value;
}

}  // namespace windlass
