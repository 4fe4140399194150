// When workers that their runtime drained for want of memory are started again: once its memory has been
// normal for a while, one after another. Kept in memory only: after a restart the
// workers report it again.
#pragma once

#include <map>
#include <optional>
#include <set>

#include "protocol/base/time.h"
#include "scheduler/core/core_options.h"
#include "scheduler/core/fleet_status.h"
#include "scheduler/core/values.h"

namespace windlass {

class Resumes final {
 public:
  explicit Resumes(const CoreOptions& options) : options_(options) {}
  Resumes(const Resumes&) = delete;
  Resumes& operator=(const Resumes&) = delete;

  void note_worker(const WorkerKey& worker, const LanguageWorkerStatus& status);
  void note_runtime(const WorkerKey& runtime, const RuntimeStatus& status, Instant now);
  void note_resumed(const WorkerKey& worker, const WorkerKey& runtime, Instant now);
  void runtime_left(const WorkerKey& runtime) { normal_since_.erase(runtime); }  // nobody hears it now
  void session_ended(const WorkerKey& peer);  // of a worker or a runtime: it says it again in the next

  // Workers that were drained for want of memory, and by nobody's order.
  const std::set<WorkerKey>& drained() const { return drained_; }
  // From when on one of the runtime's may be resumed; nothing: it is short of memory, or does not say.
  std::optional<Instant> resume_at(const WorkerKey& runtime) const;
  const WorkerKey* last_resumed(const WorkerKey& runtime) const;

 private:
  const CoreOptions& options_;
  std::set<WorkerKey> drained_;
  std::map<WorkerKey, Instant> normal_since_;  // by runtime; or since its last worker was resumed
  std::map<WorkerKey, WorkerKey> resumed_;     // by runtime: that one
};

}  // namespace windlass
