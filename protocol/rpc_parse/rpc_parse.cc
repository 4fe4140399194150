#include "protocol/rpc_parse/rpc_parse.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/stubs/logging.h>

#include <cstdint>
#include <optional>
#include <string>

#include "protocol/base/utf8_mend.h"
#include "protocol/function_rpc/peek.h"

namespace windlass::function_rpc {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

constexpr int kNestedMax = 100;  // libprotobuf's own bound

// Rewrites one message with its texts mended. Whatever is not text is copied as it came.
class Mender {
 public:
  explicit Mender(std::string_view bytes) : rest_(bytes) {}

  bool mend(const Descriptor& type, std::string& to, int nested) {
    if (nested > kNestedMax) return false;
    while (!rest_.empty()) {
      const std::string_view from = rest_;
      const auto key = varint();
      if (!key) return false;
      const bool is_copied = skip_value(static_cast<unsigned>(*key & 7U));
      if (is_copied) {
        to.append(from.substr(0, from.size() - rest_.size()));
        continue;
      }
      if ((*key & 7U) != kBytes || !mend_bytes(type, *key, to, nested)) return false;
    }
    return true;
  }

 private:
  static constexpr unsigned kVarint = 0;
  static constexpr unsigned kFixed64 = 1;
  static constexpr unsigned kBytes = 2;
  static constexpr unsigned kFixed32 = 5;

  bool mend_bytes(const Descriptor& type, std::uint64_t key, std::string& to, int nested) {
    const auto size = varint();
    if (!size || *size > rest_.size()) return false;
    const std::string_view value = rest_.substr(0, static_cast<std::size_t>(*size));
    rest_.remove_prefix(value.size());
    const auto number = static_cast<std::uint32_t>(key >> 3U);
    const FieldDescriptor* const field = type.FindFieldByNumber(static_cast<int>(number));
    if (field != nullptr && field->type() == FieldDescriptor::TYPE_STRING) {
      append_bytes(to, number, mended_utf8(value));
    } else if (field != nullptr && field->type() == FieldDescriptor::TYPE_MESSAGE) {
      std::string inner;
      if (!Mender{value}.mend(*field->message_type(), inner, nested + 1)) return false;
      append_bytes(to, number, inner);
    } else {
      append_bytes(to, number, value);
    }
    return true;
  }

  // False: it is of another kind, or cut short.
  bool skip_value(unsigned wire_type) {
    if (wire_type == kVarint) return varint().has_value();
    const std::size_t size = wire_type == kFixed64 ? 8 : wire_type == kFixed32 ? 4 : 0;
    if (size == 0 || rest_.size() < size) return false;
    rest_.remove_prefix(size);
    return true;
  }

  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<std::uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }

  std::string_view rest_;
};

// libprotobuf writes a line to standard error for every bad character, and whoever runs functions chooses how
// many there are.
void silence_protobuf() {
  static const bool is_silent = [] {
    google::protobuf::SetLogHandler(nullptr);
    return true;
  }();
  static_cast<void>(is_silent);
}

}  // namespace

bool parse_mended(google::protobuf::Message& to, std::string_view bytes) {
  silence_protobuf();
  if (to.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return true;
  std::string mended;
  mended.reserve(bytes.size() + bytes.size() / 8);
  return Mender{bytes}.mend(*to.GetDescriptor(), mended, 0) && to.ParseFromString(mended);
}

}  // namespace windlass::function_rpc
