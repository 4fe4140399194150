// JobHosts by `ApplicationId:MetadataVersion`, and which worker belongs to which: one owner for both, so that
// a worker is switched in one step and is never between two. Says when a JobHost is to index, run and end;
// what invocations do meanwhile is not decided here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/base/result.h"
#include "protocol/base/timer_queue.h"
#include "runtime/core/invocation_router.h"
#include "runtime/core/worker.h"

namespace windlass::runtime {

struct JobHost {
  JobHost(JobHostKey host_key, const RuntimeOptions& options)
      : key(std::move(host_key)), router(options.routing, options.sticky_keys_max) {}

  std::size_t pending_count() const { return pending.size() + waiting_count; }
  bool has_workers() const { return !workers.empty() || !joining.empty(); }

  const JobHostKey key;
  JobHostState state = JobHostState::Starting;
  std::string failure;
  std::uint64_t number = 0;  // in order of creation

  std::vector<FunctionRef> functions;  // that any of its workers told of
  std::map<std::string, FunctionRef, std::less<>> by_name;
  std::string host_json;
  TextMap capabilities;

  IntrusiveList<Worker, &Worker::of_host> workers;
  IntrusiveList<Worker, &Worker::joining> joining;  // switching to it
  InvocationRouter router;

  IntrusiveList<Tracked, &Tracked::of_host> invocations;
  IntrusiveList<Tracked, &Tracked::pending> pending;
  std::size_t waiting_count = 0;  // in the queues of single workers, by their keys
  std::size_t in_flight = 0;
  std::uint64_t done = 0;
  std::uint64_t failed = 0;
  std::uint64_t abandoned = 0;

  std::uint32_t recreations = 0;
  std::optional<Instant> failed_at;
  std::string outage;  // why no worker will come soon; only while it has none
  std::map<std::string, std::uint32_t, std::less<>> load_retries;  // by who brings the worker, in a row
  std::optional<Instant> stop_at;  // its last worker was lost; it waits for another

  bool is_starved = false;  // NoFreeSlot was said
  std::optional<Instant> relieved_at;
  std::optional<Instant> measure_at;
  std::optional<Instant> low_since;
  bool has_said_high = false;
  bool has_said_low = false;

  TimerQueue<JobHost>::Node timer{this};
};

class JobHostManager final {
 public:
  explicit JobHostManager(const RuntimeOptions& options) : options_(options) {}
  ~JobHostManager();
  JobHostManager(const JobHostManager&) = delete;
  JobHostManager& operator=(const JobHostManager&) = delete;

  JobHost* find(const JobHostKey& key) const;
  // A new one is Starting. E.LIMIT.CAPACITY: there are too many.
  [[nodiscard]] Result<JobHost*> find_or_create(const JobHostKey& key);
  void erase(JobHost& host);
  const std::map<JobHostKey, std::unique_ptr<JobHost>>& all() const { return hosts_; }

  // The switch. A worker joins while its next JobHost is not running yet, and is routed in one step.
  void join(Worker& worker, JobHost& host);
  void leave_join(Worker& worker);
  void route(Worker& worker, JobHost* host);  // nullptr: nowhere
  // Of a worker that is switching: keeps a message for later. False when it was dropped, because there is no
  // room; answers always have.
  [[nodiscard]] bool hold(Worker& worker, WorkerMessage message) const;

  // Takes over what a worker says of the application's functions: those that it alone knows are added, and
  // those that it lacks are failures of its own. What nobody else registers either is dropped where there
  // would be too many. E.PKG.INVALID: it has none, or there are too many all the same.
  [[nodiscard]] Result<Done> index(Worker& worker, JobHost& host,
                                   const std::vector<FunctionRef>& functions) const;

  // Drops the functions that none of its workers registers; returns how many. Without workers all are kept,
  // for the next worker and for callers that wait for it.
  static std::size_t drop_unregistered(JobHost& host) { return drop(host, unregistered(host, nullptr)); }

  void set_timer(JobHost& host, std::optional<Instant> at) { timers_.set(host.timer, at); }
  JobHost* pop_due(Instant now) { return timers_.pop_due(now); }
  std::optional<Instant> next() const { return timers_.next(); }

 private:
  // That none of its workers registers, leaving one of them aside.
  static std::set<std::string> unregistered(const JobHost& host, const Worker* aside);
  static std::size_t drop(JobHost& host, const std::set<std::string>& names);
  static void merge(const Worker& worker, JobHost& host, const FunctionRef& function);

  const RuntimeOptions& options_;
  std::map<JobHostKey, std::unique_ptr<JobHost>> hosts_;
  std::uint64_t next_number_ = 0;
  TimerQueue<JobHost> timers_;
};

}  // namespace windlass::runtime
