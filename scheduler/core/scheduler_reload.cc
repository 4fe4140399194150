// Settings that changed while the code did not: workers that were told the old ones are told again, of each
// version of an application one after another, so that the others keep serving. One that fails by the
// application's fault stops it: the others keep what they have until the next deployment, or until somebody
// is ready with the new ones.
#include <map>
#include <utility>
#include <vector>

#include "protocol/base/mutant.h"
#include "scheduler/core/scheduler_core.h"

namespace windlass {

// How far one version of one application is.
struct SchedulerCore::Reload {
  bool is_under_way = false;  // a worker is becoming one; the next waits for it
  bool has_worked = false;    // somebody is ready with the present settings
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
    const Worker* const worker = fleet_.find(each.worker);
    const bool is_here =
        worker != nullptr && worker->is_connected() && !worker->is_draining && !worker->has_drained();
    if (!is_present && each.state == AssignmentState::Ready && is_here) reload.stale.push_back(each);
  });
  for (const auto& [key, reload] : reloads) {
    const AppRecord& app = *apps_.find(key.tenant, key.application_id, key.code_version);
    if (reload.stale.empty() || !app.rollout_stopped.empty()) continue;
    if (reload.has_worked && MUTANT(reload_forgets_the_rest)) continue;
    if (reload.is_under_way && !MUTANT(reload_takes_all_at_once)) continue;
    if (const auto held = reloads_held_.find(key); held != reloads_held_.end()) {
      if (held->second > now.steady) {
        look_at_places(held->second);
        continue;
      }
      reloads_held_.erase(held);
    }
    for (const AssignmentRecord& each : reload.stale) {
      AssignmentRecord next = each;
      next.runtime_url = runtime_url_of(each);
      if (!tell_assignment(std::move(next), app, now)) return want_places(now.steady);
      if (!MUTANT(reload_takes_all_at_once)) break;
    }
  }
}

// What a worker's answer says of the settings that it was told. If a worker fails with the new settings while
// others still run on older ones, the rollout stops, so that it does not take down one worker after another.
// A worker that becomes ready resumes it.
void SchedulerCore::judge_settings(const AssignmentRecord& told, bool is_ready) {
  const AppRecord* const app = apps_.find(told.worker.tenant, told.application_id, told.code_version);
  if (app == nullptr || told.settings_version != app->settings_version) return;
  if (is_ready) return apps_.note_rollout(app->key, std::nullopt, {});
  bool has_older = app->proven.has_value();
  apps_.for_each_decided([&](const AssignmentRecord& each) {
    has_older |= each.app() == app->key && each.worker != told.worker &&
                 each.state == AssignmentState::Ready && each.settings_version != app->settings_version;
  });
  if (!has_older || !app->rollout_stopped.empty()) return;
  std::string reason = told.worker.instance.value() + " failed with the new settings: " + told.reason;
  events_.emplace_back(RolloutStopped{app->key, app->settings_version, reason});
  apps_.note_rollout(app->key, app->proven, std::move(reason));
}

}  // namespace windlass
