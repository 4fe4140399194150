#include "scheduler/core/vacancies.h"

namespace windlass {

void Vacancies::note_able(const WorkerKey& worker) {
  missing_.erase(worker);
  unable_since_.erase(worker);
}

std::optional<Instant> Vacancies::vacant_at(const WorkerKey& worker, const LanguageWorkerStatus& status,
                                            Instant now) {
  if (missing_.contains(worker) || status.is_drained()) return now;
  // A placeholder is told again what it is to be.
  if (status.state == "ready" || status.is_placeholder()) {
    unable_since_.erase(worker);
    return std::nullopt;
  }
  return unable_since_.try_emplace(worker, now).first->second + options_.lost_after_of(worker.tenant);
}

Instant Vacancies::fill_at(const AppName& app) const {
  const auto found = refills_.find(app);
  return found == refills_.end() ? Instant{} : found->second.at;
}

void Vacancies::note_unfilled(const AppName& app, Instant now) {
  Refill& refill = refills_[app];
  refill.delay = std::clamp(refill.delay * 2, options_.refill_retry_first, options_.refill_retry_cap);
  refill.at = now + refill.delay;
}

}  // namespace windlass
