#include "protocol/function_rpc/http_stream.h"

#include "protocol/function_rpc/peek.h"
#include "protocol/function_rpc/wire_fields.h"

namespace windlass::function_rpc {
namespace {

// Numbers of the fields, as in schema/proto/function_rpc.proto.
enum class FrameField : std::uint8_t { Invocation = 1, Head, Data, End, Abort, Credit };
enum class HeadField : std::uint8_t { Method = 1, Target, Status, Headers, BodyBytes, HasBody };
constexpr std::uint32_t kName = 1;
constexpr std::uint32_t kValue = 2;
constexpr std::size_t kHeadersMax = 1024;

template <class Field>
constexpr std::uint32_t number_of(Field field) {
  return static_cast<std::uint32_t>(field);
}

Error no_frame(std::string_view why) {
  return {ErrorCode::ProtoSchema, Blame::Peer, "a piece of an HTTP stream " + std::string{why}};
}

void append_number(std::string& to, std::uint32_t field, std::uint64_t value) {
  append_varint(to, std::uint64_t{field} << 3U);
  append_varint(to, value);
}

std::string head_text(const HttpStreamHead& head) {
  std::string text;
  if (!head.method.empty()) append_bytes(text, number_of(HeadField::Method), head.method);
  if (!head.target.empty()) append_bytes(text, number_of(HeadField::Target), head.target);
  if (head.status != 0) append_number(text, number_of(HeadField::Status), head.status);
  for (const auto& [name, value] : head.headers) {
    std::string pair;
    append_bytes(pair, kName, name);
    append_bytes(pair, kValue, value);
    append_bytes(text, number_of(HeadField::Headers), pair);
  }
  if (head.body_bytes) append_number(text, number_of(HeadField::BodyBytes), *head.body_bytes);
  if (head.has_body) append_number(text, number_of(HeadField::HasBody), 1);
  return text;
}

Result<std::pair<std::string, std::string>> read_header(std::string_view text) {
  std::pair<std::string, std::string> header;
  WireFields fields{text};
  while (const auto field = fields.next()) {
    if (field->is_bytes && field->number == kName) header.first = field->bytes;
    if (field->is_bytes && field->number == kValue) header.second = field->bytes;
  }
  if (fields.is_broken()) return no_frame("has a broken header");
  return header;
}

Result<HttpStreamHead> read_head(std::string_view text) {
  HttpStreamHead head;
  WireFields fields{text};
  while (const auto field = fields.next()) {
    switch (static_cast<HeadField>(field->number)) {
      case HeadField::Method:
        head.method = field->bytes;
        break;
      case HeadField::Target:
        head.target = field->bytes;
        break;
      case HeadField::Status:
        head.status = static_cast<std::uint16_t>(field->value);
        break;
      case HeadField::Headers: {
        auto header = read_header(field->bytes);
        if (!header) return header.error();
        if (head.headers.size() >= kHeadersMax) return no_frame("has too many headers");
        head.headers.push_back(*std::move(header));
        break;
      }
      case HeadField::BodyBytes:
        head.body_bytes = field->value;
        break;
      case HeadField::HasBody:
        head.has_body = field->value != 0;
        break;
    }
  }
  if (fields.is_broken()) return no_frame("has a broken head");
  return head;
}

}  // namespace

std::string write_http_stream(const HttpStreamFrame& frame) {
  std::string body;
  body.reserve(frame.data.size() + 128);
  append_bytes(body, number_of(FrameField::Invocation), frame.invocation_id);
  if (frame.credit != 0) append_number(body, number_of(FrameField::Credit), frame.credit);
  if (frame.head) append_bytes(body, number_of(FrameField::Head), head_text(*frame.head));
  if (!frame.data.empty()) append_bytes(body, number_of(FrameField::Data), frame.data);
  if (frame.is_end) append_number(body, number_of(FrameField::End), 1);
  if (frame.abort) append_bytes(body, number_of(FrameField::Abort), *frame.abort);
  return compose("", Content::HttpStream, body);
}

Result<HttpStreamFrame> read_http_stream(std::string_view body) {
  HttpStreamFrame frame;
  WireFields fields{body};
  while (const auto field = fields.next()) {
    switch (static_cast<FrameField>(field->number)) {
      case FrameField::Invocation:
        frame.invocation_id = field->bytes;
        break;
      case FrameField::Head: {
        auto head = read_head(field->bytes);
        if (!head) return head.error();
        frame.head = *std::move(head);
        break;
      }
      case FrameField::Data:
        frame.data = field->bytes;
        break;
      case FrameField::End:
        frame.is_end = field->value != 0;
        break;
      case FrameField::Abort:
        frame.abort = field->bytes;
        break;
      case FrameField::Credit:
        frame.credit = field->value;
        break;
    }
  }
  if (fields.is_broken()) return no_frame("is no protobuf message");
  if (frame.invocation_id.empty()) return no_frame("belongs to no invocation");
  return frame;
}

}  // namespace windlass::function_rpc
