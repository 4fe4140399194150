// Who is here: channels by their id, workers by theirs, and the one table by which a worker's state changes.
// Decides nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "protocol/base/id_map.h"
#include "runtime/core/worker.h"

namespace windlass::runtime {

// Whether a worker may go from one state to the other; the table behind it is in the source file.
bool may_become(WorkerState from, WorkerState to);

class WorkerRegistry final {
 public:
  explicit WorkerRegistry(const RuntimeOptions& options) : options_(options) {}
  ~WorkerRegistry();
  WorkerRegistry(const WorkerRegistry&) = delete;
  WorkerRegistry& operator=(const WorkerRegistry&) = delete;

  Channel* find(ChannelId id) const { return channels_.find(id); }
  Channel& open(ChannelId id, ChannelFacts facts);
  void erase(Channel& channel);
  std::size_t channels_waiting() const { return waiting_; }  // whose worker has not said who it is

  Worker* find(const WorkerId& id) const;
  bool is_full() const { return present_ >= options_.workers_max; }
  // Binds a worker to a channel that has none. A record of the same id that is gone is taken over, with its
  // count of channel timeouts.
  Worker& connect(WorkerId id, Channel& channel, Instant now);
  // Takes the channel from it. The record stays until forget().
  void disconnect(Worker& worker);
  void forget(Worker& worker);
  const std::map<WorkerId, std::unique_ptr<Worker>>& workers() const { return workers_; }

  // The only way a state changes. A worker that is Unhealthy and gets on meanwhile stays so, and recovers to
  // where it got.
  void transition(Worker& worker, WorkerState to);
  void advance(Worker& worker, WorkerState to);

  void set_timer(Worker& worker, std::optional<Instant> at) { worker_timers_.set(worker.timer, at); }
  void set_timer(Channel& channel, std::optional<Instant> at) { channel_timers_.set(channel.timer, at); }
  Worker* pop_due_worker(Instant now) { return worker_timers_.pop_due(now); }
  Channel* pop_due_channel(Instant now) { return channel_timers_.pop_due(now); }
  std::optional<Instant> next() const;

 private:
  const RuntimeOptions& options_;
  IdMap<ChannelId, std::unique_ptr<Channel>> channels_;
  std::map<WorkerId, std::unique_ptr<Worker>> workers_;
  std::size_t present_ = 0;
  std::size_t waiting_ = 0;
  TimerQueue<Worker> worker_timers_;
  TimerQueue<Channel> channel_timers_;
};

}  // namespace windlass::runtime
