// Many workers' sessions on one loop, as agents hold them: endpoints, drivers and connections are
// production's; what a worker says is up to whoever derives one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "protocol/adapters/websocket_client.h"
#include "protocol/driver/worker_driver.h"

namespace windlass::bench {

class FleetWorker;

struct FleetOptions {
  std::uint16_t port = 0;
  std::string authority_file;
  std::string path = "/v1";
  std::string token = "any";
};

class WorkerFleet final : private TurnEnd {
 public:
  explicit WorkerFleet(FleetOptions options);
  ~WorkerFleet() override;
  WorkerFleet(const WorkerFleet&) = delete;
  WorkerFleet& operator=(const WorkerFleet&) = delete;

  // Starts a few at a time, so that no accept queue is longer than its owner expects, each when `is_ready`
  // holds for all before it.
  void start(const std::vector<FleetWorker*>& workers,
             const std::function<bool(const FleetWorker&)>& is_ready);

  FleetOptions options;
  EventLoop loop;
  Decoder decoder;
  SessionConfig config;
  std::vector<Instant> dials;
  std::vector<FleetWorker*> marked;  // have something to say in this turn
  std::unique_ptr<TlsContext> tls;

 private:
  void on_turn_end(TurnPhase phase) override;
};

class FleetWorker : private ConnectionEvents, private Dialer {
 public:
  FleetWorker(WorkerFleet& fleet, std::size_t number);
  ~FleetWorker() override = default;

  void start();
  void flush();
  bool is_connected() const { return endpoint_.session() != nullptr && endpoint_.session()->is_connected(); }

 protected:
  virtual void on_event(OwnerEvent& event) = 0;
  virtual void before_flush() {}  // the last moment to send something in this turn
  void mark();                    // it has something to say in this turn
  WorkerFleet& fleet() { return fleet_; }
  WorkerEndpoint& endpoint() { return endpoint_; }
  Now now() const { return fleet_.loop.now(); }

 private:
  void dial(ConnectionId id) override;
  void on_opened(ConnectionId id, WebSocketConnection& connection) override;
  void on_message(ConnectionId id, BytesView message, MessageKind kind) override;
  void on_idle(ConnectionId id) override;
  void on_blocked(ConnectionId id) override { driver_.on_blocked(id); }
  void on_writable(ConnectionId id) override;
  void on_closed(ConnectionId id, const CloseFacts& facts) override;
  bool take_events();

  WorkerFleet& fleet_;
  WorkerEndpoint endpoint_;
  LoopAlarm alarm_;
  std::unique_ptr<WebSocketClient> client_;
  WorkerDriver driver_;
  bool marked_ = false;
  bool idle_ = false;
};

}  // namespace windlass::bench
