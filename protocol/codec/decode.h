// Bytes of one message to one Frame: split, parse, check the envelope, check the payload by its type, all
// rules of schema/ included, in one pass. A Frame that comes out of here cannot be wrong. The numbering of
// both wire revisions is translated here and in encode.h alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "protocol/base/bytes.h"
#include "protocol/base/error_code.h"
#include "protocol/base/limits.h"
#include "protocol/messages/frame.h"

namespace windlass {

// In front of the envelope of a binary message: its length, highest byte first.
inline constexpr std::size_t kEnvelopeLengthBytes = 4;

// What the session expects to be spoken.
enum class Expect : std::uint8_t {
  // Before the first accepted frame. A handshake is read by the protocol it names, of one not spoken here
  // only that number; a resume by revision 1 if it can be, since only there may it come first, and anything
  // else by revision 2 or else by revision 1.
  Any,
  RevisionOne,
  RevisionTwo,
};

// Why a message was refused.
struct Violation {
  ErrorCode code = ErrorCode::ProtoJson;  // E.PROTO.JSON, E.PROTO.SCHEMA or E.LIMIT.FRAME
  std::string pointer;                    // JSON pointer to the member at fault, also to one that is missing
  std::string reason;                     // the rule it breaks
  std::string frame_id;                   // the frame's id and type as far as they could be read, else empty
  std::string frame_type;

  bool operator==(const Violation&) const = default;
};

// Reuses its memory: a frame that fits what was seen before costs no allocation. That memory grows to about
// 15 times the largest message, so use one per event loop, not one per connection.
class Decoder {
 public:
  Decoder();
  ~Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // nullptr: refused, see violation(). The frame and its views live until the next call and as long as
  // `message` does. A revision 1 ack grants no bytes, so its credit.bytes is limits::kIntegerMax.
  const Frame* decode(BytesView message, MessageKind kind, Expect expect);

  // Of the last message refused.
  const Violation& violation() const;

  // A larger message is refused before it is parsed. kFrameBytesMax at first.
  void set_frame_bytes_max(std::size_t bytes);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace windlass
