#include "runtime/core/job_host_manager.h"

#include <algorithm>
#include <array>
#include <utility>

namespace windlass::runtime {
namespace {

constexpr std::string_view kNotRegistered = "the worker does not register a function of this name";

}  // namespace

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

Result<Done> JobHostManager::index(Worker& worker, JobHost& host,
                                   const std::vector<FunctionRef>& functions) const {
  if (functions.empty()) {
    return Error{
        ErrorCode::PkgInvalid, Blame::Peer,
        "application " + host.key.text() +
            " has no functions: its entry point registers none (or threw; see the worker's log), and "
            "it has no function.json"};
  }
  std::map<std::string, FunctionRef, std::less<>> own;
  std::map<std::string, std::string, std::less<>> failures;
  std::size_t total = host.functions.size();
  for (const FunctionRef& function : functions) {
    if (function == nullptr) continue;
    if (!own.emplace(function->name, function).second) {
      failures.insert_or_assign(function->name, "two functions of " + host.key.text() + " are named '" +
                                                    function->name + "'; give them different names");
      continue;
    }
    if (!host.by_name.contains(function->name)) ++total;
    if (function->status.is_ok()) continue;
    const std::string& reason = function->status.reason;
    failures.emplace(function->name,
                     reason.empty() ? "function '" + function->name + "' failed to index" : reason);
  }
  if (total > options_.functions_max) {
    std::set<std::string> stale = unregistered(host, &worker);
    std::erase_if(stale, [&](const std::string& name) { return own.contains(name); });
    if (total - stale.size() <= options_.functions_max) total -= drop(host, stale);
  }
  if (total > options_.functions_max) {
    return Error{ErrorCode::PkgInvalid, Blame::Peer,
                 "the workers of application " + host.key.text() + " have " + std::to_string(total) +
                     " functions together; functions_max is " + std::to_string(options_.functions_max)};
  }
  for (const FunctionRef& function : functions) {
    if (function != nullptr && own.at(function->name) == function) merge(worker, host, function);
  }
  for (const FunctionRef& known : host.functions) {
    if (!own.contains(known->name)) failures.emplace(known->name, kNotRegistered);
  }
  worker.load_failures.assign(failures.begin(), failures.end());
  return Done{};
}

std::set<std::string> JobHostManager::unregistered(const JobHost& host, const Worker* aside) {
  std::map<std::string_view, std::size_t> lacking;
  std::size_t workers = 0;
  for (const Worker* at = host.workers.front(); at != nullptr; at = host.workers.next(*at)) {
    if (at == aside) continue;
    ++workers;
    bool has_all = true;
    for (const auto& [name, reason] : at->load_failures) {
      if (reason != kNotRegistered) continue;
      has_all = false;
      std::size_t& count = lacking[name];
      if (count + 1 == workers) count = workers;  // all before it lack it, too
    }
    if (has_all) return {};
  }
  std::set<std::string> names;
  for (const FunctionRef& each : host.functions) {
    const auto found = lacking.find(each->name);
    const std::size_t count = found == lacking.end() ? 0 : found->second;
    if (count == workers && (workers > 0 || aside != nullptr)) names.insert(each->name);
  }
  return names;
}

std::size_t JobHostManager::drop(JobHost& host, const std::set<std::string>& names) {
  if (names.empty()) return 0;
  const auto is_dropped = [&](const std::string& name) { return names.contains(name); };
  for (Worker* at = host.workers.front(); at != nullptr; at = host.workers.next(*at)) {
    std::erase_if(at->load_failures, [&](const auto& each) { return is_dropped(each.first); });
    InvocationRouter::remove_lacks(at->route, names);
  }
  std::erase_if(host.by_name, [&](const auto& each) { return is_dropped(each.first); });
  return std::erase_if(host.functions, [&](const FunctionRef& each) { return is_dropped(each->name); });
}

// The first good word on a function counts, so that its id stays what other workers were told; whether it is
// switched off is for the last to say, who has the newest settings.
void JobHostManager::merge(const Worker& worker, JobHost& host, const FunctionRef& function) {
  const auto [known, is_new] = host.by_name.try_emplace(function->name, function);
  if (is_new) {
    host.functions.push_back(function);
    for (Worker* at = host.workers.front(); at != nullptr; at = host.workers.next(*at)) {
      if (at == &worker) continue;
      at->load_failures.emplace_back(function->name, kNotRegistered);
      InvocationRouter::add_lack(at->route, at->load_failures.back());
    }
    return;
  }
  if (!function->status.is_ok()) return;
  FunctionRef better = function;
  if (known->second->status.is_ok()) {
    if (known->second->is_disabled == function->is_disabled) return;
    auto switched = std::make_shared<Function>(*known->second);
    switched->is_disabled = function->is_disabled;
    better = std::move(switched);
  }
  std::ranges::replace(host.functions, known->second, better);
  known->second = std::move(better);
}

}  // namespace windlass::runtime
