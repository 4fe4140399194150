// Language workers that were drained are started again: because an operator says so, or because the memory
// for want of which their runtime drained them is back.
#include <algorithm>
#include <string>
#include <vector>

#include "protocol/base/check.h"
#include "protocol/base/mutant.h"
#include "scheduler/core/scheduler_core.h"

namespace windlass {
namespace {

constexpr std::size_t kResumeBytes = kResumePayload.size() + 2 * limits::kIdBytesMax;  // of one in the outbox

}  // namespace

void SchedulerCore::on(ResumeWorker& request, Now now) {
  const std::string who = "worker '" + request.worker.instance.value() + "' ";
  if (const Worker* const known = fleet_.find(request.worker); known != nullptr && !known->session) {
    return refuse(
        request.request,
        {ErrorCode::SessionUnknown, Blame::Peer,
         who + "has no session now: only one whose agent is there can be resumed; start its agent again"});
  }
  const Worker* const worker = find_or_refuse(request.request, request.worker);
  if (worker == nullptr) return;
  if (worker->is_draining) {
    return refuse(request.request, {ErrorCode::SessionDraining, Blame::Peer,
                                    who + "is draining and will leave; restart its agent instead"});
  }
  if (!worker->has_drained()) {
    const std::string why =
        worker->language_worker == nullptr
            ? "has no language worker that could be resumed"
            : "is not drained: the state of its language worker is '" + worker->language_worker->state + "'";
    return refuse(request.request, {ErrorCode::ProtoState, Blame::Peer, who + why});
  }
  if (refuse_if_failing(request.request)) return;
  if (!outbox_.has_pending(request.worker, kResumeType)) {
    if (const auto room = outbox_.check_room(request.worker.tenant, 1, kResumeBytes); !room) {
      return refuse(request.request, room.error());
    }
    order_resume(request.worker, now);
  }
  reply_to(request.request, Done{}, true);
}

void SchedulerCore::order_resume(const WorkerKey& worker, Now now) {
  const auto accepted = outbox_.submit({.request = {},
                                        .worker = worker,
                                        .id = new_command_id(worker.tenant),
                                        .type = std::string{kResumeType},
                                        .payload = std::string{kResumePayload},
                                        .timeout = std::nullopt},
                                       now);
  CHECK(accepted.has_value());
}

void SchedulerCore::look_at_resumes(Instant at) {
  if (resumes_.drained().empty()) return;
  resumes_at_ = resumes_at_ ? std::min(*resumes_at_, at) : at;
}

// The one that drained it; null: that is not known, or it is not there.
const Worker* SchedulerCore::runtime_of_drained(const Worker& worker) const {
  const std::string& named = worker.language_worker->runtime;
  const Worker* found = fleet_.find(WorkerKey{worker.key.tenant, InstanceId{named}});
  // An agent that has its runtime from its own settings may know the address only.
  if (found == nullptr) {
    fleet_.for_each(worker.key.tenant, [&](const Worker& each) {
      if (each.runtime != nullptr && !each.runtime->url.empty() && each.runtime->url == named) found = &each;
    });
  }
  const bool is_here = found != nullptr && found->role == Role::Runtime && found->is_connected() &&
                       found->liveness < Liveness::Degraded;
  return is_here ? found : nullptr;
}

// A worker that may be resumed, and who drained it.
struct SchedulerCore::Resumable {
  WorkerKey worker;
  WorkerKey runtime;
  bool has_place = false;
};

std::vector<SchedulerCore::Resumable> SchedulerCore::find_resumable() const {
  std::vector<Resumable> found;
  for (const WorkerKey& key : resumes_.drained()) {
    const Worker* const worker = fleet_.find(key);
    const bool is_free = worker != nullptr && worker->is_connected() && !worker->is_draining &&
                         !is_denied(key) && takes_type(*worker, kResumeType) &&
                         !outbox_.has_pending(key, kResumeType);
    const Worker* const runtime = is_free ? runtime_of_drained(*worker) : nullptr;
    if (runtime == nullptr) continue;
    const AssignmentRecord* const assignment = apps_.assignment_of(key);
    found.push_back({key, runtime->key, assignment != nullptr && assignment->holds_place()});
  }
  std::ranges::stable_sort(found, std::ranges::greater{}, &Resumable::has_place);
  return found;
}

// Of each runtime one at a time, and first those that still have a place.
void SchedulerCore::resume_workers(Now now) {
  resumes_at_.reset();
  if (health_.is_failing) return look_at_resumes(now.steady + options_.assignment_retry);
  for (const Resumable& each : find_resumable()) {
    const auto at = resumes_.resume_at(each.runtime);
    if (!at || MUTANT(resume_forgets_the_drained)) continue;  // the runtime says when that is over
    const WorkerKey* const last = resumes_.last_resumed(each.runtime);
    const bool is_busy = last != nullptr && outbox_.has_pending(*last, kResumeType);
    if (is_busy || *at > now.steady) {
      look_at_resumes(std::max(*at, now.steady + options_.assignment_retry));
      continue;
    }
    if (!outbox_.check_room(each.worker.tenant, 1, kResumeBytes)) {
      look_at_resumes(now.steady + options_.assignment_retry);
      continue;
    }
    order_resume(each.worker, now);
    resumes_.note_resumed(each.worker, each.runtime, now.steady);
    events_.emplace_back(WorkerResumed{each.worker, each.runtime});
  }
}

}  // namespace windlass
