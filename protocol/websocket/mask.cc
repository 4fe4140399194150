#include "protocol/websocket/mask.h"

#include <cstring>

namespace windlass::websocket {

bool apply_mask(std::span<char> bytes, MaskKey key) {
  std::uint32_t half = 0;
  std::memcpy(&half, key.bytes.data(), sizeof half);
  const std::uint64_t word_key = (std::uint64_t{half} << 32U) | half;

  // Loads and stores through memcpy carry no alignment demand, and the loop is simple enough for the compiler
  // to widen to vector registers.
  char* at = bytes.data();
  std::size_t left = bytes.size();
  std::uint64_t seen = 0;
  const std::size_t words = left / sizeof(std::uint64_t);
  for (std::size_t i = 0; i < words; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, at + i * sizeof word, sizeof word);
    word ^= word_key;
    std::memcpy(at + i * sizeof word, &word, sizeof word);
    seen |= word;
  }
  at += words * sizeof(std::uint64_t);
  left -= words * sizeof(std::uint64_t);
  for (std::size_t i = 0; i < left; ++i) {
    const auto byte = static_cast<unsigned char>(static_cast<unsigned char>(at[i]) ^ key.bytes[i % 4]);
    at[i] = static_cast<char>(byte);
    seen |= byte;
  }
  return (seen & 0x8080808080808080ULL) == 0;
}

}  // namespace windlass::websocket
