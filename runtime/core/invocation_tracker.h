// Every invocation that was taken and has not ended: bounded, findable by id, each with one timer. When one
// ends it leaves here, which is what makes a second outcome impossible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "protocol/base/timer_queue.h"
#include "runtime/core/intrusive_list.h"
#include "runtime/core/runtime_core.h"

namespace windlass::runtime {

class Worker;
struct JobHost;

struct Tracked {
  enum class State : std::uint8_t { Pending, InFlight, RetryDelay };

  explicit Tracked(Invocation taken) : invocation(std::move(taken)) {}
  Tracked(const Tracked&) = delete;
  Tracked& operator=(const Tracked&) = delete;

  Invocation invocation;
  FunctionRef function = nullptr;  // none while its JobHost is not indexed
  JobHost* host = nullptr;
  Worker* worker = nullptr;  // that has it, or had it last and is still here
  WorkerId last_worker = {};
  State state = State::Pending;
  std::uint64_t number = 0;    // in order of submission
  std::uint32_t tries = 0;     // that reached a worker's channel
  std::uint32_t reroutes = 0;  // sent elsewhere: lost workers, or it was never sent
  std::int32_t retries = 0;    // after failures of the function
  std::string last_failure = {};
  RpcResult result = {};  // what the function said, once it has
  std::string body = {};
  bool is_answered = false;  // its answer is held during a switch
  bool is_unsent = false;    // its request is held back from a blocked channel
  Instant submitted_at{};
  Instant moved_at{};               // its last progress
  Instant give_up_at{};             // while it waits for a slot
  std::optional<Instant> due = {};  // what its timer is for, but for the caller's patience
  std::optional<Instant> patience_until = {};
  bool is_told = false;      // its outcome was said, though its worker still has it
  bool is_unwanted = false;  // the caller is gone: not tried again
  ListLink<Tracked> of_host = {};
  ListLink<Tracked> of_worker = {};
  ListLink<Tracked> pending = {};
  ListLink<Tracked> by_progress = {};
  TimerQueue<Tracked>::Node timer{this};
};

class InvocationTracker final {
 public:
  explicit InvocationTracker(std::size_t tracked_max) : tracked_max_(tracked_max) {}
  ~InvocationTracker();
  InvocationTracker(const InvocationTracker&) = delete;
  InvocationTracker& operator=(const InvocationTracker&) = delete;

  bool is_full() const { return by_id_.size() >= tracked_max_; }
  std::size_t size() const { return by_id_.size(); }
  Tracked* find(const InvocationId& id) const;
  // The id must be new and there must be room.
  Tracked& add(Invocation invocation, Instant now);
  // Out of all lists of others before.
  void remove(Tracked& tracked);

  void moved(Tracked& tracked, Instant now);  // it made progress
  void set_timer(Tracked& tracked, std::optional<Instant> at) { timers_.set(tracked.timer, at); }
  Tracked* pop_due(Instant now) { return timers_.pop_due(now); }
  std::optional<Instant> next() const { return timers_.next(); }
  // The one without progress for longest, if it had none since `before`.
  Tracked* oldest(Instant before) const;

 private:
  const std::size_t tracked_max_;
  std::uint64_t next_number_ = 0;
  std::unordered_map<std::string_view, std::unique_ptr<Tracked>> by_id_;  // the id is the invocation's own
  IntrusiveList<Tracked, &Tracked::by_progress> by_progress_;
  TimerQueue<Tracked> timers_;
};

}  // namespace windlass::runtime
