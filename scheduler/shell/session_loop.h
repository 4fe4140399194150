// One event loop with its listener and every session whose worker belongs to it. A connection is accepted on
// any loop; its first frame says whose it is, and if that worker belongs to another loop the connection moves
// there once, so that a session and all of its connections are on one thread.
//
// Decides nothing about work: what sessions say goes to the control thread, what it ordered comes back.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "protocol/adapters/event_loop.h"
#include "protocol/adapters/websocket_server.h"
#include "protocol/codec/decode.h"
#include "protocol/driver/scheduler_driver.h"
#include "protocol/session/scheduler_endpoint.h"
#include "scheduler/adapters/metrics.h"
#include "scheduler/shell/loop_messages.h"
#include "scheduler/shell/session_report.h"

namespace windlass {

struct SessionLoopOptions {
  std::uint32_t index = 0;
  SchedulerOptions scheduler;
  SessionConfig session;
  ServerOptions server;
  std::vector<SigningKey> keys;
  Duration token_lifetime = limits::kTokenLifetime;
  std::uint64_t seed = 0;
  JsonLog* log = nullptr;  // none: nothing is said; must outlive the loop
};

class SessionLoop final : private ConnectionEvents, private TurnEnd {
 public:
  // `admission` is asked on this loop's thread only; all references must outlive the loop.
  static Result<std::unique_ptr<SessionLoop>> create(SessionLoopOptions options, const Admission& admission,
                                                     ControlInbox& control, Metrics& metrics);
  ~SessionLoop() override;

  // Before any loop runs.
  void set_siblings(std::vector<SessionLoop*> all) { siblings_ = std::move(all); }
  void revoke_tokens(const Revocation& revocation);
  std::uint16_t port() const { return server_->port(); }

  // The thread's body; returns after stop().
  void run() { loop_.run(); }
  void stop() { loop_.stop(); }

  // From any thread.
  void post_orders(LoopOrders orders);
  void post_keys(std::vector<SigningKey> keys);
  // Spreads a reset of every session over the window and lets nobody new in; `done` is called on this loop
  // once no session is left.
  void post_drain(Duration window, std::function<void()> done);
  template <class Function>
  void post(Function task) {
    loop_.post(std::move(task));
  }

 private:
  SessionLoop(SessionLoopOptions options, const Admission& admission, ControlInbox& control,
              Metrics& metrics);

  void on_opened(ConnectionId id, WebSocketConnection& connection) override;
  void on_message(ConnectionId id, BytesView message, MessageKind kind) override;
  void on_idle(ConnectionId id) override { driver_.on_idle(id); }
  void on_blocked(ConnectionId id) override { driver_.on_blocked(id); }
  void on_writable(ConnectionId id) override { driver_.on_writable(id); }
  void on_closed(ConnectionId id, const CloseFacts& facts) override;
  void on_turn_end(TurnPhase phase) override;

  bool moves_on(ConnectionId id, BytesView message, MessageKind kind);
  void poll_events(ConnectionId source);
  void handle_event(OwnerEvent event, ConnectionId source);
  void execute(LoopOrders orders);
  void execute(SessionCommand& command);
  void send(Send order);
  void send_waiting(SessionHandle session);
  bool try_send(Send& order);
  SessionRef ref(SessionHandle session) const { return {options_.index, session.value()}; }
  void check_drained();

  SessionLoopOptions options_;
  ControlInbox& control_;
  Metrics& metrics_;
  SessionReport report_;
  EventLoop loop_;
  Decoder decoder_;
  TokenAuthority tokens_;
  SchedulerEndpoint endpoint_;
  LoopAlarm alarm_;
  SchedulerDriver driver_;
  std::unique_ptr<WebSocketServer> server_;
  std::vector<SessionLoop*> siblings_;

  // A connection, as the driver sends into it and this loop counts.
  struct Link final : Transport {
    explicit Link(WebSocketConnection& c) : connection(c) {}
    SendStatus send(BytesView message, MessageKind kind) override {
      if (meter != nullptr) meter->count_frame(Direction::Out, message.size());
      return connection.send(message, kind);
    }
    void set_message_bytes_max(std::size_t bytes) override { connection.set_message_bytes_max(bytes); }
    void close(std::uint16_t code, std::string_view reason) override { connection.close(code, reason); }

    WebSocketConnection& connection;
    TenantMeter* meter = nullptr;  // once it carries a session
    SessionHandle session{0};      // likewise
    bool has_spoken = false;
  };
  std::unordered_map<ConnectionId, Link> links_;

  struct Known {
    std::string tenant;
    std::string instance;
    std::string session_id;
    ConnectionId connection{0};  // the last that carried it
    std::deque<Send> waiting;    // for credit; bounded by what the core keeps in flight
    Instant waiting_since{};
  };
  void establish(SessionHandle session, Known& known, ConnectionId connection);
  void tell_refusals();
  ReportedPeer peer_of(const Known& known) const;
  void count_refusals();
  std::unordered_map<SessionHandle, Known> known_;
  std::vector<Input> inputs_;  // of this turn
  // What the metrics know already of connections that got no session.
  OpeningFailures failed_counted_{};
  std::array<std::uint64_t, kErrorCodes> refused_counted_{};
  std::function<void()> drained_;
};

}  // namespace windlass
