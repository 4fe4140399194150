#include "scheduler/core/fleet.h"

#include <algorithm>
#include <array>
#include <utility>

#include "protocol/base/check.h"
#include "protocol/base/mutant.h"

namespace windlass {
namespace {

constexpr std::array<std::string_view, 5> kStates = {"READY", "DRAINING", "DETACHED", "GONE", "LOST"};
constexpr std::array<std::string_view, 4> kLevels = {"HEALTHY", "WARN", "DEGRADED", "LOST"};

// An alarm that comes later than this says that this process was suspended, and nothing of anybody else.
constexpr Duration kAlarmLateMax = seconds{5};

}  // namespace

std::string_view to_string(WorkerState state) {
  return kStates[static_cast<std::size_t>(state)];
}

std::string_view to_string(Liveness level) {
  return kLevels[static_cast<std::size_t>(level)];
}

std::string_view unfitness_of(const Worker& worker) {
  if (!worker.session) return "gone";
  if (worker.is_lost || worker.liveness == Liveness::Lost) return "lost";
  if (worker.state == WorkerState::Detached) return "detached";
  if (worker.is_draining) return "draining";
  if (worker.load && worker.load->is_short_of_memory) return "short of memory";
  if (worker.load && worker.load->is_short_of_disk) return "short of disk";
  if (worker.liveness == Liveness::Degraded) return "degraded";
  if (worker.load && !worker.load->healthy) return "unhealthy";
  return {};
}

// What a runtime can take of invocations is its own affair.
bool holds_work_back(const Worker& worker) {
  if (worker.role == Role::Runtime) return false;
  const bool is_unwell = worker.liveness >= Liveness::Degraded || (worker.load && !worker.load->healthy);
  return worker.is_short() || (is_unwell && !MUTANT(dispatch_ignores_health));
}

bool takes_type(const Worker& worker, std::string_view type) {
  // A worker that took a runtime's id must not get its orders, whatever types it lists.
  if (type.starts_with("biz.runtime.") && worker.role != Role::Runtime) return false;
  if (worker.profile == nullptr) return true;
  const auto is_type = [](const std::string& each) {
    return each.starts_with("biz.") || each.starts_with("ext.");
  };
  const auto& listed = worker.profile->payload_types;
  // Workers of revision 1 list encodings there.
  if (std::ranges::none_of(listed, is_type)) return true;
  return std::ranges::find(listed, type) != listed.end();
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
  worker.is_attached = true;
  worker.lost_after = options_.lost_after_of(worker.key.tenant);
  worker.session_id = opened.session_id;
  worker.address = opened.address;
  worker.certificate_names = opened.certificate_names;
  worker.handled_next = worker.owned_next = 0;
  worker.is_own_queued = false;
  worker.load.reset();
  worker.language_worker.reset();
  worker.runtime.reset();
  worker.signals.clear();
  ++worker.counters.sessions;
  set_state(worker, WorkerState::Ready, now);
  note_heard(worker, now);
  if (const auto expected = expected_.find(worker.key); expected != expected_.end()) {
    watches_.erase({expected->second, worker.key});
    expected_.erase(expected);
  }
  watch(worker, now.steady + worker.lost_after);
  again_.erase(worker.key);  // whoever is here is not named as lost
  sessions_.emplace(opened.session, &worker);
  return worker;
}

void Fleet::apply(Worker& worker, const SessionEvent& event, Now now) {
  if (const auto* established = std::get_if<Established>(&event)) {
    if (established->resumed) ++worker.counters.resumes;
    worker.is_attached = true;
    set_state(worker, worker.is_draining ? WorkerState::Draining : WorkerState::Ready, now);
  } else if (std::holds_alternative<Detached>(event)) {
    return note_away(worker, now);
  } else if (std::holds_alternative<DrainRequested>(event)) {
    start_draining(worker, now);
  } else if (const auto* load = std::get_if<LoadReported>(&event)) {
    worker.load = *load;
    ++worker.counters.heartbeats;
  } else if (const auto* liveness = std::get_if<LivenessChanged>(&event)) {
    if (liveness->level == Liveness::Lost) ++worker.counters.times_lost;
    worker.liveness = liveness->level;
    // This event reports silence, so it does not count as hearing the worker.
    if (liveness->level != Liveness::Healthy) return;
  } else if (const auto* registered = std::get_if<Registered>(&event)) {
    worker.profile = registered->profile;
  } else if (std::holds_alternative<TwinSuspected>(event)) {
    ++worker.counters.twins_suspected;
  } else if (std::holds_alternative<Refused>(event)) {
    ++worker.counters.frames_refused;
  }
  note_heard(worker, now);
}

void Fleet::note_heard(Worker& worker, Now now) {
  worker.heard_at = now.wall;
  worker.heard = now.steady;
  if (!worker.is_lost || !worker.is_attached) return;
  worker.is_lost = false;
  again_.erase(worker.key);
  set_state(worker, worker.is_draining ? WorkerState::Draining : WorkerState::Ready, now);
  watch(worker, now.steady + worker.lost_after);
}

// The connection is gone. One that had fallen silent was gone before.
void Fleet::note_away(Worker& worker, Now now) {
  if (std::exchange(worker.is_attached, false)) {
    worker.away_from = worker.liveness == Liveness::Healthy ? now.steady : worker.heard;
  }
  if (worker.is_lost) return;
  set_state(worker, worker.session ? WorkerState::Detached : WorkerState::Gone, now);
  watch(worker, worker.away_from + worker.lost_after);
}

void Fleet::watch(Worker& worker, Instant at) {
  watches_.erase({worker.watch_at, worker.key});
  worker.watch_at = at;
  watches_.emplace(at, worker.key);
}

void Fleet::expect(const WorkerKey& key, Instant now) {
  const Instant until = now + options_.lost_after_of(key.tenant);
  if (find(key) != nullptr || !expected_.try_emplace(key, until).second) return;
  watches_.emplace(until, key);
}

bool Fleet::is_lost(const WorkerKey& key) const {
  const Worker* const worker = find(key);
  return worker != nullptr ? worker->is_lost : !expected_.contains(key);
}

void Fleet::look_again(const WorkerKey& key, Instant at) {
  again_.insert_or_assign(key, at);
}

void Fleet::lose(Worker& worker, Now now) {
  worker.is_lost = true;
  // A worker that left cleanly stays GONE; only its assignment is released.
  if (worker.session || !worker.end_code.empty()) set_state(worker, WorkerState::Lost, now);
}

// Restarts the loss timer of every watched worker.
void Fleet::count_anew(Instant now) {
  std::set<std::pair<Instant, WorkerKey>> later;
  for (const auto& [at, key] : watches_) {
    Worker* const worker = find(key);
    const Instant until = now + (worker != nullptr ? worker->lost_after : options_.lost_after_of(key.tenant));
    later.emplace(until, key);
    if (worker != nullptr) {
      worker->watch_at = until;
      worker->away_from = worker->heard = now;
    } else {
      expected_.at(key) = until;
    }
  }
  watches_ = std::move(later);
}

std::vector<WorkerKey> Fleet::take_lost(Now now) {
  std::vector<WorkerKey> lost;
  if (!watches_.empty() && now.steady - watches_.begin()->first > kAlarmLateMax) count_anew(now.steady);
  while (!watches_.empty() && watches_.begin()->first <= now.steady) {
    const WorkerKey key = watches_.begin()->second;
    watches_.erase(watches_.begin());
    Worker* const worker = find(key);
    if (worker == nullptr) {
      expected_.erase(key);
      lost.push_back(key);
      continue;
    }
    const Instant since = worker->is_attached ? worker->heard : worker->away_from;
    if (since + worker->lost_after > now.steady) {
      watch(*worker, since + worker->lost_after);
      continue;
    }
    lose(*worker, now);
    lost.push_back(key);
  }
  for (auto at = again_.begin(); at != again_.end();) {
    if (at->second > now.steady) {
      ++at;
      continue;
    }
    lost.push_back(at->first);
    at = again_.erase(at);
  }
  return lost;
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
  note_away(worker, now);
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
  std::optional<Instant> next;
  const auto earliest = [&next](Instant at) { next = next ? std::min(*next, at) : at; };
  if (!gone_.empty()) earliest(gone_.begin()->first + options_.gone_age_max);
  if (!watches_.empty()) earliest(watches_.begin()->first);
  for (const auto& [key, at] : again_) earliest(at);
  return next;
}

void Fleet::set_state(Worker& worker, WorkerState state, Now now) {
  if (worker.state == state && worker.since != WallTime{}) return;
  worker.state = state;
  worker.since = now.wall;
}

// One that is forgotten before it is lost is still expected.
void Fleet::forget_oldest() {
  const auto oldest = workers_.find(gone_.begin()->second);
  const Worker& worker = oldest->second;
  if (!worker.is_lost) expected_.emplace(worker.key, worker.watch_at);
  workers_.erase(oldest);
  gone_.erase(gone_.begin());
}

}  // namespace windlass
