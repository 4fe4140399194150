// What the transport tells its owner, and what is known of the other end. All calls come on the connection's
// loop, and never from inside a call of the owner to the transport.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/base/bytes.h"
#include "protocol/base/ids.h"
#include "protocol/base/time.h"

namespace windlass {

class WebSocketConnection;

struct PeerInfo {
  std::string address;                        // with port
  std::string certificate_fingerprint;        // SHA-256 in lower-case hex; empty: no verified certificate
  std::string certificate_subject;            // RFC 2253, as "CN=worker-1,O=example"
  std::vector<std::string> certificate_sans;  // "DNS:name", "URI:...", "IP:...", "email:..."
};

enum class CloseInitiator : std::uint8_t {
  Local,    // we closed, or the peer broke a rule and we ended it
  Peer,     // its close frame came first
  Network,  // it ended without a close frame, or never opened
};

struct CloseFacts {
  std::uint16_t code = 0;   // of whoever spoke first; 1006 when nobody did
  std::string_view reason;  // the peer's words, or ours for people
  CloseInitiator initiator = CloseInitiator::Network;
  std::uint16_t http_status = 0;                       // of a dial that was refused by HTTP
  std::optional<Duration> retry_after = std::nullopt;  // what such a refusal asked for
};

class ConnectionEvents {
 public:
  virtual ~ConnectionEvents() = default;
  // The connection lives until its on_closed returned.
  virtual void on_opened(ConnectionId id, WebSocketConnection& connection) = 0;
  // The message is valid during the call.
  virtual void on_message(ConnectionId id, BytesView message, MessageKind kind) = 0;
  // All that had come was read: a good time to acknowledge.
  virtual void on_idle(ConnectionId id) = 0;
  // What was sent in this turn could not all be written. Comes when the turn is written, so a call of `send`
  // from inside of it is too late for this turn and not allowed. on_writable or on_closed follows.
  virtual void on_blocked(ConnectionId id) = 0;
  // After a send that answered Blocked, or after on_blocked: others may follow now.
  virtual void on_writable(ConnectionId id) = 0;
  // The last event. Connections that a server accepted are told of only once they had opened; of a client's
  // every failed dial is.
  virtual void on_closed(ConnectionId id, const CloseFacts& facts) = 0;
};

}  // namespace windlass
