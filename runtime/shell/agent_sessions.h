// The listener for agents: their sessions, and on each one the channel of its language worker. A connection
// that breaks is mended by the session and told as a detachment; the worker behind it does not notice.
//
// A channel ends with its session, or when the core gives its worker up. In the second case an agent that was
// told to terminate the worker brings a new one on the same session; anybody else loses the session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "protocol/adapters/event_loop.h"
#include "protocol/adapters/websocket_server.h"
#include "protocol/codec/decode.h"
#include "protocol/driver/scheduler_driver.h"
#include "protocol/function_rpc/session_channel.h"
#include "protocol/session/scheduler_endpoint.h"
#include "protocol/shell/json_log.h"
#include "runtime/adapters/runtime_metrics.h"
#include "runtime/seams/worker_channel.h"

namespace windlass::runtime {

struct AgentSessionsOptions {
  std::string id;
  SessionConfig session;
  ServerOptions server;
  std::vector<SigningKey> keys;
  function_rpc::ChannelLimits limits;
  // Of messages whose end has not come, from all agents: beyond it the one that holds most loses its channel.
  std::size_t unfinished_bytes_max = 512 * 1024 * 1024;
  // Of what waits for agents that are slow to read: beyond it the session with most of it is ended.
  std::size_t queued_bytes_max = 1024 * 1024 * 1024;
  std::uint64_t seed = 0;
  std::string tenant = {};  // that every log line names already; empty: none does
};

class AgentSessions final : private ConnectionEvents {
 public:
  // Listens at once. Everything given by reference must outlive it.
  static Result<std::unique_ptr<AgentSessions>> listen(EventLoop& loop, AgentSessionsOptions options,
                                                       const Admission& admission, ChannelEvents& events,
                                                       RuntimeMetrics& metrics, JsonLog& log);
  ~AgentSessions() override;

  // Loop thread. A turn is: take_events() and sends until nothing is new, then flush().
  bool take_events();  // true: there were some
  void flush();
  void set_keys(std::vector<SigningKey> keys);
  void drain(Duration window);  // agents are told to come back later
  std::size_t sessions() const { return endpoint_.sessions(); }
  std::uint16_t port() const { return server_->port(); }

 private:
  class Channel;
  struct Known;

  AgentSessions(EventLoop& loop, AgentSessionsOptions options, const Admission& admission,
                ChannelEvents& events, RuntimeMetrics& metrics, JsonLog& log);

  void on_opened(ConnectionId id, WebSocketConnection& connection) override;
  void on_message(ConnectionId id, BytesView message, MessageKind kind) override;
  void on_idle(ConnectionId id) override { driver_.on_idle(id); }
  void on_blocked(ConnectionId id) override { driver_.on_blocked(id); }
  void on_writable(ConnectionId id) override { driver_.on_writable(id); }
  void on_closed(ConnectionId id, const CloseFacts& facts) override;

  void handle(OwnerEvent& event);
  void handle_established(SessionHandle session, const Established& established);
  void bound_unfinished();
  void bound_queued();
  void handle_delivered(SessionHandle session, Known& known, const Delivered& delivered);
  void handle_ended(SessionHandle session, const Ended& ended);
  void handle_liveness(const Channel& channel, Liveness level);
  void handle_load(Known& known, const LoadReported& load);
  void tell_fitness(const Known& known);
  void open(Known& known);
  std::string_view said_tenant(const Known& known) const;
  void pump(SessionHandle session, Known& known);
  void tell_refusals();

  AgentSessionsOptions options_;
  EventLoop& loop_;
  ChannelEvents& events_;
  RuntimeMetrics& metrics_;
  JsonLog& log_;
  Decoder decoder_;
  TokenAuthority tokens_;
  SchedulerEndpoint endpoint_;
  LoopAlarm alarm_;
  SchedulerDriver driver_;
  std::unique_ptr<WebSocketServer> server_;
  std::size_t queued_bytes_ = 0;  // of all senders; outlives the channels, which take their share from it
  std::unordered_map<SessionHandle, std::unique_ptr<Known>> known_;
  std::vector<SessionHandle> dirty_;  // have something to send, or to be ended
  std::uint64_t channels_ = 0;
  std::size_t unfinished_bytes_ = 0;  // of all receivers
};

}  // namespace windlass::runtime
