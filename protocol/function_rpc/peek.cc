#include "protocol/function_rpc/peek.h"

#include <algorithm>
#include <array>

namespace windlass::function_rpc {
namespace {

enum class WireType : std::uint8_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };
constexpr std::uint32_t kRequestId = 1;

struct Field {
  std::uint32_t number = 0;
  bool is_bytes = false;
  std::string_view bytes;
};

// Walks the fields of one message.
class Fields {
 public:
  explicit Fields(std::string_view message) : rest_(message) {}
  bool is_broken() const { return broken_; }

  std::optional<Field> next() {
    if (rest_.empty() || broken_) return std::nullopt;
    const std::optional<std::uint64_t> key = varint();
    // A field number has 29 bits; 0 is none.
    if (!key || *key >> 32U != 0 || *key >> 3U == 0) return fail();
    Field field{static_cast<std::uint32_t>(*key >> 3U), false, {}};
    switch (static_cast<WireType>(*key & 7U)) {
      case WireType::Varint:
        if (!varint()) return fail();
        return field;
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

// The number of the field that holds the invocation id in this content; 0: it has none.
std::uint32_t invocation_field(Content content) {
  switch (content) {
    case Content::RpcLog:
    case Content::InvocationRequest:
    case Content::InvocationResponse:
      return 1;
    case Content::InvocationCancel:
      return 2;
    default:
      return 0;
  }
}

// Other fields may be added to the envelope one day; they are no content.
bool is_content(std::uint32_t number) {
  constexpr std::array<std::uint32_t, 27> kContents{2,  4,  5,  6,  7,  8,  9,  12, 13, 14, 15, 16,  17, 20,
                                                    21, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 100, 101};
  return std::find(kContents.begin(), kContents.end(), number) != kContents.end();
}

Error no_message(std::string_view where) {
  return {ErrorCode::ProtoSchema, Blame::Peer,
          std::string{"a FunctionRpc message is no protobuf message"}.append(where)};
}

}  // namespace

Result<Peeked> peek(std::string_view message) {
  Peeked peeked;
  Fields fields{message};
  while (const std::optional<Field> field = fields.next()) {
    if (!field->is_bytes) continue;
    if (field->number == kRequestId) {
      peeked.request_id = field->bytes;
    } else if (is_content(field->number)) {
      peeked.content = Content{field->number};
      peeked.body = field->bytes;
    }
  }
  if (fields.is_broken()) return no_message("");
  if (const std::uint32_t wanted = invocation_field(peeked.content); wanted != 0) {
    Fields inner{peeked.body};
    while (const std::optional<Field> field = inner.next()) {
      if (!field->is_bytes || field->number != wanted) continue;
      peeked.invocation_id = field->bytes;
      break;  // the id comes first; what follows is not ours to judge
    }
    if (inner.is_broken()) return no_message(" inside");
  }
  return peeked;
}

void append_varint(std::string& to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7U) to.push_back(static_cast<char>((value & 0x7FU) | 0x80U));
  to.push_back(static_cast<char>(value));
}

Result<std::optional<std::string_view>> find_bytes(std::string_view message, std::uint32_t field) {
  std::optional<std::string_view> found;
  Fields fields{message};
  while (const std::optional<Field> each = fields.next()) {
    if (each->is_bytes && each->number == field) found = each->bytes;
  }
  if (fields.is_broken()) return no_message(" inside");
  return found;
}

void append_head(std::string& to, std::uint32_t field, std::size_t bytes) {
  append_varint(to, (std::uint64_t{field} << 3U) | static_cast<unsigned>(WireType::Bytes));
  append_varint(to, bytes);
}

void append_bytes(std::string& to, std::uint32_t field, std::string_view bytes) {
  append_head(to, field, bytes.size());
  to.append(bytes);
}

std::string compose(std::string_view request_id, Content content, std::string_view body) {
  std::string message;
  message.reserve(request_id.size() + body.size() + 16);
  if (!request_id.empty()) append_bytes(message, kRequestId, request_id);
  append_bytes(message, static_cast<std::uint32_t>(content), body);
  return message;
}

}  // namespace windlass::function_rpc
