// Applications: what is deployed, who is to run it, and what became of that. An assignment and the command
// that brings it about are in one batch, so that there is never one without the other.
#include <algorithm>
#include <set>
#include <utility>

#include "protocol/base/check.h"
#include "protocol/base/mutant.h"
#include "scheduler/core/row_text.h"
#include "scheduler/core/scheduler_core.h"
#include "scheduler/core/submission.h"

namespace windlass {
namespace {

constexpr std::uint32_t kAssignedAtOnceMax = 10'000;
constexpr std::size_t kAssignIdBytesMax = limits::kIdBytesMax - 8;  // room for ".9999"

Error app_refusal(std::string reason, ErrorCode code) {
  return {code, Blame::Peer, std::move(reason)};
}

std::string numbered(const std::string& id, std::size_t number) {
  return id + '.' + std::to_string(number);
}

}  // namespace

void SchedulerCore::on(DeployApp& request, Now now) {
  if (const auto checked = check(WorkerKey{request.app.key.tenant, InstanceId{"any"}}); !checked) {
    return refuse(request.request, checked.error());
  }
  if (refuse_if_failing(request.request)) return;
  if (const auto deployed = apps_.deploy(std::move(request.app), request.unset, now); !deployed) {
    return refuse(request.request, deployed.error());
  }
  want_places(now.steady);
  reply_to(request.request, Done{}, true);
}

void SchedulerCore::on(UndeployApp& request, Now) {
  if (refuse_if_failing(request.request)) return;
  const auto digests = apps_.undeploy(request.tenant, request.application_id, request.code_version);
  if (!digests) return refuse(request.request, digests.error());
  for (const std::string& digest : *digests) events_.emplace_back(PackageUnused{digest});
  versions_due_.emplace(request.tenant, request.application_id);
  reply_to(request.request, Done{}, true);
}

void SchedulerCore::on(SplitApp& request, Now) {
  if (refuse_if_failing(request.request)) return;
  if (const auto split = apps_.split(request.tenant, request.application_id, request.weights); !split) {
    return refuse(request.request, split.error());
  }
  reply_to(request.request, Done{}, true);
}

// Runtimes keep weights with the workers they are for: one that began to serve an application, or began anew,
// has none.
void SchedulerCore::tell_splits(const Worker& runtime, const RuntimeStatus* before, Now now) {
  const auto is_same = [](const RuntimeApplication& app) {
    return [&app](const RuntimeApplication& each) {
      return each.application_id == app.application_id && each.metadata_version == app.metadata_version;
    };
  };
  for (const RuntimeApplication& app : runtime.runtime->applications) {
    if (before != nullptr && std::ranges::any_of(before->applications, is_same(app))) continue;
    const Weights weights = apps_.weights_of(runtime.key.tenant, app.application_id, app.metadata_version);
    if (weights.empty() || health_.is_failing) continue;
    // Without room it goes without: the operator sees that commands are not taken.
    (void)outbox_.submit({.request = {},
                          .worker = runtime.key,
                          .id = random_name("s-"),
                          .type = std::string{kSplitType},
                          .payload = split_payload(app.application_id, app.metadata_version, weights),
                          .timeout = std::nullopt},
                         now);
  }
}

Availability SchedulerCore::availability_of(const Worker& worker) const {
  if (!worker.is_connected() || worker.liveness == Liveness::Lost) return Availability::Away;
  if (worker.is_draining) return Availability::Draining;
  if (apps_.is_undecided(worker.key)) return Availability::Claimed;
  const AssignmentRecord* const assignment = apps_.assignment_of(worker.key);
  const bool is_claimed =
      assignment != nullptr && (assignment->holds_place() || assignment->state == AssignmentState::Releasing);
  if (is_claimed) return Availability::Claimed;
  if (!unfitness_of(worker).empty()) return Availability::Unfit;
  if (worker.language_worker->is_placeholder()) return Availability::Idle;
  return worker.language_worker->state == "failed" ? Availability::Failed : Availability::Busy;
}

FleetView SchedulerCore::fleet_view(const TenantId& tenant, const std::string& application_id) const {
  FleetView view;
  std::set<std::string> runtimes_of_app;
  for (const AssignmentRecord& each : apps_.assignments_of(tenant, application_id)) {
    if (each.holds_place()) runtimes_of_app.insert(each.runtime);
  }
  std::map<std::string, std::string> ids_by_url;
  fleet_.for_each(tenant, [&](const Worker& each) {
    if (each.role != Role::Runtime || !each.session) return;
    PlacedRuntime runtime;
    runtime.id = each.key.instance;
    // One whose memory is critical drains whoever it is given.
    runtime.is_available = unfitness_of(each).empty() && each.runtime != nullptr &&
                           each.runtime->health != "Unhealthy" &&
                           (!each.runtime->is_critical() || MUTANT(plan_ignores_memory));
    runtime.serves_app = runtimes_of_app.contains(each.key.instance.value());
    if (each.runtime) {
      runtime.has_memory = each.runtime->has_memory();
      runtime.url = each.runtime->url;
      runtime.workers = each.runtime->workers;
      runtime.serves_app |= std::ranges::any_of(each.runtime->applications, [&](const auto& app) {
        return app.application_id == application_id && app.workers > 0;
      });
      if (!runtime.url.empty()) ids_by_url.emplace(runtime.url, runtime.id.value());
    }
    view.runtimes.push_back(std::move(runtime));
  });
  fleet_.for_each(tenant, [&](const Worker& each) {
    if (each.role != Role::Worker || each.language_worker == nullptr) return;
    const auto by_url = ids_by_url.find(each.language_worker->runtime);
    view.workers.push_back({each.key.instance, each.language_worker->language,
                            by_url == ids_by_url.end() ? each.language_worker->runtime : by_url->second,
                            availability_of(each)});
  });
  return view;
}

void SchedulerCore::on(AssignWorkers& request, Now now) {
  if (request.workers == 0 || request.workers > kAssignedAtOnceMax) {
    return refuse(request.request,
                  app_refusal("/workers: 1 to " + std::to_string(kAssignedAtOnceMax) + " is wanted",
                              ErrorCode::ProtoSchema));
  }
  if (answer_repeated(request.request, {request.tenant, request.id}, kSpecializeType,
                      request.application_id)) {
    return;
  }
  if (refuse_if_failing(request.request)) return;
  const AppRecord* const found = apps_.find(request.tenant, request.application_id, request.code_version);
  if (found == nullptr) {
    const bool is_known = apps_.find(request.tenant, request.application_id, {}) != nullptr;
    return refuse(
        request.request,
        app_refusal(is_known ? "application '" + request.application_id + "' has no code version '" +
                                   request.code_version + "'; see windlass apps"
                             : "no application '" + request.application_id + "' of tenant '" +
                                   request.tenant.value() + "' is deployed; see windlass apps",
                    ErrorCode::CmdUnknown));
  }
  const AppRecord app = found->as_told();
  auto plan = plan_assignment(fleet_view(request.tenant, request.application_id),
                              {.application_id = request.application_id,
                               .language = app.language,
                               .workers = request.workers,
                               .runtime = request.runtime,
                               .is_partial = request.is_partial});
  if (!plan) return refuse(request.request, plan.error());
  if (refuse_if_taken(request.request, {request.tenant, request.id}, plan->workers.size())) return;
  AssignmentRecord any;
  any.runtime_url = plan->runtime_url;
  const std::size_t bytes =
      (specialize_payload(app, any).size() + 4 * limits::kIdBytesMax) * plan->workers.size();
  if (auto room = outbox_.check_room(request.tenant, plan->workers.size(), bytes); !room) {
    return refuse(request.request, room.error());
  }
  AssignmentsMade made{{}, std::move(plan->shortfall), false};
  const std::string id = request.id.empty() ? random_name("a-") : request.id;
  for (const PlannedWorker& each : plan->workers) {
    AssignmentRecord assignment{.worker = {request.tenant, each.id},
                                .application_id = request.application_id,
                                .metadata_version = app.metadata_version,
                                .code_version = app.key.code_version,
                                .runtime = plan->runtime.value(),
                                .runtime_url = plan->runtime_url,
                                .command = numbered(id, made.assignments.size() + 1),
                                .state = AssignmentState::Pending,
                                .reason = {},
                                .since = now.wall,
                                .epoch = apps_.next_epoch(now.wall),
                                .settings_version = app.settings_version};
    apps_.propose(assignment);
    order(assignment, kSpecializeType, specialize_payload(app, assignment), now, app.bytes);
    events_.emplace_back(AssignmentChanged{assignment});
    made.assignments.push_back(std::move(assignment));
  }
  reply_to(request.request, std::move(made), true);
}

void SchedulerCore::on(UnassignWorkers& request, Now now) {
  if (answer_repeated(request.request, {request.tenant, request.id}, kReleaseType, request.application_id)) {
    return;
  }
  if (refuse_if_failing(request.request)) return;
  auto held = apps_.assignments_of(request.tenant, request.application_id);
  std::erase_if(held, [&](const AssignmentRecord& each) {
    const bool is_replaced = each.state == AssignmentState::Lost && !each.is_owed;
    return each.state == AssignmentState::Releasing || is_replaced || apps_.is_undecided(each.worker) ||
           (!request.code_version.empty() && each.code_version != request.code_version);
  });
  if (held.empty()) {
    return refuse(request.request, app_refusal("no worker is assigned to '" + request.application_id + "'",
                                               ErrorCode::SessionUnknown));
  }
  // Those that do not work anyway go first, then the newest.
  std::ranges::sort(held, {}, [](const AssignmentRecord& each) {
    return std::tuple{each.state == AssignmentState::Ready, each.state == AssignmentState::Pending,
                      -each.since.time_since_epoch().count(), each.worker};
  });
  if (request.workers && *request.workers < held.size()) held.resize(*request.workers);
  if (refuse_if_taken(request.request, {request.tenant, request.id}, held.size())) return;
  if (auto room = outbox_.check_room(request.tenant, held.size(), 4 * limits::kIdBytesMax * held.size());
      !room) {
    return refuse(request.request, room.error());
  }
  AssignmentsMade made;
  const std::string id = request.id.empty() ? random_name("u-") : request.id;
  for (AssignmentRecord& each : held) {
    const bool is_gone = each.state == AssignmentState::Lost;
    each.command = numbered(id, made.assignments.size() + 1);
    each.state = AssignmentState::Releasing;
    each.is_owed = each.is_refill = false;
    each.reason.clear();
    each.since = now.wall;
    if (is_gone) {
      apps_.propose_erase(each.worker);  // the command waits for it in case it comes back
      versions_due_.emplace(request.tenant, request.application_id);
    } else {
      apps_.propose(each);
    }
    order(each, kReleaseType, release_payload(each.application_id), now);
    events_.emplace_back(AssignmentChanged{each});
    made.assignments.push_back(each);
  }
  reply_to(request.request, std::move(made), true);
}

// The first of its commands stands for the whole request: they were stored together.
bool SchedulerCore::answer_repeated(RequestId request, const CommandKey& key, std::string_view type,
                                    const std::string& application_id) {
  if (key.id.empty()) return false;
  if (const auto checked = check_command_id(key.id, kAssignIdBytesMax); !checked) {
    refuse(request, checked.error());
    return true;
  }
  AssignmentsMade made;
  made.is_repeated = true;
  bool needs_store = false;
  for (std::size_t number = 1;; ++number) {
    const Command* const command = outbox_.find(CommandKey{key.tenant, numbered(key.id, number)});
    if (command == nullptr) break;
    const bool is_it = command->record.type == type &&
                       runtime_reader_.application_id(command->record.payload) == application_id;
    if (!is_it && number == 1) {
      refuse(request, app_refusal("id '" + key.id + "' is known with another request or application",
                                  ErrorCode::ResultDuplicate));
      return true;
    }
    if (!is_it) break;  // somebody's own command that is called so
    needs_store |= !command->is_stored;
    AssignmentRecord assignment;
    assignment.worker = command->record.worker_key();
    const AssignmentRecord* const present = apps_.assignment_of(assignment.worker);
    if (present != nullptr && present->command == command->record.key.id) assignment = *present;
    assignment.command = command->record.key.id;
    assignment.application_id = application_id;
    made.assignments.push_back(std::move(assignment));
  }
  if (made.assignments.empty()) return false;
  reply_to(request, std::move(made), needs_store);
  return true;
}

// Any operator may have called a command so, and of an earlier request the first may be forgotten and the
// others not.
bool SchedulerCore::refuse_if_taken(RequestId request, const CommandKey& key, std::size_t count) {
  if (key.id.empty()) return false;
  for (std::size_t number = 1; number <= count; ++number) {
    const std::string id = numbered(key.id, number);
    if (outbox_.find(CommandKey{key.tenant, id}) == nullptr) continue;
    refuse(request, app_refusal("command '" + id + "' is known already; choose another id",
                                ErrorCode::ResultDuplicate));
    return true;
  }
  return false;
}

// There is room, and the id is new: whoever calls this has looked.
void SchedulerCore::order(const AssignmentRecord& assignment, std::string_view type, std::string payload,
                          Now now, std::uint64_t package_bytes) {
  const Duration timeout = std::min<Duration>(options_.command_timeout + limits::fetch_time(package_bytes),
                                              limits::kCommandTimeoutMax);
  const auto accepted = outbox_.submit({.request = {},
                                        .worker = assignment.worker,
                                        .id = assignment.command,
                                        .type = std::string{type},
                                        .payload = std::move(payload),
                                        .timeout = timeout},
                                       now);
  CHECK(accepted.has_value());
}

}  // namespace windlass
