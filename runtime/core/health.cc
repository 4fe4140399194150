#include "runtime/core/health.h"

#include <algorithm>
#include <array>
#include <utility>

#include "protocol/base/mutant.h"

namespace windlass::runtime {
namespace {

using Deadline = std::pair<Due, std::optional<Instant>>;

// Gravest first.
std::array<Deadline, 7> deadlines(const Worker& worker, const RuntimeOptions& options) {
  if (worker.is_gone()) {
    return {Deadline{Due::Forget, worker.forget_at}, {}, {}, {}, {}, {}, {}};
  }
  const bool is_detached = worker.channel->is_detached;
  std::optional<Instant> silent;
  std::optional<Instant> phase = worker.phase_until;
  std::optional<Instant> blocked;
  std::optional<Instant> away;
  if (is_detached && !MUTANT(health_waits_for_ever)) away = worker.channel->detached_at + options.lost_after;
  if (worker.probe_at && !MUTANT(health_never_lost)) silent = worker.heard_at + options.status_lost;
  std::optional<Instant> drained = worker.drain_until;
  if (worker.recycle_at && (!drained || *worker.recycle_at < *drained)) drained = worker.recycle_at;
  // What it has to say waits with its session, and is worth more than a deadline.
  if (is_detached) phase.reset();
  if (is_detached && !MUTANT(health_drains_detached)) drained.reset();
  if (is_detached && !MUTANT(health_loses_detached)) silent.reset();
  if (worker.blocked_since && worker.state() != WorkerState::Unhealthy) {
    blocked = *worker.blocked_since + options.backpressure_max;
  }
  return {Deadline{Due::Silent, silent},
          {Due::Away, away},
          {Due::Phase, phase},
          {Due::Drained, drained},
          {Due::Replace, is_detached ? std::nullopt : worker.replace_at},
          {Due::Blocked, blocked},
          {Due::Probe, is_detached ? std::nullopt : worker.probe_at}};
}

}  // namespace

std::optional<Instant> next_deadline(const Worker& worker, const RuntimeOptions& options) {
  std::optional<Instant> next;
  for (const auto& [what, at] : deadlines(worker, options)) {
    if (at && (!next || *at < *next)) next = at;
  }
  return next;
}

Due due(const Worker& worker, const RuntimeOptions& options, Instant now) {
  for (const auto& [what, at] : deadlines(worker, options)) {
    if (at && *at <= now) return what;
  }
  return Due::Nothing;
}

}  // namespace windlass::runtime
