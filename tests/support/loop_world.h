// Servers and clients of the real transport on one event loop in the test's own thread: nothing runs between
// two steps of a test, so no test sleeps. A step waits until a condition holds, and gives up after a while.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "protocol/adapters/websocket_client.h"
#include "protocol/adapters/websocket_server.h"

namespace windlass::testing {

// Writes down what it is told; what it does besides is up to the test.
class RecordingEvents final : public ConnectionEvents {
 public:
  struct Received {
    ConnectionId id;
    std::string text;
    MessageKind kind;
  };
  struct Closed {
    ConnectionId id;
    std::uint16_t code;
    std::string reason;
    CloseInitiator initiator;
    std::uint16_t http_status;
    std::optional<Duration> retry_after;
  };

  void on_opened(ConnectionId id, WebSocketConnection& connection) override {
    open[id] = &connection;
    peers.push_back(connection.peer());
    if (when_opened) when_opened(connection);
  }
  void on_message(ConnectionId id, BytesView message, MessageKind kind) override {
    if (!only_count) messages.push_back({id, std::string{message}, kind});
    ++message_count;
    if (when_message) when_message(*open.at(id), message, kind);
  }
  void on_idle(ConnectionId /*id*/) override { ++idle_count; }
  void on_blocked(ConnectionId /*id*/) override { ++blocked_count; }
  void on_writable(ConnectionId id) override {
    ++writable_count;
    if (when_writable) when_writable(*open.at(id));
  }
  void on_closed(ConnectionId id, const CloseFacts& facts) override {
    open.erase(id);
    closed.push_back(
        {id, facts.code, std::string{facts.reason}, facts.initiator, facts.http_status, facts.retry_after});
  }

  // Every message goes back as it came.
  void echo() {
    when_message = [](WebSocketConnection& connection, BytesView message, MessageKind kind) {
      connection.send(message, kind);
    };
  }

  std::function<void(WebSocketConnection&)> when_opened;
  std::function<void(WebSocketConnection&, BytesView, MessageKind)> when_message;
  std::function<void(WebSocketConnection&)> when_writable;
  std::map<ConnectionId, WebSocketConnection*> open;
  std::vector<PeerInfo> peers;
  std::vector<Received> messages;
  std::vector<Closed> closed;
  std::size_t message_count = 0;
  std::size_t idle_count = 0;
  std::size_t blocked_count = 0;
  std::size_t writable_count = 0;
  bool only_count = false;
};

// Runs a loop until a condition holds at the end of a turn.
class LoopRunner final : private TurnEnd, private TimerTarget {
 public:
  explicit LoopRunner(EventLoop& loop) : loop_(loop), timer_(loop, *this) {
    loop_.add_turn_end(TurnPhase::Decide, *this);
  }
  ~LoopRunner() override { loop_.remove_turn_end(TurnPhase::Decide, *this); }

  // False when it does not come true in time.
  bool run_until(std::function<bool()> condition, Duration patience = seconds{20}) {
    condition_ = std::move(condition);
    late_ = false;
    timer_.set(loop_.now().steady + patience);
    loop_.turn_again();
    loop_.run();
    timer_.set(std::nullopt);
    condition_ = nullptr;
    return !late_;
  }

 private:
  void on_turn_end(TurnPhase /*phase*/) override {
    if (condition_ && condition_()) loop_.stop();
  }
  void on_timer() override {
    late_ = true;
    loop_.stop();
  }

  EventLoop& loop_;
  LoopTimer timer_;
  std::function<bool()> condition_;
  bool late_ = false;
};

}  // namespace windlass::testing
