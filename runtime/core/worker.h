// What is known of one channel and of one worker. Plain records: the registry owns them and alone changes a
// worker's state; the job host manager alone says which JobHost it belongs to.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "protocol/base/timer_queue.h"
#include "runtime/core/invocation_router.h"
#include "runtime/core/invocation_tracker.h"
#include "runtime/core/runtime_core.h"

namespace windlass::runtime {

struct JobHost;

struct Channel {
  Channel(ChannelId channel_id, ChannelFacts channel_facts)
      : id(channel_id), facts(std::move(channel_facts)) {}

  const ChannelId id;
  const ChannelFacts facts;
  Worker* worker = nullptr;
  bool has_started = false;  // StartStream came
  bool is_detached = false;
  Instant detached_at{};    // while it is
  bool is_leaving = false;  // its agent drains: nothing new for it
  bool is_blocked = false;
  bool is_unfit = false;                  // its agent is short of memory or disk, or not well by its own word
  bool is_trusted = true;                 // with the application that its worker serves
  bool is_over = false;                   // it ended by itself
  std::optional<JobHostKey> lost_host;    // of the worker it had last
  bool is_closing = false;                // its end waits in poll_close; what is said to it before still goes
  std::deque<HostMessage> unsent;         // while blocked
  TimerQueue<Channel>::Node timer{this};  // until StartStream
};

// A specialization under way: from the news that a worker holds an application until its JobHost has it.
struct Switch {
  WorkerSpecialized request;
  JobHost* target = nullptr;
  std::deque<WorkerMessage> held;  // in the order they came
};

// What a worker was asked and has not answered.
enum class Phase : std::uint8_t { None, Init, Warmup, Reload, Metadata, Load, Terminating };

class Worker final {
 public:
  explicit Worker(WorkerId worker_id) : id(std::move(worker_id)) {}
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  WorkerState state() const { return state_; }
  bool has(std::string_view capability) const {
    const auto found = capabilities.find(capability);
    return found != capabilities.end() && !found->second.empty();
  }
  bool is_gone() const { return channel == nullptr; }

  const WorkerId id;
  Channel* channel = nullptr;  // none: it is gone, and kept for people to see
  std::string peer;
  TextMap capabilities;
  std::string language;
  std::string language_version;
  Instant connected_at{};

  // Application. `host` and the links are set by the job host manager alone.
  JobHost* host = nullptr;
  ListLink<Worker> of_host = {};
  ListLink<Worker> joining = {};
  std::optional<ApplicationVersion> application;
  std::unique_ptr<Switch> pending_switch;
  std::set<std::string> loading;                                   // functions by id
  std::vector<std::pair<std::string, std::string>> load_failures;  // by name: not indexed, or not loaded
  std::size_t functions_loaded = 0;
  std::optional<std::pair<std::string, std::string>> answer_due;  // SpecializedResponse: correlation, JobHost
  std::optional<Instant> specializing_since;
  std::optional<Duration> specialization_took;
  std::string specializing_to;  // an application given by specialize(), while it reloads

  // Invocations. A slot whose invocation ended without the worker's answer stays taken until that comes.
  RouteNode route{*this};
  IntrusiveList<Tracked, &Tracked::of_worker> in_flight;
  IntrusiveList<Tracked, &Tracked::pending> waiting;  // for this worker alone, by their key
  std::unordered_set<InvocationId> late;
  std::uint64_t done = 0;
  std::uint64_t failed = 0;
  std::uint64_t abandoned = 0;
  std::optional<Instant> unknown_until;  // its answers to nothing are not noted
  std::uint64_t unknown_unsaid = 0;

  // Health.
  Phase phase = Phase::None;
  std::optional<Instant> phase_until;
  Instant heard_at{};
  std::optional<Instant> probe_at;
  std::optional<Instant> probed_at;  // unanswered
  std::uint64_t probes = 0;
  std::optional<Duration> status_latency;
  std::optional<Instant> blocked_since;
  std::optional<Instant> drain_until;
  std::string drained_for;            // why
  std::optional<Instant> recycle_at;  // an invocation timed out: what else it runs may end until then
  std::string recycled_for;           // why
  bool wants_replacement = false;     // once drained
  bool has_asked_replacement = false;
  bool stays_down = false;            // likewise: its agent brings no other until it is told
  bool is_down_for_memory = false;    // and nobody ordered it
  std::optional<Instant> replace_at;  // it could not load what others can
  std::optional<Instant> forget_at;
  Instant lost_at{};
  std::string lost_because;
  std::uint32_t consecutive_timeouts = 0;
  std::uint32_t deadlines_exceeded = 0;
  WorkerState recovers_to = WorkerState::Connecting;  // from Unhealthy
  bool is_broken = false;  // its application cannot run: no way back from Unhealthy

  TimerQueue<Worker>::Node timer{this};

 private:
  friend class WorkerRegistry;
  WorkerState state_ = WorkerState::Connecting;
};

}  // namespace windlass::runtime
