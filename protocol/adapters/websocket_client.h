// Opens WebSocket connections to one address: resolve, connect, TLS, upgrade, each stage with its deadline.
// Names are resolved on a thread of their own; nothing else leaves the loop.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/adapters/connection_table.h"
#include "protocol/adapters/readiness.h"
#include "protocol/adapters/tls_context.h"
#include "protocol/seams/dialer.h"

namespace windlass {

struct ClientAddress {
  std::string host;  // a name or a numeric address, without brackets
  std::uint16_t port = 0;
  std::string target = "/";  // path and query
  bool secure = true;
};

// From "wss://host[:port][/path]" or "ws://...".
Result<ClientAddress> parse_address(std::string_view url);

// Of a client: its peer is known, and may send whole frames at once.
inline ConnectionOptions client_connection(Duration dead_link_after = limits::kDeadLink) {
  return {.message_bytes_max = limits::kFrameBytesMax, .dead_link_after = dead_link_after};
}

struct ClientOptions {
  ClientAddress address;
  const TlsContext* tls = nullptr;   // of a client; needed if the address is secure; must outlive the client
  bool clear_text_anywhere = false;  // else clear text goes to loopback addresses only
  std::optional<std::string> origin = std::nullopt;
  std::optional<std::string> authorization = std::nullopt;
  ConnectionOptions connection = client_connection();
  Duration resolve_deadline = limits::kHandshakeStage;
  Duration connect_deadline = limits::kHandshakeStage;  // for each of the name's addresses
};

// Not to be destroyed from inside one of its events.
class WebSocketClient final : public Dialer, private ReadinessEvents, private TimerTarget, private TurnEnd {
 public:
  // An error if the options contradict one another. `loop` and `events` must outlive the client.
  static Result<std::unique_ptr<WebSocketClient>> create(EventLoop& loop, ClientOptions options,
                                                         ConnectionEvents& events);
  ~WebSocketClient() override;

  // An attempt still under way is given up and says nothing more. Open connections stay.
  void dial(ConnectionId id) override;
  void close_all(std::uint16_t code, std::string_view reason) { table_.close_all(code, reason); }
  WebSocketConnection* find(ConnectionId id) { return table_.find(id); }
  std::size_t connections() const { return table_.size(); }

 private:
  struct Lookup;

  WebSocketClient(EventLoop& loop, ClientOptions options, ConnectionEvents& events);
  void on_readable() override {}
  void on_writable() override;
  void on_timer() override;
  void on_turn_end(TurnPhase phase) override;

  void give_up();
  void resolve();
  void handle_resolved(std::vector<SocketAddress> addresses, const std::string& failure);
  void connect_next();
  void handle_connected();
  void fail(std::string reason);

  EventLoop& loop_;
  ClientOptions options_;
  ConnectionTable table_;
  LoopTimer timer_;
  std::optional<ConnectionId> dialing_;   // resolving or connecting
  std::optional<ConnectionId> opening_;   // handed to the table, and perhaps open by now
  std::shared_ptr<Lookup> lookup_;        // shared with its handler, which may outlive us
  std::vector<SocketAddress> addresses_;  // still to be tried, last first
  std::unique_ptr<Readiness> connecting_;
  SocketAddress trying_;
  std::string failure_;  // of the last address tried
  struct Failed {
    ConnectionId id;
    std::string reason;
  };
  std::vector<Failed> failed_;  // to be told at the turn's end
};

}  // namespace windlass
