// A session over a real socket whose peer stops reading: what its own transport still holds is not sent
// again.
#include <gtest/gtest.h>

#include "protocol/adapters/websocket_server.h"
#include "protocol/codec/encode.h"
#include "protocol/driver/scheduler_driver.h"
#include "tests/support/lone_scheduler.h"
#include "tests/support/loop_world.h"
#include "tests/support/raw_peer.h"

namespace windlass::testing {
namespace {

// A scheduler's sessions as a shell runs them.
class SessionServer final : private ConnectionEvents, private TurnEnd {
 public:
  SessionServer(EventLoop& loop, const SessionConfig& config)
      : loop_(loop),
        endpoint({.scheduler_id = "sched"}, config, admission_, tokens_, 1),
        alarm_(loop, [this] { driver_.on_alarm(); }),
        driver_(endpoint, decoder_, loop.clock(), alarm_) {
    options_.rules.paths = {"/v1"};
    server_ = WebSocketServer::listen(loop, options_, *this).value();
    loop.add_turn_end(TurnPhase::Decide, *this);
  }
  ~SessionServer() override { loop_.remove_turn_end(TurnPhase::Decide, *this); }

  std::uint16_t port() const { return server_->port(); }
  const Session* session() const {
    const auto handle = endpoint.find("acme", "i-1");
    return handle ? endpoint.session(*handle) : nullptr;
  }
  bool is_ready() const { return session() != nullptr && session()->state() == SessionState::Ready; }
  std::uint64_t retransmits() const { return session()->stream().counters().retransmits; }
  std::size_t unsent_bytes() const { return connection_->unsent_bytes(); }

 private:
  EventLoop& loop_;
  AdmitAll admission_;
  TokenAuthority tokens_ = test_tokens();

 public:
  SchedulerEndpoint endpoint;

 private:
  void on_opened(ConnectionId id, WebSocketConnection& connection) override {
    connection_ = &connection;
    driver_.on_opened(id, connection, {});
  }
  void on_message(ConnectionId id, BytesView message, MessageKind kind) override {
    driver_.on_message(id, message, kind);
  }
  void on_idle(ConnectionId id) override { driver_.on_idle(id); }
  void on_blocked(ConnectionId id) override { driver_.on_blocked(id); }
  void on_writable(ConnectionId id) override { driver_.on_writable(id); }
  void on_closed(ConnectionId id, const CloseFacts& /*facts*/) override { driver_.on_closed(id); }
  void on_turn_end(TurnPhase /*phase*/) override {
    while (driver_.poll_event()) {
    }
    driver_.flush();
  }

  Decoder decoder_;
  LoopAlarm alarm_;
  SchedulerDriver driver_;
  ServerOptions options_;
  std::unique_ptr<WebSocketServer> server_;
  WebSocketConnection* connection_ = nullptr;
};

// A worker that says what the test wants, and reads when the test wants.
class SlowPeer : public ::testing::Test {
 protected:
  SlowPeer() {
    config.retransmit_floor = milliseconds{100};
    server = std::make_unique<SessionServer>(loop, config);
    peer = std::make_unique<RawPeer>(loop, server->port());
    peer->send(*websocket::upgrade_request({"127.0.0.1", "/v1"}, {}));
    EXPECT_TRUE(runner.run_until([&] { return peer->received.ends_with("\r\n\r\n"); }));
    say(LoneScheduler::handshake());
    EXPECT_TRUE(runner.run_until([&] { return peer->received.find("control.ack") != std::string::npos; }));
    say(LoneScheduler::registration());
    EXPECT_TRUE(runner.run_until([&] { return server->is_ready(); }));
    say(LoneScheduler::ack(0, {limits::kWindowFramesMax, 256U << 20U}));
    const auto& window = server->session()->stream().send_window();
    EXPECT_TRUE(runner.run_until([&] { return window.frames_credit() == limits::kWindowFramesMax; }));
  }

  void say(FrameBody body) {
    Frame frame;
    frame.id = "w";
    frame.ts = loop.now().wall;
    frame.tenant = "acme";
    frame.sender_role = Role::Worker;
    frame.sender_id = "i-1";
    frame.ack_request = true;
    frame.body = std::move(body);
    Bytes message;
    encode(frame, Revision::Two, message);
    Bytes framed;
    websocket::append_text(message, websocket::MaskKey{}, framed);
    peer->send(framed);
  }

  // One frame in each turn, none of them large enough to be written before its turn ends, until the socket is
  // full and stays so: the kernel's buffers grow for a while.
  bool fill() {
    const auto handle = server->endpoint.find("acme", "i-1");
    int sent = 0;
    const auto is_full = [&] {
      if (server->unsent_bytes() > 0) return true;
      loop.turn_again();
      return !server->endpoint.send(*handle, message(numbered("m", sent++), object(32'000)), loop.now());
    };
    for (int round = 0; round < 50; ++round) {
      if (!runner.run_until(is_full)) return false;
      wait(milliseconds{100});
      if (server->unsent_bytes() > 0) return true;
    }
    return false;
  }

  void wait(Duration time) {
    EXPECT_FALSE(runner.run_until([] { return false; }, time));
  }

  SessionConfig config;
  EventLoop loop;
  LoopRunner runner{loop};
  std::unique_ptr<SessionServer> server;
  std::unique_ptr<RawPeer> peer;
};

//= RTX-2
TEST_F(SlowPeer, IsSentNothingAgainWhileTheSocketIsFull) {
  peer->stop_reading();
  ASSERT_TRUE(fill());
  const std::uint64_t before = server->retransmits();
  wait(milliseconds{700});
  EXPECT_GT(server->unsent_bytes(), 0U);
  EXPECT_EQ(server->retransmits(), before);
  // It reads all, acknowledges nothing, and the timer goes on.
  peer->read_on();
  EXPECT_TRUE(runner.run_until([&] { return server->retransmits() > before; }));
  EXPECT_EQ(server->unsent_bytes(), 0U);
}

}  // namespace
}  // namespace windlass::testing
