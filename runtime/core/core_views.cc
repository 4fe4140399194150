// What the core shows of itself.
#include <algorithm>
#include <utility>

#include "runtime/core/parts.h"

namespace windlass::runtime {
namespace {

// An application that is here and that nobody can run now.
const JobHost* without_ready_worker(const JobHostManager& hosts) {
  for (const auto& [key, host] : hosts.all()) {
    const bool is_up = key != placeholder_job_host() && host->state != JobHostState::Starting;
    if (is_up && host->router.workers() == 0) return host.get();
  }
  return nullptr;
}

}  // namespace

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
    view.abandoned = worker->abandoned;
    view.load_failures = worker->load_failures;
    view.functions_loaded = worker->functions_loaded;
    view.status_latency = worker->status_latency;
    view.connected_at = worker->connected_at;
    view.specialization_took = worker->specialization_took;
    view.is_detached = !worker->is_gone() && worker->channel->is_detached;
    view.is_unfit = !worker->is_gone() && worker->channel->is_unfit;
    view.peer = worker->peer;
    view.lost_because = worker->lost_because;
    view.lost_at = worker->lost_at;
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
      FunctionView shown{function, {}, 0};
      if (const std::string* const reason = host->router.load_failure(function->name)) {
        shown.load_failure = *reason;
      }
      for (Worker* at = host->workers.front(); at != nullptr; at = host->workers.next(*at)) {
        const auto is_it = [&](const auto& failure) { return failure.first == function->name; };
        if (std::ranges::any_of(at->load_failures, is_it)) ++shown.lacking;
      }
      view.functions.push_back(std::move(shown));
    }
    view.split = host->router.split();
    view.workers = host->workers.size() + host->joining.size();
    for (Worker* at = host->joining.front(); at != nullptr; at = host->joining.next(*at)) {
      if (at->host == host.get()) --view.workers;  // counted already
    }
    view.ready = parts_->is_paused() ? 0 : host->router.workers();
    for (Worker* at = host->workers.front(); at != nullptr; at = host->workers.next(*at)) {
      if (at->state() == WorkerState::Ready && at->channel->is_detached) ++view.detached;
    }
    view.free_slots = free_slots(key);
    view.pending = host->pending_count();
    view.in_flight = host->in_flight;
    view.done = host->done;
    view.failed = host->failed;
    view.abandoned = host->abandoned;
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
  const bool is_configured = parts_->applications.contains(application_id);
  if (!is_configured && is_awaiting()) return std::nullopt;
  if (!is_configured && parts_->assigned) {
    const auto active = parts_->assigned->find(application_id);
    if (active == parts_->assigned->end()) return std::nullopt;
    const JobHost* const host =
        parts_->hosts.find({std::string{application_id}, active->second.metadata_version});
    if (host == nullptr || host->functions.empty()) return std::nullopt;
    return host->key;
  }
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

bool RuntimeCore::is_awaiting() const {
  return parts_->options.awaits_assignments && !parts_->assigned;
}

bool RuntimeCore::is_assigned(std::string_view application_id) const {
  return parts_->assigned && parts_->assigned->contains(application_id);
}

std::vector<std::string> RuntimeCore::absent_applications() const {
  std::vector<std::string> absent;
  if (!parts_->assigned) return absent;
  for (const auto& [application_id, assigned] : *parts_->assigned) {
    if (!find_job_host(application_id)) absent.push_back(application_id);
  }
  return absent;
}

bool RuntimeCore::awaits_worker_of(std::string_view application_id) const {
  if (!parts_->assigned) return true;
  const auto found = parts_->assigned->find(application_id);
  return found == parts_->assigned->end() || found->second.is_awaited;
}

bool RuntimeCore::Parts::is_assigned(const JobHostKey& key) const {
  if (!assigned) return false;
  const auto found = assigned->find(key.application_id);
  return found != assigned->end() && found->second.metadata_version == key.metadata_version;
}

std::vector<FunctionRef> RuntimeCore::functions(const JobHostKey& key) const {
  const JobHost* const host = parts_->hosts.find(key);
  return host == nullptr ? std::vector<FunctionRef>{} : host->functions;
}

std::uint32_t RuntimeCore::free_slots(const JobHostKey& key) const {
  const JobHost* const host = parts_->hosts.find(key);
  if (host == nullptr || parts_->is_paused() || host->pending_count() > 0) return 0;
  return host->router.free_slots();
}

std::vector<Signal> RuntimeCore::standing_signals() const {
  std::vector<Signal> standing;
  for (const auto& [key, host] : parts_->hosts.all()) {
    if (host->is_starved) {
      standing.push_back({Signal::Kind::NoFreeSlot,
                          key,
                          {},
                          Parts::urgency_of(*host, Urgency::Medium),
                          "there still is no free slot"});
    }
    if (host->has_said_high) {
      standing.push_back({Signal::Kind::ScaleUp, key, {}, Urgency::Medium, "utilization is high"});
    }
    if (host->has_said_low) {
      standing.push_back({Signal::Kind::ScaleDown, key, {}, Urgency::Low, "utilization has been low"});
    }
  }
  for (const auto& [worker, missing] : parts_->missing) {
    Signal signal = missing.signal;
    const JobHost* const host = parts_->hosts.find(signal.job_host);
    if (host == nullptr || Parts::active_workers(*host) == 0) signal.urgency = Urgency::High;
    standing.push_back(std::move(signal));
  }
  if (parts_->pressure != MemoryPressure::Normal) {
    standing.push_back({Signal::Kind::ScaleDown, {}, {}, Urgency::Low, "memory pressure is elevated"});
  }
  return standing;
}

RuntimeHealth RuntimeCore::health() const {
  using Level = RuntimeHealth::Level;
  RuntimeHealth health;
  for (const auto& [id, worker] : parts_->registry.workers()) {
    if (worker->is_gone()) continue;
    ++health.total_workers;
    if (worker->channel->is_detached) ++health.detached_workers;
    if (worker->state() == WorkerState::Placeholder) ++health.placeholders;
    if (worker->route.pool != nullptr && !parts_->is_paused()) ++health.ready_workers;
  }
  for (const auto& [key, host] : parts_->hosts.all()) {
    if (key != placeholder_job_host()) ++health.active_job_hosts;
  }
  health.memory_utilization = parts_->memory_utilization;
  health.memory_pressure = to_string(parts_->pressure);
  health.pending_invocations = parts_->tracker.size();
  const auto worse = [&](Level level, std::string reason) {
    health.level = level;
    health.reason = std::move(reason);
  };
  if (parts_->is_stopping) {
    worse(Level::Unhealthy, "the runtime is stopping");
  } else if (parts_->pressure == MemoryPressure::Critical) {
    worse(Level::Degraded, "memory pressure is critical: no invocations are taken");
  } else if (const JobHost* const idle = without_ready_worker(parts_->hosts)) {
    worse(Level::Degraded, "no worker of " + idle->key.text() + " can take an invocation now");
  }
  return health;
}

std::size_t RuntimeCore::in_flight() const {
  return parts_->tracker.size();
}

}  // namespace windlass::runtime
