#include "protocol/function_rpc/peek.h"

#include <algorithm>
#include <array>

#include "protocol/function_rpc/wire_fields.h"

namespace windlass::function_rpc {
namespace {

constexpr std::uint32_t kRequestId = 1;

// The number of the field that holds the invocation id in this content; 0: it has none.
std::uint32_t invocation_field(Content content) {
  switch (content) {
    case Content::RpcLog:
    case Content::InvocationRequest:
    case Content::InvocationResponse:
    case Content::HttpStream:
      return 1;
    case Content::InvocationCancel:
      return 2;
    default:
      return 0;
  }
}

// Other fields may be added to the envelope one day; they are no content.
bool is_content(std::uint32_t number) {
  constexpr std::array<std::uint32_t, 30> kContents{2,  4,  5,  6,  7,  8,   9,   12,  13,  14,
                                                    15, 16, 17, 20, 21, 25,  26,  27,  28,  29,
                                                    30, 31, 32, 33, 34, 100, 101, 102, 103, 110};
  return std::find(kContents.begin(), kContents.end(), number) != kContents.end();
}

Error no_message(std::string_view where) {
  return {ErrorCode::ProtoSchema, Blame::Peer,
          std::string{"a FunctionRpc message is no protobuf message"}.append(where)};
}

}  // namespace

Result<Peeked> peek(std::string_view message) {
  Peeked peeked;
  WireFields fields{message};
  while (const std::optional<WireField> field = fields.next()) {
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
    WireFields inner{peeked.body};
    while (const std::optional<WireField> field = inner.next()) {
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
  WireFields fields{message};
  while (const std::optional<WireField> each = fields.next()) {
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
