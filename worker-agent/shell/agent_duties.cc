// What the agent does beside commands: drains, reloads, measures the machine, and says what happens.
#include "worker-agent/shell/agent.h"

#include "protocol/adapters/certificate.h"

namespace windlass::agent {
namespace {

std::string_view name_of(const AgentNote& note) {
  const bool is_program = note.type == kExec;
  switch (note.kind) {
    case AgentNote::Kind::Received:
      return "a command came";
    case AgentNote::Kind::Started:
      return is_program ? "a program starts" : "a command begins";
    case AgentNote::Kind::Finished:
      return is_program ? "a program ended" : "a command is done";
    case AgentNote::Kind::Answered:
      return "a result was sent";
    case AgentNote::Kind::Repeated:
      return "a command came again and is answered from the journal";
    case AgentNote::Kind::Refused:
      return "a command is refused";
    case AgentNote::Kind::Dropped:
      return "a command that had not begun is given back with its session";
  }
  return "";
}

std::uint64_t in_milliseconds(Duration duration) {
  return static_cast<std::uint64_t>(duration / milliseconds{1});
}

}  // namespace

void Agent::handle_stop() {
  if (std::exchange(stopping_, true)) {
    log_.warn("told to stop at once");
    runner_->stop_all();
    endpoint_.stop("the agent stops", loop_.now());
    ending_ = true;
    return;
  }
  const Duration deadline = settings_.session.drain_deadline;
  log_.info("drains", {{"deadline_ms", in_milliseconds(deadline)}, {"inflight", core_.inflight()}});
  core_.start_drain();
  if (host_) host_->drain();
  endpoint_.drain("the agent was told to stop", deadline, loop_.now());
  drain_alarm_.set(loop_.now().steady + deadline + kDrainGrace);
}

void Agent::watch_files() {
  if (!settings_.token_file.empty()) {
    reloader_.add("token", {settings_.token_file}, [this] { return reload_token(); });
  }
  if (settings_.worker && !settings_.runtime.token_file.empty()) {
    reloader_.add("runtime token", {settings_.runtime.token_file},
                  [this] { return host_ ? host_->reload_token() : Result<Done>{Done{}}; });
  }
  if (settings_.tls) {
    std::vector<std::string> files;
    if (!settings_.tls->authority_file.empty()) files.push_back(settings_.tls->authority_file);
    if (const auto& identity = settings_.tls->identity) {
      files.insert(files.end(), {identity->certificate_file, identity->key_file});
    }
    reloader_.add("certificates", std::move(files), [this] { return reload_certificates(); });
  }
  if (settings_.metrics) {
    const MetricsSettings& metrics = *settings_.metrics;
    std::vector<std::string> files;
    for (const std::string& file : {metrics.access.token_file, metrics.access.tokens_file}) {
      if (!file.empty()) files.push_back(file);
    }
    if (metrics.tls) {
      files.insert(files.end(), {metrics.tls->identity.certificate_file, metrics.tls->identity.key_file});
    }
    if (!files.empty()) {
      reloader_.add("metrics listener", std::move(files), [this]() -> Result<Done> {
        auto reloaded = pages_->reload();
        if (reloaded) certificates_.look();
        return reloaded;
      });
    }
  }
  reloader_.watch();
}

Result<Done> Agent::reload_token() {
  SecretFile file = read_secret_file(settings_.token_file);
  if (!file.problem.empty()) return Error{ErrorCode::Internal, Blame::Local, file.problem};
  if (host_) host_->set_auth_token(file.secret);
  endpoint_.set_auth_token(std::move(file.secret));
  return Done{};
}

Result<Done> Agent::reload_certificates() {
  const auto& identity = settings_.tls->identity;
  auto fingerprint = identity ? certificate_fingerprint(identity->certificate_file) : std::string{};
  if (!fingerprint) return fingerprint.error();
  if (const auto reloaded = tls_->reload(); !reloaded) return reloaded.error();
  if (host_) {
    if (const auto reloaded = host_->reload_certificates(*fingerprint); !reloaded) return reloaded.error();
  }
  // The handshake names the certificate that the connection shows.
  endpoint_.set_fingerprint(*std::move(fingerprint));
  certificates_.look();
  return Done{};
}

// Whether a load is too much is not decided here: the scheduler and the runtime have thresholds, of which an
// operator can turn off each.
void Agent::sample_load() {
  const LoadSample sample = sampler_.sample();
  load_.cpu_pct = sample.cpu_pct;
  load_.mem_pct = sample.mem_pct;
  load_.disk_pct = sample.disk_pct;
  load_alarm_.set(loop_.now().steady + settings_.load_interval);
}

void Agent::tell(const AgentNote& note) {
  if (note.kind == AgentNote::Kind::Finished && note.took) metrics_.add_task(note.type, *note.took);
  if (note.kind == AgentNote::Kind::Repeated) metrics_.add_journal_answer();
  if (note.kind == AgentNote::Kind::Refused) metrics_.add_refusal(note.code);
  const bool is_loud = note.kind == AgentNote::Kind::Finished || note.kind == AgentNote::Kind::Refused ||
                       note.kind == AgentNote::Kind::Dropped;
  if (!log_.takes(is_loud ? LogLevel::Info : LogLevel::Debug)) return;
  const auto say = [&](LogFields fields) {
    is_loud ? log_.info(name_of(note), fields) : log_.debug(name_of(note), fields);
  };
  if (note.seq) {
    say({{"type", note.type}, {"id", note.id}, {"corr", note.corr}, {"code", note.code}, {"seq", *note.seq}});
  } else if (note.took) {
    say({{"type", note.type},
         {"id", note.id},
         {"corr", note.corr},
         {"code", note.code},
         {"took_ms", in_milliseconds(*note.took)}});
  } else {
    say({{"type", note.type}, {"id", note.id}, {"corr", note.corr}, {"code", note.code}});
  }
}

void Agent::tell(const OwnerEvent& owner_event) {
  const SessionEvent& event = owner_event.event;
  if (const auto* established = std::get_if<Established>(&event)) {
    metrics_.add_session(established->resumed ? "resumed" : "new");
    log_.info("the session is established",
              {{"resumed", established->resumed}, {"replayed", established->replayed}});
  } else if (std::holds_alternative<Detached>(event)) {
    log_.warn("the connection is gone; the session waits for a resume");
  } else if (const auto* waits = std::get_if<BackingOff>(&event)) {
    log_.warn("not connected", {{"reason", waits->cause}, {"retry_ms", in_milliseconds(waits->delay)}});
  } else if (const auto* ended = std::get_if<Ended>(&event)) {
    metrics_.add_session_end(error_code_from(ended->code) || ended->code.empty() ? ended->code : "other");
    log_.info("the session ended", {{"code", ended->code},
                                    {"reason", ended->reason},
                                    {"returned", std::uint64_t{ended->returned.size()}}});
  } else if (const auto* drain = std::get_if<DrainRequested>(&event)) {
    log_.info("the scheduler asks for a drain",
              {{"reason", drain->reason}, {"deadline_ms", in_milliseconds(drain->deadline)}});
  } else if (const auto* refused = std::get_if<Refused>(&event)) {
    log_.warn(refused->by_peer ? "the scheduler refused a frame" : "a frame was refused",
              {{"type", refused->frame_type},
               {"id", refused->frame_id},
               {"code", to_string(refused->code)},
               {"reason", refused->info}});
  } else if (std::holds_alternative<ClockJumped>(event)) {
    log_.warn("the clock jumped, or this machine slept");
  }
}

}  // namespace windlass::agent
