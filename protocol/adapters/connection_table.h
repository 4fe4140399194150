// The connections of one server or client on one loop: owns them, writes for those that were corked in a
// turn, reports those that ended and destroys them at the turn's end, when no call of theirs is on the stack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "protocol/adapters/connection_events.h"
#include "protocol/adapters/event_loop.h"
#include "protocol/adapters/websocket_connection.h"

namespace windlass {

class ConnectionTable final : private TurnEnd {
 public:
  // Both must outlive the table.
  ConnectionTable(EventLoop& loop, ConnectionEvents& events);
  ~ConnectionTable() override;  // closes all sockets, reports nothing
  ConnectionTable(const ConnectionTable&) = delete;
  ConnectionTable& operator=(const ConnectionTable&) = delete;

  WebSocketConnection& add(WebSocketConnection::Start start, const ConnectionOptions& options);
  void attach(std::unique_ptr<DetachedConnection> detached, const ConnectionOptions& options);
  WebSocketConnection* find(ConnectionId id);

  // Connections that began a moment ago and may well open: handshakes under way, and whoever is about to
  // speak.
  std::size_t handshaking();
  // Ends the connection that has been opening for longest, one that has not said enough to be answered before
  // all others: a handshake under way is work done. False when none is opening, or all are such and had
  // little time yet.
  bool drop_opening();
  void close_all(std::uint16_t code, std::string_view reason);

  std::size_t size() const { return connections_.size(); }
  std::size_t opening() const { return opening_count_; }
  std::uint64_t opened() const { return opened_; }                           // ever
  const OpeningFailures& failed_opening() const { return failed_opening_; }  // ever

  // For connections.
  EventLoop& loop() { return loop_; }
  ConnectionEvents& events() { return events_; }
  void cork(WebSocketConnection& connection) { corked_.push_back(&connection); }
  void changed(WebSocketConnection& connection) { changed_.push_back(&connection); }
  void opening_done();
  void opening_failed(OpeningFailure failure);

 private:
  void on_turn_end(TurnPhase phase) override;
  void write();
  void begin_arrived();
  void reap();
  void destroy(WebSocketConnection& connection);
  void trim();

  EventLoop& loop_;
  ConnectionEvents& events_;
  std::unordered_map<ConnectionId, std::unique_ptr<WebSocketConnection>> connections_;
  std::vector<WebSocketConnection*> corked_;
  std::vector<WebSocketConnection*> changed_;  // to be reported or destroyed; may hold one twice
  std::vector<ConnectionId> arrived_;          // attached, to be begun
  struct Opened {
    ConnectionId id;
    Instant since;
  };
  std::deque<Opened> opening_order_;  // oldest first; some may have finished
  std::size_t opening_count_ = 0;
  std::size_t peak_ = 0;  // connections since memory was last given back
  std::uint64_t opened_ = 0;
  OpeningFailures failed_opening_{};
};

}  // namespace windlass
