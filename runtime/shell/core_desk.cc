#include "runtime/shell/core_desk.h"

#include <algorithm>
#include <utility>

#include "runtime/adapters/rpc_mapping.h"
#include "runtime/adapters/trace_context.h"

namespace windlass::runtime {
namespace {

constexpr std::size_t kCallLogsMax = 100;           // kept for one caller
constexpr std::size_t kCallLogBytesMax = 4 * 1024;  // of one line
constexpr std::size_t kLogMessageBytesMax = 16 * 1024;

}  // namespace

CoreDesk::CoreDesk(RuntimeOptions options, EventLoop& loop, RuntimeMetrics& metrics, JsonLog& log,
                   std::uint64_t seed)
    : loop_(loop),
      metrics_(metrics),
      log_(log),
      random_(seed ^ 0x9E3779B97F4A7C15ULL),  // ids must not repeat what the core draws
      core_(options, seed),
      alarm_(loop, [this] { core_.handle_timeout(now()); }) {}

CoreDesk::~CoreDesk() = default;

void CoreDesk::add_application(ConfiguredApplication application, std::string host_json) {
  configured_host_json_[application.version.job_host] = std::move(host_json);
  core_.add_application(std::move(application));
}

Result<Done> CoreDesk::submit(Call call, CallDone done) {
  Invocation invocation{.id = InvocationId{random_guid(random_)},
                        .job_host = call.job_host,
                        .function = call.function,
                        .body = std::move(call.body)};
  invocation.timeout = call.timeout ? call.timeout : host_settings(call.job_host).function_timeout;
  invocation.sticky_key = std::move(call.sticky_key);
  metrics_.count_message(call.source);
  std::string id = invocation.id.value();
  if (auto taken = core_.submit(std::move(invocation), now()); !taken) {
    metrics_.count_settled(call.source, Settlement::Abandon);
    return taken.error();
  }
  calls_.emplace(std::move(id), Running{std::move(done),
                                        std::move(call.job_host.application_id),
                                        std::move(call.function),
                                        std::move(call.trace_parent),
                                        call.source,
                                        {},
                                        call.wants_logs});
  return Done{};
}

bool CoreDesk::step() {
  bool is_any = false;
  bool is_more = true;
  while (std::exchange(is_more, false)) {
    while (auto send = core_.poll_send()) {
      is_more = true;
      deliver(*send);
    }
    while (auto close = core_.poll_close()) {
      is_more = true;
      const auto found = channels_.find(close->channel);
      if (found == channels_.end()) continue;
      WorkerChannel& channel = *found->second;
      channels_.erase(found);
      channel.close(close->is_clean, close->reason);
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
    while (auto signal = core_.poll_signal()) {
      is_more = true;
      signals_.push_back(*std::move(signal));
    }
    is_any = is_any || is_more;
  }
  alarm_.set(core_.poll_timeout());
  return is_any;
}

void CoreDesk::deliver(const Send& send) {
  const auto found = channels_.find(send.channel);
  if (found == channels_.end()) return;
  switch (found->second->send(write_host_message(send.message))) {
    case SendStatus::Sent:
    case SendStatus::Closed:
      return;
    case SendStatus::Blocked:
      return core_.handle_blocked(send.channel, now());
    case SendStatus::TooLarge:
      if (const auto* request = std::get_if<InvocationRequest>(&send.message)) {
        return core_.handle_unsendable(send.channel, request->invocation,
                                       "the invocation is larger than a message to a worker can be", now());
      }
      return core_.handle_bad_message(send.channel, "what it must be sent is larger than a message can be",
                                      now());
  }
}

void CoreDesk::settle(const Outcome& outcome) {
  const auto found = calls_.find(outcome.id.value());
  if (found == calls_.end()) return;
  const Running running = std::move(found->second);
  calls_.erase(found);
  metrics_.application(running.application).count_outcome(outcome);
  metrics_.count_settled(running.source, outcome.settlement);
  tell(outcome, running);
  running.done(outcome, running.logs);
}

ChannelId CoreDesk::on_channel_opened(WorkerChannel& channel, ChannelFacts facts) {
  const ChannelId id{next_channel_++};
  metrics_.count_connection(facts.kind);
  channels_.emplace(id, &channel);
  core_.handle_opened(id, std::move(facts), now());
  return id;
}

void CoreDesk::on_channel_message(ChannelId id, std::string_view bytes) {
  auto message = read_worker_message(bytes);
  if (!message) return core_.handle_bad_message(id, message.error().reason, now());
  core_.handle_message(id, *std::move(message), now());
}

void CoreDesk::on_channel_news(ChannelId id, ChannelNews news, std::string_view reason) {
  switch (news) {
    case ChannelNews::Detached:
      return core_.handle_detached(id, now());
    case ChannelNews::Attached:
      return core_.handle_attached(id, now());
    case ChannelNews::Writable:
      return core_.handle_writable(id, now());
    case ChannelNews::Broken:
      return core_.handle_bad_message(id, reason, now());
  }
}

void CoreDesk::on_channel_closed(ChannelId id, ChannelEnd end, std::string_view reason) {
  channels_.erase(id);
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
    log_.warn("host.json is of no use; defaults hold",
              {{"job_host", key.text()}, {"reason", read.error().reason}});
  }
  if (text == nullptr) {
    static const HostSettings kDefaults;
    return kDefaults;  // its first worker has not told it yet
  }
  return settings_.emplace(key, read ? *std::move(read) : HostSettings{}).first->second;
}

void CoreDesk::tell(const Outcome& outcome, const Running& running) {
  const bool is_ok = outcome.settlement == Settlement::Complete;
  const windlass::LogLevel level = is_ok ? windlass::LogLevel::Debug : windlass::LogLevel::Warn;
  if (!log_.takes(level)) return;
  log_.write(level, is_ok ? "an invocation ended" : "an invocation failed",
             {{"invocation", outcome.id.value()},
              {"application", running.application},
              {"function", running.function},
              {"source", running.source},
              {"worker", outcome.worker.value()},
              {"outcome", to_string(outcome.cause)},
              {"reason", outcome.reason},
              {"tries", std::uint64_t{outcome.tries}},
              {"took_ms", std::chrono::duration<double, std::milli>(outcome.took).count()},
              {"traceparent", running.trace_parent}});
}

void CoreDesk::tell(const WorkerLog& said) {
  const Log& log = said.log;
  if (!log.invocation.value().empty() && log.source == LogSource::User) {
    const auto call = calls_.find(log.invocation.value());
    if (call != calls_.end() && call->second.wants_logs && call->second.logs.size() < kCallLogsMax) {
      call->second.logs.push_back(log.message.substr(0, kCallLogBytesMax));
    }
  }
  if (log.source == LogSource::CustomMetric) return;
  const windlass::LogLevel level = log.level >= LogLevel::Error         ? windlass::LogLevel::Error
                                   : log.level == LogLevel::Warning     ? windlass::LogLevel::Warn
                                   : log.level == LogLevel::Information ? windlass::LogLevel::Info
                                                                        : windlass::LogLevel::Debug;
  if (log.level == LogLevel::None || !log_.takes(level)) return;
  log_.write(level, "a worker says",
             {{"worker", said.worker.value()},
              {"application", said.job_host.application_id},
              {"function", said.function},
              {"invocation", log.invocation.value()},
              {"category", log.category},
              {"message", std::string_view{log.message}.substr(0, kLogMessageBytesMax)},
              {"exception", std::string_view{log.exception}.substr(0, kLogMessageBytesMax)}});
}

}  // namespace windlass::runtime
