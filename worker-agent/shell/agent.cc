#include "worker-agent/shell/agent.h"

#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "protocol/base/version.h"
#include "worker-agent/adapters/instance_id.h"

namespace windlass::agent {
namespace {

std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  if (::getrandom(&seed, sizeof seed, 0) != sizeof seed) seed = static_cast<std::uint64_t>(::getpid());
  return seed;
}

AgentConfig core_config(const AgentSettings& settings) {
  AgentConfig config = settings.core;
  config.result_id_prefix = "r" + std::to_string(random_seed());
  return config;
}

WorkerOptions worker_options(const AgentSettings& settings, const std::string& instance_id) {
  std::array<char, 256> host{};
  static_cast<void>(::gethostname(host.data(), host.size() - 1));
  WorkerOptions options;
  options.tenant = settings.tenant;
  options.instance_id = instance_id;
  options.auth_mode = settings.token.empty() ? AuthMode::Mtls : AuthMode::Token;
  options.auth_token = settings.token;
  options.fingerprint = settings.fingerprint;
  options.profile.worker_name = settings.worker_name;
  options.profile.version = version();
  options.profile.hostname = host.data();
  options.profile.max_parallel = settings.core.max_parallel;
  options.profile.runtimes = {"exec"};
  options.profile.payload_types = {std::string{kEcho}, std::string{kExec}};
  if (settings.worker) {
    const std::string& language = settings.worker->config.language;
    options.profile.runtimes.push_back(language);
    for (const std::string_view type : {kSpecialize, kReassign, kRelease, kResume, kPackagePart}) {
      options.profile.payload_types.emplace_back(type);
    }
  }
  return options;
}

}  // namespace

Result<std::unique_ptr<Agent>> Agent::open(AgentSettings settings, JsonLog& log) {
  const std::string folder = settings.state_folder;
  if (auto made = make_folder(folder); !made) return made.error();
  auto lock = lock_file(folder + "/agent.lock",
                        folder +
                            " is in use by another windlass-agent; stop it, or give this one its own folder "
                            "with worker.state_folder.");
  if (!lock) return lock.error();
  auto instance_id = load_instance_id(folder + "/worker_instance_id");
  if (!instance_id) return instance_id.error();
  log.set_common({{"tenant", settings.tenant}, {"sender.id", *instance_id}});
  std::unique_ptr<Agent> agent{new Agent{std::move(settings), log, *instance_id}};
  agent->lock_ = *std::move(lock);
  // Also without a language worker: that of another agent could read our files.
  agent->mark_ = mark_agent(::geteuid());
  if (auto opened = agent->open_state(); !opened) return opened.error();
  if (auto opened = agent->open_network(); !opened) return opened.error();
  if (auto opened = agent->open_worker(); !opened) return opened.error();
  return agent;
}

Agent::Agent(AgentSettings settings, JsonLog& log, const std::string& instance_id)
    : settings_(std::move(settings)),
      instance_id_(instance_id),
      log_(log),
      reloader_(loop_, log),
      core_(core_config(settings_), loop_.now().steady),
      endpoint_(worker_options(settings_, instance_id), settings_.session, random_seed()),
      session_alarm_(loop_, [this] { driver_->on_alarm(); }),
      core_alarm_(loop_, [this] { core_.handle_timeout(loop_.now().steady); }),
      load_alarm_(loop_, [this] { sample_load(); }),
      drain_alarm_(loop_, [this] { handle_stop(); }),
      leave_alarm_(loop_, [] {}),  // act() looks at the time
      certificates_(loop_, log,
                    [this](const std::string& what, double expires) {
                      metrics_.set_certificate_expiry(what, expires);
                    }),
      sampler_(settings_.state_folder) {
  loop_.add_turn_end(TurnPhase::Decide, *this);
}

Agent::~Agent() {
  loop_.remove_turn_end(TurnPhase::Decide, *this);
}

Result<Done> Agent::open_state() {
  const std::string path = settings_.state_folder + "/journal";
  auto journal = JournalFile::open(path);
  if (!journal) return journal.error();
  const Instant now = loop_.now().steady;
  auto recovered = core_.recover((*journal)->contents(), now);
  if (!recovered) {
    return Error{ErrorCode::StoreInvalid, Blame::Local,
                 path + " is damaged and was left as it is: " + recovered.error().reason +
                     "; restore it from a backup, or move it away if no command may have been under way."};
  }
  if (auto kept = (*journal)->keep(recovered->valid_bytes); !kept) return kept.error();
  journal_ = *std::move(journal);
  journal_->start([this](Result<Done> result) {
    loop_.post([this, result = std::move(result)] { handle_written(result); });
  });
  auto runner = CommandRunner::open({.folder = settings_.state_folder + "/runs",
                                     .watcher = settings_.watcher,
                                     .environment = settings_.exec_environment},
                                    [this](RunId run, RunOutcome outcome) {
                                      loop_.post([this, run = std::move(run), outcome = std::move(outcome)] {
                                        core_.handle_finished(run, outcome, loop_.now().steady);
                                      });
                                    });
  if (!runner) return runner.error();
  runner_ = *std::move(runner);
  std::vector<RunId> known;
  for (const Interrupted& each : recovered->interrupted) {
    if (runner_->adopt(each.run) == CommandRunner::Fate::NeverBegun) {
      core_.handle_never_begun(each, now);
      continue;
    }
    known.push_back(each.run);
    core_.handle_still_running(each);
    log_.info("a program of an earlier agent is waited for", {{"id", each.id}, {"corr", each.corr}});
  }
  runner_->remove_all_but(known);
  return Done{};
}

