// The inside of RuntimeCore: its parts, and the decisions that touch several of them, one source file per
// subject. Only the core's own sources see this.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/base/random.h"
#include "protocol/base/ring.h"
#include "runtime/core/invocation_tracker.h"
#include "runtime/core/job_host_manager.h"
#include "runtime/core/recovery.h"
#include "runtime/core/runtime_core.h"
#include "runtime/core/worker_registry.h"

namespace windlass::runtime {

struct RuntimeCore::Parts {
  Parts(RuntimeOptions runtime_options, std::uint64_t seed)
      : options(runtime_options),
        random(seed),
        registry(options),
        hosts(options),
        tracker(options.tracked_max) {}
  ~Parts();
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  // core_channels.cc: what comes and goes on channels.
  void message(Channel& channel, WorkerMessage message, Instant now);
  void on(Channel& channel, StartStream start, Instant now);
  void initialize(Worker& worker, Instant now);
  void on(Worker& worker, InitResponse response, Instant now);
  void warm_up(Worker& worker, Instant now);
  void end_warmup(Worker& worker);
  void on(Worker& worker, Log log);
  void note_unknown(Worker& worker, const InvocationId& invocation, std::string reason, Instant now);
  void note_unreadable(Worker& worker, std::string reason, Instant now);
  bool may_note(Worker& worker, std::string& reason, Instant now) const;
  void on(Worker& worker, const StatusResponse& response, Instant now);
  void on(Worker& worker, const ActionResponse& response, Instant now);
  void on(Channel& channel, const WorkerEnded& ended, Instant now);  // core_replacement.cc
  bool is_held(const Worker& worker, const WorkerMessage& message) const;
  void hold(Worker& worker, WorkerMessage message);
  void deliver(Worker& worker, WorkerMessage message, Instant now);  // past the switch
  void refuse(Channel& channel, std::string reason, Instant now);    // only this channel is hurt
  void send(Worker& worker, HostMessage message);
  void close(Channel& channel, std::string reason, bool is_clean);
  void unblock(Channel& channel, Instant now);
  static bool is_due(const Tracked* tracked, ChannelId channel);
  std::optional<Send> next_send();

  // core_specialization.cc: from a placeholder to a worker that runs functions.
  void begin_switch(Worker& worker, WorkerSpecialized request, Instant now);
  void ask_index(Worker& worker, Instant now);
  void on(Worker& worker, const MetadataResponse& response, Instant now);
  void complete_switch(Worker& worker, Instant now);
  void fail_switch(Worker& worker, const std::string& reason, Instant now);
  void end_switch(Worker& worker, Instant now);  // whatever becomes of the worker: releases what is held
  void load(Worker& worker, Instant now);
  void on(Worker& worker, const LoadResponse& response, Instant now);
  void loaded(Worker& worker, Instant now);
  void on(Worker& worker, ReloadResponse response, Instant now);
  void merge_capabilities(Worker& worker, const ReloadResponse& reload) const;
  void answer_agent(Worker& worker, RpcResult result, std::string job_host_id, std::string correlation_id);

  // core_invocations.cc: one invocation from submission to its outcome.
  Result<Done> submit(Invocation invocation, Instant now);
  void place(Tracked& tracked, Instant now);  // sends it, or lets it wait
  bool try_send(Tracked& tracked, Instant now);
  bool resolve(Tracked& tracked, Instant now);  // false: it ended
  void wait(Tracked& tracked, Worker* worker, Instant now);
  void leave_queue(Tracked& tracked);
  void send_to(Worker& worker, Tracked& tracked, Instant now);
  void leave_worker(Tracked& tracked, bool is_late);
  void dispatch(JobHost& host, Instant now);
  void slot_freed(Worker& worker, Instant now);
  void on(Worker& worker, InvocationResponse response, Instant now);
  void retry(Tracked& tracked, const std::string& reason, Instant now);
  void finish(Tracked& tracked, Cause cause, std::string reason, Instant now);
  void say_outcome(Tracked& tracked, Cause cause, std::string reason, Instant now);
  void set_due(Tracked& tracked, std::optional<Instant> at);
  void give_up(Tracked& tracked, Instant now);
  void timed_out(Tracked& tracked, Instant now);
  void refresh_route(Worker& worker, Instant now);  // in the router exactly while it may be given work
  void split(JobHost& host, std::vector<std::pair<std::string, std::uint32_t>> weights);
  void starved(JobHost& host, std::string_view reason);
  void relieved(JobHost& host, Instant now);

