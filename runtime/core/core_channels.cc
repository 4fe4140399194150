// What comes and goes on channels: who a worker is, its messages by kind, what may be sent to it. A channel
// that does not keep to the protocol ends; nothing else is hurt.
#include <utility>

#include "protocol/base/clip.h"
#include "protocol/base/mutant.h"
#include "runtime/core/parts.h"

namespace windlass::runtime {
namespace {

template <class... Bodies>
struct Overload : Bodies... {
  using Bodies::operator()...;
};
template <class... Bodies>
Overload(Bodies...) -> Overload<Bodies...>;

bool may_claim(const std::string& identity, const std::string& worker) {
  if (identity.empty()) return true;
  if (!worker.starts_with(identity)) return false;
  return worker.size() == identity.size() || worker[identity.size()] == '.';
}

constexpr std::size_t kWorkerIdBytesMax = 256;
constexpr std::size_t kInvocationIdBytesShown = 128;  // of those that a worker made up

}  // namespace

void RuntimeCore::Parts::message(Channel& channel, WorkerMessage message, Instant now) {
  if (channel.is_closing) return;
  if (auto* const start = std::get_if<StartStream>(&message)) return on(channel, std::move(*start), now);
  if (const auto* const ended = std::get_if<WorkerEnded>(&message)) return on(channel, *ended, now);
  if (channel.worker == nullptr) {
    // An agent whose worker is gone may still carry its last words.
    if (channel.facts.is_agent && channel.has_started) return;
    return refuse(channel, "the first message of a channel must be StartStream", now);
  }
  Worker& worker = *channel.worker;
  worker.heard_at = now;
  if (is_held(worker, message)) return hold(worker, std::move(message));
  const auto* const again = std::get_if<InvocationResponse>(&message);
  if (again != nullptr && worker.pending_switch != nullptr) {
    // A second answer must not overtake the first, which is held.
    const Tracked* const tracked = tracker.find(again->invocation);
    if (tracked != nullptr && tracked->worker == &worker && tracked->is_answered) {
      return note_unknown(worker, again->invocation, "it was answered before", now);
    }
  }
  deliver(worker, std::move(message), now);
}

void RuntimeCore::Parts::deliver(Worker& worker, WorkerMessage message, Instant now) {
  std::visit(Overload{
                 [&](StartStream&) {},
                 [&](InitResponse& m) { on(worker, std::move(m), now); },
                 [&](MetadataResponse& m) { on(worker, m, now); },
                 [&](LoadResponse& m) { on(worker, m, now); },
                 [&](LoadResponses& m) {
                   for (const LoadResponse& one : m.responses) on(worker, one, now);
                 },
                 [&](InvocationResponse& m) { on(worker, std::move(m), now); },
                 [&](Log& m) { on(worker, std::move(m)); },
                 [&](StatusResponse& m) { on(worker, m, now); },
                 [&](ReloadResponse& m) { on(worker, std::move(m), now); },
                 [&](WarmupResponse&) { end_warmup(worker); },
                 [&](WorkerSpecialized& m) {
                   if (worker.channel->facts.is_agent) return begin_switch(worker, std::move(m), now);
                   refuse(*worker.channel, "WorkerSpecialized from a channel that is no agent's", now);
                 },
                 [&](WorkerEnded&) {},
                 [&](ActionResponse& m) { on(worker, m, now); },
                 [&](Ignorable&) {},
             },
             message);
}

// Only what goes to a JobHost waits for the switch; the rest drives it.
bool RuntimeCore::Parts::is_held(const Worker& worker, const WorkerMessage& message) const {
  if (worker.pending_switch == nullptr) return false;
  if (std::holds_alternative<Log>(message)) return true;
  const auto* const response = std::get_if<InvocationResponse>(&message);
  if (response == nullptr) return false;
  const Tracked* const tracked = tracker.find(response->invocation);
  return tracked != nullptr && tracked->worker == &worker && tracked->state == Tracked::State::InFlight &&
         !tracked->is_answered && !tracked->is_unsent;
}

void RuntimeCore::Parts::hold(Worker& worker, WorkerMessage message) {
  const auto* const response = std::get_if<InvocationResponse>(&message);
  if (response != nullptr) {
    Tracked& tracked = *tracker.find(response->invocation);
    tracked.is_answered = true;
    set_due(tracked, std::nullopt);  // the answer is here
  }
  if (MUTANT(switch_drops_held)) return;
  if (hosts.hold(worker, std::move(message))) return note(Note::Kind::MessageHeld, worker);
  note(Note::Kind::MessageHeld, worker, "a log was dropped: held_max messages wait for the switch");
}

void RuntimeCore::Parts::on(Channel& channel, StartStream start, Instant now) {
  const std::string& id = start.worker.value();
  if (id.empty() || id.size() > kWorkerIdBytesMax) {
    return refuse(channel, "StartStream must name a worker in 1 to 256 bytes", now);
  }
  if (!may_claim(channel.facts.identity, id)) {
    return refuse(channel, "worker id '" + id + "' does not belong to " + channel.facts.identity, now);
  }
  if (channel.worker != nullptr && !channel.facts.is_agent) {
    return refuse(channel, "a second StartStream on one stream", now);
  }
  const Worker* const known = registry.find(start.worker);
  if (known != nullptr && !known->is_gone() && known->channel != &channel) {
    return refuse(channel, "worker id '" + id + "' is in use on another channel", now);
  }
  // An agent started its worker anew: what the last one had under way is gone with it.
  if (channel.worker != nullptr) lose(*channel.worker, Loss::Left, "its agent started a new worker", now);
  if (registry.is_full()) return refuse(channel, "this runtime has workers_max workers", now);
  if (is_stopping) return refuse(channel, "this runtime is stopping", now);
  Worker& worker = registry.connect(std::move(start.worker), channel, now);
  if (channel.is_blocked) worker.blocked_since = now;
  note(Note::Kind::WorkerConnected, worker);
  initialize(worker, now);
}

void RuntimeCore::Parts::initialize(Worker& worker, Instant now) {
  InitRequest request;
  const auto configured = applications.find(worker.channel->facts.application);
  if (configured != applications.end()) request.function_app_directory = configured->second.directory;
  worker.phase = Phase::Init;
  worker.phase_until = now + options.init_timeout;
  send(worker, std::move(request));
  retime(worker);
}

void RuntimeCore::Parts::on(Worker& worker, InitResponse response, Instant now) {
  if (worker.phase != Phase::Init) return;  // a repeated answer changes nothing
  if (!response.result.is_ok()) {
    lose(worker, Loss::Abandoned, "it failed to initialize: " + response.result.reason, now);
    return;
  }
  worker.phase = Phase::None;
  worker.phase_until.reset();
  worker.capabilities = std::move(response.capabilities);
  worker.language = std::move(response.runtime_name);
  worker.language_version = std::move(response.runtime_version);
  if (worker.has("WorkerStatus")) worker.probe_at = now + options.status_interval;
  Result<JobHost*> placeholders = hosts.find_or_create(placeholder_job_host());
  if (!placeholders) return lose(worker, Loss::Abandoned, placeholders.error().reason, now);
  JobHost& host = *placeholders.value();
  if (host.state == JobHostState::Starting) {
    host.state = JobHostState::Running;
    note(Note::Kind::JobHostCreated, host);
  }
  hosts.route(worker, &host);
  registry.advance(worker, WorkerState::Placeholder);
  note(Note::Kind::WorkerInitialized, worker);
  if (worker.deadlines_exceeded > options.deadline_exceeded_max) {
    // Another in its place; who comes back after that begins anew.
    const std::uint32_t times = std::exchange(worker.deadlines_exceeded, 0);
    return drain(worker, "its channel timed out " + std::to_string(times) + " times", Drain::Replace, now);
  }
  retime(worker);
  const auto configured = applications.find(worker.channel->facts.application);
  if (configured == applications.end()) return warm_up(worker, now);
  WorkerSpecialized request;
  request.worker = worker.id;
  request.application = configured->second.version;
  request.directory = configured->second.directory;
  request.functions = configured->second.functions;
  request.settings = configured->second.environment;
  request.reload.result.status = RpcStatus::Success;
  begin_switch(worker, std::move(request), now);
}

// A placeholder has time until an application comes, which does not wait for the end of this.
void RuntimeCore::Parts::warm_up(Worker& worker, Instant now) {
  if (!worker.has("HandlesWorkerWarmupMessage")) return;
  worker.phase = Phase::Warmup;
  worker.phase_until = now + options.warmup_timeout;
  send(worker, WarmupRequest{});
  retime(worker);
}

// Well or not: one that failed to warm up is slower, nothing else.
void RuntimeCore::Parts::end_warmup(Worker& worker) {
  if (worker.phase != Phase::Warmup) return;
  worker.phase = Phase::None;
  worker.phase_until.reset();
  retime(worker);
}

void RuntimeCore::Parts::on(Worker& worker, Log log) {
  std::string function;
  std::uint64_t owner = 0;
  if (!log.invocation.value().empty()) {
    const Tracked* const tracked = tracker.find(log.invocation);
    const bool is_running =
        tracked != nullptr && tracked->worker == &worker && tracked->state == Tracked::State::InFlight;
    if (is_running) {
      function = tracked->invocation.function;
      owner = tracked->invocation.owner;
    } else if (log.source == LogSource::User) {
      return;  // said after the response
    }
  }
  logs.push_back({worker.id, worker.host != nullptr ? worker.host->key : placeholder_job_host(),
                  std::move(function), owner, std::move(log)});
}

// A worker that does nothing else must not fill the log, nor choose how long its lines are.
bool RuntimeCore::Parts::may_note(Worker& worker, std::string& reason, Instant now) const {
  if (worker.unknown_until && now < *worker.unknown_until) {
    ++worker.unknown_unsaid;
    return false;
  }
  worker.unknown_until = now + options.unknown_interval;
  if (const std::uint64_t unsaid = std::exchange(worker.unknown_unsaid, 0); unsaid > 0) {
    reason += "; " + std::to_string(unsaid) + " more since the last were not noted";
  }
  return true;
}

void RuntimeCore::Parts::note_unreadable(Worker& worker, std::string reason, Instant now) {
  if (may_note(worker, reason, now)) note(Note::Kind::MessageUnreadable, worker, std::move(reason));
}

void RuntimeCore::Parts::note_unknown(Worker& worker, const InvocationId& invocation, std::string reason,
                                      Instant now) {
  if (!may_note(worker, reason, now)) return;
  Note unknown{Note::Kind::UnknownResponse, worker.id};
  unknown.invocation = InvocationId{std::string{clip(invocation.value(), kInvocationIdBytesShown)}};
  unknown.reason = std::move(reason);
  notes.push_back(std::move(unknown));
}

void RuntimeCore::Parts::on(Worker& worker, const StatusResponse& response, Instant now) {
  if (!worker.probed_at || response.request_id != "status-" + std::to_string(worker.probes)) return;
  worker.status_latency = now - *worker.probed_at;
  worker.probed_at.reset();
  Note answered{Note::Kind::StatusAnswered, worker.id};
  answered.took = worker.status_latency;
  notes.push_back(std::move(answered));
  worker.deadlines_exceeded = 0;
}

void RuntimeCore::Parts::on(Worker& worker, const ActionResponse& response, Instant now) {
  if (!response.wants_restart) return;
  const std::string reason = "it asks for a restart: " + response.reason;
  // An agent sees to the next one itself, and waits for the Terminate to end this one.
  drain(worker, reason, worker.channel->facts.is_agent ? Drain::Restart : Drain::Replace, now);
}

void RuntimeCore::Parts::refuse(Channel& channel, std::string reason, Instant now) {
  Note said{Note::Kind::BadMessage};
  if (channel.worker != nullptr) said.worker = channel.worker->id;
  said.reason = reason + (channel.facts.peer.empty() ? "" : " (from " + channel.facts.peer + ")");
  notes.push_back(std::move(said));
  if (channel.worker != nullptr) return lose(*channel.worker, Loss::Abandoned, reason, now);
  close(channel, std::move(reason), false);
}

void RuntimeCore::Parts::send(Worker& worker, HostMessage message) {
  CHECK(!worker.is_gone());
  if (worker.channel->is_closing) return;
  sends.push_back({worker.channel->id, std::move(message)});
}

void RuntimeCore::Parts::close(Channel& channel, std::string reason, bool is_clean) {
  if (channel.is_closing) return;
  channel.is_closing = true;
  channel.unsent.clear();
  registry.set_timer(channel, std::nullopt);
  closes.push_back({channel.id, std::move(reason), is_clean});
}

void RuntimeCore::Parts::unblock(Channel& channel, Instant now) {
  channel.is_blocked = false;
  // What was held back goes before anything that was said later.
  for (; !channel.unsent.empty(); channel.unsent.pop_back()) {
    sends.push_front({channel.id, std::move(channel.unsent.back())});
  }
  if (channel.worker == nullptr) return;
  Worker& worker = *channel.worker;
  worker.blocked_since.reset();
  recover(worker, now);
  refresh_route(worker, now);
  retime(worker);
}

// Not of an invocation that ended or went elsewhere before this left.
bool RuntimeCore::Parts::is_due(const Tracked* tracked, ChannelId channel) {
  return tracked != nullptr && tracked->is_unsent && tracked->worker != nullptr &&
         tracked->worker->channel != nullptr && tracked->worker->channel->id == channel;
}

std::optional<Send> RuntimeCore::Parts::next_send() {
  while (!sends.empty()) {
    Send message = sends.pop_front();
    Channel* const channel = registry.find(message.channel);
    if (channel == nullptr) continue;
    const auto* const request = std::get_if<InvocationRequest>(&message.message);
    Tracked* const tracked = request == nullptr ? nullptr : tracker.find(request->invocation);
    if (request != nullptr && !is_due(tracked, message.channel)) continue;
    if (channel->is_blocked && !channel->is_closing) {
      channel->unsent.push_back(std::move(message.message));
      continue;
    }
    if (tracked != nullptr) {
      tracked->is_unsent = false;
      ++tracked->tries;
    }
    return message;
  }
  return std::nullopt;
}

}  // namespace windlass::runtime