Result<Done> Agent::open_network() {
  watch_files();
  if (settings_.tls) {
    auto tls = TlsContext::client(*settings_.tls);
    if (!tls) return tls.error();
    tls_ = *std::move(tls);
  }
  auto client = WebSocketClient::create(loop_,
                                        {.address = settings_.scheduler,
                                         .tls = tls_.get(),
                                         .clear_text_anywhere = settings_.clear_text,
                                         .connection = client_connection(settings_.session.dead_link_after)},
                                        *this);
  if (!client) return client.error();
  client_ = *std::move(client);
  driver_ = std::make_unique<WorkerDriver>(endpoint_, decoder_, loop_.clock(), session_alarm_, *client_);
  if (settings_.metrics) {
    auto pages = MetricsPages::listen(
        loop_, *settings_.metrics,
        {.metrics = [this] { return metrics_.text(); },
         .is_ready = [this] { return endpoint_.state() == SessionState::Ready; },
         .is_user_shared = [this] { return host_ != nullptr && host_->is_user_shared(); }});
    if (!pages) return pages.error();
    pages_ = *std::move(pages);
    log_.info("metrics are served", {{"port", std::uint64_t{pages_->port()}}});
    certificates_.add("metrics", pages_->tls());
  }
  certificates_.add("tls", tls_.get());
  certificates_.look();
  return Done{};
}

Result<Done> Agent::open_worker() {
  if (!settings_.worker) return Done{};
  auto host = WorkerHost::open(
      settings_, instance_id_, random_seed(), {loop_, decoder_, log_, metrics_, mark_.is_alone},
      {.command_done =
           [this](const CommandDone& done) {
             core_.handle_worker_command_done(done.id, done.result, done.took, loop_.now().steady);
           },
       .send = [this](Message&& message) { return send_aside(std::move(message)); }});
  if (!host) return host.error();
  host_ = *std::move(host);
  return Done{};
}

int Agent::run() {
  log_.info("the agent starts", {{"version", version()}, {"scheduler", settings_.scheduler.host}});
  if (settings_.has_load_limits) {
    log_.warn(
        "[load] mem_pct_max and disk_pct_max no longer have any effect; remove them. The scheduler and the "
        "runtime now apply their own thresholds.");
  }
  endpoint_.start(loop_.now());
  sample_load();
  if (host_) host_->start();
  loop_.turn_again();  // the first dial waits for nothing
  loop_.run();
  log_.info("the agent ends", {{"exit_code", static_cast<std::uint64_t>(exit_code_)}});
  return exit_code_;
}

void Agent::stop() {
  loop_.post([this] { handle_stop(); });
}

void Agent::reload() {
  loop_.post([this] { reloader_.reload(); });
}

void Agent::on_opened(ConnectionId id, WebSocketConnection& connection) {
  driver_->on_opened(id, connection);
}

void Agent::on_message(ConnectionId id, BytesView message, MessageKind kind) {
  driver_->on_message(id, message, kind);
}

void Agent::on_idle(ConnectionId) {
  idle_ = true;
}

void Agent::on_blocked(ConnectionId id) {
  driver_->on_blocked(id);
}

void Agent::on_writable(ConnectionId id) {
  driver_->on_writable(id);
}

void Agent::on_closed(ConnectionId id, const CloseFacts& facts) {
  static constexpr std::string_view kInitiators[] = {"local", "peer", "network"};
  metrics_.add_close(facts.code, kInitiators[static_cast<std::size_t>(facts.initiator)]);
  if (facts.retry_after) return driver_->on_put_off(id, facts.reason, *facts.retry_after);
  driver_->on_closed(id, facts.code, facts.reason);
}

