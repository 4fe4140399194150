#include "scheduler/core/resumes.h"

#include "protocol/base/mutant.h"

namespace windlass {

void Resumes::note_worker(const WorkerKey& worker, const LanguageWorkerStatus& status) {
  if (status.is_drained() && (status.drained_for == "memory" || MUTANT(resume_overrules_orders))) {
    drained_.insert(worker);
  } else {
    drained_.erase(worker);
  }
}

void Resumes::note_runtime(const WorkerKey& runtime, const RuntimeStatus& status, Instant now) {
  if (status.memory_pressure == "normal") {
    normal_since_.try_emplace(runtime, now);
  } else {
    normal_since_.erase(runtime);
  }
}

// What the worker takes of the memory shows only after a while.
void Resumes::note_resumed(const WorkerKey& worker, const WorkerKey& runtime, Instant now) {
  resumed_.insert_or_assign(runtime, worker);
  normal_since_.insert_or_assign(runtime, now);
}

void Resumes::session_ended(const WorkerKey& peer) {
  drained_.erase(peer);
  normal_since_.erase(peer);
  resumed_.erase(peer);
}

std::optional<Instant> Resumes::resume_at(const WorkerKey& runtime) const {
  const auto found = normal_since_.find(runtime);
  if (found == normal_since_.end()) return std::nullopt;
  return found->second + options_.resume_after;
}

const WorkerKey* Resumes::last_resumed(const WorkerKey& runtime) const {
  const auto found = resumed_.find(runtime);
  return found == resumed_.end() ? nullptr : &found->second;
}

}  // namespace windlass
