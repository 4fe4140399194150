// Who holds a session now, and who did lately: state, liveness, load, profile, counters. All of it is memory;
// the workers tell it again after a restart. What workers are to do is the outbox's business.
#pragma once

#include <cstdint>
#include <deque>
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

#include "protocol/messages/control.h"
#include "protocol/session/session_event.h"
#include "scheduler/core/core_options.h"
#include "scheduler/core/fleet_status.h"
#include "scheduler/core/input.h"
#include "scheduler/core/values.h"

namespace windlass {

enum class WorkerState : std::uint8_t {
  Ready,     // takes work
  Draining,  // finishes what it has
  Detached,  // its connection is gone; its session may be resumed
  Gone,      // its session is over
  Lost,      // it has been gone for its lost_after; it may still come back
};

std::string_view to_string(WorkerState state);
std::string_view to_string(Liveness level);

struct WorkerCounters {
  std::uint64_t sessions = 0;
  std::uint64_t resumes = 0;
  std::uint64_t frames_in = 0;  // business frames
  std::uint64_t commands_sent = 0;
  std::uint64_t results = 0;
  std::uint64_t duplicates = 0;  // frames that changed nothing
  std::uint64_t heartbeats = 0;
  std::uint64_t frames_refused = 0;
  std::uint64_t twins_suspected = 0;
  std::uint64_t times_lost = 0;
};

struct Worker {
  bool is_short() const { return load && load->is_short(); }
  // Whatever its agent is told to do next starts its language worker again.
  bool has_drained() const { return language_worker != nullptr && language_worker->is_drained(); }

  WorkerKey key;
  Role role = Role::Worker;
  Revision revision = Revision::Two;
  WorkerState state = WorkerState::Ready;
  bool is_draining = false;  // also while detached
  Liveness liveness = Liveness::Healthy;
  std::optional<SessionRef> session;  // absent when gone
  std::string session_id;
  std::string address;
  std::vector<std::string> certificate_names;    // as SessionOpened has them
  std::shared_ptr<const WorkerProfile> profile;  // shared with the event that brought it; never changes
  std::optional<LoadReported> load;
  // What it said in its present session. Shared with nobody who changes it.
  std::shared_ptr<const LanguageWorkerStatus> language_worker;
  std::shared_ptr<const RuntimeStatus> runtime;
  std::deque<RuntimeSignal> signals;  // the newest last; bounded
  WallTime first_seen{};
  WallTime since{};  // of the state
  WallTime heard_at{};
  std::string end_code;  // of the last session that ended; empty after a completed drain
  std::string end_reason;
  WorkerCounters counters;
  // Frames of the session below this are handled; below that one their owner is told so.
  Seq handled_next = 0;
  Seq owned_next = 0;
  bool is_own_queued = false;
  Instant gone_at{};
  Instant heard{};           // as heard_at, by the steady clock
  Instant away_from{};       // since when it is gone, while it is
  Duration lost_after{};     // as its tenant's terms were when its session began, like its heartbeats
  Instant watch_at{};        // when it is looked at next, unless it is lost
  bool is_attached = false;  // a connection carries its session
  bool is_lost = false;

  // Whether it can be told something now, as far as is known.
  bool is_connected() const { return is_attached && !is_lost; }
};

// Why a worker is not chosen for new work, and gets nothing but orders; empty: it may be.
std::string_view unfitness_of(const Worker& worker);
// It is there and not well: work that was sent to it by name waits too, until it is well again.
bool holds_work_back(const Worker& worker);
// By what it said when it registered; a worker that lists no types takes any.
bool takes_type(const Worker& worker, std::string_view type);

class Fleet final {
 public:
  explicit Fleet(const CoreOptions& options) : options_(options) {}
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  // A session that its worker still had is over by this: end() it first.
  Worker& open(const SessionOpened& opened, Now now);
  // What an event says of the worker itself. Frames and the end are the caller's.
  void apply(Worker& worker, const SessionEvent& event, Now now);
  void note_heard(Worker& worker, Now now);
  void start_draining(Worker& worker, Now now);
  void end(Worker& worker, std::string code, std::string reason, Now now);

  Worker* find(const WorkerKey& key);
  const Worker* find(const WorkerKey& key) const;
  Worker* find(SessionRef session);  // of a session that is not over

  // In order of their keys; of one tenant only, if one is named.
  void for_each(const std::optional<TenantId>& tenant, const std::function<void(const Worker&)>& visit) const;
  std::size_t size() const { return workers_.size(); }
  std::size_t connected() const { return sessions_.size(); }

  // Whoever the store says there was counts as gone from now on, unless it comes.
  void expect(const WorkerKey& key, Instant now);
  // Those that have been gone, or silent, for lost_after; each once, until it comes back.
  std::vector<WorkerKey> take_lost(Now now);
  void look_again(const WorkerKey& key, Instant at);  // take_lost names a lost one once more
  bool is_lost(const WorkerKey& key) const;           // also of one that nobody knows or expects

  void handle_timeout(Instant now);  // forgets workers that are gone for long
  std::optional<Instant> poll_timeout() const;

 private:
  void set_state(Worker& worker, WorkerState state, Now now);
  void forget_oldest();
  void watch(Worker& worker, Instant at);
  void note_away(Worker& worker, Now now);
  void lose(Worker& worker, Now now);
  void count_anew(Instant now);

  const CoreOptions& options_;
  std::map<WorkerKey, Worker> workers_;
  std::unordered_map<SessionRef, Worker*> sessions_;  // map nodes do not move
  std::set<std::pair<Instant, WorkerKey>> gone_;
  std::set<std::pair<Instant, WorkerKey>> watches_;  // of workers that are not lost, and of expected ones
  std::map<WorkerKey, Instant> expected_;            // not in workers_: when they are lost
  std::map<WorkerKey, Instant> again_;               // lost ones that are to be named again
};

}  // namespace windlass
