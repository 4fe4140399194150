#include "protocol/crypto/percent_encoding.h"

namespace windlass {
namespace {

constexpr std::string_view kUpperHex = "0123456789ABCDEF";

std::optional<unsigned> hex_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  return std::nullopt;
}

bool stands_for_itself(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
         c == '.' || c == '~';
}

}  // namespace

std::string percent_encode(std::string_view plain) {
  std::string text;
  for (const char c : plain) {
    if (stands_for_itself(c)) {
      text += c;
      continue;
    }
    text += '%';
    text += kUpperHex[static_cast<unsigned char>(c) >> 4U];
    text += kUpperHex[static_cast<unsigned char>(c) & 0xfU];
  }
  return text;
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i];
      continue;
    }
    const auto high = i + 1 < text.size() ? hex_digit(text[i + 1]) : std::nullopt;
    const auto low = i + 2 < text.size() ? hex_digit(text[i + 2]) : std::nullopt;
    if (!high || !low) return std::nullopt;
    plain += static_cast<char>(*high << 4U | *low);
    i += 2;
  }
  return plain;
}

}  // namespace windlass
