// The generated half of decoding: the rules of schema/messages as code, written at build time by generate.py.
// Beside it stand the few conversions the schemas cannot express: times, intervals and bitmaps.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "protocol/codec/tape_reader.h"
#include "protocol/messages/frame.h"

namespace windlass::codec {

// A frame while it is read: what a Frame holds, and what only the codec needs to know.
struct DecodedFrame : Frame {
  std::string_view type;
  TapeReader::Place payload;
  std::optional<std::uint64_t> attachment_bytes;
  std::string_view attachment_type;
};

// Reads the whole envelope except the payload, whose place is noted. False: a rule is broken, and noted.
bool read_envelope(TapeReader& in, Revision revision, DecodedFrame& out);

// Reads the payload into out.body if out.type is a control frame we know, and says so. False: a rule is
// broken.
enum class PayloadRead : std::uint8_t { Known, NotKnown, Refused };
PayloadRead read_payload(TapeReader& in, Revision revision, DecodedFrame& out);

// The text matches the schemas' pattern for times.
WallTime parse_time(std::string_view text);
// The text matches the schemas' pattern for bitmaps.
void store_hex(AckBitmap& out, std::string_view text);
void store_bits(AckBitmap& out, std::uint64_t bits);

inline void store(std::string_view& out, std::string_view value) {
  out = value;
}
inline void store(bool& out, bool value) {
  out = value;
}
inline void store(std::optional<bool>& out, bool value) {
  out = value;
}
inline void store(std::uint32_t& out, std::uint64_t value) {
  DCHECK(value <= UINT32_MAX);
  out = static_cast<std::uint32_t>(value);
}
inline void store(std::uint64_t& out, std::uint64_t value) {
  out = value;
}
inline void store(std::optional<std::uint64_t>& out, std::uint64_t value) {
  out = value;
}
inline void store(std::optional<double>& out, double value) {
  out = value;
}
inline void store(WallTime& out, std::string_view value) {
  out = parse_time(value);
}
inline void store(std::optional<WallTime>& out, std::string_view value) {
  out = parse_time(value);
}
inline void store(Duration& out, std::uint64_t value) {
  out = milliseconds{static_cast<milliseconds::rep>(value)};
}
inline void store(std::optional<Duration>& out, std::uint64_t value) {
  out = milliseconds{static_cast<milliseconds::rep>(value)};
}

// The state an ack carries, made by whichever of its fields comes first.
inline AckState& state(Ack& ack) {
  return ack.state ? *ack.state : ack.state.emplace();
}
AckState& state_revision1(Ack& ack);

}  // namespace windlass::codec
