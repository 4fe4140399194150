#include "protocol/crypto/text_encoding.h"

#include <array>
#include <cstdint>

namespace windlass {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::uint8_t kNoDigit = 0xff;

constexpr std::array<std::uint8_t, 256> kDigitOf = [] {
  std::array<std::uint8_t, 256> table{};
  table.fill(kNoDigit);
  for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
    table[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::uint8_t>(i);
  }
  return table;
}();

}  // namespace

std::string base64url_encode(BytesView bytes) {
  std::string text;
  text.reserve((bytes.size() * 4 + 2) / 3);
  std::uint32_t pending = 0;
  unsigned pending_bits = 0;
  for (const char byte : bytes) {
    pending = ((pending << 8U) | static_cast<unsigned char>(byte)) & 0xffffU;
    pending_bits += 8;
    while (pending_bits >= 6) {
      pending_bits -= 6;
      text.push_back(kAlphabet[(pending >> pending_bits) & 0x3fU]);
    }
  }
  if (pending_bits > 0) text.push_back(kAlphabet[(pending << (6 - pending_bits)) & 0x3fU]);
  return text;
}

std::optional<Bytes> base64url_decode(std::string_view text) {
  if (text.size() % 4 == 1) return std::nullopt;
  Bytes bytes;
  bytes.reserve(text.size() * 3 / 4);
  std::uint32_t pending = 0;
  unsigned pending_bits = 0;
  for (const char character : text) {
    const std::uint8_t digit = kDigitOf[static_cast<unsigned char>(character)];
    if (digit == kNoDigit) return std::nullopt;
    pending = ((pending << 6U) | digit) & 0xffffU;
    pending_bits += 6;
    if (pending_bits >= 8) {
      pending_bits -= 8;
      bytes.push_back(static_cast<char>((pending >> pending_bits) & 0xffU));
    }
  }
  const std::uint32_t unused = pending & ((1U << pending_bits) - 1U);
  if (unused != 0) return std::nullopt;
  return bytes;
}

std::string hex_encode(BytesView bytes) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    text.push_back(kHex[value >> 4U]);
    text.push_back(kHex[value & 0xfU]);
  }
  return text;
}

}  // namespace windlass
