#include "protocol/websocket/mask.h"

#include <gtest/gtest.h>

#include <string>

#include "protocol/base/random.h"

namespace windlass::websocket {
namespace {

std::string random_bytes(Random& random, std::size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.next());
  return bytes;
}

TEST(Mask, EveryLengthAndAlignmentEqualsTheByteByByteDefinition) {
  Random random{1};
  const MaskKey key = MaskKey::from(0x9A7F01E3);
  for (std::size_t offset = 0; offset < 9; ++offset) {
    for (std::size_t size = 0; size < 80; ++size) {
      std::string bytes = random_bytes(random, offset + size);
      std::string expected = bytes;
      bool ascii = true;
      for (std::size_t i = 0; i < size; ++i) {
        const auto byte = static_cast<unsigned char>(expected[offset + i]) ^ key.bytes[i % 4];
        expected[offset + i] = static_cast<char>(byte);
        ascii = ascii && byte < 0x80;
      }
      ASSERT_EQ(apply_mask(std::span<char>{bytes}.subspan(offset), key), ascii);
      ASSERT_EQ(bytes, expected) << "offset " << offset << " size " << size;
    }
  }
}

TEST(Mask, OneHighBitAnywhereIsNotAscii) {
  for (std::size_t size = 1; size < 70; ++size) {
    for (std::size_t at = 0; at < size; ++at) {
      std::string bytes(size, 'a');
      ASSERT_TRUE(apply_mask(bytes, MaskKey{}));
      bytes[at] = '\x80';
      ASSERT_FALSE(apply_mask(bytes, MaskKey{})) << size << ' ' << at;
    }
  }
}

TEST(Mask, RotatedKeyContinuesAPayloadCutAnywhere) {
  Random random{2};
  const MaskKey key = MaskKey::from(0x01020304);
  const std::string plain = random_bytes(random, 50);
  std::string whole = plain;
  apply_mask(whole, key);
  for (std::size_t cut = 0; cut <= plain.size(); ++cut) {
    std::string pieces = plain;
    apply_mask(std::span<char>{pieces}.first(cut), key);
    apply_mask(std::span<char>{pieces}.subspan(cut), key.rotated(cut));
    ASSERT_EQ(pieces, whole) << cut;
  }
}

}  // namespace
}  // namespace windlass::websocket
