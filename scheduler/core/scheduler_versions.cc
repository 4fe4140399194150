// Which metadata version of an application serves: stored, so that it does not depend on who comes back
// first. The newest that a worker was ready with; and it stays so until nobody is to run it any more.
// Runtimes are told it, along with which applications they are to have at all.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "protocol/base/mutant.h"
#include "scheduler/core/scheduler_core.h"

namespace windlass {

void SchedulerCore::settle_active(const TenantId& tenant, const std::string& application_id) {
  std::set<std::string> held;
  std::set<std::string> ready;
  // One that failed is still wanted: to go back to the version before is for the operator to say.
  const auto is_wanted = [](const AssignmentRecord& each) {
    return each.holds_place() || each.state == AssignmentState::Failed;
  };
  for (const AssignmentRecord& each : apps_.assignments_of(tenant, application_id)) {
    if (is_wanted(each)) held.insert(each.metadata_version);
    if (each.state == AssignmentState::Ready) ready.insert(each.metadata_version);
  }
  // Nothing is given up before that is stored, because the store may refuse it. It is looked at again then.
  apps_.for_each_assignment([&](const AssignmentRecord& each) {
    const bool is_its = each.worker.tenant == tenant && each.application_id == application_id;
    if (!is_its || !apps_.is_undecided(each.worker) || !is_wanted(each)) return;
    held.insert(each.metadata_version);
    versions_due_.emplace(tenant, application_id);
  });
  const ActiveVersion* const present = apps_.active(tenant, application_id);
  const bool is_kept = present != nullptr && held.contains(present->metadata_version) &&
                       !MUTANT(active_follows_the_first_ready);
  std::string best = is_kept ? present->metadata_version : std::string{};
  std::uint64_t best_number = is_kept ? apps_.number_of(tenant, application_id, best) : 0;
  for (const std::string& each : ready) {
    const std::uint64_t number = apps_.number_of(tenant, application_id, each);
    if (!best.empty() && (number <= best_number || MUTANT(active_follows_the_first_ready))) continue;
    best = each;
    best_number = number;
  }
  if (best == (present == nullptr ? std::string{} : present->metadata_version)) return;
  apps_.note_active(tenant, application_id,
                    best.empty() ? std::nullopt : std::optional(ActiveVersion{tenant, application_id, best}));
}

// The whole list for each runtime whose list is another than the one it was told last. It leaves with the
// commit that made it so.
void SchedulerCore::take_applications(Effects& effects, const Outstanding& batch, bool is_writing) {
  const bool is_changed = std::ranges::any_of(batch.rows, [](const std::string& row) {
    const RowKind kind = kind_of(row);
    return kind == RowKind::Assignment || kind == RowKind::Active;
  });
  if (!is_changed && !std::exchange(are_applications_due_, false)) return;
  // By runtime; true: one of the application's workers is ready or on its way.
  std::map<WorkerKey, std::map<std::string, bool>> wanted;
  const auto add = [&](const AssignmentRecord& each) {
    const bool is_wanted = each.holds_place() || each.state == AssignmentState::Failed;
    if (is_wanted) wanted[each.runtime_key()][each.application_id] |= each.is_active();
  };
  // What is decided and not in this batch is in none yet.
  is_writing ? apps_.for_each_decided(add) : apps_.for_each_assignment(add);
  fleet_.for_each(std::nullopt, [&](const Worker& runtime) {
    if (runtime.role != Role::Runtime || !runtime.session) return;
    std::map<std::string, ServedApplication> list;
    for (const auto& [application, is_awaited] : wanted[runtime.key]) {
      const ActiveVersion* const active = apps_.active(runtime.key.tenant, application);
      list.emplace(
          application,
          ServedApplication{active == nullptr ? std::string{} : active->metadata_version, is_awaited});
    }
    std::string payload = applications_payload(list);
    auto& told = applications_told_[runtime.key];
    if (told.first == *runtime.session && told.second == payload) return;
    told = {*runtime.session, payload};
    effects.tells.push_back(
        {*runtime.session,
         Message{{.type = kApplicationsType, .id = random_name("v-"), .payload = payload}}});
  });
}

}  // namespace windlass
