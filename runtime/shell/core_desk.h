// Steps the core: what channels say goes in, what it decides goes out to channels, callers, log and metrics.
// Decides nothing itself. Loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "protocol/adapters/event_loop.h"
#include "protocol/base/random.h"
#include "protocol/shell/json_log.h"
#include "runtime/adapters/function_json.h"
#include "runtime/adapters/rpc_values.h"
#include "runtime/adapters/runtime_metrics.h"
#include "runtime/core/application_gate.h"
#include "runtime/core/log_limits.h"
#include "runtime/core/runtime_core.h"
#include "runtime/seams/invocation_stream.h"
#include "runtime/seams/worker_channel.h"

namespace windlass::runtime {

class CoreDesk final : public ChannelEvents {
 public:
  CoreDesk(RuntimeOptions options, const LogLimits& log_limits, EventLoop& loop, RuntimeMetrics& metrics,
           JsonLog& log, std::uint64_t seed, GateOptions gate = {});
  ~CoreDesk() override;

  // `host_json` is the text of its file, empty if there is none.
  void add_application(ConfiguredApplication application, std::string host_json);

  struct Call {
    JobHostKey job_host;
    std::string function;
    std::shared_ptr<const std::string> body;  // shared with the retries
    std::string_view source;                  // for the metrics; a literal
    std::string trace_parent = {};
    std::string order_type = {};  // of the scheduler's order that it belongs to, for the log
    std::string order_id = {};
    std::string order_corr = {};
    std::optional<Duration> patience = {};  // of the caller; none: as long as the function may take
    std::string sticky_key = {};
    bool wants_logs = false;
    std::shared_ptr<InvocationStream> stream = {};  // what flows beside it; shared with who made it
  };
  using CallDone = std::function<void(const Outcome&, const std::vector<std::string>& logs)>;
  // `done` is called once, in a later step. An error: it is not, and nothing began.
  Result<InvocationId> submit(Call call, CallDone done);
  // Its outcome says what came of it.
  void cancel(const InvocationId& invocation) { core_.cancel(invocation, now()); }

  bool is_granted(std::string_view application) const { return gate_.is_granted(application); }
  void apply_grants(GrantUpdate update);

  // Of a call with a stream: to the worker that has it; and nothing more is to be said of it either way. A
  // stream may outlive its call.
  void stream_send(const InvocationId& invocation, std::string message);
  void stream_over(const InvocationId& invocation) { streams_.erase(invocation); }

  // Everything the core has to say; true: there was something.
  bool step();
  std::vector<Signal> poll_signals() { return std::exchange(signals_, {}); }
  bool poll_came() { return std::exchange(has_come_, false); }       // a JobHost runs that did not
  bool poll_changed() { return std::exchange(is_changed_, false); }  // functions or applications
  void set_assigned(AssignedApplications applications);
  RuntimeCore& core() { return core_; }
  const RuntimeCore& core() const { return core_; }
  std::size_t calls() const { return calls_.size(); }
  const HostSettings& host_settings(const JobHostKey& key);

  ChannelId on_channel_opened(WorkerChannel& channel, ChannelFacts facts) override;
  void on_channel_message(ChannelId id, std::string_view bytes) override;
  void on_channel_news(ChannelId id, ChannelNews news, std::string_view reason) override;
  void on_channel_closed(ChannelId id, ChannelEnd end, std::string_view reason) override;

 private:
  struct Running {
    CallDone done;
    ApplicationMeter* meter;
    std::string application;
    std::string function;
    std::string trace_parent;
    std::string order_type;
    std::string order_id;
    std::string order_corr;
    SourceMeter* source;
    std::vector<std::string> logs;
    bool wants_logs = false;
    std::shared_ptr<InvocationStream> stream;
    bool is_stream_begun = false;  // its head went to an agent: it is sent once
  };
  struct Held {
    InvocationId invocation;
    std::string bytes;
  };
  struct Stream {
    std::shared_ptr<InvocationStream> events;
    ChannelId channel;
  };

  Instant now() const { return loop_.now().steady; }
  void deliver(const Send& send);
  SendStatus send(ChannelId id, WorkerChannel& channel, const HostMessage& message);
  SendStatus put(ChannelId id, WorkerChannel& channel, Held message);
  void release(ChannelId id);  // it is writable
  void lose_streams(ChannelId channel, std::string_view reason);
  void warn_of_host_json(const JobHostKey& key, std::string_view event, std::string_view reason);
  void tell(const InvocationRequest& request);
  void settle(const Outcome& outcome);
  void run_gate();
  void tell(const Outcome& outcome, const Running& running);
  void tell(const WorkerLog& log);
  bool may_tell_failure(std::string_view of, std::size_t bytes);
  void await_left_out();
  void tell_left_out(bool is_last);
  void tell(const Note& note);

  EventLoop& loop_;
  RuntimeMetrics& metrics_;
  JsonLog& log_;
  Random random_;
  RuntimeCore core_;
  ApplicationGate gate_;
  LoopAlarm alarm_;
  LoopAlarm gate_alarm_;
  LogThrottle throttle_;  // what workers say
  // Failures, whose reasons are user text; limited separately so that neither crowds out the other.
  LogThrottle failures_throttle_;
  LoopAlarm left_out_alarm_;
  bool is_left_out_due_ = false;
  std::unordered_map<ChannelId, WorkerChannel*> channels_;
  std::uint64_t next_channel_ = 1;
  std::unordered_map<std::uint64_t, Running> calls_;  // by owner; bounded by the core's tracker
  std::uint64_t next_call_ = 1;
  std::unordered_map<InvocationId, Stream> streams_;  // begun; at most limits::kHttpStreamsMax of one worker
  std::unordered_map<ChannelId, std::vector<Held>> held_;  // of each channel that is blocked
  std::vector<Signal> signals_;
  std::map<JobHostKey, HostSettings> settings_;
  static constexpr std::size_t kHostJsonWarningsMax = 256;
  std::set<std::pair<JobHostKey, std::string>> host_json_warnings_;  // said already
  std::map<JobHostKey, std::string> configured_host_json_;
  bool is_changed_ = true;
  bool has_come_ = false;
};

}  // namespace windlass::runtime
