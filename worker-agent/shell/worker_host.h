// One language worker and its way to a runtime, beside the agent's session to the scheduler. Decisions are
// the relay's; this moves messages between the worker's stream and the runtime's link, and does the relay's
// steps.
//
// A message costs one look (peek) and one copy each way. What one side does not take stops the other: the
// stream is not read, or the session's frames are not owned.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/adapters/event_loop.h"
#include "protocol/base/log_pace.h"
#include "worker-agent/adapters/agent_metrics.h"
#include "worker-agent/adapters/function_rpc_server.h"
#include "worker-agent/adapters/http_forward.h"
#include "worker-agent/adapters/language_worker.h"
#include "worker-agent/adapters/package_store.h"
#include "worker-agent/core/package_fetch.h"
#include "worker-agent/core/relay.h"
#include "worker-agent/shell/assignment_file.h"
#include "worker-agent/shell/config.h"
#include "worker-agent/shell/runtime_link.h"
#include "worker-agent/shell/worker_confinement.h"

namespace windlass::agent {

inline constexpr std::string_view kWorkerStatus = "biz.worker.status";
inline constexpr std::size_t kLinkQueueMessagesMax = 4096;  // then the worker's stream is not read
inline constexpr Duration kRefusalsLoggedEvery = seconds{10};
inline constexpr std::size_t kLeavingLinksMax = 4;  // drained at once; the oldest is cut for another

// What the host asks of the agent.
struct HostDuties {
  std::function<void(const CommandDone& done)> command_done;
  // To the scheduler, not stored there; false: not now.
  std::function<bool(Message&& message)> send;
};

class WorkerHost final : private RuntimeLinkEvents {
 public:
  // Everything given by reference must outlive the host.
  struct Place {
    EventLoop& loop;
    Decoder& decoder;
    JsonLog& log;
    AgentMetrics& metrics;
    bool is_alone;  // no other agent of this user runs on this machine
  };
  static Result<std::unique_ptr<WorkerHost>> open(const AgentSettings& settings,
                                                  const std::string& instance_id, std::uint64_t seed,
                                                  const Place& place, HostDuties duties);
  ~WorkerHost() override;

  void start();
  void handle(const WorkerCommand& command);
  void handle_part(const Message& part);
  void handle_scheduler_session(bool is_open);    // a new one, or its end
  void set_auth_token(const std::string& token);  // the scheduler's, unless the runtime has its own
  void set_load(const LoadFacts& load);           // of this machine, for the runtime's heartbeats
  Result<Done> reload_token();                    // the runtime's own
  Result<Done> reload_certificates(const std::string& fingerprint);

  // At the end of every turn.
  void turn();

  // No new work; ends the worker once what is under way is answered, and then the way to the runtime.
  void drain();
  bool is_draining() const { return is_draining_; }
  bool is_drained() const;
  std::size_t invocations() const { return relay_.invocations(); }  // that the worker has not answered
  std::string_view language() const { return settings_.config.language; }
  const WorkerConfinement& confinement() const { return confinement_; }
  bool is_user_shared() const;  // user code runs as the agent's user

 private:
  WorkerHost(const AgentSettings& settings, const std::string& instance_id, std::uint64_t seed,
             const Place& place, HostDuties duties, WorkerConfinement confinement, AssignmentFile assignment);

  void on_runtime_opened() override;
  void on_runtime_ended() override;
  void on_runtime_message(std::string_view message) override;

  // worker_host.cc: messages
  void pump_worker();
  void handle_ended(const WorkerEnd& end);
  void see_to_end();
  void tell_ended();
  bool pass(std::string& message);
  void tell_refused(const std::string& reason);
  void handle_unwritten(std::string_view message);
  bool see_to_http(std::string& message);
  void to_runtime(std::string message);
  bool send_held();
  void count();

  // worker_host_steps.cc: what the relay asks for
  void run_steps();
  void run(const Spawn& step);
  void run(const StopWorker& step);
  void run(const ToRuntime& step);
  void run(const SendReload& step);
  void run(const SendSpecialized& step);
  void run(const FetchPackage& step);
  void run(const Remember& step);
  void run(const CommandDone& step);
  void run(const Reported& step);
  std::map<std::string, std::string> environment(const std::string& folder) const;
  void see_to_fetch();
  void tell_progress();
  void fail_fetch(ErrorCode code, const std::string& reason);
  void tell_status();
  void tell_line(const WorkerLine& line);
  void begin_fetch(const FetchPackage& step);
  void handle_verified(const FetchPackage& step, const Result<std::string>& folder);
  void use_package(const std::string& digest, const std::string& folder);
  void handle_fetched(const std::string& digest, const Result<std::string>& folder);
  std::string next_id(std::string_view kind);

  // worker_host_links.cc: the ways to runtimes
  void run(const DialRuntime& step);
  void open_link();  // never from inside a turn's end
  void leave_link();
  void see_to_link();
  void see_to_drain();
  Instant now() const { return place_.loop.now().steady; }

  LanguageWorkerSettings settings_;
  WorkerConfinement confinement_;
  AssignmentFile assignment_;
  std::string supervisor_;  // windlass-run
  std::string scratch_;     // where the worker may write
  RuntimeSettings runtime_;
  std::string tenant_;
  std::string state_folder_;
  std::string instance_id_;
  std::uint64_t seed_;
  Place place_;
  HostDuties duties_;
  Relay relay_;
  LoopAlarm alarm_;
  std::unique_ptr<TlsContext> tls_;
  std::unique_ptr<PackageStore> packages_;
  std::unique_ptr<RuntimeLink> link_;
  std::vector<std::unique_ptr<RuntimeLink>> leaving_;  // drained; destroyed once they are gone
  LoopAlarm redial_;
  LoopAlarm last_words_;
  std::optional<WorkerEnd> ended_;  // the relay is not told yet
  std::optional<PackageFetch> fetch_;
  std::optional<PackageProgress> fetched_;  // of the package under way, as far as it was said
  std::optional<FetchPackage> wanted_;      // once the store is free
  bool is_unpacking_ = false;               // a package that came whole
  std::vector<std::string> pending_;        // of the worker, not passed on yet
  std::size_t pending_at_ = 0;
  bool has_stream_ = false;       // the worker's, until its end is told
  bool is_stream_over_ = false;   // after what is pending
  std::deque<std::string> held_;  // of our own, for the runtime
  bool is_leaving_ = false;       // what is told now comes from a link of leaving_
  bool is_draining_ = false;
  bool is_redialling_ = false;
  bool has_scheduler_ = false;
  bool is_changed_ = true;  // since the relay was last asked: messages that only pass change nothing
  bool is_status_due_ = true;
  std::uint64_t ids_ = 0;
  std::uint64_t links_ = 0;
  RelayCounts counts_;
  LogPace refusals_{kRefusalsLoggedEvery};
  HttpForward http_;
  enum class HttpPort : std::uint8_t { Unasked, Asked, Answers, Silent };
  bool is_workers_port(const HttpPlace& place);
  std::optional<Instant> http_checked_until_;
  HttpPort http_port_ = HttpPort::Unasked;  // of the message that says where the worker takes requests
  std::mutex line_mutex_;
  std::string line_worker_;  // whose output it is; guarded by line_mutex_
  std::unique_ptr<FunctionRpcServer> server_;
  std::unique_ptr<LanguageWorker> process_;  // last: its thread uses what is above
};

}  // namespace windlass::agent
