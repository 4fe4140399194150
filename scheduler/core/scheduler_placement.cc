// Which worker gets which command: for those that were sent to an application or a language a worker is
// chosen here, and none is given more than it takes.
#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "scheduler/core/scheduler_core.h"

namespace windlass {
namespace {

bool runs_language(const Worker& worker, const std::string& language) {
  if (worker.language_worker != nullptr && worker.language_worker->language == language) return true;
  if (worker.profile == nullptr) return false;
  return std::ranges::find(worker.profile->runtimes, language) != worker.profile->runtimes.end();
}

bool serves(const Worker& worker, const std::string& application_id, const ActiveVersion* active) {
  if (worker.role != Role::Runtime || !worker.session || worker.runtime == nullptr) return false;
  return std::ranges::any_of(worker.runtime->applications, [&](const RuntimeApplication& each) {
    return each.application_id == application_id && each.ready + each.detached > 0 &&
           (active == nullptr || each.metadata_version == active->metadata_version);
  });
}

std::string listed_types(const Worker& worker) {
  std::string text;
  for (const std::string& each : worker.profile->payload_types) text += (text.empty() ? "" : ", ") + each;
  return text;
}

}  // namespace

std::size_t SchedulerCore::parallel_max(const Worker& worker) const {
  if (worker.profile == nullptr) return options_.in_flight_per_worker_max;
  return std::min<std::size_t>(options_.in_flight_per_worker_max,
                               std::max<std::uint32_t>(1, worker.profile->max_parallel));
}

// Those that have the application by the scheduler's own word, not by theirs.
std::vector<const Worker*> SchedulerCore::workers_for(const UnplacedKey& key) const {
  std::vector<const Worker*> found;
  if (key.target.kind == CommandTarget::Kind::Application) {
    for (const AssignmentRecord& each : apps_.assignments_of(key.tenant, key.target.name)) {
      const Worker* const worker = fleet_.find(each.worker);
      if (each.state == AssignmentState::Ready && worker != nullptr) found.push_back(worker);
    }
    return found;
  }
  const bool is_serving = key.target.kind == CommandTarget::Kind::Serving;
  const ActiveVersion* const active = is_serving ? apps_.active(key.tenant, key.target.name) : nullptr;
  fleet_.for_each(key.tenant, [&](const Worker& worker) {
    const bool is_one = is_serving ? serves(worker, key.target.name, active)
                                   : worker.role == Role::Worker && runs_language(worker, key.target.name);
    if (is_one) found.push_back(&worker);
  });
  return found;
}

// The least busy of those that are fit goes first; the oldest command too.
void SchedulerCore::place_commands() {
  const bool is_due = outbox_.take_placement_due();
  if (!std::exchange(is_placement_due_, false) && !is_due) return;
  for (const UnplacedKey& key : outbox_.unplaced()) {
    ++searches_.placements;
    std::vector<const Worker*> workers = workers_for(key);
    std::erase_if(workers, [](const Worker* each) { return !unfitness_of(*each).empty(); });
    for (Command* const command : outbox_.unplaced_of(key, options_.placement_scan_max)) {
      const Worker* best = nullptr;
      std::size_t best_load = 0;
      bool has_room = false;
      for (const Worker* const each : workers) {
        const std::size_t load = outbox_.under_way(each->key);
        if (load >= parallel_max(*each)) continue;
        has_room = true;
        if (!takes_type(*each, command->record.type) || (best != nullptr && best_load <= load)) continue;
        best = each;
        best_load = load;
      }
      if (best != nullptr) {
        outbox_.place(*command, best->key.instance);
        is_placement_due_ = true;  // there may be more of them than were looked at
      }
      if (!has_room) break;
    }
  }
}

// What the runtime served until now, and does not any more: it may come back with it, or its workers may.
void SchedulerCore::note_unserved(const Worker& runtime, const RuntimeStatus* next) {
  std::set<std::string_view> served;
  if (next != nullptr) {
    for (const RuntimeApplication& each : next->applications) {
      if (each.ready + each.detached > 0) served.insert(each.application_id);
    }
  }
  for (const RuntimeApplication& each : runtime.runtime->applications) {
    if (each.ready + each.detached == 0 || served.contains(each.application_id)) continue;
    served_again_.insert_or_assign({runtime.key.tenant, each.application_id},
                                   runtime.heard + runtime.lost_after);
  }
}

// Invocations whose runtime was lost before it got them, where no other serves the application. After a start
// nobody has said yet what it serves, and one that served it a moment ago may be between two sessions.
void SchedulerCore::fail_unserved(Now now) {
  unserved_at_.reset();
  std::erase_if(served_again_, [now](const auto& each) { return each.second <= now.steady; });
  for (const UnplacedKey& key : outbox_.unplaced()) {
    if (key.target.kind != CommandTarget::Kind::Serving || !workers_for(key).empty()) continue;
    Instant until = started_ + options_.lost_after_of(key.tenant);
    const auto again = served_again_.find({key.tenant, key.target.name});
    if (again != served_again_.end()) until = std::max(until, again->second);
    if (until > now.steady) {
      unserved_at_ = unserved_at_ ? std::min(*unserved_at_, until) : until;
      continue;
    }
    for (Command* const command : outbox_.unplaced_of(key, options_.placement_scan_max)) {
      outbox_.fail(*command,
                   {ErrorCode::WorkerLost, "its runtime is lost and no other serves '" + key.target.name +
                                               "'; the command was never given to one"},
                   now);
    }
  }
}

// What was chosen for a worker that cannot take it now goes elsewhere, unless it was given to it already.
void SchedulerCore::note_fitness(const Worker& worker) {
  if (!unfitness_of(worker).empty()) outbox_.give_back(worker.key);
}

void SchedulerCore::note_load(Worker& worker, bool was_short) {
  if (worker.is_short() == was_short) return;
  const std::string_view of = !worker.is_short()                ? std::string_view{}
                              : worker.load->is_short_of_memory ? "memory"
                                                                : "disk";
  events_.emplace_back(ShortageChanged{worker.key, of});
}

// Present is who can be heard. A connection that is gone counts from that moment, one that fell silent from
// its last word; but a worker whose heartbeats are slower than that is given half an interval more.
void SchedulerCore::note_presence(const Worker& worker, const SessionEvent& event, Now now) {
  if (std::holds_alternative<Established>(event)) {
    outbox_.worker_came(worker.key);
  } else if (std::holds_alternative<Detached>(event)) {
    outbox_.worker_left(worker.key, now.steady + worker.lost_after);
  } else if (const auto* liveness = std::get_if<LivenessChanged>(&event)) {
    if (liveness->level == Liveness::Healthy) return outbox_.worker_came(worker.key);
    outbox_.worker_left(worker.key, std::max(now.steady - liveness->silence + worker.lost_after,
                                             now.steady + liveness->interval / 2));
  }
}

void SchedulerCore::refuse_types(const Worker& worker, Now now) {
  outbox_.fail_unless(
      worker.key, [&](const std::string& type) { return takes_type(worker, type); }, now);
}

// Of an application's workers some may be on their way; a language without any worker is a mistake.
Result<Done> SchedulerCore::check_shared_target(const SubmitCommand& request) const {
  const TenantId& tenant = request.worker.tenant;
  const std::string& name = request.target.name;
  const bool is_app = request.target.kind == CommandTarget::Kind::Application;
  if (is_app && apps_.find(tenant, name, {}) == nullptr) {
    return Error{
        ErrorCode::CmdUnknown, Blame::Peer,
        "no application '" + name + "' of tenant '" + tenant.value() + "' is deployed; see windlass apps"};
  }
  const std::vector<const Worker*> workers = workers_for({tenant, request.target});
  if (!is_app && workers.empty()) {
    return Error{ErrorCode::SessionUnknown, Blame::Peer,
                 "no worker of tenant '" + tenant.value() + "' runs '" + name + "'; see windlass workers"};
  }
  const auto takes_it = [&](const Worker* each) { return takes_type(*each, request.type); };
  if (workers.empty() || std::ranges::any_of(workers, takes_it)) return Done{};
  return Error{ErrorCode::SessionUnknown, Blame::Peer,
               "no worker of '" + name + "' takes commands of type '" + request.type + "'"};
}

Result<Done> SchedulerCore::check_target(const SubmitCommand& request) const {
  const CommandTarget::Kind kind = request.target.kind;
  if (kind == CommandTarget::Kind::Application || kind == CommandTarget::Kind::Language) {
    return check_shared_target(request);
  }
  const Worker* const worker = fleet_.find(request.worker);
  if (worker == nullptr || !worker->session) return Done{};
  const std::string who = "worker '" + request.worker.instance.value() + "' ";
  if (worker->is_draining) {
    return Error{ErrorCode::SessionDraining, Blame::Peer,
                 who + "is draining and takes no new commands; choose another one"};
  }
  if (!takes_type(*worker, request.type)) {
    return Error{
        ErrorCode::CmdUnknown, Blame::Peer,
        who + "does not take commands of type '" + request.type + "'; it takes " + listed_types(*worker)};
  }
  return Done{};
}

}  // namespace windlass
