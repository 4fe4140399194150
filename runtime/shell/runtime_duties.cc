// What the runtime does for those who ask it: HTTP requests, orders of the scheduler, health and metrics.
#include <algorithm>
#include <array>
#include <utility>

#include "protocol/function_rpc/http_stream.h"
#include "protocol/http/page_access.h"
#include "runtime/adapters/command_text.h"
#include "runtime/adapters/held_exchange.h"
#include "runtime/adapters/http_problem.h"
#include "runtime/adapters/memory_sampler.h"
#include "runtime/adapters/trace_context.h"
#include "runtime/shell/runtime.h"

namespace windlass::runtime {
namespace {

constexpr Duration kTickInterval = seconds{1};     // changes of the status are told at most this often
constexpr Duration kStatusInterval = seconds{15};  // and without a change
constexpr std::size_t kStatusBytesMax = 512 * 1024;
constexpr std::size_t kResultBytesMax = limits::kFrameBytesMax - limits::kEnvelopeBytesMax;

bool is_http_trigger(const Binding* trigger) {
  if (trigger == nullptr) return false;
  std::string type = trigger->type;
  std::ranges::transform(type, type.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return type == "httptrigger";
}

}  // namespace

std::vector<HttpFrontHost::Application> Runtime::http_applications() {
  std::vector<Application> applications;
  for (const JobHostView& host : desk_.core().job_hosts()) {
    if (host.key == placeholder_job_host() ||
        desk_.core().find_job_host(host.key.application_id) != host.key) {
      continue;
    }
    applications.push_back(
        {host.key, desk_.host_settings(host.key).route_prefix, desk_.core().functions(host.key)});
  }
  return applications;
}

std::vector<HttpFrontHost::Absent> Runtime::http_absent() {
  std::vector<Absent> absent;
  for (std::string& each : desk_.core().absent_applications()) {
    const bool has_worker = desk_.is_granted(each) && desk_.core().awaits_worker_of(each);
    absent.push_back({std::move(each), has_worker});
  }
  return absent;
}

// The scheduler says who may serve before it says what is served, so the first list is judged rightly.
std::vector<std::string> Runtime::awaited_applications() {
  std::vector<std::string> awaited;
  for (Absent& each : http_absent()) {
    if (each.has_worker) awaited.push_back(std::move(each.application_id));
  }
  return awaited;
}

const TextMap* Runtime::http_capabilities(const JobHostKey& key) {
  return desk_.core().capabilities(key);
}

Result<Done> Runtime::http_ready() {
  if (!is_stopping_) return Done{};
  return Error{ErrorCode::SessionDraining, Blame::Local, "this runtime is stopping; try another"};
}

Result<InvocationId> Runtime::http_invoke(HttpFrontHost::Call call,
                                          std::function<void(const Outcome&)> done) {
  return desk_.submit(
      {.job_host = std::move(call.job_host),
       .function = std::move(call.function),
       .body = std::move(call.body),
       .source = "http",
       .trace_parent = std::move(call.trace.parent),
       .stream = std::move(call.stream)},
      [done = std::move(done)](const Outcome& outcome, const std::vector<std::string>&) { done(outcome); });
}

void Runtime::stream_over(const InvocationId& invocation, bool is_cancelled) {
  desk_.stream_over(invocation);
  if (is_cancelled) desk_.cancel(invocation);
  loop_.turn_again();
}

bool Runtime::is_probe(const HttpRequest& request) const {
  const std::string_view path = std::string_view{request.target}.substr(0, request.target.find('?'));
  return path == "/health" || path == "/healthz";  // they have no token
}

void Runtime::handle(HttpRequest request, HttpAnswer answer) {
  const std::string_view path = std::string_view{request.target}.substr(0, request.target.find('?'));
  if (request.method != "GET" && request.method != "HEAD") {
    return answer(to_response({405, "E.HTTP.METHOD", "only GET is served here"}));
  }
  const bool is_health = is_probe(request);
  const PageAccess access{config_.admin_access.is_any(), config_.admin_open, "admin"};
  if (auto refusal = page_refusal(access, request); !is_health && refusal) {
    return answer(*std::move(refusal));
  }
  if (path == "/metrics") {
    return answer({.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = metrics_text()});
  }
  if (is_health) {
    RuntimeHealth health = desk_.core().health();
    if (is_stopping_) {
      health.level = RuntimeHealth::Level::Unhealthy;
      health.reason = "the runtime is stopping";
    }
    return answer(
        {.status = static_cast<std::uint16_t>(health.level == RuntimeHealth::Level::Unhealthy ? 503 : 200),
         .content_type = "application/json",
         .body = health_text(health, grpc_ != nullptr)});
  }
  if (path == "/status") {
    return answer({.content_type = "application/json",
                   .body = status_text(desk_.core(), places_, 64 * kStatusBytesMax)});
  }
  answer(to_response({404, "E.HTTP.NOT_FOUND", "/health, /metrics and /status are served here"}));
}

std::string Runtime::metrics_text() {
  std::array<std::size_t, static_cast<std::size_t>(WorkerState::Disconnected) + 1> states{};
  for (const WorkerView& worker : desk_.core().workers()) ++states[static_cast<std::size_t>(worker.state)];
  for (std::size_t i = 0; i < states.size(); ++i) {
    metrics_.set_workers(static_cast<WorkerState>(i), states[i]);
  }
  metrics_.set_pending(desk_.core().in_flight());
  metrics_.set_health(desk_.core().health());
  metrics_.set_applications(desk_.core().job_hosts());
  return metrics_.text();
}

void Runtime::sample() {
  if (const auto utilization = sample_memory(config_.memory_limit)) {
    metrics_.set_memory(*utilization);
    desk_.core().handle_memory(*utilization, loop_.now().steady);
  }
  sample_.set(loop_.now().steady + config_.core.memory_interval);
}

void Runtime::tick() {
  for (const WorkerView& worker : desk_.core().workers()) {
    const bool is_gone = worker.state == WorkerState::Abandoned || worker.state == WorkerState::Disconnected;
    if (!is_gone) metrics_.observe_in_flight(worker.in_flight);
  }
  send_status(false);
  tick_.set(loop_.now().steady + kTickInterval);
}

void Runtime::send_status(bool is_wanted) {
  if (!scheduler_ || !scheduler_->is_connected()) return;
  std::string text = status_text(desk_.core(), places_, kStatusBytesMax);
  const Instant now = loop_.now().steady;
  if (!is_wanted && text == status_ && now - status_at_ < kStatusInterval) return;
  scheduler_->say(kStatusType, text);
  status_ = std::move(text);
  status_at_ = now;
}

// Each is kept until a session has taken it, the newest of a kind in place of those before; what still holds
// is said again to every session, since a scheduler that was restarted has forgotten it.
void Runtime::send_signal(const Signal& signal) {
  if (!scheduler_) return;
  switch (signal.kind) {
    case Signal::Kind::Replace:
      return scheduler_->say_surely("worker " + signal.worker.value(), kSignalType, signal_text(signal));
    case Signal::Kind::NoFreeSlot:
    case Signal::Kind::SlotFree:
      return scheduler_->say_surely("slots " + signal.job_host.text(), kSignalType, signal_text(signal));
    case Signal::Kind::ScaleUp:
    case Signal::Kind::ScaleDown:
      return scheduler_->say_surely("scale " + signal.job_host.text(), kSignalType, signal_text(signal));
  }
}

void Runtime::on_applications(std::string_view payload) {
  auto applications = read_assigned_applications(payload);
  if (!applications) {
    return log_.error("the scheduler's word on what is served here cannot be read",
                      {{"reason", applications.error().reason}});
  }
  log_.debug("the scheduler says what is served here",
             {{"applications", std::uint64_t{applications->size()}}});
  desk_.set_assigned(*std::move(applications));
  unseen_.begin(awaited_applications(), loop_.now().steady);
  unseen_alarm_.set(unseen_.poll_timeout());
  loop_.turn_again();
}

void Runtime::on_scheduler_connected() {
  send_status(true);
  for (const Signal& signal : desk_.core().standing_signals()) send_signal(signal);
}

void Runtime::on_grants(std::string_view payload) {
  auto update = read_grants(payload);
  if (!update) {
    return log_.error("the scheduler's word on who serves what cannot be read",
                      {{"reason", update.error().reason}});
  }
  log_.debug("the scheduler says who serves what", {{"granted", std::uint64_t{update->granted.size()}},
                                                    {"revoked", std::uint64_t{update->revoked.size()}},
                                                    {"whole", update->is_whole}});
  desk_.apply_grants(*std::move(update));
  unseen_.update(awaited_applications());
  if (front_) front_->handle_changed();
}

void Runtime::on_order(const OrderKey& key, std::string_view type, std::string_view payload) {
  Result<Done> done = Done{};
  if (type == kInvokeType) {
    done = invoke(key, payload);
    if (done) return;  // its outcome answers
  } else if (type == kSplitType) {
    done = split(payload);
  } else if (type == kDrainWorkerType) {
    const auto command = read_drain_worker_command(payload);
    done = command ? desk_.core().drain(WorkerId{command->worker}, "the scheduler asks for it",
                                        loop_.now().steady)
                   : Result<Done>{command.error()};
  } else {
    done = Error{ErrorCode::CmdUnknown, Blame::Peer, "this runtime has no command of this type"};
  }
  if (done) {
    log_.info("an order of the scheduler is done", {{"type", type}, {"id", key.id}, {"corr", key.corr}});
  } else {
    log_.warn("an order of the scheduler is refused", {{"type", type},
                                                       {"id", key.id},
                                                       {"corr", key.corr},
                                                       {"code", to_string(done.error().code)},
                                                       {"reason", done.error().reason}});
  }
  scheduler_->answer(key, done ? done_result() : refused_result(done.error()));
}

Result<Done> Runtime::split(std::string_view payload) {
  auto command = read_split_command(payload);
  if (!command) return command.error();
  std::optional<JobHostKey> key;
  if (command->metadata_version) {
    key = JobHostKey{command->application_id, *command->metadata_version};
  } else {
    key = desk_.core().find_job_host(command->application_id);
  }
  if (!key) {
    return Error{ErrorCode::CmdUnknown, Blame::Peer, "no worker here holds " + command->application_id};
  }
  return desk_.core().set_split(*key, std::move(command->weights));
}

Result<Done> Runtime::hold_early(const OrderKey& key, const InvokeCommand& command,
                                 std::string_view payload) {
  const Instant now = loop_.now().steady;
  if (is_stopping_) return Error{ErrorCode::SessionDraining, Blame::Local, "this runtime is stopping"};
  if (!early_.is_open(now) && desk_.core().is_assigned(command.application_id)) {
    return Error{ErrorCode::LimitCapacity, Blame::Local,
                 "no worker of " + command.application_id + " is back yet; try again later"};
  }
  if (!early_.is_open(now)) {
    return Error{ErrorCode::CmdUnknown, Blame::Peer, "no worker here holds " + command.application_id};
  }
  if (early_.is_full()) {
    return Error{ErrorCode::LimitCapacity, Blame::Local,
                 "no worker of " + command.application_id + " is here yet, and as many orders wait as may"};
  }
  log_.debug(
      "an order waits for the first worker of its application",
      {{"type", kInvokeType}, {"id", key.id}, {"corr", key.corr}, {"application", command.application_id}});
  early_.hold({key.id, key.corr, command.application_id, std::string{payload}}, command.timeout, now);
  early_alarm_.set(early_.poll_timeout());
  return Done{};
}

void Runtime::begin_early() {
  const std::vector<EarlyOrder> known = early_.take_known([this](std::string_view application_id) {
    return desk_.core().find_job_host(application_id).has_value();
  });
  if (known.empty()) return;
  for (const EarlyOrder& each : known) on_order({each.id, each.corr}, kInvokeType, each.payload);
  early_alarm_.set(early_.poll_timeout());
  loop_.turn_again();  // what the core now has to say is of the next turn
}

void Runtime::give_up_early(const std::vector<EarlyOrder>& orders, const Error& why) {
  for (const EarlyOrder& each : orders) scheduler_->answer({each.id, each.corr}, refused_result(why));
  early_alarm_.set(early_.poll_timeout());
}

// An order for a function that streams: its request is given to the worker as any other, and the answer is
// put where one that does not stream has it.
CoreDesk::CallDone Runtime::stream_invocation(CoreDesk::Call& call, const OrderKey& key, HttpInput input) {
  struct Parts {
    std::optional<Outcome> outcome = {};
    std::vector<std::string> logs = {};
    std::optional<HttpOutput> output = {};
    bool is_answered = false;
  };
  auto parts = std::make_shared<Parts>();
  const auto settle = [this, key, parts] {
    if (!parts->outcome || !parts->is_answered) return;
    // Once: an outcome that is told to the stream makes it answer from inside that call.
    Outcome outcome = *std::exchange(parts->outcome, std::nullopt);
    if (parts->output) outcome.body = write_http_output(*parts->output);
    const bool is_broken = outcome.settlement == Settlement::Complete && !parts->output;
    const Error broken{ErrorCode::LimitFrame, Blame::Local,
                       "the function ran, but its answer is not whole or too large for a message"};
    scheduler_->answer(
        key, is_broken ? refused_result(broken) : outcome_result(outcome, parts->logs, kResultBytesMax));
    loop_.turn_again();
  };
  auto exchange = std::make_shared<HeldExchange>(loop_, std::move(input.body), kResultBytesMax / 2,
                                                 [parts, settle](std::optional<HttpOutput> output) {
                                                   parts->output = std::move(output);
                                                   parts->is_answered = true;
                                                   settle();
                                                 });
  function_rpc::HttpStreamHead head{.method = input.method, .target = "/" + call.function};
  head.headers = {
      {"content-type", input.content_type}, {"x-forwarded-host", "localhost"}, {"x-forwarded-proto", "http"}};
  head.has_body = true;
  const auto explain = [](const Outcome& outcome) {
    if (outcome.settlement != Settlement::Complete) return http_failure(outcome, true);
    HttpResponse nothing;
    nothing.status = 204;
    return nothing;
  };
  auto streamed = std::make_shared<StreamedCall>(
      static_cast<StreamedCallHost&>(*this),
      StreamedCall::Request{std::move(head), exchange, {}, explain, [](std::uint16_t) {}});
  exchange->set_events(streamed);
  call.stream = streamed;
  return [parts, settle, streamed](const Outcome& outcome, const std::vector<std::string>& logs) {
    parts->outcome = outcome;
    parts->logs = logs;
    streamed->handle_outcome(outcome);
    settle();
  };
}

Result<Done> Runtime::invoke(const OrderKey& key, std::string_view payload) {
  auto command = read_invoke_command(payload);
  if (!command) return command.error();
  const auto job_host = desk_.core().find_job_host(command->application_id);
  if (!job_host) return hold_early(key, *command, payload);
  const std::vector<FunctionRef> functions = desk_.core().functions(*job_host);
  const auto function = std::ranges::find_if(
      functions, [&](const FunctionRef& each) { return each->name == command->function; });
  if (function == functions.end()) {
    return Error{ErrorCode::CmdUnknown, Blame::Peer,
                 job_host->text() + " has no function '" + command->function + "'"};
  }
  const Binding* const trigger = (*function)->trigger();
  const TraceContext trace = continue_trace(command->trace_parent, {}, random_);
  std::string body;
  std::optional<HttpInput> streamed;
  if (is_http_trigger(trigger)) {
    HttpInput input{
        .binding = trigger->name,
        .method = "POST",
        .url = "http://localhost/" + (*function)->name,
        .content_type = command->data.kind == Datum::Kind::Json ? "application/json" : "text/plain",
        .body = std::move(command->data.value),
        .trace = trace};
    input.headers.emplace_back("content-type", input.content_type);
    static const TextMap kNone;
    const TextMap* const told = desk_.core().capabilities(*job_host);
    const TextMap& capabilities = told == nullptr ? kNone : *told;
    body = write_http_invocation_body(input, capabilities);
    if (const auto place = capabilities.find(function_rpc::kHttpUriCapability); place != capabilities.end()) {
      if (place->second != function_rpc::kHttpOnChannel) {
        return Error{ErrorCode::ProtoState, Blame::Peer,
                     "the function's worker streams HTTP, which needs an agent beside it"};
      }
      streamed = std::move(input);
    }
  } else {
    body = write_invocation_body({.binding = trigger == nullptr ? std::string{} : trigger->name,
                                  .data = std::move(command->data),
                                  .trace = trace});
  }
  const bool is_sticky = config_.core.routing == RoutingStrategy::Sticky;
  CoreDesk::Call call{.job_host = *job_host,
                      .function = command->function,
                      .body = std::make_shared<const std::string>(std::move(body)),
                      .source = "invoke",
                      .trace_parent = trace.parent,
                      .order_type = std::string{kInvokeType},
                      .order_id = key.id,
                      .order_corr = key.corr,
                      .patience = command->timeout,
                      .sticky_key = is_sticky ? std::move(command->sticky_key) : std::string{},
                      .wants_logs = true};
  CoreDesk::CallDone done = [this, key](const Outcome& outcome, const std::vector<std::string>& logs) {
    scheduler_->answer(key, outcome_result(outcome, logs, kResultBytesMax));
  };
  if (streamed) done = stream_invocation(call, key, *std::move(streamed));
  const auto taken = desk_.submit(std::move(call), std::move(done));
  return taken ? Result<Done>{Done{}} : Result<Done>{taken.error()};
}

}  // namespace windlass::runtime
