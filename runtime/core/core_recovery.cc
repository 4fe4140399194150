// What is done when something fails: a worker that is lost, unhealthy or drained, a JobHost that failed,
// memory that runs short, the end of the runtime itself.
#include <algorithm>
#include <utility>
#include <vector>

#include "protocol/base/mutant.h"
#include "runtime/core/parts.h"

namespace windlass::runtime {
namespace {

// Whether a caller still waits for anything that it runs.
bool is_awaited(const Worker& worker) {
  for (const Tracked* at = worker.in_flight.front(); at != nullptr; at = worker.in_flight.next(*at)) {
    if (!at->is_told) return true;
  }
  return false;
}

}  // namespace

void RuntimeCore::Parts::lose(Worker& worker, Loss loss, const std::string& reason, Instant now) {
  Channel& channel = *worker.channel;
  JobHost* target = worker.pending_switch != nullptr ? worker.pending_switch->target : nullptr;
  JobHost* const host = worker.host;
  const bool was_draining = worker.state() == WorkerState::Draining;
  const bool wants_replacement = worker.wants_replacement;
  const bool has_application = worker.application.has_value() || target != nullptr;
  const bool is_given_up = loss == Loss::Abandoned || loss == Loss::TimedOut;
  registry.transition(worker, is_given_up ? WorkerState::Abandoned : WorkerState::Disconnected);
  end_switch(worker, now);  // its last words count
  const bool has_work = !worker.in_flight.empty();
  channel.unsent.clear();  // it was for this worker
  if (is_given_up) {
    terminate(worker, reason);
    close(channel, reason, false);
  }
  note(is_given_up ? Note::Kind::WorkerAbandoned : Note::Kind::WorkerDisconnected, worker, reason);
  if (host != nullptr) refresh_route(worker, now);
  hosts.route(worker, nullptr);
  registry.disconnect(worker);
  while (!worker.in_flight.empty()) {
    reroute_or_fail(*worker.in_flight.front(), Cause::WorkerLost,
                    "worker " + worker.id.value() + ": " + reason, now);
  }
  worker.late.clear();
  worker.loading.clear();
  worker.phase = Phase::None;
  worker.phase_until.reset();
  worker.forget_at = now + options.abandoned_keep;
  worker.lost_at = now;
  worker.lost_because = reason;
  retime(worker);
  JobHost* const missed = target != nullptr ? target : host;
  if (has_application && missed != nullptr) channel.lost_host = missed->key;
  const bool is_missed = was_draining ? wants_replacement : loss != Loss::Left || has_work;
  if (has_application && is_missed && !is_stopping && missed != nullptr) {
    if (!missed->has_workers()) missed->stop_at = now + options.pending_timeout;  // for the next one
    const bool is_low = loss == Loss::TimedOut || loss == Loss::Ended || was_draining;
    const Urgency otherwise = is_low ? Urgency::Low : Urgency::Medium;
    if (!worker.has_asked_replacement) ask_replacement(worker, channel, *missed, otherwise, reason, now);
    retime(*missed);
  }
  for (JobHost* const left : {host, target != host ? target : nullptr}) {
    if (left == nullptr) continue;
    drop_unregistered(*left, now);
    stop_if_unused(*left, now);
  }
}

void RuntimeCore::Parts::reroute_or_fail(Tracked& tracked, Cause cause, const std::string& reason,
                                         Instant now) {
  const bool is_harmless =
      tracked.invocation.is_idempotent || (tracked.function != nullptr && tracked.function->may_run_again());
  const bool may_go_on =
      !tracked.is_unwanted && (tracked.is_unsent || (is_harmless && !tracked.invocation.is_once));
  const bool is_mutant = MUTANT(recovery_loses_unsent) && tracked.is_unsent;
  if (!may_go_on || is_stopping || tracked.reroutes + 1 >= options.tries_max) {
    return finish(tracked, cause, reason, now);
  }
  leave_worker(tracked, true);
  if (is_mutant) return tracker.set_timer(tracked, std::nullopt);
  ++tracked.reroutes;
  tracked.give_up_at = now + options.pending_timeout;
  place(tracked, now);
}

void RuntimeCore::Parts::unhealthy(Worker& worker, const std::string& reason, Instant now) {
  if (worker.state() == WorkerState::Unhealthy) return;
  registry.transition(worker, WorkerState::Unhealthy);
  note(Note::Kind::WorkerUnhealthy, worker, reason);
  refresh_route(worker, now);
  reroute_unsent(worker, reason, now);
  retime(worker);
}

// To where it got, unless something is still wrong with it.
void RuntimeCore::Parts::recover(Worker& worker, Instant now) {
  if (worker.state() != WorkerState::Unhealthy || worker.is_broken || worker.blocked_since) return;
  registry.transition(worker, worker.recovers_to);
  note(Note::Kind::WorkerRecovered, worker);
  refresh_route(worker, now);
}

void RuntimeCore::Parts::reroute_unsent(Worker& worker, const std::string& reason, Instant now) {
  std::vector<Tracked*> unsent;
  for (Tracked* at = worker.in_flight.front(); at != nullptr; at = worker.in_flight.next(*at)) {
    if (at->is_unsent) unsent.push_back(at);
  }
  for (Tracked* const tracked : unsent) reroute_or_fail(*tracked, Cause::WorkerLost, reason, now);
  if (worker.is_gone()) return;
  std::erase_if(worker.channel->unsent, [](const HostMessage& message) {
    return std::holds_alternative<InvocationRequest>(message);
  });
}

void RuntimeCore::Parts::drain(Worker& worker, std::string_view reason, Drain kind, Instant now) {
  const bool is_for_memory = kind == Drain::StayForMemory;
  if (kind == Drain::Stay || is_for_memory) {
    worker.stays_down = true;
    worker.is_down_for_memory = is_for_memory;  // an order counts for more than what came before it
    worker.wants_replacement = false;
    if (worker.phase == Phase::Terminating) send_stay_down(worker, reason);
  }
  if (worker.state() == WorkerState::Draining) return;
  if (worker.host == nullptr) return lose(worker, Loss::Abandoned, std::string{reason}, now);
  if (worker.pending_switch != nullptr || worker.answer_due) {
    fail_switch(worker, "it is drained: " + std::string{reason}, now);
  }
  registry.transition(worker, WorkerState::Draining);
  worker.drained_for = reason;
  worker.wants_replacement = kind == Drain::Replace;
  worker.drain_until = now + options.drain_timeout;
  worker.phase = Phase::None;
  worker.phase_until.reset();
  note(Note::Kind::WorkerDraining, worker, std::string{reason});
  refresh_route(worker, now);
  reroute_unsent(worker, std::string{reason}, now);
  retime(worker);
  drained(worker, now);
}

// One of its invocations ran out of time, so it goes; but one caller must not hurt another. It gets nothing
// new, its successor is asked for, and what else it runs has a grace to end.
void RuntimeCore::Parts::recycle(Worker& worker, const std::string& reason, Instant now) {
  if (worker.recycle_at) return drained(worker, now);
  if (!is_awaited(worker) || worker.host == nullptr || MUTANT(timeout_hurts_others)) {
    return lose(worker, Loss::TimedOut, reason, now);
  }
  worker.recycle_at = now + options.timeout_grace;
  worker.recycled_for = reason;
  drain(worker, reason, Drain::Replace, now);
  if (worker.is_gone()) return;
  const bool is_missed = worker.wants_replacement && worker.application && !is_stopping;
  if (is_missed && !std::exchange(worker.has_asked_replacement, true)) {
    ask_replacement(worker, *worker.channel, *worker.host, Urgency::Low, reason, now);
  }
  retime(worker);
}

void RuntimeCore::Parts::drained(Worker& worker, Instant now) {
  if (worker.phase == Phase::Terminating) return;
  if (worker.recycle_at && !is_awaited(worker)) {
    worker.recycle_at = now;  // in the next turn: whoever called may still be at work on it
    return retime(worker);
  }
  if (!worker.in_flight.empty() || !worker.late.empty()) return;
  terminate(worker, worker.drained_for);
  worker.drain_until.reset();
  worker.phase = Phase::Terminating;  // a worker that heeds it closes its stream; else it is closed from here
  worker.phase_until = now + options.terminate_grace;
  retime(worker);
}

void RuntimeCore::Parts::send_stay_down(Worker& worker, std::string_view reason) {
  if (worker.stays_down && worker.channel->facts.is_agent) {
    send(worker, StayDown{std::string{reason}, worker.is_down_for_memory});
  }
}

void RuntimeCore::Parts::terminate(Worker& worker, std::string_view reason) {
  send_stay_down(worker, reason);
  if (worker.has("HandlesWorkerTerminateMessage") || worker.channel->facts.is_agent) {
    send(worker, Terminate{options.terminate_grace});
  }
}

void RuntimeCore::Parts::job_host_failed(JobHost& host, std::string_view reason, Instant now) {
  if (host.state != JobHostState::Running) return;
  // Failures long apart are not one that keeps coming back.
  if (host.failed_at && now - *host.failed_at > options.abandoned_keep) host.recreations = 0;
  host.failed_at = now;
  host.state = JobHostState::Failed;
  host.failure = std::string{reason};
  note(Note::Kind::JobHostFailed, host, host.failure);
  std::vector<Worker*> workers;
  for (Worker* at = host.workers.front(); at != nullptr; at = host.workers.next(*at)) workers.push_back(at);
  for (Worker* const worker : workers) {
    if (worker->state() != WorkerState::Draining) unhealthy(*worker, host.failure, now);
  }
  while (!host.invocations.empty())
    finish(*host.invocations.front(), Cause::JobHostFailed, host.failure, now);
  if (++host.recreations <= options.job_host_recreations_max) return recreate(host, now);
  for (Worker* const worker : workers) {
    if (!worker->is_gone())
      lose(*worker, Loss::Abandoned, "its JobHost failed too often: " + host.failure, now);
  }
}

// The metadata is known, so all there is to do is to run again.
void RuntimeCore::Parts::recreate(JobHost& host, Instant now) {
  host.state = JobHostState::Running;
  host.failure.clear();
  note(Note::Kind::JobHostCreated, host, "recreated");
  std::vector<Worker*> workers;
  for (Worker* at = host.workers.front(); at != nullptr; at = host.workers.next(*at)) workers.push_back(at);
  for (Worker* const worker : workers) {
    recover(*worker, now);
    refresh_route(*worker, now);
  }
}

void RuntimeCore::Parts::memory(double utilization, Instant now) {
  memory_utilization = utilization;
  const MemoryPressure before = std::exchange(pressure, pressure_of(utilization, pressure, options));
  if (before != pressure) {
    Note said{Note::Kind::MemoryPressure};
    said.reason = pressure == MemoryPressure::Critical   ? "critical: no invocations are taken"
                  : pressure == MemoryPressure::Elevated ? "elevated"
                                                         : "normal";
    notes.push_back(std::move(said));
    if (pressure == MemoryPressure::Elevated && before == MemoryPressure::Normal) {
      signals.push_back({Signal::Kind::ScaleDown, {}, {}, Urgency::Low, "memory pressure is elevated"});
    }
  }
  if (pressure != MemoryPressure::Critical) return;
  if (memory_drained_at && now - *memory_drained_at < options.memory_interval) return;
  memory_drained_at = now;
  if (before == MemoryPressure::Critical) drain_oldest(now);  // the pause alone did not help
}

void RuntimeCore::Parts::drain_oldest(Instant now) {
  std::vector<Worker*> oldest;
  std::size_t draining = 0;
  for (const auto& [id, worker] : registry.workers()) {
    const WorkerState state = worker->state();
    if (state == WorkerState::Ready || state == WorkerState::Placeholder) oldest.push_back(worker.get());
    if (state == WorkerState::Draining) ++draining;
  }
  // An application's only worker last: each drain may make one that.
  const auto rank = [](const Worker* worker) {
    const bool is_only = worker->application && worker->host->router.workers() == 1;
    return std::pair{is_only, worker->connected_at};
  };
  for (; !oldest.empty() && draining < options.memory_drain_workers; ++draining) {
    const auto next = std::ranges::min_element(oldest, {}, rank);
    Worker& worker = **next;
    oldest.erase(next);
    drain(worker, "memory pressure is critical", Drain::StayForMemory, now);
  }
}

void RuntimeCore::Parts::stop(Instant now) {
  if (std::exchange(is_stopping, true)) return;
  stop_until = now + options.drain_timeout;
  std::vector<Tracked*> waiting;
  for (const auto& [key, host] : hosts.all()) {
    for (Tracked* at = host->invocations.front(); at != nullptr; at = host->invocations.next(*at)) {
      if (at->state != Tracked::State::InFlight) waiting.push_back(at);
    }
  }
  for (Tracked* const tracked : waiting) finish(*tracked, Cause::Stopping, "this runtime is stopping", now);
  if (tracker.size() == 0) finish_stop(now);
}

void RuntimeCore::Parts::finish_stop(Instant now) {
  stop_until.reset();
  std::vector<Worker*> workers;
  for (const auto& [id, worker] : registry.workers()) {
    if (!worker->is_gone()) workers.push_back(worker.get());
  }
  for (Worker* const worker : workers) end_switch(*worker, now);  // answers that it holds count
  for (const auto& [key, host] : hosts.all()) {
    while (!host->invocations.empty()) {
      finish(*host->invocations.front(), Cause::Stopping, "this runtime stopped before it was answered", now);
    }
  }
  for (Worker* const worker : workers) {
    Channel& channel = *worker->channel;
    lose(*worker, Loss::Left, "this runtime is stopping", now);
    close(channel, "this runtime is stopping", true);
  }
  // And those of agents without a worker, and of nobody yet.
  for (Channel* const channel : registry.channels()) close(*channel, "this runtime is stopping", true);
}

void RuntimeCore::Parts::stop_if_unused(JobHost& host, Instant now) {
  if (host.has_workers()) return;
  if (host.stop_at && *host.stop_at > now) return;
  if (!host.invocations.empty()) return;  // with the last of them it ends
  // Its next worker is on its way, and callers may wait for it.
  const bool is_expected = !host.stop_at && is_assigned(host.key) && !is_stopping;
  host.stop_at = is_expected ? now + options.pending_timeout : now;
  retime(host);
}

void RuntimeCore::Parts::stop_job_host(JobHost& host) {
  host.state = JobHostState::Stopping;
  note(Note::Kind::JobHostStopped, host);
  hosts.erase(host);
}

}  // namespace windlass::runtime
