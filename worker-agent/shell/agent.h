// The agent as a running thing: one loop that carries the session, steps the core and does what it decides.
// Decisions are the core's; this only moves them to and from the disk, the programs and the network.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "protocol/adapters/event_loop.h"
#include "protocol/adapters/websocket_client.h"
#include "protocol/driver/worker_driver.h"
#include "protocol/shell/certificate_watch.h"
#include "protocol/shell/json_log.h"
#include "protocol/shell/reloader.h"
#include "worker-agent/adapters/agent_mark.h"
#include "worker-agent/adapters/agent_metrics.h"
#include "worker-agent/adapters/command_runner.h"
#include "worker-agent/adapters/journal_file.h"
#include "worker-agent/adapters/load_sampler.h"
#include "worker-agent/core/agent_core.h"
#include "worker-agent/shell/config.h"
#include "worker-agent/shell/metrics_pages.h"
#include "worker-agent/shell/worker_host.h"

namespace windlass::agent {

inline constexpr Duration kDrainGrace = seconds{5};  // after a drain's deadline
// How long a drained agent with nothing left to send waits for the scheduler's answer.
inline constexpr Duration kDrainAnswerWait = seconds{3};

class Agent final : private ConnectionEvents, private TurnEnd {
 public:
  // Takes the state folder, reads what is in it, and opens what needs no network. An error is one sentence.
  static Result<std::unique_ptr<Agent>> open(AgentSettings settings, JsonLog& log);
  ~Agent() override;

  int run();  // until drained, stopped or unable to go on; the process's exit code

  // From any thread.
  void stop();    // the first drains, the second ends at once
  void reload();  // token file and certificates, as also happens when they change

 private:
  Agent(AgentSettings settings, JsonLog& log, const std::string& instance_id);
  Result<Done> open_state();
  Result<Done> open_network();
  Result<Done> open_worker();

  void on_opened(ConnectionId id, WebSocketConnection& connection) override;
  void on_message(ConnectionId id, BytesView message, MessageKind kind) override;
  void on_idle(ConnectionId id) override;
  void on_blocked(ConnectionId id) override;
  void on_writable(ConnectionId id) override;
  void on_closed(ConnectionId id, const CloseFacts& facts) override;
  void on_turn_end(TurnPhase phase) override;

  bool take_events();
  void act();  // everything the core decided
  void act_for_worker();
  std::uint64_t inflight() const;
  void send_results();
  bool is_worker_done() const;
  void leave_if_done();
  bool send_aside(Message&& message);  // beside results; false: not now
  void tell(const AgentNote& note);
  void tell(const OwnerEvent& event);
  void sample_load();
  void handle_written(const Result<Done>& result);
  void handle_stop();
  void watch_files();
  Result<Done> reload_token();
  Result<Done> reload_certificates();
  void fail(std::string_view sentence);

  AgentSettings settings_;
  std::string instance_id_;
  JsonLog& log_;
  FileDescriptor lock_;
  AgentMark mark_;
  EventLoop loop_;
  Reloader reloader_;
  Decoder decoder_;
  AgentCore core_;
  WorkerEndpoint endpoint_;
  LoopAlarm session_alarm_;
  LoopAlarm core_alarm_;
  LoopAlarm load_alarm_;
  LoopAlarm drain_alarm_;
  LoopAlarm leave_alarm_;
  std::optional<Instant> leave_at_;  // once nothing is left to say
  AgentMetrics metrics_;
  CertificateWatch certificates_;
  LoadSampler sampler_;
  LoadFacts load_;
  std::unique_ptr<TlsContext> tls_;
  std::unique_ptr<WebSocketClient> client_;
  std::unique_ptr<WorkerDriver> driver_;
  std::unique_ptr<MetricsPages> pages_;
  std::unique_ptr<JournalFile> journal_;
  std::unique_ptr<CommandRunner> runner_;
  std::unique_ptr<WorkerHost> host_;  // none: this agent keeps no language worker
  bool idle_ = false;
  bool stopping_ = false;  // a first stop() was heard
  bool ending_ = false;    // the loop stops when this turn has been written
  int exit_code_ = 0;
};

}  // namespace windlass::agent
