// Loss: who is gone for too long loses its place, and another placeholder takes it. Workers whose runtime is
// gone go to another runtime. What cannot be done now is tried again when something changes.
#include <algorithm>
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
      lose_assignment(worker, now);
    }
  }
}

void SchedulerCore::lose_assignment(const WorkerKey& worker, Now now) {
  const AssignmentRecord* const present = apps_.assignment_of(worker);
  if (present == nullptr || present->state == AssignmentState::Lost) return;
  AssignmentRecord next = *present;
  const std::string reason = "the worker has been gone for " +
                             std::to_string(std::chrono::ceil<seconds>(options_.lost_after).count()) + " s";
  // What it was told is void, should it come back.
  Command* const command = outbox_.find(CommandKey{worker.tenant, next.command});
  if (command != nullptr && !command->record.is_finished()) {
    outbox_.fail(*command, {ErrorCode::Timeout, reason}, now);
  }
  if (next.state == AssignmentState::Releasing) return note_assignment(std::move(next), true);
  next.is_owed = next.is_active() && !MUTANT(loss_forgets_the_place);
  next.state = AssignmentState::Lost;
  next.reason = reason;
  next.since = now.wall;
  apps_.forget_later(worker, now.steady);
  note_assignment(std::move(next));
}

void SchedulerCore::want_places(Instant now) {
  if (!places_at_) places_at_ = std::max(now, places_done_ + options_.assignment_retry);
}

void SchedulerCore::fill_places(Now now) {
  places_at_.reset();
  places_done_ = now.steady;
  std::vector<AssignmentRecord> owed;
  std::vector<AssignmentRecord> stranded;
  apps_.for_each_assignment([&](const AssignmentRecord& each) {
    if (apps_.is_undecided(each.worker)) return;
    if (each.state == AssignmentState::Lost && each.is_owed) owed.push_back(each);
    const Worker* const worker = fleet_.find(each.worker);
    const bool is_here = worker != nullptr && worker->is_connected();
    if (each.state == AssignmentState::Ready && is_here && fleet_.is_lost(each.runtime_key())) {
      stranded.push_back(each);
    }
  });
  if (owed.empty() && stranded.empty()) return reload_workers(now);
  if (health_.is_failing) return want_places(now.steady);
  std::ranges::sort(owed, {}, [](const AssignmentRecord& each) {
    return std::pair{each.since, each.worker};
  });
  std::size_t left = options_.assignments_at_once;
  for (const AssignmentRecord& each : stranded) {
    if (left > 0 && leave_lost_runtime(each, now)) --left;
  }
  for (const AssignmentRecord& each : owed) {
    if (left > 0 && fill_place(each, now)) --left;
  }
  if (left == 0) want_places(now.steady);
  reload_workers(now);
}

bool SchedulerCore::fill_place(const AssignmentRecord& lost, Now now) {
  const TenantId& tenant = lost.worker.tenant;
  const AppRecord* const app = apps_.find(tenant, lost.application_id, lost.code_version);
  AssignmentRecord settled = lost;
  settled.is_owed = false;
  if (app == nullptr) {
    note_assignment(std::move(settled));
    return false;
  }
  const Worker* const back = fleet_.find(lost.worker);
  const bool is_back = back != nullptr && back->is_connected() && !back->is_draining &&
                       back->language_worker != nullptr && back->language_worker->state != "starting";
  if (is_back) return take_back_place(lost, *app, now);
  const auto plan = plan_assignment(
      fleet_view(tenant, lost.application_id),
      {.application_id = lost.application_id, .language = app->language, .workers = 1, .runtime = {}});
  if (!plan) return false;
  AssignmentRecord next{.worker = {tenant, plan->workers.front().id},
                        .application_id = lost.application_id,
                        .metadata_version = app->metadata_version,
                        .code_version = app->key.code_version,
                        .runtime = plan->runtime.value(),
                        .runtime_url = plan->runtime_url,
                        .command = {},
                        .reason = {}};
  const std::string successor = next.worker.instance.value();
  if (!tell_assignment(std::move(next), *app, now)) return false;
  versions_due_.emplace(tenant, lost.application_id);
  settled.reason = lost.reason + "; " + successor + " has its place";
  if (!MUTANT(loss_fills_a_place_twice)) apps_.propose(settled);
  return true;
}

// It came back before anybody took its place. It is told anew, with a new epoch, like any placeholder.
bool SchedulerCore::take_back_place(const AssignmentRecord& lost, const AppRecord& app, Now now) {
  AssignmentRecord next = lost;
  if (fleet_.is_lost(lost.runtime_key())) {
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
