// Loss: who is gone for too long loses its place, and another placeholder takes it; likewise who is there and
// cannot work. Workers whose runtime is gone go to another runtime. What cannot be done now is tried again
// when something changes.
#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "protocol/base/mutant.h"
#include "scheduler/core/scheduler_core.h"

namespace windlass {

// Whoever does not come back after a restart is gone from then on.
void SchedulerCore::expect(const AssignmentRecord& assignment, Instant now) {
  if (assignment.state != AssignmentState::Lost) fleet_.expect(assignment.worker, now);
  if (!assignment.runtime.empty()) fleet_.expect(assignment.runtime_key(), now);
}

void SchedulerCore::settle_lost(Now now) {
  for (const WorkerKey& worker : fleet_.take_lost(now)) {
    if (!fleet_.is_lost(worker)) continue;  // it came while its assignment waited for the store
    want_places(now.steady);
    if (apps_.is_undecided(worker)) {
      fleet_.look_again(worker, now.steady + options_.assignment_retry);
    } else {
      const Worker* const known = fleet_.find(worker);
      const Duration gone = known != nullptr ? known->lost_after : options_.lost_after_of(worker.tenant);
      lose_assignment(
          worker,
          "the worker has been gone for " + std::to_string(std::chrono::ceil<seconds>(gone).count()) + " s",
          now);
    }
  }
}

// It said that it has finished and goes, so nobody waits for it. Started again it is as good as any, and has
// its place back if nobody took it. Where the store does not know yet what it is to be, it is lost later.
void SchedulerCore::leave_place(const Worker& worker, Now now) {
  if (worker.role != Role::Worker || apps_.is_undecided(worker.key)) return;
  lose_assignment(worker.key, "the worker was drained and left", now);
  want_places(now.steady);
}

void SchedulerCore::lose_assignment(const WorkerKey& worker, const std::string& reason, Now now) {
  const AssignmentRecord* const present = apps_.assignment_of(worker);
  if (present == nullptr || present->state == AssignmentState::Lost) return;
  AssignmentRecord next = *present;
  // What it was told is void, should it come back.
  Command* const command = outbox_.find(CommandKey{worker.tenant, next.command});
  if (command != nullptr && !command->record.is_finished()) {
    outbox_.fail(*command, {ErrorCode::Timeout, reason}, now);
  }
  if (next.state == AssignmentState::Releasing) return note_assignment(std::move(next), true);
  next.is_owed = next.holds_place() && !MUTANT(loss_forgets_the_place);
  next.state = AssignmentState::Lost;
  next.reason = reason;
  next.since = now.wall;
  apps_.forget_later(worker, now.steady);
  note_assignment(std::move(next));
}

void SchedulerCore::want_places(Instant now) {
  look_at_places(std::max(now, places_done_ + options_.assignment_retry));
}

void SchedulerCore::look_at_places(Instant at) {
  places_at_ = places_at_ ? std::min(*places_at_, at) : at;
}

// A runtime that lost a worker, or gave it up, while the agent has no other for it. Said again by a runtime
// that was away, so what it says may be over.
void SchedulerCore::replace_missing(const Worker& runtime, const RuntimeSignal& signal, Now now) {
  if (signal.kind != "Replace" || signal.agent_brings_next) return;
  const WorkerKey key{runtime.key.tenant, InstanceId{signal.worker.substr(0, signal.worker.rfind('.'))}};
  const AssignmentRecord* const present = apps_.assignment_of(key);
  if (present == nullptr || present->state != AssignmentState::Ready) return;
  if (present->application_id != signal.application_id || present->runtime_key() != runtime.key) return;
  const Worker* const worker = fleet_.find(key);
  if (worker == nullptr || worker->language_worker == nullptr) return;
  const LanguageWorkerStatus& status = *worker->language_worker;
  if (status.state == "ready" && status.worker_id != signal.worker) return;  // the next one is there
  vacancies_.note_missing(key);
  want_places(now.steady);
}

// Places that somebody is to have.
struct SchedulerCore::Vacant {
  std::vector<AssignmentRecord> open;      // the longest first
  std::vector<AssignmentRecord> unable;    // their worker is there and cannot work
  std::vector<AssignmentRecord> stranded;  // their worker is well, and its runtime is lost
  bool empty() const { return open.empty() && unable.empty() && stranded.empty(); }
};

SchedulerCore::Vacant SchedulerCore::find_vacant(Now now) {
  Vacant vacant;
  apps_.for_each_assignment([&](const AssignmentRecord& each) {
    if (apps_.is_undecided(each.worker)) return;
    if (each.is_open()) return vacant.open.push_back(each);
    const Worker* const worker = fleet_.find(each.worker);
    const bool is_here = worker != nullptr && worker->is_connected();
    if (each.state != AssignmentState::Ready || !is_here) return;
    if (fleet_.is_lost(each.runtime_key())) {
      // What was drained for want of memory starts again elsewhere, where nobody's memory is short by it.
      // What somebody ordered to stay down does, and leaves its place to another.
      const bool stays_down = worker->has_drained() && !resumes_.drained().contains(each.worker);
      (stays_down ? vacant.unable : vacant.stranded).push_back(each);
      return;
    }
    const Worker* const runtime = fleet_.find(each.runtime_key());
    // Without its runtime nobody can work.
    if (worker->language_worker == nullptr || runtime == nullptr || !runtime->is_connected()) return;
    const auto at = vacancies_.vacant_at(each.worker, *worker->language_worker, now.steady);
    if (!at || MUTANT(loss_keeps_unable_workers)) return;
    if (*at > now.steady) return look_at_places(*at);
    vacant.unable.push_back(each);
  });
  std::ranges::sort(vacant.open, {}, [](const AssignmentRecord& each) {
    return std::pair{each.since, each.worker};
  });
  return vacant;
}

void SchedulerCore::fill_places(Now now) {
  places_at_.reset();
  places_done_ = now.steady;
  Vacant vacant = find_vacant(now);
  if (vacant.empty()) return reload_workers(now);
  if (health_.is_failing) return want_places(now.steady);
  std::size_t left = options_.assignments_at_once;
  for (const AssignmentRecord& each : vacant.stranded) {
    if (left > 0 && leave_lost_runtime(each, now)) --left;
  }
  std::ranges::move(vacant.unable, std::back_inserter(vacant.open));
  std::set<AppKey> without_plan;
  for (const AssignmentRecord& each : vacant.open) {
    const Instant at = vacancies_.fill_at({each.worker.tenant, each.application_id});
    if (at > now.steady) {
      look_at_places(at);
      continue;
    }
    if (left == 0 || (without_plan.contains(each.app()) && !can_take_back(each))) continue;
    const Filled filled = fill_place(each, now);
    if (filled == Filled::Yes) --left;
    if (filled == Filled::NoPlan) without_plan.insert(each.app());
  }
  if (left == 0) want_places(now.steady);
  reload_workers(now);
}

SchedulerCore::Filled SchedulerCore::fill_place(const AssignmentRecord& vacant, Now now) {
  const AppRecord* const app = apps_.find(vacant.worker.tenant, vacant.application_id, vacant.code_version);
  if (app == nullptr) {
    AssignmentRecord settled = vacant;
    settled.is_owed = false;
    if (vacant.is_open()) note_assignment(std::move(settled));
    return Filled::No;
  }
  // One that was lost and is back is as good as any. One that failed may do better later, if nobody else can.
  const bool is_its = can_take_back(vacant);
  const bool is_first = is_its && vacant.state == AssignmentState::Lost;
  auto next = is_first ? std::nullopt : plan_successor(vacant, *app);
  if (!next && is_its) return take_back_place(vacant, *app, now) ? Filled::Yes : Filled::No;
  if (!next) return Filled::NoPlan;
  const InstanceId successor = next->worker.instance;
  if (!tell_assignment(*std::move(next), *app, now)) return Filled::No;
  versions_due_.emplace(vacant.worker.tenant, vacant.application_id);
  if (!MUTANT(loss_fills_a_place_twice)) give_up_place(vacant, successor, now);
  return Filled::Yes;
}

std::optional<AssignmentRecord> SchedulerCore::plan_successor(const AssignmentRecord& vacant,
                                                              const AppRecord& app) {
  const TenantId& tenant = vacant.worker.tenant;
  ++searches_.plans;
  // The place of one that was drained for want of memory would cost one worker after another where the memory
  // is still short, so it waits as long as the resume of that one does.
  const bool needs_memory =
      vacant.state == AssignmentState::Ready && resumes_.drained().contains(vacant.worker);
  const auto plan =
      plan_assignment(fleet_view(tenant, vacant.application_id), {.application_id = vacant.application_id,
                                                                  .language = app.language,
                                                                  .workers = 1,
                                                                  .runtime = {},
                                                                  .needs_memory = needs_memory});
  if (!plan) return std::nullopt;
  return AssignmentRecord{.worker = {tenant, plan->workers.front().id},
                          .application_id = vacant.application_id,
                          .metadata_version = app.metadata_version,
                          .code_version = app.key.code_version,
                          .runtime = plan->runtime.value(),
                          .runtime_url = plan->runtime_url,
                          .command = {},
                          .reason = {}};
}

bool SchedulerCore::can_take_back(const AssignmentRecord& vacant) const {
  const Worker* const worker = fleet_.find(vacant.worker);
  if (worker == nullptr || !worker->is_connected() || worker->is_draining) return false;
  if (!vacant.is_open() || worker->language_worker == nullptr || worker->has_drained()) return false;
  const std::string& state = worker->language_worker->state;
  return vacant.state == AssignmentState::Lost ? state != "starting" && state != "failed"
                                               : worker->language_worker->is_placeholder();
}

// Stored together with what its successor is told.
void SchedulerCore::give_up_place(AssignmentRecord assignment, const InstanceId& successor, Now now) {
  const bool was_ready = assignment.state == AssignmentState::Ready;
  const Worker* const worker = fleet_.find(assignment.worker);
  if (was_ready) {
    const std::string& error = worker->language_worker->last_error;
    assignment.reason = "its language worker cannot work" + (error.empty() ? error : ": " + error);
  }
  if (assignment.state != AssignmentState::Lost) {
    assignment.since = now.wall;
    apps_.forget_later(assignment.worker, now.steady);
  }
  // Also of one that failed: whoever unassigns workers means places.
  assignment.state = AssignmentState::Lost;
  assignment.is_owed = false;
  assignment.reason += "; " + successor.value() + " has its place";
  apps_.propose(assignment);
  if (!was_ready) return;
  events_.emplace_back(AssignmentChanged{std::move(assignment)});
  // If it can be told, it is a placeholder again.
  if (!worker->language_worker->application_id.empty()) release_stray(*worker, now);
}

// It came back before anybody took its place. It is told anew, with a new epoch, like any placeholder.
bool SchedulerCore::take_back_place(const AssignmentRecord& lost, const AppRecord& app, Now now) {
  AssignmentRecord next = lost;
  const Worker* const present = fleet_.find(lost.runtime_key());
  const bool is_critical =
      present != nullptr && present->runtime != nullptr && present->runtime->is_critical();
  if (fleet_.is_lost(lost.runtime_key()) || (is_critical && !MUTANT(plan_ignores_memory))) {
    const auto runtime =
        plan_runtime(fleet_view(lost.worker.tenant, lost.application_id),
                     {.application_id = lost.application_id, .language = app.language, .runtime = {}});
    if (!runtime) return false;
    next.runtime = runtime->id.value();
    next.runtime_url = runtime->url;
  } else {
    next.runtime_url = runtime_url_of(lost);
  }
  return tell_assignment(std::move(next), app, now);
}

bool SchedulerCore::leave_lost_runtime(const AssignmentRecord& assignment, Now now) {
  const TenantId& tenant = assignment.worker.tenant;
  const AppRecord* const app = apps_.find(tenant, assignment.application_id, assignment.code_version);
  if (app == nullptr) return false;
  const auto runtime =
      plan_runtime(fleet_view(tenant, assignment.application_id),
                   {.application_id = assignment.application_id, .language = app->language, .runtime = {}});
  if (!runtime) return false;
  AssignmentRecord next = assignment;
  next.runtime = runtime->id.value();
  next.runtime_url = runtime->url;
  return tell_assignment(std::move(next), *app, now);
}

}  // namespace windlass
