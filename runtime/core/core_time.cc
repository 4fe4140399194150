// What time does: invocations that wait too long, workers that fall silent, queues that stay full, JobHosts
// that nobody needs, utilization for the scheduler.
#include <algorithm>
#include <utility>

#include "protocol/base/mutant.h"
#include "runtime/core/health.h"
#include "runtime/core/parts.h"

namespace windlass::runtime {
namespace {

constexpr Duration kAlarmLateMax = seconds{5};

std::string late_in(Phase phase) {
  switch (phase) {
    case Phase::Init:
      return "it did not answer WorkerInitRequest in time";
    case Phase::Warmup:
      return "it did not answer WorkerWarmupRequest in time";
    case Phase::Reload:
      return "it did not answer FunctionEnvironmentReloadRequest in time";
    case Phase::Metadata:
      return "it did not answer FunctionsMetadataRequest in time";
    case Phase::Load:
      return "it did not answer its FunctionLoadRequests in time";
    case Phase::Terminating:
      return "it was drained and told to end";
    case Phase::None:
      break;
  }
  return "it did not answer in time";
}

void earliest(std::optional<Instant>& so_far, std::optional<Instant> other) {
  if (other && (!so_far || *other < *so_far)) so_far = other;
}

}  // namespace

// An alarm that comes late says that this process was suspended, and nothing of anybody else: whoever is
// without a connection has its time once more.
void RuntimeCore::Parts::count_anew(Instant now) {
  for (const auto& [id, worker] : registry.workers()) {
    if (worker->is_gone() || !worker->channel->is_detached) continue;
    worker->channel->detached_at = now;
    retime(*worker);
  }
}

void RuntimeCore::Parts::timeout(Instant now) {
  if (const auto due = next_timeout(); due && now - *due > kAlarmLateMax) count_anew(now);
  while (Tracked* const tracked = tracker.pop_due(now)) timed_out(*tracked, now);
  while (Channel* const channel = registry.pop_due_channel(now)) {
    close(*channel, "no StartStream came in time", false);
  }
  while (Worker* const worker = registry.pop_due_worker(now)) due_worker(*worker, now);
  while (JobHost* const host = hosts.pop_due(now)) due_host(*host, now);
  if (sweep_at && *sweep_at <= now) sweep(now);
  if (stop_until && *stop_until <= now) finish_stop(now);
}

void RuntimeCore::Parts::due_worker(Worker& worker, Instant now) {
  switch (due(worker, options, now)) {
    case Due::Nothing:
      break;
    case Due::Forget:
      if (const auto given_up = missing.find(worker.id); given_up != missing.end()) {
        JobHost* const host = hosts.find(given_up->second.signal.job_host);
        missing.erase(given_up);
        if (host != nullptr) drop_unregistered(*host, now);
      }
      return registry.forget(worker);
    case Due::Replace:
      return replace_failed(worker, now);
    case Due::Silent:
      ++worker.deadlines_exceeded;
      return lose(worker, Loss::Abandoned,
                  "not a word from it for " +
                      std::to_string(std::chrono::duration_cast<seconds>(now - worker.heard_at).count()) +
                      " s",
                  now);
    case Due::Away:
      return lose(
          worker, Loss::Abandoned,
          "its agent has been without a connection for " +
              std::to_string(std::chrono::duration_cast<seconds>(now - worker.channel->detached_at).count()) +
              " s",
          now);
    case Due::Phase: {
      const bool is_end = worker.phase == Phase::Terminating;
      Channel& channel = *worker.channel;
      if (!is_end) {
        ++worker.deadlines_exceeded;
        return lose(worker, Loss::Abandoned, late_in(worker.phase), now);
      }
      lose(worker, Loss::Left, late_in(Phase::Terminating), now);
      return close(channel, "drained", true);
    }
    case Due::Drained:
      if (worker.recycle_at && *worker.recycle_at <= now) {
        return lose(worker, Loss::TimedOut, std::string{worker.recycled_for}, now);
      }
      return lose(worker, Loss::Abandoned, "it did not finish its work in the time for draining", now);
    case Due::Blocked:
      note(Note::Kind::Backpressure, worker, "its queue stayed full");
      if (worker.state() == WorkerState::Draining) {
        worker.blocked_since.reset();  // it goes anyway
        break;
      }
      unhealthy(worker, "its queue stayed full", now);
      break;
    case Due::Probe:
      worker.probe_at = now + options.status_interval;
      if (worker.channel->is_blocked) break;  // it could not be sent
      if (!worker.probed_at) {
        worker.probed_at = now;
        ++worker.probes;
      }
      send(worker, StatusRequest{"status-" + std::to_string(worker.probes)});
      break;
  }
  retime(worker);
}

void RuntimeCore::Parts::due_host(JobHost& host, Instant now) {
  if (host.stop_at && *host.stop_at <= now) {
    host.stop_at.reset();
    // What still waits does so no longer than its own time; with the last one the JobHost ends.
    if (!host.has_workers() && host.invocations.empty()) return stop_job_host(host);
  }
  if (host.relieved_at && *host.relieved_at + options.relieved_for <= now) {
    host.relieved_at.reset();
    if (host.is_starved && host.pending_count() == 0 && host.router.free_slots() > 0) {
      host.is_starved = false;
      signals.push_back({Signal::Kind::SlotFree, host.key, {}, Urgency::Low, "slots are free again"});
    }
  }
  if (host.measure_at && *host.measure_at <= now) measure(host, now);
  retime(host);
}

void RuntimeCore::Parts::measure(JobHost& host, Instant now) {
  host.measure_at.reset();
  if (host.workers.empty()) {
    host.has_said_high = host.has_said_low = false;
    host.low_since.reset();
    return;
  }
  host.measure_at = now + options.utilization_interval;
  std::uint64_t slots = 0;
  for (Worker* at = host.workers.front(); at != nullptr; at = host.workers.next(*at)) {
    if (host.router.is_in_service(at->route)) slots += at->route.slots;
  }
  if (slots == 0) return;
  const double used = 1.0 - static_cast<double>(host.router.free_slots()) / static_cast<double>(slots);
  const bool is_high = used > options.utilization_high;
  if (is_high && !host.has_said_high) {
    signals.push_back({Signal::Kind::ScaleUp, host.key, {}, Urgency::Medium, "utilization is high"});
  }
  host.has_said_high = is_high;
  if (used >= options.utilization_low) {
    host.low_since.reset();
    host.has_said_low = false;
    return;
  }
  if (!host.low_since) host.low_since = now;
  if (host.has_said_low || now - *host.low_since < options.utilization_low_for) return;
  host.has_said_low = true;
  signals.push_back({Signal::Kind::ScaleDown, host.key, {}, Urgency::Low, "utilization has been low"});
}

void RuntimeCore::Parts::sweep(Instant now) {
  while (Tracked* const tracked = tracker.oldest(now - options.orphan_after)) {
    if (tracked->timer.is_set()) {
      tracker.moved(*tracked, now);  // its own time ends it, and may be longer than that
      continue;
    }
    Worker* const worker = tracked->state == Tracked::State::InFlight ? tracked->worker : nullptr;
    finish(*tracked, Cause::Orphaned, "nothing was heard of it for too long", now);
    if (worker != nullptr) slot_freed(*worker, now);
  }
  sweep_at.reset();
  if (tracker.size() > 0) sweep_at = now + options.sweep_interval;
}

std::optional<Instant> RuntimeCore::Parts::next_deadline_of(const Worker& worker) const {
  return next_deadline(worker, options);
}

void RuntimeCore::Parts::retime(JobHost& host) {
  std::optional<Instant> next = host.stop_at;
  if (host.relieved_at) earliest(next, *host.relieved_at + options.relieved_for);
  earliest(next, host.measure_at);
  hosts.set_timer(host, next);
}

std::optional<Instant> RuntimeCore::Parts::next_timeout() const {
  std::optional<Instant> next = tracker.next();
  earliest(next, registry.next());
  earliest(next, hosts.next());
  earliest(next, sweep_at);
  earliest(next, stop_until);
  return next;
}

}  // namespace windlass::runtime
