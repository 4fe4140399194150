// The scheduler's half of sessions as the service runs it, without the service: production endpoint, driver,
// codec and transport on one loop, and an owner that answers every message with its payload.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "protocol/adapters/websocket_server.h"
#include "protocol/driver/scheduler_driver.h"
#include "tests/bench/beast/wss_beast.h"

namespace windlass::bench {

class SessionEcho final : public EchoServer, private ConnectionEvents, private TurnEnd {
 public:
  explicit SessionEcho(const TlsContext& tls, SessionConfig config = {});
  ~SessionEcho() override;
  std::uint16_t port() const override { return server_->port(); }
  void run() override { loop_.run(); }
  void stop() override { loop_.stop(); }

  EventLoop& loop() { return loop_; }
  // Loop thread, or when it does not run.
  const EndpointCounters& counters() const { return endpoint_.counters(); }
  ServerCounters server_counters() const { return server_->counters(); }
  std::size_t sessions() const { return endpoint_.sessions(); }
  const std::vector<Instant>& established() const { return established_; }  // when, resumed ones too

 private:
  class Anybody final : public Admission {
   public:
    Result<Done> admit(const AdmissionRequest& /*request*/) const override { return Done{}; }
    Result<Done> admit_resume(const ResumeRequest& /*request*/) const override { return Done{}; }
  };

  void on_opened(ConnectionId id, WebSocketConnection& connection) override;
  void on_message(ConnectionId id, BytesView message, MessageKind kind) override;
  void on_idle(ConnectionId id) override { driver_.on_idle(id); }
  void on_blocked(ConnectionId id) override { driver_.on_blocked(id); }
  void on_writable(ConnectionId id) override { driver_.on_writable(id); }
  void on_closed(ConnectionId id, const CloseFacts& /*facts*/) override { driver_.on_closed(id); }
  void on_turn_end(TurnPhase /*phase*/) override;
  void poll_events();
  void answer(SessionHandle session, const Delivered& delivered);

  EventLoop loop_;
  SessionConfig config_;
  Anybody admission_;
  TokenAuthority tokens_;
  Decoder decoder_;
  SchedulerEndpoint endpoint_;
  LoopAlarm alarm_;
  SchedulerDriver driver_;
  std::unique_ptr<WebSocketServer> server_;
  std::uint64_t answers_ = 0;
  std::vector<Instant> established_;
};

}  // namespace windlass::bench
