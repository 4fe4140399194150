// One frame of either direction: the envelope's fields and a typed body. A Frame is a view: it is valid until
// its decoder decodes again, or until the session that made it is called again.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "protocol/base/ids.h"
#include "protocol/base/time.h"
#include "protocol/messages/control.h"

namespace windlass {

// A control.* type this implementation does not know. Its payload is not looked at.
struct UnknownControl {
  std::string_view type;
};

// Raw bytes that travel beside the JSON of a non-control frame (revision 2).
struct Attachment {
  std::string_view type;
  std::string_view bytes;
};

// A biz.* or ext.* frame. The payload is the JSON text as it came; the session never looks inside.
struct Data {
  std::string_view type;
  std::string_view payload;
  std::optional<Attachment> attachment;
};

using FrameBody = std::variant<Handshake, Register, SessionAccept, Resume, Reset, Drain, Ack, Heartbeat,
                               UnknownControl, Data>;

struct Frame {
  Revision revision = Revision::Two;  // of a decoded frame: how it was read
  std::string_view id;
  WallTime ts{};
  std::string_view tenant;
  Role sender_role = Role::Worker;
  std::string_view sender_id;
  std::string_view corr;     // empty: absent
  std::optional<Seq> seq;    // core numbering, first is 0; set exactly on Data
  std::string_view ack_for;  // ack.for; empty: absent
  bool ack_request = false;  // ack.request
  std::vector<std::string_view> flags;
  std::string_view ext;  // the open extension object as JSON text; empty: absent (revision 2)
  FrameBody body;

  bool is_data() const { return std::holds_alternative<Data>(body); }
};

// The envelope's `type`, whatever the body.
std::string_view type_of(const Frame& frame);

std::string_view to_string(Role role);

// What a frame costs of the peer's recv_window_bytes: payload text plus attachment.
std::uint64_t credit_bytes(const Data& data);

}  // namespace windlass
