#include "runtime/shell/core_desk.h"

#include <algorithm>
#include <utility>

#include "protocol/base/check.h"
#include "protocol/function_rpc/peek.h"
#include "runtime/adapters/rpc_mapping.h"
#include "runtime/adapters/trace_context.h"

namespace windlass::runtime {
namespace {

constexpr std::size_t kCallLogsMax = 100;           // kept for one caller
constexpr std::size_t kCallLogBytesMax = 4 * 1024;  // of one line
constexpr std::string_view kTooLarge = "the invocation is larger than a message to a worker can be";

}  // namespace

CoreDesk::CoreDesk(RuntimeOptions options, const LogLimits& log_limits, EventLoop& loop,
                   RuntimeMetrics& metrics, JsonLog& log, std::uint64_t seed, GateOptions gate)
    : loop_(loop),
      metrics_(metrics),
      log_(log),
      random_(seed ^ 0x9E3779B97F4A7C15ULL),  // ids must not repeat what the core draws
      core_(options, seed),
      gate_(std::move(gate)),
      alarm_(loop, [this] { core_.handle_timeout(now()); }),
      gate_alarm_(loop,
                  [this] {
                    gate_.handle_timeout(now());
                    run_gate();
                  }),
      throttle_(log_limits),
      failures_throttle_(log_limits),
      left_out_alarm_(loop, [this] { tell_left_out(false); }) {}

CoreDesk::~CoreDesk() {
  tell_left_out(true);
}

void CoreDesk::add_application(ConfiguredApplication application, std::string host_json) {
  configured_host_json_[application.version.job_host] = std::move(host_json);
  metrics_.application(application.version.job_host.application_id);
  core_.add_application(std::move(application));
}

void CoreDesk::set_assigned(AssignedApplications applications) {
  for (const auto& [id, assigned] : applications) metrics_.application(id);  // its series, from the start
  core_.set_assigned(std::move(applications));
  is_changed_ = true;
}

Result<InvocationId> CoreDesk::submit(Call call, CallDone done) {
  Invocation invocation{.id = InvocationId{random_guid(random_)},
                        .job_host = call.job_host,
                        .function = call.function,
                        .body = std::move(call.body)};
  const HostSettings& settings = host_settings(call.job_host);
  invocation.timeout = settings.function_timeout;
  invocation.is_idempotent = settings.is_idempotent;
  invocation.patience = call.patience;
  invocation.sticky_key = std::move(call.sticky_key);
  invocation.is_once = call.stream != nullptr;
  invocation.owner = next_call_++;
  SourceMeter& source = metrics_.source(call.source);
  source.count_received();
  const std::uint64_t owner = invocation.owner;
  InvocationId id = invocation.id;
  auto taken = core_.submit(std::move(invocation), now());
  // A name that the core does not know gets no series: callers would choose how many there are.
  if (!taken && taken.error().code == ErrorCode::CmdUnknown) {
    source.count_settled(Settlement::Abandon);
    return taken.error();
  }
  ApplicationMeter& meter = metrics_.application(call.job_host.application_id);
  if (!taken) {
    source.count_settled(Settlement::Abandon);
    meter.count_refused(taken.error().code == ErrorCode::LimitCapacity ? Cause::Overloaded : Cause::Stopping);
    return taken.error();
  }
  calls_.emplace(owner, Running{std::move(done),
                                &meter,
                                std::move(call.job_host.application_id),
                                std::move(call.function),
                                std::move(call.trace_parent),
                                std::move(call.order_type),
                                std::move(call.order_id),
                                std::move(call.order_corr),
                                &source,
                                {},
                                call.wants_logs,
                                std::move(call.stream)});
  return id;
}

bool CoreDesk::step() {
  bool is_any = false;
  bool is_more = true;
  while (std::exchange(is_more, false)) {
    while (auto send = core_.poll_send()) {
      is_more = true;
      deliver(*send);
    }
    while (auto log = core_.poll_log()) {
      is_more = true;
      tell(*log);
    }
    while (auto note = core_.poll_note()) {
      is_more = true;
      tell(*note);
    }
    while (auto outcome = core_.poll_outcome()) {
      is_more = true;
      settle(*outcome);
    }
    // After the outcomes: a caller whose invocation timed out hears that, and not that its worker is gone.
    while (auto close = core_.poll_close()) {
      is_more = true;
      const auto found = channels_.find(close->channel);
      if (found == channels_.end()) continue;
      WorkerChannel& channel = *found->second;
      channels_.erase(found);
      held_.erase(close->channel);
      gate_.close(close->channel);
      lose_streams(close->channel, close->reason);
      channel.close(close->is_clean, close->reason);
    }
    while (auto signal = core_.poll_signal()) {
      is_more = true;
      signals_.push_back(*std::move(signal));
    }
    is_any = is_any || is_more;
  }
  alarm_.set(core_.poll_timeout());
  gate_alarm_.set(gate_.poll_timeout());
  return is_any;
}

void CoreDesk::deliver(const Send& send) {
  const auto found = channels_.find(send.channel);
  if (found == channels_.end()) return;
  if (const auto* request = std::get_if<InvocationRequest>(&send.message)) tell(*request);
  switch (this->send(send.channel, *found->second, send.message)) {
    case SendStatus::Sent:
    case SendStatus::Closed:
    case SendStatus::Full:  // only a last word to a channel that is being closed
      return;
    case SendStatus::Blocked:
      return core_.handle_blocked(send.channel, now());
    case SendStatus::TooLarge:
      if (const auto* request = std::get_if<InvocationRequest>(&send.message)) {
        return core_.handle_unsendable(send.channel, request->invocation, kTooLarge, now());
      }
      return core_.handle_bad_message(send.channel, "what it must be sent is larger than a message can be",
                                      now());
  }
}

// The request itself begins before the invocation that it belongs to. From its first byte on it belongs to
// one agent: what was read of the client's body cannot be read again.
SendStatus CoreDesk::send(ChannelId id, WorkerChannel& channel, const HostMessage& message) {
  const auto* const request = std::get_if<InvocationRequest>(&message);
  const auto call = request == nullptr ? calls_.end() : calls_.find(request->owner);
  if (call == calls_.end() || !call->second.stream) {
    const SendStatus status = channel.send(write_host_message(message));
    if (status == SendStatus::Blocked) held_.try_emplace(id);
    return status;
  }
  CHECK(!call->second.is_stream_begun);  // the core tries it once
  const std::shared_ptr<InvocationStream> stream = call->second.stream;
  const SendStatus first =
      put(id, channel, {request->invocation, stream->first_message(request->invocation)});
  if (first != SendStatus::Sent && first != SendStatus::Blocked) return first;
  call->second.is_stream_begun = true;
  // Whatever becomes of the invocation, its agent has the head and hears of the end.
  streams_.insert_or_assign(request->invocation, Stream{stream, id});
  const SendStatus status = put(id, channel, {request->invocation, write_host_message(message)});
  stream->on_begun();
  return status;
}

// What must not wait in a full queue waits here, in order: a stream does not fail because of what others
// sent. Bounded, since nothing new begins on a blocked channel and no stream sends more than its window.
SendStatus CoreDesk::put(ChannelId id, WorkerChannel& channel, Held message) {
  if (const auto held = held_.find(id); held != held_.end()) {
    held->second.push_back(std::move(message));
    return SendStatus::Blocked;
  }
  const SendStatus status = channel.send(std::move(message.bytes));
  if (status == SendStatus::Blocked) held_.try_emplace(id);
  return status;
}

void CoreDesk::release(ChannelId id) {
  auto held = held_.extract(id);
  const auto channel = channels_.find(id);
  if (channel == channels_.end()) return;
  if (held) {
    loop_.turn_again();
    for (Held& each : held.mapped()) {
      const InvocationId invocation = each.invocation;
      if (put(id, *channel->second, std::move(each)) == SendStatus::TooLarge) {
        core_.handle_unsendable(id, invocation, kTooLarge, now());
      }
    }
  }
  if (!held_.contains(id)) core_.handle_writable(id, now());
}

void CoreDesk::stream_send(const InvocationId& invocation, std::string message) {
  const auto stream = streams_.find(invocation);
  if (stream == streams_.end()) return;
  const auto channel = channels_.find(stream->second.channel);
  if (channel == channels_.end()) return;
  const SendStatus status = put(channel->first, *channel->second, {invocation, std::move(message)});
  if (status == SendStatus::Blocked) core_.handle_blocked(channel->first, now());
  loop_.turn_again();
}

void CoreDesk::lose_streams(ChannelId channel, std::string_view reason) {
  std::vector<std::shared_ptr<InvocationStream>> lost;
  std::erase_if(streams_, [&](const auto& each) {
    if (each.second.channel != channel) return false;
    lost.push_back(each.second.events);
    return true;
  });
  for (const auto& each : lost) each->on_lost(reason);
}

void CoreDesk::settle(const Outcome& outcome) {
  const auto found = calls_.find(outcome.owner);
  if (found == calls_.end()) return;
  const Running running = std::move(found->second);
  calls_.erase(found);
  running.meter->count_outcome(outcome);
  running.source->count_settled(outcome.settlement);
  tell(outcome, running);
  running.done(outcome, running.logs);
}

ChannelId CoreDesk::on_channel_opened(WorkerChannel& channel, ChannelFacts facts) {
  const ChannelId id{next_channel_++};
  metrics_.count_connection(facts.kind);
  channels_.emplace(id, &channel);
  if (facts.is_agent) gate_.open(id, facts.tenant, facts.identity);
  core_.handle_opened(id, std::move(facts), now());
  return id;
}

void CoreDesk::on_channel_message(ChannelId id, std::string_view bytes) {
  if (const auto peeked = function_rpc::peek(bytes);
      peeked && peeked->content == function_rpc::Content::HttpStream) {
    const auto stream = streams_.find(InvocationId{std::string{peeked->invocation_id}});
    if (stream == streams_.end() || stream->second.channel != id) return;  // it ended here first
    const auto events = stream->second.events;
    return events->on_piece(peeked->body);
  }
  auto message = read_worker_message(bytes);
  if (!message) return core_.handle_unreadable(id, message.error().reason, now());
  if (gate_.is_known(id)) {
    if (std::holds_alternative<StartStream>(*message)) gate_.forget(id);
    if (auto* const specialized = std::get_if<WorkerSpecialized>(&*message)) {
      gate_.handle(id, std::move(*specialized), now());
      return run_gate();
    }
  }
  core_.handle_message(id, *std::move(message), now());
}

void CoreDesk::apply_grants(GrantUpdate update) {
  gate_.apply(std::move(update), now());
  run_gate();
}

void CoreDesk::run_gate() {
  while (const auto trust = gate_.poll_trust()) {
    if (!trust->second) {
      log_.warn("an agent serves an application that is not assigned to it any more; it gets nothing new");
    }
    core_.handle_trust(trust->first, trust->second, now());
  }
  while (auto decision = gate_.poll_decision()) {
    if (decision->is_granted) {
      core_.handle_message(decision->channel, std::move(decision->request), now());
      continue;
    }
    log_.warn("an agent is not believed about its application",
              {{"worker", decision->request.worker.value()}, {"reason", decision->reason}});
    deliver(
        {decision->channel,
         SpecializedResponse{{RpcStatus::Failure, decision->reason}, {}, decision->request.correlation_id}});
  }
}

void CoreDesk::on_channel_news(ChannelId id, ChannelNews news, std::string_view reason) {
  switch (news) {
    case ChannelNews::Detached:
      return core_.handle_detached(id, now());
    case ChannelNews::Attached:
      return core_.handle_attached(id, now());
    case ChannelNews::Leaving:
      return core_.handle_leaving(id, now());
    case ChannelNews::Unfit:
    case ChannelNews::Fit:
      return core_.handle_fitness(id, news == ChannelNews::Fit);
    case ChannelNews::Writable:
      return release(id);
    case ChannelNews::Broken:
      return core_.handle_bad_message(id, reason, now());
  }
}

void CoreDesk::on_channel_closed(ChannelId id, ChannelEnd end, std::string_view reason) {
  channels_.erase(id);
  held_.erase(id);
  gate_.close(id);
  lose_streams(id, reason);
  core_.handle_closed(id, end, reason, now());
}

const HostSettings& CoreDesk::host_settings(const JobHostKey& key) {
  const auto known = settings_.find(key);
  if (known != settings_.end()) return known->second;
  const auto configured = configured_host_json_.find(key);
  const std::string* text = core_.host_json(key);
  if ((text == nullptr || text->empty()) && configured != configured_host_json_.end()) {
    text = &configured->second;
  }
  auto read = read_host_json(text == nullptr ? std::string_view{} : std::string_view{*text});
  if (!read) {
    warn_of_host_json(key, "host.json cannot be read; default settings are used", read.error().reason);
  }
  if (text == nullptr) {
    static const HostSettings kDefaults;
    return kDefaults;  // its first worker has not told it yet
  }
  if (read) {
    for (const std::string& each : read->warnings) {
      warn_of_host_json(key, "host.json is used without a part of it", each);
    }
  }
  return settings_.emplace(key, read ? *std::move(read) : HostSettings{}).first->second;
}

// It is read again whenever functions change; what is said of it once is not said again.
void CoreDesk::warn_of_host_json(const JobHostKey& key, std::string_view event, std::string_view reason) {
  if (host_json_warnings_.size() >= kHostJsonWarningsMax) host_json_warnings_.clear();
  const std::string text{log_text(reason)};
  if (!host_json_warnings_.emplace(key, text).second) return;
  log_.warn(event, {{"job_host", key.text()}, {"reason", text}});
}

void CoreDesk::tell(const InvocationRequest& request) {
  const auto call = calls_.find(request.owner);
  if (call == calls_.end()) return;
  call->second.meter->count_routed();
  if (!log_.takes(windlass::LogLevel::Debug)) return;
  log_.write(windlass::LogLevel::Debug, "an invocation goes to a worker",
             {{"invocation", request.invocation.value()},
              {"application", call->second.application},
              {"function", call->second.function},
              {"type", call->second.order_type},
              {"id", call->second.order_id},
              {"corr", call->second.order_corr}});
}

void CoreDesk::tell(const Outcome& outcome, const Running& running) {
  const bool is_ok = outcome.settlement == Settlement::Complete;
  const windlass::LogLevel level = is_ok ? windlass::LogLevel::Debug : windlass::LogLevel::Warn;
  if (!log_.takes(level)) return;
  const std::string_view reason = log_text(outcome.reason);
  const std::string_view function = log_text(running.function);
  // One that reached no worker may fail with the words of those that could not load it.
  const std::string& of = outcome.worker.value().empty() ? running.application : outcome.worker.value();
  if (!is_ok && !may_tell_failure(of, reason.size() + function.size())) return;
  log_.write(level, is_ok ? "an invocation ended" : "an invocation failed",
             {{"invocation", outcome.id.value()},
              {"application", running.application},
              {"function", function},
              {"source", running.source->name()},
              {"worker", outcome.worker.value()},
              {"outcome", to_string(outcome.cause)},
              {"reason", reason},
              {"tries", std::uint64_t{outcome.tries}},
              {"took_ms", std::chrono::duration<double, std::milli>(outcome.took).count()},
              {"traceparent", running.trace_parent},
              {"type", running.order_type},
              {"id", running.order_id},
              {"corr", running.order_corr}});
}

void CoreDesk::tell(const WorkerLog& said) {
  const Log& log = said.log;
  if (!log.invocation.value().empty() && log.source == LogSource::User) {
    const auto call = calls_.find(said.owner);
    if (call != calls_.end() && call->second.wants_logs && call->second.logs.size() < kCallLogsMax) {
      call->second.logs.push_back(log.message.substr(0, kCallLogBytesMax));
    }
  }
  const bool is_metric = log.source == LogSource::CustomMetric;  // whatever its level
  const windlass::LogLevel level = is_metric                            ? windlass::LogLevel::Info
                                   : log.level >= LogLevel::Error       ? windlass::LogLevel::Error
                                   : log.level == LogLevel::Warning     ? windlass::LogLevel::Warn
                                   : log.level == LogLevel::Information ? windlass::LogLevel::Info
                                                                        : windlass::LogLevel::Debug;
  if ((log.level == LogLevel::None && !is_metric) || !log_.takes(level)) return;
  if (!is_metric && !host_settings(said.job_host).log_levels.takes(log, said.function)) return;
  const std::string_view message = log_text(log.message);
  const std::string_view exception = log_text(log.exception);
  const std::string_view category = log_text(log.category);
  const std::string_view function = log_text(said.function);
  const std::size_t bytes = message.size() + exception.size() + category.size() + function.size();
  if (!throttle_.admit(said.worker.value(), log.invocation.value(), bytes, now())) return await_left_out();
  if (is_metric) {
    return log_.info("a function reports a metric", {{"worker", said.worker.value()},
                                                     {"application", said.job_host.application_id},
                                                     {"function", function},
                                                     {"invocation", log.invocation.value()},
                                                     {"metric", message}});
  }
  log_.write(level, "a worker says",
             {{"worker", said.worker.value()},
              {"application", said.job_host.application_id},
              {"function", function},
              {"invocation", log.invocation.value()},
              {"category", category},
              {"message", message},
              {"exception", exception}});
}

bool CoreDesk::may_tell_failure(std::string_view of, std::size_t bytes) {
  if (failures_throttle_.admit(of, {}, bytes, now())) return true;
  await_left_out();
  return false;
}

void CoreDesk::await_left_out() {
  if (std::exchange(is_left_out_due_, true)) return;
  const auto said = throttle_.poll_timeout();
  const auto failed = failures_throttle_.poll_timeout();
  left_out_alarm_.set(said && failed ? std::min(said, failed) : said ? said : failed);
}

void CoreDesk::tell_left_out(bool is_last) {
  while (const auto left_out = throttle_.poll_report(now(), is_last)) {
    log_.warn("a worker logged too much; some lines were dropped",
              {{"worker", left_out->worker}, {"lines", left_out->lines}, {"bytes", left_out->bytes}});
  }
  while (const auto left_out = failures_throttle_.poll_report(now(), is_last)) {
    log_.warn("too many failures to log; some lines were dropped",
              {{"of", left_out->worker}, {"lines", left_out->lines}, {"bytes", left_out->bytes}});
  }
  is_left_out_due_ = false;
  if (throttle_.poll_timeout() || failures_throttle_.poll_timeout()) await_left_out();
}

}  // namespace windlass::runtime
