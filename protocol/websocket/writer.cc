#include "protocol/websocket/writer.h"

#include "protocol/base/check.h"
#include "protocol/base/clip.h"
#include "protocol/base/limits.h"

namespace windlass::websocket {
namespace {

void append_control(Opcode opcode, BytesView payload, Mask mask, Bytes& out) {
  CHECK(payload.size() <= kControlBytesMax);
  append_frame({.opcode = opcode, .mask = mask}, payload, out);
}

char* put_big_endian(std::uint64_t value, std::size_t count, char* at) {
  for (std::size_t i = count; i-- > 0;) *at++ = static_cast<char>(value >> (8 * i));
  return at;
}

LengthForm shortest_form(std::uint64_t length) {
  if (length <= 125) return LengthForm::Bits7;
  return length <= 0xFFFF ? LengthForm::Bits16 : LengthForm::Bits64;
}

}  // namespace

void append_text(BytesView payload, Mask mask, Bytes& out) {
  append_frame({.opcode = Opcode::Text, .mask = mask}, payload, out);
}

void append_binary(BytesView payload, Mask mask, Bytes& out) {
  append_frame({.opcode = Opcode::Binary, .mask = mask}, payload, out);
}

void append_ping(BytesView payload, Mask mask, Bytes& out) {
  append_control(Opcode::Ping, payload, mask, out);
}

void append_pong(BytesView payload, Mask mask, Bytes& out) {
  append_control(Opcode::Pong, payload, mask, out);
}

void append_close(CloseCode code, BytesView reason, Mask mask, Bytes& out) {
  if (code == CloseCode::NoStatus) return append_control(Opcode::Close, {}, mask, out);
  CHECK(is_sendable(code));
  char body[kControlBytesMax];
  char* at = put_big_endian(static_cast<std::uint16_t>(code), 2, body);
  at += clip(reason, limits::kCloseReasonBytesMax).copy(at, limits::kCloseReasonBytesMax);
  append_control(Opcode::Close, {body, static_cast<std::size_t>(at - body)}, mask, out);
}

void append_header(const FrameHeader& header, std::uint64_t payload_bytes, Bytes& out) {
  const std::uint64_t length = header.length.value_or(payload_bytes);
  const LengthForm form =
      header.length_form == LengthForm::Shortest ? shortest_form(length) : header.length_form;
  const unsigned length7 = form == LengthForm::Bits7    ? static_cast<unsigned>(length & 0x7FU)
                           : form == LengthForm::Bits16 ? 126U
                                                        : 127U;
  char bytes[kHeaderBytesMax];
  bytes[0] = static_cast<char>((header.final ? 0x80U : 0U) | ((header.reserved_bits & 0x7U) << 4U) |
                               (static_cast<unsigned>(header.opcode) & 0x0FU));
  bytes[1] = static_cast<char>((header.mask ? 0x80U : 0U) | length7);
  char* at = bytes + 2;
  if (form == LengthForm::Bits16) at = put_big_endian(length, 2, at);
  if (form == LengthForm::Bits64) at = put_big_endian(length, 8, at);
  if (header.mask) {
    for (const unsigned char byte : header.mask->bytes) *at++ = static_cast<char>(byte);
  }
  out.append(bytes, static_cast<std::size_t>(at - bytes));
}

void append_frame(const FrameHeader& header, BytesView payload, Bytes& out) {
  append_header(header, payload.size(), out);
  const std::size_t start = out.size();
  out.append(payload);
  if (header.mask) apply_mask(std::span<char>{out}.subspan(start), *header.mask);
}

}  // namespace windlass::websocket
