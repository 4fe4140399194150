#include "scheduler/core/fleet.h"

#include <algorithm>
#include <array>

#include "protocol/base/check.h"

namespace windlass {
namespace {

constexpr std::array<std::string_view, 4> kStates = {"READY", "DRAINING", "DETACHED", "GONE"};
constexpr std::array<std::string_view, 4> kLevels = {"HEALTHY", "WARN", "DEGRADED", "LOST"};

}  // namespace

std::string_view to_string(WorkerState state) {
  return kStates[static_cast<std::size_t>(state)];
}

std::string_view to_string(Liveness level) {
  return kLevels[static_cast<std::size_t>(level)];
}

Worker& Fleet::open(const SessionOpened& opened, Now now) {
  const auto [at, is_new] = workers_.try_emplace(opened.worker);
  Worker& worker = at->second;
  CHECK(!worker.session);
  if (is_new) {
    worker.key = opened.worker;
    worker.first_seen = now.wall;
  } else {
    gone_.erase({worker.gone_at, worker.key});
  }
  worker.role = opened.role;
  worker.revision = opened.revision;
  worker.is_draining = false;
  worker.liveness = Liveness::Healthy;
  worker.session = opened.session;
  worker.session_id = opened.session_id;
  worker.address = opened.address;
  worker.heard_at = now.wall;
  worker.handled_next = worker.owned_next = 0;
  worker.is_own_queued = false;
  worker.language_worker.reset();
  worker.runtime.reset();
  worker.signals.clear();
  ++worker.counters.sessions;
  set_state(worker, WorkerState::Ready, now);
  sessions_.emplace(opened.session, &worker);
  return worker;
}

void Fleet::apply(Worker& worker, const SessionEvent& event, Now now) {
  if (const auto* established = std::get_if<Established>(&event)) {
    if (established->resumed) ++worker.counters.resumes;
    set_state(worker, worker.is_draining ? WorkerState::Draining : WorkerState::Ready, now);
  } else if (std::holds_alternative<Detached>(event)) {
    set_state(worker, WorkerState::Detached, now);
    return;
  } else if (std::holds_alternative<DrainRequested>(event)) {
    start_draining(worker, now);
  } else if (const auto* load = std::get_if<LoadReported>(&event)) {
    worker.load = *load;
    ++worker.counters.heartbeats;
  } else if (const auto* liveness = std::get_if<LivenessChanged>(&event)) {
    if (liveness->level == Liveness::Lost) ++worker.counters.times_lost;
    worker.liveness = liveness->level;
    if (liveness->level != Liveness::Healthy) return;  // it is its silence that is told
  } else if (const auto* registered = std::get_if<Registered>(&event)) {
    worker.profile = registered->profile;
  } else if (std::holds_alternative<TwinSuspected>(event)) {
    ++worker.counters.twins_suspected;
  } else if (std::holds_alternative<Refused>(event)) {
    ++worker.counters.frames_refused;
  }
  worker.heard_at = now.wall;
}

void Fleet::start_draining(Worker& worker, Now now) {
  worker.is_draining = true;
  if (worker.state == WorkerState::Ready) set_state(worker, WorkerState::Draining, now);
}

void Fleet::end(Worker& worker, std::string code, std::string reason, Now now) {
  CHECK(worker.session.has_value());
  sessions_.erase(*worker.session);
  worker.session.reset();
  worker.end_code = std::move(code);
  worker.end_reason = std::move(reason);
  worker.gone_at = now.steady;
  set_state(worker, WorkerState::Gone, now);
  gone_.emplace(worker.gone_at, worker.key);
  // Never this one, which its caller still holds: it is the youngest.
  if (gone_.size() > std::max<std::size_t>(1, options_.gone_workers_max)) forget_oldest();
}

Worker* Fleet::find(const WorkerKey& key) {
  const auto found = workers_.find(key);
  return found == workers_.end() ? nullptr : &found->second;
}

const Worker* Fleet::find(const WorkerKey& key) const {
  const auto found = workers_.find(key);
  return found == workers_.end() ? nullptr : &found->second;
}

Worker* Fleet::find(SessionRef session) {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : found->second;
}

void Fleet::for_each(const std::optional<TenantId>& tenant,
                     const std::function<void(const Worker&)>& visit) const {
  auto at = tenant ? workers_.lower_bound({*tenant, InstanceId{}}) : workers_.begin();
  for (; at != workers_.end() && (!tenant || at->first.tenant == *tenant); ++at) visit(at->second);
}

void Fleet::handle_timeout(Instant now) {
  while (!gone_.empty() && gone_.begin()->first + options_.gone_age_max <= now) forget_oldest();
}

std::optional<Instant> Fleet::poll_timeout() const {
  if (gone_.empty()) return std::nullopt;
  return gone_.begin()->first + options_.gone_age_max;
}

void Fleet::set_state(Worker& worker, WorkerState state, Now now) {
  if (worker.state == state && worker.since != WallTime{}) return;
  worker.state = state;
  worker.since = now.wall;
}

void Fleet::forget_oldest() {
  workers_.erase(gone_.begin()->second);
  gone_.erase(gone_.begin());
}

}  // namespace windlass
