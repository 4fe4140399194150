#include "runtime/core/runtime_core.h"

#include <set>
#include <utility>

#include "runtime/core/parts.h"

namespace windlass::runtime {
namespace {

template <class T>
std::optional<T> pop(std::deque<T>& queue) {
  if (queue.empty()) return std::nullopt;
  std::optional<T> first{std::move(queue.front())};
  queue.pop_front();
  return first;
}

template <class T>
std::optional<T> pop(Ring<T>& queue) {
  if (queue.empty()) return std::nullopt;
  return queue.pop_front();
}

}  // namespace

// Nothing has to end in order, but lists and timers must be left before their members go.
RuntimeCore::Parts::~Parts() {
  for (const auto& [key, host] : hosts.all()) {
    while (!host->workers.empty()) hosts.route(*host->workers.front(), nullptr);
  }
}

void RuntimeCore::Parts::note(Note::Kind kind, const Worker& worker, std::string reason) {
  Note said{kind, worker.id};
  if (worker.host != nullptr) said.job_host = worker.host->key;
  said.reason = std::move(reason);
  notes.push_back(std::move(said));
}

void RuntimeCore::Parts::note(Note::Kind kind, const JobHost& host, std::string reason) {
  Note said{kind};
  said.job_host = host.key;
  said.reason = std::move(reason);
  notes.push_back(std::move(said));
}

RuntimeCore::RuntimeCore(RuntimeOptions options, std::uint64_t seed)
    : parts_(std::make_unique<Parts>(options, seed)) {}
RuntimeCore::~RuntimeCore() = default;

void RuntimeCore::add_application(ConfiguredApplication application) {
  const std::string id = application.version.job_host.application_id;
  parts_->applications.insert_or_assign(id, std::move(application));
}

void RuntimeCore::handle_opened(ChannelId channel, ChannelFacts facts, Instant now) {
  Parts& parts = *parts_;
  Channel& opened = parts.registry.open(channel, std::move(facts));
  const bool is_crowded = parts.registry.channels_waiting() > parts.options.channels_waiting_max;
  if (is_crowded || parts.is_stopping) {
    return parts.close(opened, is_crowded ? "too many channels wait for StartStream" : "stopping", false);
  }
  parts.registry.set_timer(opened, now + parts.options.start_stream_timeout);
}

void RuntimeCore::handle_message(ChannelId channel, WorkerMessage message, Instant now) {
  parts_->latest = now;
  if (Channel* const known = parts_->registry.find(channel)) parts_->message(*known, std::move(message), now);
}

void RuntimeCore::handle_bad_message(ChannelId channel, std::string_view reason, Instant now) {
  Channel* const known = parts_->registry.find(channel);
  if (known == nullptr || known->is_closing) return;
  parts_->refuse(*known, "a message that cannot be read: " + std::string{reason}, now);
}

void RuntimeCore::handle_unreadable(ChannelId channel, std::string_view reason, Instant now) {
  Channel* const known = parts_->registry.find(channel);
  if (known == nullptr || known->is_closing) return;
  if (known->worker != nullptr) return parts_->note_unreadable(*known->worker, std::string{reason}, now);
  if (known->facts.is_agent && known->has_started) return;  // last words of a worker that is gone
  parts_->refuse(*known, "a message that cannot be read: " + std::string{reason}, now);
}

void RuntimeCore::handle_detached(ChannelId channel, Instant now) {
  Channel* const known = parts_->registry.find(channel);
  if (known == nullptr || known->is_closing) return;
  if (!std::exchange(known->is_detached, true)) known->detached_at = now;
  if (known->worker == nullptr) return parts_->registry.set_timer(*known, std::nullopt);
  parts_->refresh_route(*known->worker, now);
  parts_->retime(*known->worker);
}

void RuntimeCore::handle_attached(ChannelId channel, Instant now) {
  Parts& parts = *parts_;
  Channel* const known = parts.registry.find(channel);
  if (known == nullptr || known->is_closing || !std::exchange(known->is_detached, false)) return;
  if (!known->has_started) parts.registry.set_timer(*known, now + parts.options.start_stream_timeout);
  if (known->worker == nullptr) return;
  Worker& worker = *known->worker;
  worker.heard_at = now;
  if (worker.probe_at) worker.probe_at = now + parts.options.status_interval;
  // This waited for the connection. Left in the past it would look like an alarm that came late.
  if (worker.replace_at) worker.replace_at = std::max(*worker.replace_at, now);
  // What it was asked may have waited all the time: it gets as long again.
  if (worker.phase_until) {
    worker.phase_until = std::max(*worker.phase_until, now + parts.options.load_timeout);
  }
  if (worker.drain_until) {
    worker.drain_until = std::max(*worker.drain_until, now + parts.options.drain_timeout);
  }
  if (worker.recycle_at) {
    worker.recycle_at = std::max(*worker.recycle_at, now + parts.options.timeout_grace);
  }
  parts.refresh_route(worker, now);
  parts.retime(worker);
}

void RuntimeCore::handle_trust(ChannelId channel, bool is_trusted, Instant now) {
  Channel* const known = parts_->registry.find(channel);
  if (known == nullptr || known->is_closing) return;
  if (std::exchange(known->is_trusted, is_trusted) == is_trusted || known->worker == nullptr) return;
  parts_->refresh_route(*known->worker, now);
}

void RuntimeCore::handle_leaving(ChannelId channel, Instant now) {
  Channel* const known = parts_->registry.find(channel);
  if (known == nullptr || known->is_closing) return;
  known->is_leaving = true;
  if (known->worker != nullptr) parts_->refresh_route(*known->worker, now);
}

void RuntimeCore::handle_fitness(ChannelId channel, bool is_fit) {
  Channel* const known = parts_->registry.find(channel);
  if (known == nullptr || known->is_closing) return;
  known->is_unfit = !is_fit;
  if (known->worker != nullptr) InvocationRouter::set_unfit(known->worker->route, !is_fit);
}

void RuntimeCore::handle_blocked(ChannelId channel, Instant now) {
  Parts& parts = *parts_;
  Channel* const known = parts.registry.find(channel);
  if (known == nullptr || known->is_closing || std::exchange(known->is_blocked, true)) return;
  if (known->worker == nullptr) return;
  known->worker->blocked_since = now;
  parts.note(Note::Kind::Backpressure, *known->worker, "its queue is full");
  parts.refresh_route(*known->worker, now);
  parts.retime(*known->worker);
}

void RuntimeCore::handle_writable(ChannelId channel, Instant now) {
  Channel* const known = parts_->registry.find(channel);
  if (known == nullptr || known->is_closing || !known->is_blocked) return;
  parts_->unblock(*known, now);
}

void RuntimeCore::handle_unsendable(ChannelId channel, const InvocationId& invocation,
                                    std::string_view reason, Instant now) {
  Tracked* const tracked = parts_->tracker.find(invocation);
  if (tracked == nullptr || tracked->state != Tracked::State::InFlight) return;
  Worker& worker = *tracked->worker;
  if (worker.is_gone() || worker.channel->id != channel) return;
  tracked->is_unsent = true;  // the worker never saw it
  parts_->finish(*tracked, Cause::TooLarge, std::string{reason}, now);
  parts_->slot_freed(worker, now);
}

void RuntimeCore::handle_closed(ChannelId channel, ChannelEnd end, std::string_view reason, Instant now) {
  Parts& parts = *parts_;
  Channel* const known = parts.registry.find(channel);
  if (known == nullptr) return;
  known->is_over = true;
  if (Worker* const worker = known->worker) {
    const EndRule& rule = rule_of(end);
    if (rule.is_timeout) ++worker->deadlines_exceeded;
    std::string why{rule.what};
    if (!reason.empty()) why += ": " + std::string{reason};
    parts.lose(*worker, rule.is_leave ? Parts::Loss::Left : Parts::Loss::Crashed, why, now);
  }
  std::erase_if(parts.closes, [&](const CloseChannel& close) { return close.channel == channel; });
  parts.registry.erase(*known);
}

void RuntimeCore::handle_memory(double utilization, Instant now) {
  parts_->memory(utilization, now);
}

void RuntimeCore::handle_job_host_failed(const JobHostKey& key, std::string_view reason, Instant now) {
  if (JobHost* const host = parts_->hosts.find(key)) parts_->job_host_failed(*host, reason, now);
}

void RuntimeCore::handle_timeout(Instant now) {
  parts_->latest = now;
  parts_->timeout(now);
}

Result<Done> RuntimeCore::submit(Invocation invocation, Instant now) {
  parts_->latest = now;
  return parts_->submit(std::move(invocation), now);
}

void RuntimeCore::cancel(const InvocationId& invocation, Instant now) {
  Tracked* const tracked = parts_->tracker.find(invocation);
  if (tracked == nullptr) return;
  const bool is_sent = tracked->state == Tracked::State::InFlight && !tracked->is_unsent;
  if (!is_sent) {
    Worker* const worker = tracked->state == Tracked::State::InFlight ? tracked->worker : nullptr;
    parts_->finish(*tracked, Cause::Cancelled, "it was cancelled before it reached a worker", now);
    if (worker != nullptr) parts_->slot_freed(*worker, now);
    return;
  }
  tracked->is_unwanted = true;
  // Its answer says whether the function heeded it; one that cannot be told runs to its end.
  if (!tracked->worker->has("HandlesInvocationCancelMessage")) return;
  parts_->send(*tracked->worker, InvocationCancel{invocation, parts_->options.terminate_grace});
}

Result<Done> RuntimeCore::specialize(const WorkerId& worker, const std::string& application_id, Instant now) {
  Parts& parts = *parts_;
  const auto application = parts.applications.find(application_id);
  Worker* const known = parts.registry.find(worker);
  if (application == parts.applications.end()) {
    return Error{ErrorCode::CmdUnknown, Blame::Local,
                 "no application '" + application_id + "' is configured"};
  }
  if (known == nullptr || known->is_gone()) {
    return Error{ErrorCode::CmdUnknown, Blame::Local, "no worker '" + worker.value() + "' is here"};
  }
  const bool is_idle = known->phase == Phase::None || known->phase == Phase::Warmup;
  if (known->state() != WorkerState::Placeholder || !is_idle) {
    return Error{ErrorCode::ProtoState, Blame::Local,
                 "worker '" + worker.value() + "' is " + std::string{to_string(known->state())} +
                     "; only a Placeholder can be specialized from here"};
  }
  known->specializing_to = application_id;
  known->specializing_since = now;
  known->phase = Phase::Reload;
  known->phase_until = now + parts.options.reload_timeout;
  parts.registry.transition(*known, WorkerState::Specializing);
  parts.send(*known, EnvironmentReload{application->second.directory, application->second.environment});
  parts.retime(*known);
  return Done{};
}

Result<Done> RuntimeCore::set_split(const JobHostKey& key,
                                    std::vector<std::pair<std::string, std::uint32_t>> weights) {
  JobHost* const host = parts_->hosts.find(key);
  if (host == nullptr) {
    return Error{ErrorCode::CmdUnknown, Blame::Local, "no JobHost " + key.text() + " is here"};
  }
  std::set<std::string> names;
  std::uint64_t total = 0;
  for (const auto& [version, weight] : weights) {
    total += weight;
    if (weight > 1'000'000 || !names.insert(version).second) {
      return Error{ErrorCode::ProtoSchema, Blame::Local,
                   "code version '" + version + "' is named twice or weighs more than 1000000"};
    }
  }
  if (!weights.empty() && total == 0) {
    return Error{ErrorCode::ProtoSchema, Blame::Local, "a split needs a version that weighs more than 0"};
  }
  parts_->split(*host, std::move(weights));
  return Done{};
}

Result<Done> RuntimeCore::drain(const WorkerId& worker, std::string_view reason, Instant now) {
  Worker* const known = parts_->registry.find(worker);
  if (known == nullptr || known->is_gone()) {
    return Error{ErrorCode::CmdUnknown, Blame::Local, "no worker '" + worker.value() + "' is here"};
  }
  parts_->drain(*known, reason, Parts::Drain::Stay, now);
  return Done{};
}

void RuntimeCore::set_assigned(AssignedApplications applications) {
  parts_->assigned = std::move(applications);
}

void RuntimeCore::stop(Instant now) {
  parts_->stop(now);
}

std::optional<Send> RuntimeCore::poll_send() {
  return parts_->next_send();
}

std::optional<CloseChannel> RuntimeCore::poll_close() {
  std::optional<CloseChannel> close = pop(parts_->closes);
  if (!close) return close;
  if (Channel* const channel = parts_->registry.find(close->channel)) parts_->registry.erase(*channel);
  return close;
}

std::optional<Outcome> RuntimeCore::poll_outcome() {
  return pop(parts_->outcomes);
}
std::optional<Signal> RuntimeCore::poll_signal() {
  return pop(parts_->signals);
}
std::optional<WorkerLog> RuntimeCore::poll_log() {
  return pop(parts_->logs);
}
std::optional<Note> RuntimeCore::poll_note() {
  return pop(parts_->notes);
}
std::optional<Instant> RuntimeCore::poll_timeout() const {
  return parts_->next_timeout();
}

}  // namespace windlass::runtime
