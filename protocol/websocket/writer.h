// Frames appended to a buffer the caller reuses, so that a steady stream allocates nothing and everything
// made in one loop turn can leave in one write. Masking keys are arguments: cores draw no randomness.
#pragma once

#include <cstdint>
#include <optional>

#include "protocol/base/bytes.h"
#include "protocol/websocket/frame.h"
#include "protocol/websocket/mask.h"

namespace windlass::websocket {

// A client passes a fresh key for every frame, a server passes none.
using Mask = std::optional<MaskKey>;

// One unfragmented message. That `payload` is UTF-8 is the caller's promise.
void append_text(BytesView payload, Mask mask, Bytes& out);
void append_binary(BytesView payload, Mask mask, Bytes& out);

// At most kControlBytesMax bytes of payload.
void append_ping(BytesView payload, Mask mask, Bytes& out);
void append_pong(BytesView payload, Mask mask, Bytes& out);

// `code` is sendable or NoStatus, which writes an empty body. A longer reason than fits is cut at a
// character.
void append_close(CloseCode code, BytesView reason, Mask mask, Bytes& out);

// Any header at all, also one that RFC 6455 forbids: a conformance runner sends those on purpose. The
// functions above make only valid ones.
enum class LengthForm : std::uint8_t { Shortest, Bits7, Bits16, Bits64 };

struct FrameHeader {
  Opcode opcode = Opcode::Binary;  // only the low four bits are written, reserved numbers too
  bool final = true;
  std::uint8_t reserved_bits = 0;  // RSV1 is 4, RSV2 is 2, RSV3 is 1
  Mask mask = std::nullopt;
  std::optional<std::uint64_t> length = std::nullopt;  // announced; the payload's own size when absent
  LengthForm length_form = LengthForm::Shortest;       // what does not fit the form is cut to its low bits
};

void append_header(const FrameHeader& header, std::uint64_t payload_bytes, Bytes& out);
void append_frame(const FrameHeader& header, BytesView payload, Bytes& out);

}  // namespace windlass::websocket
