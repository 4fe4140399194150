// Settings that changed while the code did not: workers that were told the old ones are told again, of each
// version of an application one after another, so that the others keep serving.
#include <map>
#include <vector>

#include "protocol/base/mutant.h"
#include "scheduler/core/scheduler_core.h"

namespace windlass {

// How far one version of one application is.
struct SchedulerCore::Reload {
  bool is_under_way = false;  // a worker is becoming one; the next waits for it
  bool has_worked = false;    // somebody is ready with the present settings
  bool has_failed = false;    // somebody failed with them
  std::vector<AssignmentRecord> stale;
};

void SchedulerCore::reload_workers(Now now) {
  std::map<AppKey, Reload> reloads;
  apps_.for_each_assignment([&](const AssignmentRecord& each) {
    const AppRecord* const app = apps_.find(each.worker.tenant, each.application_id, each.code_version);
    if (app == nullptr) return;
    Reload& reload = reloads[app->key];
    const bool is_present = each.settings_version == app->settings_version;
    reload.is_under_way |= each.state == AssignmentState::Pending || apps_.is_undecided(each.worker);
    reload.has_worked |= is_present && each.state == AssignmentState::Ready;
    reload.has_failed |= is_present && each.state == AssignmentState::Failed;
    const Worker* const worker = fleet_.find(each.worker);
    const bool is_here =
        worker != nullptr && worker->is_connected() && !worker->is_draining && !worker->has_drained();
    if (!is_present && each.state == AssignmentState::Ready && is_here) reload.stale.push_back(each);
  });
  for (const auto& [key, reload] : reloads) {
    // Settings with which nobody could start are not brought to those that still work.
    if (reload.stale.empty() || (reload.has_failed && !reload.has_worked)) continue;
    if (reload.has_worked && MUTANT(reload_forgets_the_rest)) continue;
    if (reload.is_under_way && !MUTANT(reload_takes_all_at_once)) continue;
    const AppRecord& app = *apps_.find(key.tenant, key.application_id, key.code_version);
    for (const AssignmentRecord& each : reload.stale) {
      AssignmentRecord next = each;
      next.runtime_url = runtime_url_of(each);
      if (!tell_assignment(std::move(next), app, now)) return want_places(now.steady);
      if (!MUTANT(reload_takes_all_at_once)) break;
    }
  }
}

}  // namespace windlass