void Agent::on_turn_end(TurnPhase) {
  // What is sent may say something new at once; that is bounded, because peers answer in later turns.
  do {
    act();
    driver_->flush(std::exchange(idle_, false));
  } while (take_events());
  core_alarm_.set(core_.poll_timeout());
  metrics_.set_inflight(inflight());
  metrics_.set_results_waiting(core_.results_waiting());
  metrics_.set_heartbeats(driver_->counters().heartbeats_sent, driver_->counters().heartbeats_degraded);
  if (const Session* session = endpoint_.session()) {
    const StreamCounters& stream = session->stream().counters();
    metrics_.set_frames({endpoint_.handle().value(), stream.duplicates, stream.retransmits,
                         stream.spurious_retransmits, stream.outside_window});
  }
  metrics_.set_session_ready(endpoint_.session() != nullptr && endpoint_.session()->is_connected());
  // The worker is given its time too; drain_alarm_ bounds it.
  if (ending_ || (endpoint_.state() == SessionState::Closed && is_worker_done())) loop_.stop();
}

bool Agent::is_worker_done() const {
  return !host_ || !host_->is_draining() || host_->is_drained();
}

bool Agent::take_events() {
  bool is_any = false;
  while (auto event = driver_->poll_event()) {
    is_any = true;
    tell(*event);
    if (host_) {
      const auto* established = std::get_if<Established>(&event->event);
      if (established != nullptr && !established->resumed) host_->handle_scheduler_session(true);
      if (std::holds_alternative<Ended>(event->event)) host_->handle_scheduler_session(false);
      // The scheduler's drain ends this process, so the worker's answers are waited for too.
      if (const auto* drain = std::get_if<DrainRequested>(&event->event)) {
        host_->drain();
        if (!stopping_) drain_alarm_.set(loop_.now().steady + drain->deadline + kDrainGrace);
      }
    }
    core_.handle(*std::move(event), loop_.now().steady);
  }
  return is_any;
}

void Agent::act() {
  const Now now = loop_.now();
  take_events();
  if (host_) act_for_worker();
  if (auto batch = core_.poll_batch(now.steady)) journal_->write(*std::move(batch));
  while (auto run = core_.poll_run()) runner_->run(*std::move(run));
  send_results();
  while (const auto own = core_.poll_own()) endpoint_.own(own->session, own->next, now);
  while (const auto run = core_.poll_finished_run()) runner_->remove(*run);
  while (const auto note = core_.poll_note()) tell(*note);
  load_.inflight = inflight();
  endpoint_.set_load(load_);
  if (host_) host_->set_load(load_);
  if (core_.poll_drained()) endpoint_.complete_drain(now);
  leave_if_done();
}

// With the scheduler away nobody can be told that this worker goes, and nobody waits for more. One that is
// connected and stays silent is given a moment.
void Agent::leave_if_done() {
  const Session* const session = endpoint_.session();
  if (session == nullptr || !core_.has_nothing_to_say() || !is_worker_done()) return;
  const Now now = loop_.now();
  if (!leave_at_) {
    leave_at_ = now.steady + kDrainAnswerWait;
    leave_alarm_.set(leave_at_);
  }
  if (!session->is_connected() || now.steady >= *leave_at_) endpoint_.stop("the agent is drained", now);
}

// What this worker does now: commands, and invocations of its runtime.
std::uint64_t Agent::inflight() const {
  return core_.inflight() + (host_ ? host_->invocations() : 0);
}

void Agent::act_for_worker() {
  while (const auto part = core_.poll_part()) host_->handle_part(*part);
  do {
    while (const auto command = core_.poll_worker_command()) host_->handle(*command);
    host_->turn();
  } while (core_.has_worker_command());  // one that was done makes room for the next
}

bool Agent::send_aside(Message&& message) {
  return core_.has_session() && endpoint_.send(std::move(message), loop_.now()).has_value();
}

void Agent::send_results() {
  while (const Message* next = core_.poll_result()) {
    Message message = *next;
    const auto seq = endpoint_.send(std::move(message), loop_.now());
    if (seq) {
      core_.handle_sent(*seq);
    } else if (seq.error().code == ErrorCode::LimitFrame || seq.error().code == ErrorCode::ProtoVersion ||
               seq.error().code == ErrorCode::ProtoSchema) {
      core_.handle_unsendable(seq.error().code, seq.error().reason);
    } else {
      core_.handle_blocked();
    }
  }
}

void Agent::handle_written(const Result<Done>& result) {
  const bool was_healthy = std::exchange(load_.healthy, result.has_value());
  if (result) return core_.handle_committed(loop_.now().steady);
  if (result.error().code != ErrorCode::StoreFull) return fail(result.error().reason);
  if (!was_healthy) return;  // it is tried again each second, and said once
  log_.error("the journal cannot grow; commands wait until there is room",
             {{"code", to_string(result.error().code)}, {"reason", result.error().reason}});
}

void Agent::fail(std::string_view sentence) {
  log_.error("the agent cannot go on", {{"reason", sentence}});
  exit_code_ = kExitFailed;
  ending_ = true;
}

}  // namespace windlass::agent
