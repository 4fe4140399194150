// Which workers are there and yet cannot do their work, since when, and how soon an application whose places
// could not be filled is tried again. Kept in memory only: after a restart the
// workers report it again.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "protocol/base/time.h"
#include "scheduler/core/core_options.h"
#include "scheduler/core/fleet_status.h"
#include "scheduler/core/values.h"

namespace windlass {

class Vacancies final {
 public:
  using AppName = std::pair<TenantId, std::string>;

  explicit Vacancies(const CoreOptions& options) : options_(options) {}
  Vacancies(const Vacancies&) = delete;
  Vacancies& operator=(const Vacancies&) = delete;

  // A runtime asks for another in place of it.
  void note_missing(const WorkerKey& worker) { missing_.insert(worker); }
  bool is_missing(const WorkerKey& worker) const { return missing_.contains(worker); }
  void note_able(const WorkerKey& worker);

  // From when on the place of a worker that says this is another's; nothing: it is not.
  std::optional<Instant> vacant_at(const WorkerKey& worker, const LanguageWorkerStatus& status, Instant now);

  // Back-off for each application.
  Instant fill_at(const AppName& app) const;
  void note_filled(const AppName& app) { refills_.erase(app); }
  void note_unfilled(const AppName& app, Instant now);

 private:
  struct Refill {
    Duration delay{};
    Instant at{};
  };

  const CoreOptions& options_;
  std::set<WorkerKey> missing_;
  std::map<WorkerKey, Instant> unable_since_;
  std::map<AppName, Refill> refills_;
};

}  // namespace windlass
