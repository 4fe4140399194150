// Walks the fields of one protobuf message without decoding it. Pure, and only for this folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace windlass::function_rpc {

enum class WireType : std::uint8_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

struct WireField {
  std::uint32_t number = 0;
  bool is_bytes = false;
  std::string_view bytes = {};  // if it has some
  std::uint64_t value = 0;      // of a varint
};

class WireFields final {
 public:
  explicit WireFields(std::string_view message) : rest_(message) {}
  bool is_broken() const { return broken_; }

  std::optional<WireField> next() {
    if (rest_.empty() || broken_) return std::nullopt;
    const std::optional<std::uint64_t> key = varint();
    // A field number has 29 bits; 0 is none.
    if (!key || *key >> 32U != 0 || *key >> 3U == 0) return fail();
    WireField field{static_cast<std::uint32_t>(*key >> 3U)};
    switch (static_cast<WireType>(*key & 7U)) {
      case WireType::Varint: {
        const std::optional<std::uint64_t> value = varint();
        if (!value) return fail();
        field.value = *value;
        return field;
      }
      case WireType::Fixed64:
        return skip(8) ? std::optional{field} : fail();
      case WireType::Fixed32:
        return skip(4) ? std::optional{field} : fail();
      case WireType::Bytes: {
        const std::optional<std::uint64_t> size = varint();
        if (!size || *size > rest_.size()) return fail();
        field.is_bytes = true;
        field.bytes = rest_.substr(0, static_cast<std::size_t>(*size));
        rest_.remove_prefix(static_cast<std::size_t>(*size));
        return field;
      }
    }
    return fail();  // groups, which proto3 does not have
  }

 private:
  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) return std::nullopt;
      const auto byte = static_cast<std::uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }
  bool skip(std::size_t count) {
    if (rest_.size() < count) return false;
    rest_.remove_prefix(count);
    return true;
  }
  std::nullopt_t fail() {
    broken_ = true;
    return std::nullopt;
  }

  std::string_view rest_;
  bool broken_ = false;
};

}  // namespace windlass::function_rpc
