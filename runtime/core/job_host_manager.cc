#include "runtime/core/job_host_manager.h"

#include <algorithm>
#include <array>
#include <utility>

namespace windlass::runtime {

std::string_view to_string(JobHostState state) {
  static constexpr std::array<std::string_view, 4> kNames = {"Starting", "Running", "Failed", "Stopping"};
  return kNames[static_cast<std::size_t>(state)];
}

JobHostManager::~JobHostManager() {
  for (auto& [key, host] : hosts_) timers_.clear(host->timer);
}

JobHost* JobHostManager::find(const JobHostKey& key) const {
  const auto found = hosts_.find(key);
  return found == hosts_.end() ? nullptr : found->second.get();
}

Result<JobHost*> JobHostManager::find_or_create(const JobHostKey& key) {
  if (JobHost* const known = find(key)) return known;
  if (hosts_.size() >= options_.job_hosts_max) {
    return Error{ErrorCode::LimitCapacity, Blame::Local,
                 "this runtime has " + std::to_string(hosts_.size()) +
                     " JobHosts already; raise job_hosts_max or use another runtime for " + key.text()};
  }
  JobHost& host = *hosts_.emplace(key, std::make_unique<JobHost>(key, options_)).first->second;
  host.number = ++next_number_;
  return &host;
}

void JobHostManager::erase(JobHost& host) {
  CHECK(!host.has_workers() && host.invocations.empty());
  timers_.clear(host.timer);
  hosts_.erase(hosts_.find(host.key));
}

void JobHostManager::join(Worker& worker, JobHost& host) {
  CHECK(worker.pending_switch != nullptr && worker.pending_switch->target == nullptr);
  worker.pending_switch->target = &host;
  host.joining.push_back(worker);
}

void JobHostManager::leave_join(Worker& worker) {
  CHECK(worker.pending_switch != nullptr);
  JobHost* const host = std::exchange(worker.pending_switch->target, nullptr);
  if (host == nullptr) return;
  host->joining.erase(worker);
  if (host->indexer == &worker) host->indexer = nullptr;
}

void JobHostManager::route(Worker& worker, JobHost* host) {
  if (worker.host != nullptr) {
    worker.host->router.remove(worker.route);
    worker.host->workers.erase(worker);
  }
  worker.host = host;
  if (host != nullptr) host->workers.push_back(worker);
}

bool JobHostManager::hold(Worker& worker, WorkerMessage message) const {
  CHECK(worker.pending_switch != nullptr);
  auto& held = worker.pending_switch->held;
  // An answer is of an invocation that has a slot, so there are never more than slots.
  const bool is_answer = std::holds_alternative<InvocationResponse>(message);
  if (!is_answer && held.size() >= options_.held_max) return false;
  held.push_back(std::move(message));
  return true;
}

Result<Done> JobHostManager::index(JobHost& host, const std::vector<FunctionRef>& functions) const {
  if (functions.empty()) {
    return Error{
        ErrorCode::PkgInvalid, Blame::Peer,
        "application " + host.key.text() +
            " has no functions: its entry point registers none (or threw; see the worker's log), and "
            "it has no function.json"};
  }
  if (functions.size() > options_.functions_max) {
    return Error{ErrorCode::PkgInvalid, Blame::Peer,
                 "application " + host.key.text() + " has " + std::to_string(functions.size()) +
                     " functions; functions_max is " + std::to_string(options_.functions_max)};
  }
  host.functions.clear();
  host.by_name.clear();
  host.index_failures.clear();
  for (const FunctionRef& function : functions) {
    if (function == nullptr) continue;
    if (!host.by_name.emplace(function->name, function).second) {
      host.index_failures.insert_or_assign(function->name, "two functions of " + host.key.text() +
                                                               " are named '" + function->name +
                                                               "'; give them different names");
      continue;
    }
    host.functions.push_back(function);
    if (!function->status.is_ok()) {
      host.index_failures.emplace(function->name, function->status.reason.empty()
                                                      ? "function '" + function->name + "' failed to index"
                                                      : function->status.reason);
    }
  }
  return Done{};
}

}  // namespace windlass::runtime
