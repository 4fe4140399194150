// What becomes of assignments: what workers answer, say of themselves later, or do not say any more.
#include <string>
#include <utility>
#include <vector>

#include "protocol/base/mutant.h"
#include "scheduler/core/scheduler_core.h"

namespace windlass {

void SchedulerCore::note_assignment(AssignmentRecord assignment, bool is_over) {
  is_placement_due_ = true;
  versions_due_.emplace(assignment.worker.tenant, assignment.application_id);
  if (is_over && apps_.is_undecided(assignment.worker)) {
    apps_.propose_erase(assignment.worker);  // if the store refuses, it stays as it was
  } else if (is_over) {
    apps_.erase(assignment.worker);
  } else {
    apps_.note(assignment);
  }
  events_.emplace_back(AssignmentChanged{std::move(assignment), is_over});
}

// What came of the commands that assignments wait for. The batch that stores the outcome stores this too.
void SchedulerCore::settle_orders(Now now) {
  for (const CommandKey& key : outbox_.take_finished_orders()) {
    const Command* const command = outbox_.find(key);
    if (command == nullptr) continue;
    const CommandRecord& record = command->record;
    const AssignmentRecord* const present = apps_.assignment_of(record.worker_key());
    if (present == nullptr || present->command != key.id || present->state == AssignmentState::Lost) continue;
    AssignmentRecord next = *present;
    const CommandOutcome outcome = record.result ? runtime_reader_.outcome(record.result->payload)
                                                 : CommandOutcome{false, record.failure->reason};
    next.since = now.wall;
    next.reason = outcome.reason;
    next.state = outcome.ok ? AssignmentState::Ready : AssignmentState::Failed;
    // Its worker was lost before the order was even stored.
    const bool is_gone = record.failure && record.failure->code == ErrorCode::WorkerLost;
    if (!outcome.ok && record.type == kSpecializeType && (is_gone || fleet_.is_lost(next.runtime_key()))) {
      // It is gone, or could not go where nobody is any more: its place is open to whoever can.
      next.state = AssignmentState::Lost;
      next.is_owed = true;
      apps_.forget_later(next.worker, now.steady);
    } else if (record.type == kSpecializeType) {
      const Vacancies::AppName app{next.worker.tenant, next.application_id};
      next.is_owed = !outcome.ok && (next.is_refill || next.is_owed);  // it may be named twice
      if (next.is_owed) vacancies_.note_unfilled(app, now.steady);
      if (outcome.ok) vacancies_.note_filled(app);
      if (outcome.ok) vacancies_.note_able(next.worker);
      if (outcome.ok || outcome.is_of_application) {
        judge_settings(next, outcome.ok);
      } else if (next.is_owed) {
        reloads_held_.insert_or_assign(next.app(), vacancies_.fill_at(app));
      }
    }
    next.is_refill = false;
    want_places(now.steady);
    const bool is_over = record.type == kReleaseType && (outcome.ok || is_gone);
    note_assignment(std::move(next), is_over);
  }
}

// A change that the store refused is no more, and what it hid may have come to its end meanwhile.
void SchedulerCore::settle_reverted() {
  is_placement_due_ = true;
  apps_.for_each_decided([&](const AssignmentRecord& each) {
    want_places(now_.steady);  // what its worker said meanwhile counts now
    versions_due_.emplace(each.worker.tenant, each.application_id);
    if (each.state != AssignmentState::Pending && each.state != AssignmentState::Releasing) return;
    const Command* const command = outbox_.find(CommandKey{each.worker.tenant, each.command});
    if (command != nullptr && command->record.is_finished()) outbox_.name_again(command->record.key);
  });
}

// What a worker says of itself against what it is to be.
void SchedulerCore::compare_assignment(const Worker& worker, Now now) {
  want_places(now.steady);
  const LanguageWorkerStatus& status = *worker.language_worker;
  if (status.state == "ready") vacancies_.note_able(worker.key);
  if (apps_.is_undecided(worker.key)) return;
  const AssignmentRecord* const present = apps_.assignment_of(worker.key);
  const bool is_expected =
      present != nullptr && (present->is_active() || present->state == AssignmentState::Releasing);
  if (!is_expected) {
    if (status.application_id.empty()) return;
    const Command* const told =
        present == nullptr ? nullptr : outbox_.find(CommandKey{worker.key.tenant, present->command});
    const bool is_late = told != nullptr && told->record.type == kSpecializeType &&
                         present->state == AssignmentState::Failed &&
                         status.application_id == present->application_id &&
                         status.code_version == present->code_version;
    // A place that is still open is the first to be given to whoever had it.
    if (!is_late && present != nullptr && present->holds_place()) return;
    // Its runtime does not believe it, so it may never be ready.
    if (!is_late) return MUTANT(loss_leaves_strays) ? static_cast<void>(0) : release_stray(worker, now);
    if (status.state != "ready") return;
    // It was only late, and what it was told holds.
    AssignmentRecord next = *present;
    next.state = AssignmentState::Ready;
    next.is_owed = false;
    next.reason.clear();
    next.since = now.wall;
    return note_assignment(std::move(next));
  }
  if (present->state == AssignmentState::Ready && status.state == "ready" && has_runtime_moved(*present)) {
    const AssignmentRecord moved = *present;
    return specialize_again(moved, now);
  }
  apps_.worker_forgot(worker.key, present->state == AssignmentState::Ready && status.is_placeholder(),
                      now.steady);
}

// It holds an application that nobody assigned to it, or not any more: left alone it would serve old code and
// be free for nobody. The record keeps the order from being given twice.
void SchedulerCore::release_stray(const Worker& worker, Now now) {
  if (worker.has_drained()) return;  // it serves nothing, and any order would start it again
  const LanguageWorkerStatus& status = *worker.language_worker;
  std::string payload = release_payload(status.application_id);
  const bool has_room =
      outbox_.check_room(worker.key.tenant, 1, payload.size() + 2 * limits::kIdBytesMax).has_value();
  if (outbox_.has_pending(worker.key, kReleaseType) || !has_room || health_.is_failing) return;
  AssignmentRecord stray{.worker = worker.key,
                         .application_id = status.application_id,
                         .metadata_version = status.metadata_version,
                         .code_version = status.code_version,
                         .runtime = status.runtime,
                         .runtime_url = {},
                         .command = random_name("u-"),
                         .state = AssignmentState::Releasing,
                         .reason = {},
                         .since = now.wall,
                         .epoch = apps_.next_epoch(now.wall)};
  apps_.propose(stray);
  order(stray, kReleaseType, std::move(payload), now);
  events_.emplace_back(AssignmentChanged{std::move(stray)});
}

// Where the runtime of an assignment is now, if that is known.
std::string SchedulerCore::runtime_url_of(const AssignmentRecord& assignment) const {
  const Worker* const runtime =
      fleet_.find(WorkerKey{assignment.worker.tenant, InstanceId{assignment.runtime}});
  const bool is_known = runtime != nullptr && runtime->role == Role::Runtime && runtime->session &&
                        runtime->runtime != nullptr && !runtime->runtime->url.empty();
  return is_known ? runtime->runtime->url : assignment.runtime_url;
}

bool SchedulerCore::has_runtime_moved(const AssignmentRecord& assignment) const {
  return !assignment.runtime_url.empty() && runtime_url_of(assignment) != assignment.runtime_url;
}

// Agents know their runtime by the URL they were told, and dial that for ever. Those that are away are told
// when they come.
void SchedulerCore::follow_runtime(const Worker& runtime, Now now) {
  std::vector<AssignmentRecord> moved;
  apps_.for_each_assignment([&](const AssignmentRecord& each) {
    const bool is_its = each.worker.tenant == runtime.key.tenant &&
                        each.runtime == runtime.key.instance.value() &&
                        each.state == AssignmentState::Ready && !apps_.is_undecided(each.worker);
    if (!is_its || !has_runtime_moved(each)) return;
    const Worker* const worker = fleet_.find(each.worker);
    if (worker != nullptr && worker->session && !worker->has_drained()) moved.push_back(each);
  });
  for (const AssignmentRecord& each : moved) specialize_again(each, now);
}

void SchedulerCore::settle_assignments(Now now) {
  const Apps::Due due = apps_.take_due(now.steady);
  for (const AssignmentRecord& each : due.forgotten) specialize_again(each, now);
  for (const AssignmentRecord& each : due.stale) apps_.erase(each.worker);
}

// A worker that was told, did it, and is a placeholder again: its agent began anew without its memory. Or its
// runtime is elsewhere now: to an agent that holds the application this says only where.
void SchedulerCore::specialize_again(const AssignmentRecord& assignment, Now now) {
  AssignmentRecord next = assignment;
  next.since = now.wall;
  next.runtime_url = runtime_url_of(assignment);
  const AppRecord* const app =
      apps_.find(assignment.worker.tenant, assignment.application_id, assignment.code_version);
  if (app != nullptr && tell_assignment(next, *app, now)) return;
  if (has_runtime_moved(assignment)) return;  // the runtime speaks again soon, and then it is tried again
  next.state = AssignmentState::Failed;
  next.is_owed = app != nullptr;
  want_places(now.steady);
  next.reason = app == nullptr ? "it must be told again, and this version is not deployed any more"
                               : "it must be told again, and no command could be stored for it";
  note_assignment(std::move(next));
}

// Whoever is told here has a place, be it its own or that of another: if it fails, the place stays.
bool SchedulerCore::tell_assignment(AssignmentRecord next, const AppRecord& app, Now now) {
  const AppRecord told = app.as_told();
  next.command = random_name("a-");
  next.state = AssignmentState::Pending;
  next.reason.clear();
  next.since = now.wall;
  next.epoch = apps_.next_epoch(now.wall);
  next.is_owed = false;
  next.is_refill = !MUTANT(loss_forgets_failed_places);
  next.settings_version = told.settings_version;
  std::string payload = specialize_payload(told, next);
  const bool has_room =
      outbox_.check_room(next.worker.tenant, 1, payload.size() + 2 * limits::kIdBytesMax).has_value();
  if (!has_room || health_.is_failing) return false;
  apps_.propose(next);
  order(next, kSpecializeType, std::move(payload), now, app.bytes);
  events_.emplace_back(AssignmentChanged{std::move(next)});
  return true;
}

}  // namespace windlass
