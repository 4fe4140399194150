// Masking of client frames: the payload XORed with a 4-byte key. Done by 8-byte words, because this loop
// touches every byte of every frame a server receives.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace windlass::websocket {

// The key in wire order. RFC 6455 wants it unpredictable, so the caller draws it from a secure source.
struct MaskKey {
  std::array<unsigned char, 4> bytes{};

  static constexpr MaskKey from(std::uint32_t random) {
    return {{static_cast<unsigned char>(random >> 24U), static_cast<unsigned char>(random >> 16U),
             static_cast<unsigned char>(random >> 8U), static_cast<unsigned char>(random)}};
  }
  // The key as seen `offset` bytes into the payload, for masking it in pieces.
  constexpr MaskKey rotated(std::size_t offset) const {
    return {{bytes[offset % 4], bytes[(offset + 1) % 4], bytes[(offset + 2) % 4], bytes[(offset + 3) % 4]}};
  }
  friend bool operator==(const MaskKey&, const MaskKey&) = default;
};

// Masks or unmasks in place. Returns whether every byte is ASCII afterwards: it costs next to nothing here,
// and saves a second pass over most text messages.
bool apply_mask(std::span<char> bytes, MaskKey key);

}  // namespace windlass::websocket
