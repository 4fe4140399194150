// One invocation from submission to its outcome: placed on a worker or waiting in order, tried again, timed
// out, ended. It leaves the tracker in finish() and nowhere else, with exactly one outcome.
#include <algorithm>
#include <utility>

#include "protocol/base/mutant.h"
#include "runtime/core/parts.h"

namespace windlass::runtime {
namespace {

constexpr Duration kPatienceMax = seconds{24 * 3600};

// By submission: what comes back to a queue takes the place it had.
template <class List>
void insert_in_order(List& list, Tracked& tracked) {
  Tracked* place = list.back();
  while (place != nullptr && place->number > tracked.number) place = List::previous(*place);
  list.insert_after(place, tracked);
}

}  // namespace

Result<Done> RuntimeCore::Parts::submit(Invocation invocation, Instant now) {
  const auto refused = [](ErrorCode code, std::string reason) {
    return Error{code, Blame::Local, std::move(reason)};
  };
  if (is_stopping) return refused(ErrorCode::SessionDraining, "this runtime is stopping; try another");
  if (pressure == MemoryPressure::Critical) {
    return refused(ErrorCode::LimitCapacity,
                   "this runtime is short of memory and takes no invocations for now");
  }
  JobHost* const host = hosts.find(invocation.job_host);
  if (host == nullptr || invocation.job_host == placeholder_job_host()) {
    return refused(ErrorCode::CmdUnknown, "no worker here holds " + invocation.job_host.text());
  }
  if (host->state == JobHostState::Running && !host->by_name.contains(invocation.function)) {
    return refused(ErrorCode::CmdUnknown,
                   host->key.text() + " has no function '" + invocation.function + "'");
  }
  if (tracker.find(invocation.id) != nullptr) {
    return refused(ErrorCode::ProtoState, "invocation '" + invocation.id.value() + "' is under way already");
  }
  if (tracker.is_full()) {
    return refused(ErrorCode::LimitCapacity, "this runtime has tracked_max invocations under way");
  }
  const std::size_t waiting = host->pending_count();
  if (waiting >= options.pending_max && (waiting > 0 || host->router.free_slots() == 0)) {
    starved(*host, "its queue is full");
    return refused(ErrorCode::LimitCapacity, host->key.text() + " has no free slot and its queue is full");
  }
  Tracked& tracked = tracker.add(std::move(invocation), now);
  tracked.host = host;
  host->invocations.push_back(tracked);
  if (const auto& patience = tracked.invocation.patience) {
    tracked.patience_until = now + std::clamp(*patience, Duration{1}, kPatienceMax);
  }
  if (!sweep_at) sweep_at = now + options.sweep_interval;
  if (host->state == JobHostState::Failed) {
    finish(tracked, Cause::JobHostFailed, host->failure, now);
    return Done{};
  }
  tracked.give_up_at = now + options.pending_timeout;
  place(tracked, now);
  return Done{};
}

void RuntimeCore::Parts::place(Tracked& tracked, Instant now) {
  // Who came earlier goes first.
  JobHost& host = *tracked.host;
  if (!host.outage.empty() && !host.has_workers()) {
    return finish(tracked, Cause::NoWorker, host.outage, now);
  }
  if (host.state == JobHostState::Running) {
    if (!resolve(tracked, now)) return;
    if (host.pending.empty() && try_send(tracked, now)) return;
  }
  if (tracked.pending.is_linked) return;  // with its worker
  wait(tracked, nullptr, now);
  if (host.state == JobHostState::Running && host.router.free_slots() > 0) dispatch(host, now);
}

// Ends what cannot run before it reaches a worker.
bool RuntimeCore::Parts::resolve(Tracked& tracked, Instant now) {
  JobHost& host = *tracked.host;
  const std::string& name = tracked.invocation.function;
  const auto known = host.by_name.find(name);
  if (known == host.by_name.end()) {
    finish(tracked, Cause::UnknownFunction, host.key.text() + " has no function '" + name + "'", now);
    return false;
  }
  tracked.function = known->second;
  if (tracked.function->is_disabled) {
    finish(tracked, Cause::UnknownFunction, "function '" + name + "' is disabled", now);
    return false;
  }
  if (const std::string* const failed = load_failure(host, name)) {
    finish(tracked, Cause::LoadFailed, "function '" + name + "' could not be loaded: " + *failed, now);
    return false;
  }
  return true;
}

bool RuntimeCore::Parts::try_send(Tracked& tracked, Instant now) {
  JobHost& host = *tracked.host;
  const Invocation& invocation = tracked.invocation;
  RouteNode* node = nullptr;
  if (invocation.sticky_key.empty()) {
    node = host.router.select(invocation.function);
  } else {
    node = host.router.select_sticky(invocation.sticky_key, invocation.function);
    if (node != nullptr && (node->pool == nullptr || node->free() == 0)) {
      wait(tracked, node->owner, now);
      return false;
    }
  }
  if (node == nullptr) return false;
  send_to(*node->owner, tracked, now);
  return true;
}

void RuntimeCore::Parts::wait(Tracked& tracked, Worker* worker, Instant now) {
  if (tracked.pending.is_linked) leave_queue(tracked);
  JobHost& host = *tracked.host;
  tracked.state = Tracked::State::Pending;
  tracked.worker = worker;
  if (worker != nullptr) {
    insert_in_order(worker->waiting, tracked);
    ++host.waiting_count;
  } else {
    insert_in_order(host.pending, tracked);
  }
  tracker.moved(tracked, now);
  set_due(tracked, tracked.give_up_at);
  if (host.state == JobHostState::Running && (worker != nullptr || host.router.free_slots() == 0)) {
    starved(host, host.router.workers() == 0 ? "no worker is ready" : "every slot is taken");
  }
}

void RuntimeCore::Parts::leave_queue(Tracked& tracked) {
  if (!tracked.pending.is_linked) return;
  if (tracked.worker == nullptr) return tracked.host->pending.erase(tracked);
  tracked.worker->waiting.erase(tracked);
  --tracked.host->waiting_count;
  tracked.worker = nullptr;
}

void RuntimeCore::Parts::send_to(Worker& worker, Tracked& tracked, Instant now) {
  leave_queue(tracked);
  tracked.state = Tracked::State::InFlight;
  tracked.worker = &worker;
  tracked.last_worker = worker.id;
  tracked.is_unsent = true;
  tracked.is_answered = false;
  worker.in_flight.push_back(tracked);
  ++tracked.host->in_flight;
  if (!MUTANT(router_overbooks) || !random.one_in(4)) InvocationRouter::take(worker.route);
  tracker.moved(tracked, now);
  const Duration wanted = tracked.invocation.timeout.value_or(options.invocation_timeout);
  set_due(tracked, now + std::clamp(wanted, Duration{1}, options.invocation_timeout_max));
  InvocationRequest request{tracked.invocation.id, tracked.function->id, tracked.invocation.body};
  if (tracked.function->has_retry) {
    request.retry_count = tracked.retries;
    request.retries_max = tracked.function->retry.retries_max;
    request.last_failure = tracked.last_failure;
  }
  request.owner = tracked.invocation.owner;
  send(worker, std::move(request));
}

// Its slot is free again, except when the worker may still be running it.
void RuntimeCore::Parts::leave_worker(Tracked& tracked, bool is_late) {
  if (!tracked.of_worker.is_linked) return;
  Worker& worker = *std::exchange(tracked.worker, nullptr);
  worker.in_flight.erase(tracked);
  --tracked.host->in_flight;
  if (is_late && !tracked.is_unsent) ++worker.abandoned;
  if (is_late && !tracked.is_unsent) {
    worker.late.insert(tracked.invocation.id);
  } else if (worker.route.taken > 0) {
    InvocationRouter::release(worker.route);
  }
  tracked.is_unsent = false;
}

void RuntimeCore::Parts::dispatch(JobHost& host, Instant now) {
  if (host.state != JobHostState::Running) return;
  Tracked* next = host.pending.front();
  while (next != nullptr && host.router.free_slots() > 0) {
    Tracked& tracked = *std::exchange(next, host.pending.next(*next));
    if (resolve(tracked, now)) try_send(tracked, now);
  }
  if (host.pending_count() == 0 && host.router.free_slots() > 0) relieved(host, now);
}

void RuntimeCore::Parts::slot_freed(Worker& worker, Instant now) {
  if (worker.state() == WorkerState::Draining) return drained(worker, now);
  if (worker.host == nullptr) return;
  JobHost& host = *worker.host;
  const auto serve = [&](bool in_order) {
    while (worker.route.pool != nullptr && worker.route.free() > 0 && !worker.waiting.empty()) {
      Tracked& tracked = *worker.waiting.front();
      if (in_order && !host.pending.empty() && host.pending.front()->number < tracked.number) return;
      if (resolve(tracked, now)) send_to(worker, tracked, now);
    }
  };
  serve(true);
  dispatch(host, now);
  serve(false);
}

void RuntimeCore::Parts::on(Worker& worker, InvocationResponse response, Instant now) {
  Tracked* const tracked = tracker.find(response.invocation);
  const bool is_ours = tracked != nullptr && tracked->worker == &worker &&
                       tracked->state == Tracked::State::InFlight && !tracked->is_unsent;
  if (!is_ours) {
    const bool is_late = worker.late.erase(response.invocation) > 0;
    note_unknown(
        worker, response.invocation,
        is_late ? "the answer came after the invocation had ended" : "no such invocation is under way", now);
    if (!is_late) return;
    if (worker.route.taken > 0) InvocationRouter::release(worker.route);
    return slot_freed(worker, now);
  }
  worker.consecutive_timeouts = 0;
  ++(response.result.is_ok() ? worker.done : worker.failed);
  leave_worker(*tracked, false);
  const bool is_retry = response.result.status == RpcStatus::Failure && !is_stopping &&
                        !tracked->is_unwanted && !tracked->invocation.is_once &&
                        is_retried(*tracked->function, tracked->retries);
  if (is_retry) {
    retry(*tracked, response.result.reason, now);
  } else {
    const Cause cause = response.result.is_ok()                          ? Cause::None
                        : response.result.status == RpcStatus::Cancelled ? Cause::Cancelled
                                                                         : Cause::FunctionFailed;
    std::string reason;
    if (cause == Cause::Cancelled) reason = "the function was cancelled";
    if (cause == Cause::FunctionFailed) {
      reason = response.result.reason.empty() ? "the function failed" : response.result.reason;
    }
    tracked->result = std::move(response.result);
    tracked->body = std::move(response.body);
    finish(*tracked, cause, std::move(reason), now);
    if (MUTANT(outcome_twice) && !outcomes.empty() && random.one_in(16)) outcomes.push_back(outcomes.back());
  }
  slot_freed(worker, now);
}

void RuntimeCore::Parts::retry(Tracked& tracked, const std::string& reason, Instant now) {
  ++tracked.retries;
  tracked.last_failure = reason;
  tracked.state = Tracked::State::RetryDelay;
  tracker.moved(tracked, now);
  set_due(tracked, now + retry_delay(tracked.function->retry, tracked.retries, random));
  Note retried{Note::Kind::InvocationRetried, tracked.last_worker};
  retried.invocation = tracked.invocation.id;
  retried.function = tracked.invocation.function;
  retried.reason = reason;
  notes.push_back(std::move(retried));
}

// What comes first: the time for what it does now, or the end of its caller's patience.
void RuntimeCore::Parts::set_due(Tracked& tracked, std::optional<Instant> at) {
  tracked.due = at;
  const bool is_waited_for = tracked.patience_until && !tracked.is_told;
  if (is_waited_for && (!at || *tracked.patience_until < *at)) at = tracked.patience_until;
  tracker.set_timer(tracked, at);
}

// Its caller waits no longer. A worker that has it is told, if it can be, and is neither blamed nor hurt: the
// slot stays taken until the function ends, and only the function's own time recycles the worker.
void RuntimeCore::Parts::give_up(Tracked& tracked, Instant now) {
  const bool is_in_flight = tracked.state == Tracked::State::InFlight;
  Worker* const worker = is_in_flight ? tracked.worker : nullptr;
  if (worker == nullptr || tracked.is_unsent) {
    finish(tracked, Cause::CallerLeft, "its caller waited no longer; it had not reached a worker", now);
    if (worker != nullptr) slot_freed(*worker, now);
    return;
  }
  const bool is_heeded = !tracked.is_answered && worker->has("HandlesInvocationCancelMessage");
  if (is_heeded) send(*worker, InvocationCancel{tracked.invocation.id, options.terminate_grace});
  say_outcome(tracked, Cause::CallerLeft,
              is_heeded ? "its caller waited no longer; the function was asked to stop"
                        : "its caller waited no longer; the function runs on to its end",
              now);
  tracked.is_told = tracked.is_unwanted = true;
  if (MUTANT(patience_recycles)) return lose(*worker, Loss::TimedOut, "a caller waited no longer", now);
  set_due(tracked, tracked.due);
}

void RuntimeCore::Parts::finish(Tracked& tracked, Cause cause, std::string reason, Instant now) {
  leave_queue(tracked);
  leave_worker(tracked, true);
  if (!tracked.is_told) say_outcome(tracked, cause, std::move(reason), now);
  JobHost& host = *tracked.host;
  host.invocations.erase(tracked);
  tracker.remove(tracked);
  if (stop_until && tracker.size() == 0) stop_until = now;  // nothing left to wait for
  if (host.invocations.empty() && !host.has_workers() && !host.stop_at) {
    host.stop_at = now;  // not at once: a caller may be at work on it
    retime(host);
  }
}

void RuntimeCore::Parts::say_outcome(Tracked& tracked, Cause cause, std::string reason, Instant now) {
  Outcome outcome;
  outcome.id = tracked.invocation.id;
  outcome.owner = tracked.invocation.owner;
  outcome.settlement = settlement_of(cause, tracked.invocation.delivery_count, options.delivery_max);
  outcome.cause = cause;
  outcome.reason = std::move(reason);
  outcome.result = std::move(tracked.result);
  outcome.body = std::move(tracked.body);
  outcome.tries = tracked.tries;
  outcome.worker = tracked.last_worker;
  outcome.took = now - tracked.submitted_at;
  outcomes.push_back(std::move(outcome));
  JobHost& host = *tracked.host;
  const bool is_answered = cause == Cause::None || cause == Cause::FunctionFailed;
  ++(cause == Cause::None ? host.done : is_answered ? host.failed : host.abandoned);
}

void RuntimeCore::Parts::timed_out(Tracked& tracked, Instant now) {
  if (!tracked.due || *tracked.due > now) return give_up(tracked, now);
  switch (tracked.state) {
    case Tracked::State::Pending: {
      const bool is_lonely = tracked.host->router.workers() == 0;
      return finish(tracked, is_lonely ? Cause::NoWorker : Cause::Overloaded,
                    is_lonely ? "no worker became ready in time" : "no slot became free in time", now);
    }
    case Tracked::State::RetryDelay:
      tracker.moved(tracked, now);
      tracked.give_up_at = now + options.pending_timeout;
      return place(tracked, now);
    case Tracked::State::InFlight:
      break;
  }
  Worker& worker = *tracked.worker;
  const bool was_sent = !tracked.is_unsent;
  if (was_sent && !options.recycle_on_timeout && worker.has("HandlesInvocationCancelMessage")) {
    send(worker, InvocationCancel{tracked.invocation.id, options.terminate_grace});
  }
  const std::string reason =
      "invocation " + tracked.invocation.id.value() + " of '" + tracked.invocation.function + "' timed out";
  finish(tracked, Cause::TimedOut, reason, now);
  if (!was_sent) return slot_freed(worker, now);
  if (options.recycle_on_timeout) return recycle(worker, reason, now);
  if (++worker.consecutive_timeouts >= options.recycle_on_consecutive_timeouts) {
    drain(worker, std::to_string(worker.consecutive_timeouts) + " invocations in a row timed out",
          Drain::Replace, now);
  }
}

void RuntimeCore::Parts::refresh_route(Worker& worker, Instant now) {
  if (worker.host == nullptr) return;
  JobHost& host = *worker.host;
  const bool is_ready = worker.state() == WorkerState::Ready && host.state == JobHostState::Running;
  const bool is_reachable = !worker.is_gone() && !worker.channel->is_detached &&
                            !worker.channel->is_leaving && !worker.channel->is_blocked &&
                            worker.channel->is_trusted && !is_stopping;
  if (is_ready && is_reachable) {
    if (worker.route.pool != nullptr) return;
    worker.route.lacks = worker.load_failures;
    worker.route.is_unfit = worker.channel->is_unfit;
    host.router.add(worker.route, worker.application->code_version);
    if (!host.measure_at) {
      host.measure_at = now + options.utilization_interval;
      retime(host);
    }
    return slot_freed(worker, now);
  }
  if (is_ready && !worker.is_gone()) {
    host.router.suspend(worker.route);
    return dispatch(host, now);  // others may be in service now that it is not
  }
  host.router.remove(worker.route);
  while (!worker.waiting.empty()) wait(*worker.waiting.front(), nullptr, now);
  dispatch(host, now);
}

void RuntimeCore::Parts::split(JobHost& host, std::vector<std::pair<std::string, std::uint32_t>> weights) {
  host.router.set_split(std::move(weights));
  // What waited for a worker by its key waits for any, where that worker is to get nothing any more.
  for (Worker* at = host.workers.front(); at != nullptr; at = host.workers.next(*at)) {
    if (!at->route.keys.empty()) continue;
    while (!at->waiting.empty()) wait(*at->waiting.front(), nullptr, latest);
  }
  dispatch(host, latest);
}

void RuntimeCore::Parts::starved(JobHost& host, std::string_view reason) {
  host.relieved_at.reset();
  if (std::exchange(host.is_starved, true)) return;
  signals.push_back(
      {Signal::Kind::NoFreeSlot, host.key, {}, urgency_of(host, Urgency::Medium), std::string{reason}});
}

void RuntimeCore::Parts::relieved(JobHost& host, Instant now) {
  if (!host.is_starved || host.relieved_at) return;
  host.relieved_at = now;
  retime(host);
}

}  // namespace windlass::runtime
