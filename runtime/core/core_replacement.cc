// Replacement of lost workers: urgency, repeated Replace signals, ended processes, load failures.
#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "protocol/base/mutant.h"
#include "runtime/core/parts.h"

namespace windlass::runtime {
namespace {

// Who brings a worker: its agent, whose workers are named after it. One that dialled in brings itself.
std::string_view bringer(const WorkerId& worker) {
  return std::string_view{worker.value()}.substr(0, worker.value().rfind('.'));
}

bool could_not_load(const Worker& worker, std::string_view function) {
  return std::ranges::any_of(worker.load_failures, [&](const auto& each) { return each.first == function; });
}

}  // namespace

std::string_view to_string(Urgency urgency) {
  switch (urgency) {
    case Urgency::Low:
      return "low";
    case Urgency::Medium:
      return "medium";
    case Urgency::High:
      return "high";
  }
  return "";
}

// Not those that drain, are unhealthy or only wait for a resume.
std::size_t RuntimeCore::Parts::active_workers(const JobHost& host) {
  std::size_t count = 0;
  for (Worker* at = host.workers.front(); at != nullptr; at = host.workers.next(*at)) {
    if (at->state() == WorkerState::Ready && !at->is_gone() && !at->channel->is_detached) ++count;
  }
  return count;
}

Urgency RuntimeCore::Parts::urgency_of(const JobHost& host, Urgency otherwise) {
  return active_workers(host) == 0 ? Urgency::High : otherwise;
}

void RuntimeCore::Parts::ask_replacement(Signal signal, Instant now) {
  if (missing.size() >= options.missing_max && !missing.contains(signal.worker)) {
    missing.erase(std::ranges::min_element(missing, {}, [](const auto& each) { return each.second.since; }));
  }
  missing.insert_or_assign(signal.worker, Missing{signal, now});
  signals.push_back(std::move(signal));
}

void RuntimeCore::Parts::ask_replacement(const Worker& worker, const Channel& channel, const JobHost& host,
                                         Urgency otherwise, const std::string& reason, Instant now) {
  const bool has_agent = channel.facts.is_agent && !channel.is_over && !channel.is_detached;
  ask_replacement({Signal::Kind::Replace, host.key, worker.id, urgency_of(host, otherwise), reason,
                   has_agent && !worker.stays_down},
                  now);
}

void RuntimeCore::Parts::came(const Worker& worker) {
  const std::string& application = worker.host->key.application_id;
  auto found = missing.end();
  for (auto at = missing.begin(); at != missing.end(); ++at) {
    if (at->second.signal.job_host.application_id != application) continue;
    const bool is_same = bringer(at->first) == bringer(worker.id);
    if (found == missing.end() || is_same || at->second.since < found->second.since) found = at;
    if (is_same) break;
  }
  if (found != missing.end()) missing.erase(found);
}

// Why nobody can run it: those that could not load it count, and those that may yet do better.
const std::string* RuntimeCore::Parts::load_failure(const JobHost& host, std::string_view function) {
  const std::string* const reason = host.router.load_failure(function);
  if (reason == nullptr || !host.joining.empty()) return nullptr;
  if (MUTANT(load_failure_spreads)) return reason;
  for (Worker* at = host.workers.front(); at != nullptr; at = host.workers.next(*at)) {
    const bool is_leaving = at->state() == WorkerState::Draining || at->is_broken;
    const bool is_out = at->route.pool != nullptr && !host.router.is_in_service(at->route);
    if (!is_leaving && !is_out && !could_not_load(*at, function)) return nullptr;
  }
  return reason;
}

// A function that it could not load and another worker of its version could: then it is not the code.
const std::pair<std::string, std::string>* RuntimeCore::Parts::own_failure(const Worker& worker) {
  const JobHost& host = *worker.host;
  for (const auto& failure : worker.load_failures) {
    for (Worker* at = host.workers.front(); at != nullptr; at = host.workers.next(*at)) {
      const bool is_peer = at->state() == WorkerState::Ready && at->application == worker.application;
      if (is_peer && !could_not_load(*at, failure.first)) return &failure;
    }
  }
  return nullptr;
}

void RuntimeCore::Parts::judge_loads(JobHost& host, Instant now) {
  for (Worker* at = host.workers.front(); at != nullptr; at = host.workers.next(*at)) {
    if (at->state() != WorkerState::Ready || at->replace_at) continue;
    if (at->load_failures.empty()) {
      host.load_retries.erase(std::string{bringer(at->id)});
      continue;
    }
    if (own_failure(*at) == nullptr) continue;
    const auto known = host.load_retries.find(bringer(at->id));
    const std::uint32_t retries = known == host.load_retries.end() ? 0 : std::min(known->second, 16U);
    at->replace_at = now + std::min(options.load_retry_first * (1U << retries), options.load_retry_cap);
    retime(*at);
  }
}

// Functions that nobody has any more, unless a worker that is on its way may have them.
void RuntimeCore::Parts::drop_unregistered(JobHost& host, Instant now) {
  if (!host.joining.empty()) return;
  const auto is_of_host = [&](const auto& each) { return each.second.signal.job_host == host.key; };
  if (std::ranges::any_of(missing, is_of_host)) return;
  const std::size_t dropped = JobHostManager::drop_unregistered(host);
  if (dropped == 0) return;
  note(Note::Kind::FunctionsDropped, host,
       std::to_string(dropped) + " that none of its workers registers any more");
  dispatch(host, now);
}

void RuntimeCore::Parts::replace_failed(Worker& worker, Instant now) {
  worker.replace_at.reset();
  const auto* const failure =
      worker.host != nullptr && worker.state() == WorkerState::Ready ? own_failure(worker) : nullptr;
  if (failure == nullptr) return retime(worker);
  auto& retries = worker.host->load_retries;
  if (retries.size() >= options.workers_max) retries.clear();
  ++retries[std::string{bringer(worker.id)}];
  const std::string reason = "it could not load '" + failure->first +
                             "', which other workers of its version can: " + failure->second;
  drain(worker, reason, Drain::Replace, now);
}

void RuntimeCore::Parts::on(Channel& channel, const WorkerEnded& ended, Instant now) {
  Worker* const worker = channel.worker;
  if (MUTANT(ended_is_ignored)) return;
  if (worker != nullptr && worker->id != ended.worker) return;  // of one before it
  if (worker != nullptr) {
    const std::set<InvocationId> running(ended.running.begin(), ended.running.end());
    for (Tracked* at = worker->in_flight.front(); at != nullptr; at = worker->in_flight.next(*at)) {
      const bool has_reached = running.contains(at->invocation.id) && !MUTANT(ended_reroutes_running);
      // What flows beside one that is read once went to this agent, whatever its worker saw of it.
      if (!has_reached && !at->is_answered && !at->invocation.is_once) at->is_unsent = true;
    }
    lose(*worker, Loss::Ended, ended.reason, now);
    if (!channel.facts.is_agent) return close(channel, ended.reason, false);
  }
  if (ended.failures < options.starts_failed_max || !channel.lost_host || is_stopping) return;
  JobHost* const host = hosts.find(*channel.lost_host);
  const std::string reason = "its worker cannot be started: " + ended.reason;
  if (ended.failures == options.starts_failed_max) {
    const Urgency urgency = host == nullptr ? Urgency::High : urgency_of(*host, Urgency::Medium);
    ask_replacement({Signal::Kind::Replace, *channel.lost_host, ended.worker, urgency, reason}, now);
  }
  if (host != nullptr && !host->has_workers()) fail_waiting(*host, reason, now);
}

// Until a worker comes nobody waits for one.
void RuntimeCore::Parts::fail_waiting(JobHost& host, const std::string& reason, Instant now) {
  host.outage = reason;
  std::vector<Tracked*> waiting;
  for (Tracked* at = host.pending.front(); at != nullptr; at = host.pending.next(*at)) waiting.push_back(at);
  for (Tracked* const tracked : waiting) finish(*tracked, Cause::NoWorker, reason, now);
}

}  // namespace windlass::runtime
