// One message-oriented connection, as a driver uses it. What comes in (message, blocked, writable, closed) is
// told to the driver by the adapter, on the driver's loop, and never from inside one of these calls.
//
// A transport may gather what it is given until the turn ends, and find only then that the network takes no
// more: on_blocked says so, and means what Blocked means. Either of them is followed by on_writable, once all
// is written, or by on_closed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "protocol/base/bytes.h"

namespace windlass {

enum class SendStatus : std::uint8_t {
  Sent,     // taken
  Blocked,  // taken, but take no more before on_writable
  Closed,   // not taken; on_closed follows
};

class Transport {
 public:
  virtual ~Transport() = default;
  // The bytes are copied or sent before it returns.
  virtual SendStatus send(BytesView message, MessageKind kind) = 0;
  // How much of the next message is taken: a longer one is refused before it is buffered.
  virtual void set_message_bytes_max(std::size_t bytes) = 0;
  // What was sent before goes out first. on_closed follows.
  virtual void close(std::uint16_t code, std::string_view reason) = 0;
};

}  // namespace windlass
