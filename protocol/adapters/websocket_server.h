// A WebSocket listener on one loop, with the limits of everything that happens before a peer is trusted.
// Several loops may listen on one port: the kernel spreads connections over them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "protocol/adapters/connection_table.h"
#include "protocol/adapters/readiness.h"
#include "protocol/adapters/tls_context.h"

namespace windlass {

struct ServerOptions {
  std::string address = "127.0.0.1";  // numeric
  std::uint16_t port = 0;             // 0: the system chooses
  const TlsContext* tls = nullptr;    // none: clear text; must outlive the server
  bool clear_text_anywhere = false;   // else clear text is for loopback addresses only
  websocket::UpgradeRules rules = {};
  ConnectionOptions connection = {};
  std::size_t connections_max = limits::kConnectionsMax;  // those that end in the same turn count too
  std::size_t opening_max = limits::kOpeningMax;  // half-open ones make room, handshakes under way keep it
  // Makes connection ids of different loops different. The first loop, 0, must have the port alone.
  std::uint16_t loop_index = 0;
};

struct ServerCounters {
  std::uint64_t accepted = 0;
  std::uint64_t opened = 0;
  OpeningFailures failed_opening{};
  std::uint64_t failed(OpeningFailure why) const { return failed_opening[static_cast<std::size_t>(why)]; }
};

// Not to be destroyed from inside one of its events.
class WebSocketServer final : private ReadinessEvents, private TimerTarget {
 public:
  // `loop` and `events` must outlive the server.
  static Result<std::unique_ptr<WebSocketServer>> listen(EventLoop& loop, ServerOptions options,
                                                         ConnectionEvents& events);
  ~WebSocketServer() override;

  std::uint16_t port() const { return port_; }

  // Upgrades are answered with 503 and Retry-After from now on; open connections stay.
  void drain(Duration retry_after);
  // Nobody is accepted any more; the port is free for others.
  void stop_listening();
  void close_all(std::uint16_t code, std::string_view reason) { table_.close_all(code, reason); }

  // A connection that another loop's server detached. Its events begin in a later turn.
  void attach(std::unique_ptr<DetachedConnection> detached);

  WebSocketConnection* find(ConnectionId id) { return table_.find(id); }
  std::size_t connections() const { return table_.size(); }  // opening and lingering ones too
  ServerCounters counters() const;

 private:
  WebSocketServer(EventLoop& loop, ServerOptions options, ConnectionEvents& events, Socket listener);
  void on_readable() override;
  void on_writable() override {}
  void on_timer() override;
  bool accept();

  EventLoop& loop_;
  ServerOptions options_;
  ServerGate gate_;
  std::uint64_t accepted_ = 0;
  std::uint64_t refused_full_ = 0;
  ConnectionTable table_;
  LoopTimer pause_;  // while the process is out of descriptors
  std::uint16_t port_;
  std::uint64_t next_id_;
  std::unique_ptr<Readiness> listener_;
};

}  // namespace windlass
