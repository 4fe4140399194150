// What the core shows of itself.
#include <algorithm>
#include <utility>

#include "runtime/core/parts.h"

namespace windlass::runtime {

std::vector<WorkerView> RuntimeCore::workers() const {
  std::vector<WorkerView> views;
  views.reserve(parts_->registry.workers().size());
  for (const auto& [id, worker] : parts_->registry.workers()) {
    WorkerView view;
    view.worker = id;
    view.state = worker->state();
    view.application = worker->application;
    view.language = worker->language;
    view.language_version = worker->language_version;
    view.in_flight = worker->route.taken;
    view.slots = worker->route.slots;
    view.done = worker->done;
    view.failed = worker->failed;
    view.functions_loaded = worker->functions_loaded;
    view.status_latency = worker->status_latency;
    view.connected_at = worker->connected_at;
    view.specialization_took = worker->specialization_took;
    view.is_detached = !worker->is_gone() && worker->channel->is_detached;
    view.peer = worker->peer;
    views.push_back(std::move(view));
  }
  return views;
}

std::vector<JobHostView> RuntimeCore::job_hosts() const {
  std::vector<JobHostView> views;
  for (const auto& [key, host] : parts_->hosts.all()) {
    JobHostView view;
    view.key = key;
    view.state = host->state;
    view.failure = host->failure;
    for (const FunctionRef& function : host->functions) {
      FunctionView shown{function, {}};
      const auto failed = host->index_failures.find(function->name);
      if (failed != host->index_failures.end()) {
        shown.load_failure = failed->second;
      } else if (const std::string* const reason = host->router.load_failure(function->name)) {
        shown.load_failure = *reason;
      }
      view.functions.push_back(std::move(shown));
    }
    view.split = host->router.split();
    view.workers = host->workers.size() + host->joining.size();
    for (Worker* at = host->joining.front(); at != nullptr; at = host->joining.next(*at)) {
      if (at->host == host.get()) --view.workers;  // counted already
    }
    view.ready = host->router.workers();
    for (Worker* at = host->workers.front(); at != nullptr; at = host->workers.next(*at)) {
      if (at->state() == WorkerState::Ready && at->channel->is_detached) ++view.detached;
    }
    view.free_slots = free_slots(key);
    view.pending = host->pending_count();
    view.in_flight = host->in_flight;
    views.push_back(std::move(view));
  }
  return views;
}

const TextMap* RuntimeCore::capabilities(const JobHostKey& key) const {
  const JobHost* const host = parts_->hosts.find(key);
  return host == nullptr ? nullptr : &host->capabilities;
}

const std::string* RuntimeCore::host_json(const JobHostKey& key) const {
  const JobHost* const host = parts_->hosts.find(key);
  return host == nullptr ? nullptr : &host->host_json;
}

std::optional<JobHostKey> RuntimeCore::find_job_host(std::string_view application_id) const {
  const JobHost* best = nullptr;
  for (auto at = parts_->hosts.all().lower_bound(JobHostKey{std::string{application_id}, {}});
       at != parts_->hosts.all().end() && at->first.application_id == application_id; ++at) {
    const JobHost& host = *at->second;
    if (host.functions.empty()) continue;
    // One that can run something before one that cannot yet, then the newest.
    const auto rank = [](const JobHost& of) { return std::pair{of.router.workers() > 0, of.number}; };
    if (best == nullptr || rank(host) > rank(*best)) best = &host;
  }
  if (best == nullptr) return std::nullopt;
  return best->key;
}

std::vector<FunctionRef> RuntimeCore::functions(const JobHostKey& key) const {
  const JobHost* const host = parts_->hosts.find(key);
  return host == nullptr ? std::vector<FunctionRef>{} : host->functions;
}

std::uint32_t RuntimeCore::free_slots(const JobHostKey& key) const {
  const JobHost* const host = parts_->hosts.find(key);
  const bool is_paused = parts_->is_stopping || parts_->pressure == MemoryPressure::Critical;
  if (host == nullptr || is_paused || host->pending_count() > 0) return 0;
  return host->router.free_slots();
}

std::vector<Signal> RuntimeCore::standing_signals() const {
  std::vector<Signal> standing;
  for (const auto& [key, host] : parts_->hosts.all()) {
    if (!host->is_starved) continue;
    standing.push_back(
        {Signal::Kind::NoFreeSlot, key, {}, host->router.workers() == 0, "there still is no free slot"});
  }
  return standing;
}

RuntimeHealth RuntimeCore::health() const {
  using Level = RuntimeHealth::Level;
  RuntimeHealth health;
  for (const auto& [id, worker] : parts_->registry.workers()) {
    if (worker->is_gone()) continue;
    ++health.total_workers;
    if (worker->state() == WorkerState::Ready || worker->state() == WorkerState::Placeholder) {
      ++health.ready_workers;
    }
  }
  for (const auto& [key, host] : parts_->hosts.all()) {
    if (key != placeholder_job_host()) ++health.active_job_hosts;
  }
  health.memory_utilization = parts_->memory_utilization;
  health.pending_invocations = parts_->tracker.size();
  const auto worse = [&](Level level, std::string reason) {
    health.level = level;
    health.reason = std::move(reason);
  };
  if (parts_->is_stopping) {
    worse(Level::Unhealthy, "the runtime is stopping");
  } else if (parts_->pressure == MemoryPressure::Critical) {
    worse(Level::Degraded, "memory pressure is critical: no invocations are taken");
  } else if (health.ready_workers == 0 && health.total_workers > 0) {
    worse(Level::Degraded, "no worker is ready");
  }
  return health;
}

std::size_t RuntimeCore::in_flight() const {
  return parts_->tracker.size();
}

}  // namespace windlass::runtime
