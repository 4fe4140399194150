#include "worker-agent/shell/worker_host.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "protocol/adapters/socket_owner.h"
#include "protocol/function_rpc/peek.h"
#include "worker-agent/adapters/rpc_messages.h"
#include "worker-agent/adapters/socket_holder.h"
#include "worker-agent/core/result_text.h"
#include "worker-agent/core/runtime_choice.h"

namespace windlass::agent {
namespace {

// How long a worker that ended may still be heard: its stream's end follows that of the process at once.
constexpr Duration kLastWordsMax = milliseconds{200};
constexpr Duration kHttpPortPatience = seconds{10};  // for a worker's own port to answer
constexpr Duration kHttpPortCheck = seconds{1};      // whose it is, is looked up again after

RelayOptions relay_options(const AgentSettings& settings, const std::string& instance_id) {
  const LanguageWorkerSettings& worker = *settings.worker;
  RelayOptions options;
  options.instance_id = instance_id;
  options.language = worker.config.language;
  options.start_timeout = worker.config.start_timeout.value_or(options.start_timeout);
  options.init_timeout = worker.config.init_timeout.value_or(options.init_timeout);
  options.reload_timeout = worker.config.reload_timeout.value_or(options.reload_timeout);
  options.backoff_first = worker.restart_first;
  options.backoff_cap = worker.restart_cap;
  return options;
}

}  // namespace

Result<std::unique_ptr<WorkerHost>> WorkerHost::open(const AgentSettings& settings,
                                                     const std::string& instance_id, std::uint64_t seed,
                                                     const Place& place, HostDuties duties) {
  auto confinement = WorkerConfinement::open(settings, place.is_alone, place.log);
  if (!confinement) return confinement.error();
  auto assignment = AssignmentFile::open(settings.state_folder, settings.keys_file, instance_id);
  if (!assignment) return assignment.error();
  std::unique_ptr<WorkerHost> host{new WorkerHost{settings, instance_id, seed, place, std::move(duties),
                                                  *std::move(confinement), *std::move(assignment)}};
  const WorkerConfinement& confined = host->confinement_;
  place.metrics.set_confinement(to_string(confined.how().kind));
  place.metrics.set_relay({});
  auto packages = PackageStore::open({.folder = settings.state_folder + "/packages",
                                      .group = confined.group(),
                                      .closes_to_self = confined.how().kind == ConfinementKind::Namespace});
  if (!packages) return packages.error();
  host->packages_ = *std::move(packages);
  auto tls = TlsContext::client(settings.runtime.tls);
  if (!tls) return tls.error();
  host->tls_ = *std::move(tls);
  EventLoop& loop = place.loop;
  // A turn is enough: every turn's end asks for what came.
  auto server = FunctionRpcServer::listen(
      {.message_bytes_max = settings.worker->message_bytes_max,
       .worker_user = confined.user(),
       .worker_process = [raw = host.get()] { return raw->process_ ? raw->process_->pid() : 0; }},
      [&loop] { loop.post([] {}); });
  if (!server) return server.error();
  host->server_ = *std::move(server);
  auto process = LanguageWorker::open(
      settings.worker->output,
      {.line = [raw = host.get()](const WorkerLine& line) { raw->tell_line(line); },
       .ended = [raw = host.get(),
                 &loop](const WorkerEnd& end) { loop.post([raw, end] { raw->handle_ended(end); }); }});
  if (!process) return process.error();
  host->process_ = *std::move(process);
  return host;
}

WorkerHost::WorkerHost(const AgentSettings& settings, const std::string& instance_id, std::uint64_t seed,
                       const Place& place, HostDuties duties, WorkerConfinement confinement,
                       AssignmentFile assignment)
    : settings_(*settings.worker),
      confinement_(std::move(confinement)),
      assignment_(std::move(assignment)),
      supervisor_(settings.watcher),
      runtime_(settings.runtime),
      tenant_(settings.tenant),
      state_folder_(settings.state_folder),
      instance_id_(instance_id),
      seed_(seed),
      place_(place),
      duties_(std::move(duties)),
      relay_(relay_options(settings, instance_id), settings.runtime.target, place.loop.now().steady),
      alarm_(place.loop,
             [this] {
               is_changed_ = true;
               relay_.handle_timeout(now());
               if (fetch_) fetch_->handle_timeout(now());
             }),
      redial_(place.loop,
              [this] {
                is_redialling_ = false;
                open_link();
              }),
      last_words_(place.loop, [this] { tell_ended(); }),
      http_(
          place.loop, [this](std::string message) { to_runtime(std::move(message)); },
          [this](const HttpPlace& port) { return is_workers_port(port); }) {}

WorkerHost::~WorkerHost() {
  server_.reset();  // it asks for the process
}

bool WorkerHost::is_user_shared() const {
  return confinement_.user() == ::geteuid();
}

// Everybody on this machine listens on the same loopback. A worker that names somebody else's port would have
// us ask in its place.
bool WorkerHost::is_workers_port(const HttpPlace& place) {
  if (http_checked_until_ && now() < *http_checked_until_) return true;
  const bool is_six = place.address.find(':') != std::string::npos;
  const std::string address =
      (is_six ? "[" + place.address + "]" : place.address) + ":" + std::to_string(place.port);
  const auto owners = listener_owners(address);
  const int process = process_->pid();
  const bool is_its = std::ranges::all_of(owners, [&](const SocketOwner& each) {
    if (!is_user_shared()) return each.user == confinement_.user();
    return process != 0 && holds_socket(process, each.inode) == true;
  });
  if (owners.empty() ? tells_of_sockets() : !is_its) return false;
  http_checked_until_ = now() + kHttpPortCheck;
  return true;
}

void WorkerHost::handle(const WorkerCommand& command) {
  is_changed_ = true;
  // What never can be dialled changes nothing.
  const RuntimeTarget* target = nullptr;
  if (const auto* reassign = std::get_if<Reassign>(&command.what)) target = &reassign->runtime;
  const auto* specialize = std::get_if<Specialize>(&command.what);
  if (specialize != nullptr && specialize->runtime) target = &*specialize->runtime;
  if (target != nullptr) {
    if (const auto checked = check_runtime_url(target->url); !checked) {
      return run(CommandDone{command.id, refusal_text(ErrorCode::ProtoSchema, checked.error().reason), {}});
    }
    if (const auto chosen = check_runtime_choice(target->url, runtime_.target.url, runtime_.needs_tls);
        !chosen) {
      return run(CommandDone{command.id, refusal_text(chosen.error().code, chosen.error().reason), {}});
    }
  }
  relay_.handle(command, now());
  run_steps();
}

Result<Done> WorkerHost::reload_certificates(const std::string& fingerprint) {
  if (const auto reloaded = tls_->reload(); !reloaded) return reloaded.error();
  runtime_.fingerprint = fingerprint;
  if (link_) link_->set_fingerprint(fingerprint);
  return Done{};
}

Result<Done> WorkerHost::reload_token() {
  SecretFile file = read_secret_file(runtime_.token_file);
  if (!file.problem.empty()) return Error{ErrorCode::Internal, Blame::Local, file.problem};
  runtime_.token = std::move(file.secret);
  if (link_) link_->set_auth_token(runtime_.token);
  return Done{};
}

void WorkerHost::set_auth_token(const std::string& token) {
  if (!runtime_.token_file.empty()) return;  // it has one of its own
  runtime_.token = token;
  if (link_) link_->set_auth_token(token);
}

void WorkerHost::set_load(const LoadFacts& load) {
  if (link_) link_->set_load(load);
}

void WorkerHost::turn() {
  run_steps();
  see_to_link();
  if (link_) link_->take(server_->is_full());
  server_->flush();  // the worker begins while this thread does the rest
  pump_worker();
  see_to_end();
  run_steps();
  see_to_drain();
  if (link_) {
    // What is sent may say something new at once, as in every driver's turn.
    do {
      link_->flush();
    } while (link_ && link_->take(server_->is_full()));
  }
  is_leaving_ = true;
  for (const auto& link : leaving_) {
    do {
      link->flush();
    } while (link->take(false));
  }
  is_leaving_ = false;
  see_to_fetch();
  run_steps();
  server_->flush();
  tell_status();
  count();
  std::optional<Instant> next = relay_.poll_timeout();
  if (const auto due = fetch_ ? fetch_->poll_timeout() : std::nullopt; due && (!next || *due < *next))
    next = due;
  alarm_.set(next);
}

void WorkerHost::on_runtime_opened() {
  if (is_leaving_) return;
  is_changed_ = true;
  held_.clear();
  http_.cut_all();
  relay_.handle_session_opened(now());
  run_steps();
}

void WorkerHost::on_runtime_ended() {
  if (is_leaving_) return;
  is_changed_ = true;
  held_.clear();
  http_.cut_all();
  relay_.handle_session_ended(now());
}

void WorkerHost::on_runtime_message(std::string_view message) {
  if (is_leaving_) return;
  const auto peeked = function_rpc::peek(message);
  if (!peeked) {
    place_.log.error("the runtime sent what is no FunctionRpc message; it is left out",
                     {{"reason", peeked.error().reason}});
    return;
  }
  using function_rpc::Content;
  if (peeked->content == Content::HttpStream) {
    const auto frame = function_rpc::read_http_stream(peeked->body);
    if (frame) return http_.handle(*frame);
    place_.log.error("the runtime sent an invalid HTTP stream frame; the agent ignores it",
                     {{"reason", frame.error().reason}});
    return;
  }
  std::string init;
  switch (relay_.from_runtime(*peeked, now())) {
    case Route::Forward:
      if (peeked->content == Content::WorkerInitRequest) {
        message = init = with_worker_directory(message, settings_.config.folder);
      }
      ++counts_.to_worker;
      counts_.to_worker_bytes += message.size();
      if (peeked->content == Content::FunctionLoadRequest ||
          peeked->content == Content::FunctionLoadRequestCollection) {
        for (std::string& name : functions_to_load(message)) relay_.handle_function_loaded(std::move(name));
      }
      // A stream that is over says so by itself.
      if (!server_->send(message)) handle_unwritten(message);
      return;
    case Route::Take: {
      is_changed_ = true;
      const RpcVerdict verdict = specialized_verdict(peeked->body);
      relay_.handle_specialized_answer(verdict.is_good, verdict.reason, now());
      return run_steps();
    }
    case Route::Drop:
    case Route::Refuse:
      is_changed_ = true;
      ++counts_.dropped;
      return run_steps();
  }
}

void WorkerHost::pump_worker() {
  if (!send_held()) return;
  if (pending_at_ == pending_.size()) {
    FunctionRpcServer::Polled polled = server_->poll();
    pending_ = std::move(polled.messages);
    pending_at_ = 0;
    if (!polled.worker_id.empty()) has_stream_ = true;
    is_stream_over_ = is_stream_over_ || polled.is_over;
    for (const std::string& message : polled.unwritten) handle_unwritten(message);
  }
  std::size_t bytes = 0;
  while (pending_at_ < pending_.size()) {
    const std::size_t size = pending_[pending_at_].size();
    if (!pass(pending_[pending_at_])) break;
    bytes += size;
    ++pending_at_;
    if (!held_.empty()) break;
  }
  if (bytes > 0) server_->consumed(bytes);
  if (pending_at_ == pending_.size() && std::exchange(is_stream_over_, false)) {
    is_changed_ = true;
    has_stream_ = false;
    relay_.handle_stream_closed(now());
    run_steps();
  }
}

void WorkerHost::handle_unwritten(std::string_view message) {
  const auto peeked = function_rpc::peek(message);
  const bool is_request = peeked && peeked->content == function_rpc::Content::InvocationRequest;
  if (is_request) relay_.handle_unwritten(peeked->invocation_id);
}

// What its stream still holds came before its end, and may be the answer to an invocation.
void WorkerHost::handle_ended(const WorkerEnd& end) {
  ended_ = end;
  last_words_.set(now() + kLastWordsMax);
  pump_worker();
  see_to_end();
}

void WorkerHost::see_to_end() {
  if (ended_ && !has_stream_ && pending_at_ == pending_.size()) tell_ended();
}

void WorkerHost::tell_ended() {
  last_words_.set(std::nullopt);
  if (!ended_) return;
  is_changed_ = true;
  relay_.handle_worker_ended(*std::exchange(ended_, std::nullopt), now());
}

// False: the runtime's link takes no more now.
bool WorkerHost::pass(std::string& message) {
  auto peeked = function_rpc::peek(message);
  if (!peeked) {
    tell_refused(peeked.error().reason);
    return true;
  }
  using function_rpc::Content;
  if (peeked->content == Content::HttpStream) {
    tell_refused("it is a piece of an HTTP stream, which only an agent sends");
    return true;
  }
  if (peeked->content == Content::WorkerInitResponse ||
      peeked->content == Content::FunctionEnvironmentReloadResponse) {
    if (!see_to_http(message)) return false;
    peeked = function_rpc::peek(message);
  }
  if (link_ && link_->waiting_messages() >= kLinkQueueMessagesMax) return false;
  const std::size_t size = message.size();
  switch (relay_.from_worker(*peeked, message, now())) {
    case Route::Forward:
      ++counts_.to_runtime;
      counts_.to_runtime_bytes += size;
      to_runtime(std::move(message));
      return true;
    case Route::Take: {
      is_changed_ = true;
      const RpcVerdict verdict = reload_verdict(peeked->body);
      relay_.handle_reload_answer(verdict.is_good, verdict.reason, peeked->body, now());
      run_steps();
      return true;
    }
    case Route::Drop:
      is_changed_ = true;
      ++counts_.dropped;
      run_steps();
      return true;
    case Route::Refuse:
      tell_refused("it is none that a language worker may send now, content " +
                   std::to_string(static_cast<std::uint32_t>(peeked->content)));
      return true;
  }
  return true;
}

// Functions choose how many there are; the log does not grow with them.
void WorkerHost::tell_refused(const std::string& reason) {
  ++counts_.refused;
  const auto left_out = refusals_.note(now());
  if (!left_out) return;
  place_.log.warn("a message of the language worker is not passed on",
                  {{"worker", relay_.status().worker_id}, {"reason", reason}, {"left_out", *left_out}});
}

// A worker that takes requests at a port of its own is ready once that port answers; the runtime is told to
// send them on our channel. False: not yet.
bool WorkerHost::see_to_http(std::string& message) {
  const std::string uri = http_uri_of(message);
  if (uri.empty() || uri == function_rpc::kHttpOnChannel) return true;
  const auto place = place_of_http_uri(uri);
  if (place && http_port_ == HttpPort::Unasked) {
    http_port_ = HttpPort::Asked;
    // Before the worker's own time is over, so that the reason is told.
    const Duration patience =
        std::min(kHttpPortPatience, settings_.config.init_timeout.value_or(kHttpPortPatience * 2) / 2);
    http_.probe(*place, patience, [this](bool answers) {
      if (http_port_ == HttpPort::Asked) http_port_ = answers ? HttpPort::Answers : HttpPort::Silent;
    });
  }
  if (place && http_port_ == HttpPort::Asked) return false;
  std::string problem;
  if (!place) {
    problem = place.error().reason;
  } else if (http_port_ == HttpPort::Silent) {
    problem = "the worker says that it takes HTTP at " + uri + ", and nobody answers there";
  } else if (http_checked_until_.reset(); !is_workers_port(*place)) {
    problem = "the worker says that it takes HTTP at " + uri + ", where another process listens";
  } else {
    http_.set_place(*place);
  }
  if (!problem.empty())
    place_.log.error("HTTP cannot be streamed to the language worker", {{"reason", problem}});
  http_port_ = HttpPort::Unasked;
  message = with_http_uri(message, function_rpc::kHttpOnChannel, problem);
  return true;
}

void WorkerHost::to_runtime(std::string message) {
  if (!link_) return;
  if (held_.empty()) {
    const auto sent = link_->send(message);
    if (sent) return;
    if (sent.error().code != ErrorCode::SessionWouldBlock) {
      place_.log.error("a message of the language worker cannot be sent", {{"reason", sent.error().reason}});
      return;
    }
  }
  held_.push_back(std::move(message));
}

bool WorkerHost::send_held() {
  while (!held_.empty()) {
    if (!link_) {
      held_.clear();
      return true;
    }
    const auto sent = link_->send(held_.front());
    if (!sent && sent.error().code == ErrorCode::SessionWouldBlock) return false;
    held_.pop_front();
  }
  return true;
}

void WorkerHost::count() {
  counts_.waiting_for_runtime = (link_ ? link_->waiting_messages() : 0) + (pending_.size() - pending_at_);
  counts_.waiting_for_worker = server_->waiting_messages();
  counts_.restarts = relay_.restarts();
  counts_.invocations = relay_.invocations();
  place_.metrics.set_relay(counts_);
}

}  // namespace windlass::agent