  // core_recovery.cc: what is done when something fails.
  enum class Loss : std::uint8_t {
    Left,
    Crashed,
    Ended,      // its agent says so
    Abandoned,  // given up from here: silent, or it broke a rule
    TimedOut,   // likewise, for an invocation
  };
  // What is to follow: nobody until the scheduler or an operator says so, the next one of an agent that
  // wanted this, or a replacement, which an agent brings by itself.
  enum class Drain : std::uint8_t { Stay, StayForMemory, Restart, Replace };
  void lose(Worker& worker, Loss loss, const std::string& reason, Instant now);
  void reroute_or_fail(Tracked& tracked, Cause cause, const std::string& reason, Instant now);
  void unhealthy(Worker& worker, const std::string& reason, Instant now);
  void recover(Worker& worker, Instant now);
  void reroute_unsent(Worker& worker, const std::string& reason, Instant now);
  void drain(Worker& worker, std::string_view reason, Drain kind, Instant now);
  void drained(Worker& worker, Instant now);
  void recycle(Worker& worker, const std::string& reason, Instant now);
  void terminate(Worker& worker, std::string_view reason);
  void send_stay_down(Worker& worker, std::string_view reason);
  void job_host_failed(JobHost& host, std::string_view reason, Instant now);
  void recreate(JobHost& host, Instant now);
  void memory(double utilization, Instant now);
  void drain_oldest(Instant now);
  void stop(Instant now);
  void finish_stop(Instant now);
  void stop_if_unused(JobHost& host, Instant now);
  void stop_job_host(JobHost& host);

  // core_replacement.cc: who is missing, and who comes instead.
  static std::size_t active_workers(const JobHost& host);  // that can take an invocation now
  static Urgency urgency_of(const JobHost& host, Urgency otherwise);
  void ask_replacement(Signal signal, Instant now);
  void ask_replacement(const Worker& worker, const Channel& channel, const JobHost& host, Urgency otherwise,
                       const std::string& reason, Instant now);
  void came(const Worker& worker);  // it is Ready: one less is missing
  static const std::string* load_failure(const JobHost& host, std::string_view function);
  static const std::pair<std::string, std::string>* own_failure(const Worker& worker);
  void judge_loads(JobHost& host, Instant now);
  void drop_unregistered(JobHost& host, Instant now);
  void replace_failed(Worker& worker, Instant now);
  void fail_waiting(JobHost& host, const std::string& reason, Instant now);

  // core_time.cc: what time does.
  void timeout(Instant now);
  void count_anew(Instant now);
  void due_worker(Worker& worker, Instant now);
  void due_host(JobHost& host, Instant now);
  void measure(JobHost& host, Instant now);
  void sweep(Instant now);
  void retime(Worker& worker) { registry.set_timer(worker, next_deadline_of(worker)); }
  void retime(JobHost& host);
  std::optional<Instant> next_deadline_of(const Worker& worker) const;
  std::optional<Instant> next_timeout() const;

  void note(Note::Kind kind, const Worker& worker, std::string reason = {});
  void note(Note::Kind kind, const JobHost& host, std::string reason = {});

  const RuntimeOptions options;
  Random random;
  WorkerRegistry registry;
  JobHostManager hosts;
  InvocationTracker tracker;
  std::map<std::string, ConfiguredApplication, std::less<>> applications;

  struct Missing {
    Signal signal;
    Instant since;
  };
  std::map<WorkerId, Missing> missing;  // lost, and nobody came instead yet; bounded by missing_max
  // Applications that are to be served here, with the metadata version that serves. None: nobody said so.
  std::optional<AssignedApplications> assigned;
  bool is_assigned(const JobHostKey& key) const;

  MemoryPressure pressure = MemoryPressure::Normal;
  double memory_utilization = 0;
  std::optional<Instant> memory_drained_at;
  bool is_stopping = false;
  // No invocation is taken, whatever workers could do.
  bool is_paused() const { return is_stopping || pressure == MemoryPressure::Critical; }
  std::optional<Instant> stop_until;
  std::optional<Instant> sweep_at;
  Instant latest{};  // for set_split, which is told no time

  Ring<Send> sends;
  std::deque<CloseChannel> closes;
  Ring<Outcome> outcomes;
  std::deque<Signal> signals;
  Ring<WorkerLog> logs;
  std::deque<Note> notes;
};

}  // namespace windlass::runtime
