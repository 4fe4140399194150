#include "scheduler/core/apps.h"

#include <algorithm>

#include "scheduler/core/row_text.h"

namespace windlass {
namespace {

constexpr std::size_t kApplicationNameMax = 63;  // a label of a host name
constexpr std::size_t kVersionNameMax = 64;
constexpr std::size_t kDigestTextBytes = 64;

bool is_name(std::string_view text, std::size_t bytes_max) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  if (text.empty() || text.size() > bytes_max || !is_letter(text.front())) return false;
  return std::ranges::all_of(
      text, [&](char c) { return is_letter(c) || c == '-' || c == '_' || c == '.' || c == '+'; });
}

bool is_digest(std::string_view text) {
  return text.size() == kDigestTextBytes &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

Error refusal(std::string reason, ErrorCode code = ErrorCode::ProtoSchema) {
  return {code, Blame::Peer, std::move(reason)};
}

Result<Done> check_app(const AppRecord& app, std::size_t settings_bytes_max) {
  if (!is_application_name(app.key.application_id)) {
    return refusal(
        "an application's name has 1 to 63 letters, digits, '-', '_', '.' and '+', a letter or digit first");
  }
  if (!is_version_name(app.key.code_version) || !is_version_name(app.metadata_version)) {
    return refusal("a version has 1 to 64 letters, digits, '-', '_', '.' and '+', a letter or digit first");
  }
  if (!is_version_name(app.language)) return refusal("/language: a name such as node or native is wanted");
  if (!is_digest(app.digest)) return refusal("/digest: 64 lower-case hexadecimal digits are wanted");
  std::size_t bytes = 0;
  for (const auto& [name, value] : app.settings) {
    const bool is_sayable = !name.empty() &&
                            name.find_first_of(std::string_view{"=\0", 2}) == std::string::npos &&
                            value.find('\0') == std::string::npos;
    if (!is_sayable)
      return refusal("/settings: a name is empty or holds '=', or something holds a zero byte");
    bytes += name.size() + value.size();
  }
  if (bytes > settings_bytes_max) {
    return refusal("/settings: at most " + std::to_string(settings_bytes_max) + " bytes are taken");
  }
  return Done{};
}

Error unknown_version(const std::string& application_id, const std::string& code_version) {
  return refusal(
      "application '" + application_id + "' has no code version '" + code_version + "'; see windlass apps",
      ErrorCode::CmdUnknown);
}

Error served_apart(const AppRecord& one, const AppRecord& other) {
  return refusal("/weights: code versions '" + one.key.code_version + "' and '" + other.key.code_version +
                 "' have different metadata versions and are served apart; deploy them with one "
                 "--metadata-version to share traffic between them");
}

// Why `app` cannot take the place of a version that is deployed under its name.
std::string difference(const AppRecord& known, const AppRecord& app) {
  const std::string which =
      "code version '" + app.key.code_version + "' of '" + app.key.application_id + "' is deployed with ";
  const auto same_package = [&](const std::string& what, const std::string& option, const std::string& its,
                                const std::string& given) {
    return which + "the same package and the " + what + " '" + its + "', not '" + given + "'; give " +
           option + ' ' + its + " to change its settings, or give this one another --code-version";
  };
  if (known.digest != app.digest) {
    return which + "other content; give this one another --code-version, or undeploy that";
  }
  if (known.language != app.language) {
    return same_package("language", "--language", known.language, app.language);
  }
  return same_package("metadata version", "--metadata-version", known.metadata_version, app.metadata_version);
}

}  // namespace

bool is_application_name(std::string_view text) {
  return is_name(text, kApplicationNameMax);
}

bool is_version_name(std::string_view text) {
  return is_name(text, kVersionNameMax);
}

AppRecord AppRecord::as_told() const {
  AppRecord told = *this;
  if (rollout_stopped.empty() || !proven) return told;
  told.settings = proven->settings;
  told.settings_version = proven->version;
  return told;
}

void Apps::restore(AppRecord app) {
  next_number_ = std::max(next_number_, app.number + 1);
  std::string row = app_row(app.key);
  apps_.restore(std::move(row), std::move(app));
}

void Apps::restore(AssignmentRecord assignment, Now now) {
  last_epoch_ = std::max(last_epoch_, assignment.epoch);
  if (assignment.state == AssignmentState::Lost) forget_later(assignment.worker, now.steady);
  std::string row = assignment_row(assignment.worker);
  assignments_.restore(std::move(row), std::move(assignment));
}

void Apps::restore(ActiveVersion active) {
  std::string row = active_row(active.tenant, active.application_id);
  active_.restore(std::move(row), std::move(active));
}

Result<Done> Apps::merge_settings(AppRecord& app, const std::set<std::string>& unset) const {
  const AppRecord* base = apps_.find(app_row(app.key));
  if (base == nullptr) base = find(app.key.tenant, app.key.application_id, {});
  for (const std::string& name : unset) {
    if (base != nullptr && base->settings.contains(name) && !app.settings.contains(name)) continue;
    return refusal("/settings: there is no setting '" + name + "' to remove from '" + app.key.application_id +
                   "'; windlass apps show " + app.key.application_id + " names those that there are");
  }
  if (base == nullptr) return Done{};
  for (const auto& [name, value] : base->settings) {
    if (!unset.contains(name)) app.settings.try_emplace(name, value);
  }
  return Done{};
}

Result<Done> Apps::deploy(AppRecord app, const std::set<std::string>& unset, Now now) {
  if (auto merged = merge_settings(app, unset); !merged) return merged;
  if (auto checked = check_app(app, options_.app_settings_bytes_max); !checked) return checked;
  const std::string row = app_row(app.key);
  if (const AppRecord* const known = apps_.find(row)) {
    const bool is_same = known->digest == app.digest && known->metadata_version == app.metadata_version &&
                         known->language == app.language;
    if (!is_same) {
      return refusal(difference(*known, app), ErrorCode::ResultDuplicate);
    }
    app.weight = known->weight;
    const bool is_changed = app.settings != known->settings || !known->rollout_stopped.empty();
    app.settings_version = known->settings_version + (is_changed ? 1U : 0U);
    app.proven = known->proven;
    if (is_changed && is_ready_with(*known)) app.proven = {known->settings_version, known->settings};
  } else {
    std::size_t count = 0;
    apps_.for_each([&](const std::string&, const AppRecord& each) {
      count += each.key.tenant == app.key.tenant ? 1U : 0U;
    });
    if (count >= options_.app_versions_per_tenant_max) {
      return refusal("tenant '" + app.key.tenant.value() + "' has " + std::to_string(count) +
                         " deployed versions, which is as many as it may; undeploy some",
                     ErrorCode::LimitCapacity);
    }
  }
  app.number = next_number_++;
  app.deployed_at = now.wall;
  apps_.propose(row, std::move(app));
  return Done{};
}

bool Apps::is_ready_with(const AppRecord& app) const {
  return std::ranges::any_of(assignments_of(app.key.tenant, app.key.application_id),
                             [&](const AssignmentRecord& each) {
                               return each.app() == app.key && each.state == AssignmentState::Ready &&
                                      each.settings_version == app.settings_version;
                             });
}

void Apps::note_rollout(const AppKey& key, std::optional<ProvenSettings> proven, std::string stopped) {
  AppRecord app = *apps_.find(app_row(key));
  if (app.proven == proven && app.rollout_stopped == stopped) return;
  app.proven = std::move(proven);
  app.rollout_stopped = std::move(stopped);
  apps_.note(app_row(key), std::move(app));
}

Result<std::vector<std::string>> Apps::undeploy(const TenantId& tenant, const std::string& application_id,
                                                const std::string& code_version) {
  std::vector<AppKey> keys;
  std::vector<std::string> digests;
  apps_.for_each([&](const std::string&, const AppRecord& each) {
    if (each.key.tenant != tenant || each.key.application_id != application_id) return;
    if (!code_version.empty() && each.key.code_version != code_version) return;
    keys.push_back(each.key);
    digests.push_back(each.digest);
  });
  if (keys.empty()) {
    return refusal("no application '" + application_id + "' of tenant '" + tenant.value() + "' is deployed" +
                       (code_version.empty() ? "" : " with code version '" + code_version + "'"),
                   ErrorCode::CmdUnknown);
  }
  const auto holders =
      std::ranges::count_if(assignments_of(tenant, application_id), [&](const AssignmentRecord& each) {
        return each.holds_place() && (code_version.empty() || each.code_version == code_version);
      });
  if (holders > 0) {
    return refusal(std::to_string(holders) + (holders == 1 ? " worker is" : " workers are") +
                       " assigned to '" + application_id + "'; unassign first (windlass unassign " +
                       application_id + ")",
                   ErrorCode::ResultDuplicate);
  }
  for (const AppKey& key : keys) apps_.propose(app_row(key), std::nullopt);
  // What failed was still wanted. Its runtime would wait for it for ever.
  for (const AssignmentRecord& each : assignments_of(tenant, application_id)) {
    const bool is_its = code_version.empty() || each.code_version == code_version;
    if (is_its && each.state == AssignmentState::Failed) propose_erase(each.worker);
  }
  return digests;
}

const AppRecord* Apps::find(const TenantId& tenant, const std::string& application_id,
                            const std::string& code_version) const {
  if (!code_version.empty()) return apps_.find(app_row({tenant, application_id, code_version}));
  const AppRecord* newest = nullptr;
  apps_.for_each([&](const std::string&, const AppRecord& each) {
    if (each.key.tenant != tenant || each.key.application_id != application_id) return;
    if (newest == nullptr || each.number > newest->number) newest = &each;
  });
  return newest;
}

Result<Done> Apps::split(const TenantId& tenant, const std::string& application_id, const Weights& weights) {
  const AppRecord* first = nullptr;
  std::uint64_t sum = 0;
  for (const auto& [version, weight] : weights) {
    const AppRecord* const app = version.empty() ? nullptr : find(tenant, application_id, version);
    if (app == nullptr) return unknown_version(application_id, version);
    if (first == nullptr) first = app;
    if (app->metadata_version != first->metadata_version) return served_apart(*first, *app);
    sum += weight;
  }
  if (sum == 0) return refusal("/weights: at least one of them must be above 0");
  std::vector<AppRecord> changed;
  apps_.for_each([&](const std::string&, const AppRecord& each) {
    if (each.key.tenant != tenant || each.key.application_id != application_id ||
        each.metadata_version != first->metadata_version) {
      return;
    }
    const auto named = weights.find(each.key.code_version);
    changed.push_back(each);
    changed.back().weight = named == weights.end() ? std::nullopt : std::optional(named->second);
  });
  for (AppRecord& each : changed) {
    const std::string row = app_row(each.key);
    apps_.propose(row, std::move(each));
  }
  return Done{};
}

Weights Apps::weights_of(const TenantId& tenant, const std::string& application_id,
                         const std::string& metadata_version) const {
  Weights weights;
  apps_.for_each_durable([&](const std::string&, const AppRecord& each) {
    const bool is_of_it = each.key.tenant == tenant && each.key.application_id == application_id &&
                          each.metadata_version == metadata_version;
    if (is_of_it && each.weight) weights.emplace(each.key.code_version, *each.weight);
  });
  // What is left of one whose versions were undeployed says nothing.
  const bool is_any = std::ranges::any_of(weights, [](const auto& each) { return each.second > 0; });
  return is_any ? weights : Weights{};
}

std::uint64_t Apps::number_of(const TenantId& tenant, const std::string& application_id,
                              const std::string& metadata_version) const {
  std::uint64_t number = 0;
  apps_.for_each([&](const std::string&, const AppRecord& each) {
    const bool is_of_it = each.key.tenant == tenant && each.key.application_id == application_id &&
                          each.metadata_version == metadata_version;
    if (is_of_it) number = std::max(number, each.number);
  });
  return number;
}

const ActiveVersion* Apps::active(const TenantId& tenant, const std::string& application_id) const {
  return active_.find(active_row(tenant, application_id));
}

void Apps::note_active(const TenantId& tenant, const std::string& application_id,
                       std::optional<ActiveVersion> active) {
  active_.note(active_row(tenant, application_id), std::move(active));
}

bool Apps::is_package_used(std::string_view digest) const {
  bool is_used = false;
  const auto look = [&](const std::string&, const AppRecord& each) { is_used |= each.digest == digest; };
  apps_.for_each(look);
  apps_.for_each_durable(look);  // an undeployment may still be refused
  return is_used;
}

bool Apps::may_fetch(const WorkerKey& worker, std::string_view digest) const {
  const AssignmentRecord* const assignment = assignment_of(worker);
  if (assignment == nullptr || !assignment->holds_place()) return false;
  const AppRecord* const app = apps_.find(app_row(assignment->app()));
  return app != nullptr && app->digest == digest;
}

const AssignmentRecord* Apps::assignment_of(const WorkerKey& worker) const {
  return assignments_.find(assignment_row(worker));
}

bool Apps::is_undecided(const WorkerKey& worker) const {
  return assignments_.is_proposed(assignment_row(worker));
}

std::vector<AssignmentRecord> Apps::assignments_of(const TenantId& tenant,
                                                   const std::string& application_id) const {
  std::vector<AssignmentRecord> found;
  assignments_.for_each([&](const std::string&, const AssignmentRecord& each) {
    if (each.worker.tenant == tenant && each.application_id == application_id) found.push_back(each);
  });
  return found;
}

void Apps::propose(const AssignmentRecord& assignment) {
  if (assignment.state != AssignmentState::Lost) lost_.erase(assignment.worker);
  forgot_.erase(assignment.worker);
  assignments_.propose(assignment_row(assignment.worker), assignment);
}

void Apps::note(const AssignmentRecord& assignment) {
  assignments_.note(assignment_row(assignment.worker), assignment);
}

void Apps::erase(const WorkerKey& worker) {
  assignments_.note(assignment_row(worker), std::nullopt);
  for (Clocks* const clocks : {&forgot_, &lost_}) clocks->erase(worker);
}

void Apps::propose_erase(const WorkerKey& worker) {
  assignments_.propose(assignment_row(worker), std::nullopt);
}

// The clock makes it grow even if every row that had the last one is gone.
std::uint64_t Apps::next_epoch(WallTime now) {
  const auto clock = static_cast<std::uint64_t>(std::max<std::int64_t>(0, now.time_since_epoch().count()));
  last_epoch_ = std::max(last_epoch_ + 1, clock);
  return last_epoch_;
}

void Apps::worker_left(const WorkerKey& worker) {
  forgot_.erase(worker);
}

void Apps::forget_later(const WorkerKey& worker, Instant now) {
  lost_[worker] = now + options_.assignment_forget_after;
  due_at(now + options_.assignment_forget_after);
}

void Apps::worker_forgot(const WorkerKey& worker, bool has_forgotten, Instant now) {
  if (has_forgotten) {
    forgot_.try_emplace(worker, now + options_.assignment_settle_time);
    due_at(now + options_.assignment_settle_time);
  } else {
    forgot_.erase(worker);
  }
}

std::vector<WorkerKey> Apps::take_due(Clocks& clocks, Instant now) {
  std::vector<WorkerKey> due;
  for (const auto& [worker, at] : clocks) {
    if (at <= now) due.push_back(worker);
  }
  for (const WorkerKey& worker : due) clocks.erase(worker);
  return due;
}

Apps::Due Apps::take_due(Instant now) {
  Due due;
  if (!next_due_ || *next_due_ > now) return due;
  const auto collect = [&](Clocks& clocks, std::vector<AssignmentRecord>& found, auto is_wanted) {
    for (const WorkerKey& worker : take_due(clocks, now)) {
      const AssignmentRecord* const assignment = assignment_of(worker);
      if (assignment != nullptr && is_wanted(*assignment)) found.push_back(*assignment);
    }
  };
  const auto is_lost = [](const AssignmentRecord& each) { return each.state == AssignmentState::Lost; };
  collect(forgot_, due.forgotten,
          [](const AssignmentRecord& each) { return each.state == AssignmentState::Ready; });
  collect(lost_, due.stale, is_lost);
  // A place that nobody took stays open.
  std::erase_if(due.stale, [&](const AssignmentRecord& each) {
    if (each.is_owed) lost_[each.worker] = now + options_.assignment_forget_after;
    return each.is_owed;
  });
  next_due_.reset();
  for (const Clocks* const clocks : {&forgot_, &lost_}) {
    for (const auto& [worker, at] : *clocks) due_at(at);
  }
  return due;
}

std::optional<Bytes> Apps::begin_store(std::string_view row) {
  if (kind_of(row) == RowKind::App) {
    const auto app = apps_.begin_store(row);
    return app ? std::optional(to_row_value(*app)) : std::nullopt;
  }
  if (kind_of(row) == RowKind::Active) {
    const auto active = active_.begin_store(row);
    return active ? std::optional(to_row_value(*active)) : std::nullopt;
  }
  const auto assignment = assignments_.begin_store(row);
  return assignment ? std::optional(to_row_value(*assignment)) : std::nullopt;
}

void Apps::end_store(std::string_view row, bool is_committed) {
  apps_.end_store(row, is_committed);
  assignments_.end_store(row, is_committed);
  active_.end_store(row, is_committed);
}

void Apps::drop_unstored() {
  apps_.drop_unstored();
  assignments_.drop_unstored();
  active_.drop_unstored();
}

}  // namespace windlass
