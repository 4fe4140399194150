// The worker's process and what it is to become: commands, the way to where it should be, and what is done
// when it dies, hangs or fails.
#include <algorithm>
#include <utility>

#include "protocol/base/check.h"
#include "protocol/base/clip.h"
#include "protocol/codec/json_writer.h"
#include "worker-agent/core/relay.h"
#include "worker-agent/core/result_text.h"

namespace windlass::agent {
namespace {

std::string how_it_ended(const WorkerEnd& end) {
  std::string how;
  switch (end.kind) {
    case WorkerEnd::Kind::Exited:
      how = "the language worker exited with code " + std::to_string(end.code);
      break;
    case WorkerEnd::Kind::Signalled:
      how = "the language worker was ended by signal " + std::to_string(end.code);
      break;
    case WorkerEnd::Kind::NotStarted:
      how = "the language worker could not be started: " + end.reason;
      break;
  }
  if (end.errors.empty()) return how;
  how += "; it said last: ";
  for (const std::string& line : end.errors) how.append(mended(line)).append("\n");
  how.pop_back();
  return how;
}

}  // namespace

Relay::Relay(RelayOptions options, RuntimeTarget runtime, Instant)
    : options_(std::move(options)), runtime_(std::move(runtime)) {}

void Relay::start(const Assignment& earlier, Instant now) {
  if (earlier.runtime) runtime_ = *earlier.runtime;
  if (earlier.application && earlier.application->language == options_.language) {
    application_ = earlier.application;
    steps_.push_back(FetchPackage{application_->package_digest, application_->package_bytes});
  }
  if (!runtime_.url.empty()) steps_.push_back(DialRuntime{runtime_});
  is_drained_ = earlier.is_drained;
  is_drained_for_memory_ = earlier.is_drained_for_memory;
  if (!is_drained_) return spawn(now);
  last_error_ = "it was drained before this agent was started again";
  process_ = Process::Down;
}

void Relay::stop(Instant now) {
  stopping_ = true;
  parting_.reset();
  if (operation_) fail(ErrorCode::SessionDraining, "the agent stops", now);
  deadlines_.clear_all();
  if (process_ == Process::Waiting || process_ == Process::Down) process_ = Process::Stopped;
  if (process_ == Process::Stopped || process_ == Process::Ending) return;
  steps_.push_back(StopWorker{.is_polite = process_ == Process::Up});
  process_ = Process::Ending;
}

void Relay::handle(const WorkerCommand& command, Instant now) {
  CHECK(!operation_);
  if (draining_ || stopping_) {
    steps_.push_back(
        CommandDone{command.id, refusal_text(ErrorCode::SessionDraining, "the agent stops"), {}});
    return;
  }
  // Whatever it asks for, it wants a worker.
  if (std::exchange(is_drained_, false)) {
    is_drained_for_memory_ = false;
    last_error_.clear();
    remember();
    if (process_ == Process::Down) spawn(now);
  }
  std::visit([&](const auto& what) { begin(command, what, now); }, command.what);
}

// Done once the worker is again what it was.
void Relay::begin(const WorkerCommand& command, const Resume&, Instant now) {
  operation_ = Operation{.id = command.id, .kind = Kind::Reassign, .began = now};
  deadlines_.set(Timer::Whole, now + options_.reassign_timeout);
  advance(now);
}

void Relay::begin(const WorkerCommand& command, const Specialize& specialize, Instant now) {
  operation_ = Operation{.id = command.id, .kind = Kind::Specialize, .began = now};
  const Application& application = specialize.application;
  if (application.language != options_.language) {
    return fail(ErrorCode::CmdUnknown,
                "this agent's worker speaks " + options_.language + ", not " + application.language, now);
  }
  const bool is_elsewhere = specialize.runtime && specialize.runtime->url != runtime_.url;
  if (!is_elsewhere && runtime_.url.empty()) {
    return fail(ErrorCode::ProtoState,
                "this agent has no runtime; name one in the command or set runtime.url in its settings", now);
  }
  const bool is_known = application_ == application && !folder_.empty();
  deadlines_.set(Timer::Whole, now + (is_known ? options_.specialize_timeout : options_.fetch_stall_max));
  if (is_elsewhere) part({.target = specialize.runtime}, now);
  if (is_known) return advance(now);
  operation_->candidate = application;
  steps_.push_back(FetchPackage{application.package_digest, application.package_bytes});
}

void Relay::begin(const WorkerCommand& command, const Reassign& reassign, Instant now) {
  operation_ = Operation{.id = command.id, .kind = Kind::Reassign, .began = now};
  deadlines_.set(Timer::Whole, now + options_.reassign_timeout);
  if (reassign.runtime.url != runtime_.url) return part({.target = reassign.runtime}, now);
  advance(now);
}

void Relay::begin(const WorkerCommand& command, const Release&, Instant now) {
  operation_ = Operation{.id = command.id, .kind = Kind::Release, .began = now};
  deadlines_.set(Timer::Whole, now + options_.reassign_timeout);
  application_.reset();
  folder_.clear();
  last_error_.clear();
  if (loaded_ != Loaded::Nothing) return part({.is_restart = true}, now);
  advance(now);
}

void Relay::dial(const RuntimeTarget& target) {
  runtime_ = target;
  handle_session_ended({});
  steps_.push_back(DialRuntime{target});
}

void Relay::handle_dial_failed(std::string_view reason, Instant now) {
  last_error_ = reason;
  if (operation_) fail(ErrorCode::ProtoSchema, reason, now);
}

// However long a large package takes on a slow line, it is waited for while it comes.
void Relay::handle_package_progress(const std::string& digest, Instant now) {
  if (!is_candidate(digest)) return;
  operation_->is_package_here = false;
  deadlines_.set(Timer::Whole, now + options_.fetch_stall_max);
}

void Relay::handle_package_here(const std::string& digest, Instant now) {
  if (!is_candidate(digest)) return;
  operation_->is_package_here = true;
  deadlines_.set(Timer::Whole, now + options_.unpack_timeout);
}

void Relay::handle_package(const std::string& digest, const std::string& folder, Instant now) {
  if (is_candidate(digest)) {
    deadlines_.set(Timer::Whole, now + options_.specialize_timeout);
    return adopt(*std::exchange(operation_->candidate, std::nullopt), folder, now);
  }
  if (!is_awaited(digest)) return;
  folder_ = folder;
  advance(now);
}

void Relay::handle_package_failed(const std::string& digest, ErrorCode code, std::string_view reason,
                                  Instant now) {
  if (is_candidate(digest)) {
    last_error_ = reason;
    return fail(code, reason, now);
  }
  if (!is_awaited(digest)) return;
  // One that cannot be had again is given up: it is said by the status.
  last_error_ = reason;
  application_.reset();
}

void Relay::adopt(Application application, std::string folder, Instant now) {
  application_ = std::move(application);
  folder_ = std::move(folder);
  functions_.clear();
  specialized_ = Announced::Nothing;
  // A second reload of one process ends with no functions: modules are cached.
  if (loaded_ != Loaded::Nothing) {
    is_folder_new_ = true;
    return part({.is_restart = true}, now);
  }
  advance(now);
}

// A package that an earlier process has used is compared before another gets it: it may have been changed.
void Relay::spawn(Instant now) {
  process_ = Process::Starting;
  worker_id_ = options_.instance_id + "." + std::to_string(++spawns_);
  spawned_at_ = now;
  asked_to_end_ = false;
  end_reason_.clear();
  deadlines_.set(Timer::Start, now + options_.start_timeout);
  const bool is_compared = std::exchange(is_folder_new_, false) || folder_.empty();
  if (application_ && !is_compared) folder_.clear();
  steps_.push_back(Spawn{worker_id_, application_ ? folder_ : std::string{}});
  // One package is fetched at a time: if that of a command fails, this one's turn comes again.
  if (application_ && !is_compared && !(operation_ && operation_->candidate)) {
    steps_.push_back(FetchPackage{application_->package_digest, application_->package_bytes});
  }
}

void Relay::restart(Instant now) {
  if (stopping_) return;
  if (parting_) {
    parting_->is_restart = true;
    return part_now(now);
  }
  if (process_ == Process::Waiting) {
    deadlines_.clear(Timer::Restart);
    return spawn(now);
  }
  asked_to_end_ = true;
  if (process_ == Process::Ending) return;
  steps_.push_back(StopWorker{.is_polite = process_ == Process::Up});
  process_ = Process::Ending;
  deadlines_.clear(Timer::Start);
  deadlines_.clear(Timer::Init);
  deadlines_.clear(Timer::Reload);
}

void Relay::end_blamed(std::string reason) {
  if (announced_) tell_ended(reason);
  end_reason_ = std::move(reason);
  if (process_ == Process::Ending || stopping_) return;
  steps_.push_back(StopWorker{.is_polite = process_ == Process::Up});
  process_ = Process::Ending;
}

void Relay::forget_process() {
  start_stream_.clear();
  init_body_.reset();
  init_asked_ = announced_ = awaiting_init_ = false;
  loaded_ = Loaded::Nothing;
  specialized_ = Announced::Nothing;
  reload_body_.clear();
  asked_.fill(0);
  stale_.fill(0);
  known_.clear();
  deadlines_.clear(Timer::Start);
  deadlines_.clear(Timer::Init);
  deadlines_.clear(Timer::Reload);
}

void Relay::handle_stream_closed(Instant) {
  if (process_ != Process::Up && process_ != Process::Starting) return;
  if (announced_) tell_ended("the language worker's stream ended");
  // It cannot open another; what it exits with comes next, by itself or made to.
  process_ = Process::Ending;
  steps_.push_back(StopWorker{.is_polite = false});
}

void Relay::handle_worker_ended(const WorkerEnd& end, Instant now) {
  const bool is_wanted = stopping_ || asked_to_end_ || is_drained_;
  const bool is_error = !is_wanted && (!end_reason_.empty() || end.kind != WorkerEnd::Kind::Exited ||
                                       (end.code != 0 && end.code != 200));
  if (now - spawned_at_ >= options_.steady_after) failures_ = 0;
  std::string how = how_it_ended(end);
  if (!end_reason_.empty()) how = end_reason_ + "; " + how;
  Duration delay = options_.backoff_first;
  if (is_error) {
    delay = std::min(options_.backoff_first * (1U << std::min(failures_, 16U)), options_.backoff_cap);
    ++failures_;
    last_error_ = how;
  }
  if ((announced_ && !stopping_) || is_error) tell_ended(how);
  forget_process();
  if (stopping_ || is_drained_) {
    process_ = stopping_ ? Process::Stopped : Process::Down;
    return;
  }
  if (asked_to_end_) return spawn(now);
  process_ = Process::Waiting;
  if (parting_) delay = {};  // it was to end anyway
  deadlines_.set(Timer::Restart, now + delay);
  steps_.push_back(Reported{worker_id_, how, is_error, delay});
  if (operation_ && is_error && ++operation_->crashes >= options_.command_crashes_max) {
    if (operation_->kind == Kind::Specialize && !operation_->candidate) {
      application_.reset();
      folder_.clear();
      remember();
    }
    fail(ErrorCode::Internal, how, now);
  }
  if (!parting_) return;
  parting_->is_restart = true;
  part_now(now);
}

void Relay::handle_reload_answer(bool is_good, std::string_view reason, std::string_view body, Instant now) {
  if (loaded_ != Loaded::Asked) return;
  deadlines_.clear(Timer::Reload);
  loaded_ = Loaded::Yes;
  if (!is_good) {
    return fail_application("the language worker could not load the application: " + std::string{reason},
                            ErrorCode::Internal, now);
  }
  reload_body_ = body;
  advance(now);
}

void Relay::handle_specialized_answer(bool is_good, std::string_view reason, Instant now) {
  if (specialized_ != Announced::Asked) return;
  if (parting_) {  // refused because it was asked for an end meanwhile
    specialized_ = is_good ? Announced::Yes : Announced::Nothing;
    return;
  }
  if (!is_good) {
    specialized_ = Announced::Nothing;
    return fail_application("the runtime refused the application: " + std::string{reason},
                            ErrorCode::Internal, now);
  }
  specialized_ = Announced::Yes;
  failures_ = 0;
  last_error_.clear();
  advance(now);
}

void Relay::fail_application(std::string reason, ErrorCode code, Instant now) {
  last_error_ = reason;
  // Nobody waits for it: it is tried again, at a pace.
  if (!operation_ || operation_->kind != Kind::Specialize || operation_->candidate) {
    if (operation_ && !operation_->candidate) fail(code, reason, now);
    return end_blamed(std::move(reason));
  }
  application_.reset();
  folder_.clear();
  remember();
  fail(code, reason, now);
  if (loaded_ != Loaded::Nothing) restart(now);
}

void Relay::advance(Instant now) {
  if (parting_) return;
  if (process_ == Process::Up && application_ && !folder_.empty()) {
    if (loaded_ == Loaded::Nothing && init_body_) {
      loaded_ = Loaded::Asked;
      deadlines_.set(Timer::Reload, now + options_.reload_timeout);
      steps_.push_back(SendReload{*application_, folder_});
    } else if (loaded_ == Loaded::Yes && is_initialised() && specialized_ == Announced::Nothing) {
      specialized_ = Announced::Asked;
      steps_.push_back(SendSpecialized{*application_, folder_, reload_body_});
    }
  }
  if (operation_ && is_settled()) finish(now);
}

bool Relay::is_settled() const {
  if (process_ != Process::Up) return false;
  switch (operation_->kind) {
    case Kind::Specialize:
      return !operation_->candidate && application_ && specialized_ == Announced::Yes;
    case Kind::Reassign:
      return is_initialised() && (!application_ || specialized_ == Announced::Yes);
    case Kind::Release:
      return loaded_ == Loaded::Nothing;
  }
  return false;
}

void Relay::finish(Instant now) {
  const Operation operation = *std::exchange(operation_, std::nullopt);
  deadlines_.clear(Timer::Whole);
  const Duration took = now - operation.began;
  std::string result;
  codec::JsonWriter json{result};
  json.begin();
  json.boolean("ok", true);
  json.text("worker_id", worker_id_);
  if (operation.kind == Kind::Specialize) {
    json.begin_list("functions");
    for (const std::string& each : functions_) json.item(each);
    json.end_list();
  }
  json.integer("took_ms", static_cast<std::uint64_t>(took / milliseconds{1}));
  json.end();
  json.finish();
  remember();
  steps_.push_back(CommandDone{operation.id, std::move(result), took});
}

void Relay::fail(ErrorCode code, std::string_view reason, Instant now) {
  const Operation operation = *std::exchange(operation_, std::nullopt);
  deadlines_.clear(Timer::Whole);
  steps_.push_back(CommandDone{operation.id, refusal_text(code, reason), now - operation.began});
  // One package is fetched at a time: the one of the command was in place of this.
  if (operation.candidate && application_ && folder_.empty()) {
    steps_.push_back(FetchPackage{application_->package_digest, application_->package_bytes});
  }
}

void Relay::remember() {
  steps_.push_back(Remember{{.runtime = runtime_.url.empty() ? std::nullopt : std::optional{runtime_},
                             .application = application_,
                             .is_drained = is_drained_,
                             .is_drained_for_memory = is_drained_for_memory_}});
}

void Relay::handle_timeout(Instant now) {
  if (deadlines_.take_due(Timer::Restart, now) && process_ == Process::Waiting) spawn(now);
  if (deadlines_.take_due(Timer::Start, now)) {
    end_blamed("the language worker did not open its stream in time");
  }
  if (deadlines_.take_due(Timer::Init, now)) {
    end_blamed("the language worker did not answer WorkerInitRequest in time");
  }
  if (deadlines_.take_due(Timer::Reload, now)) {
    fail_application("the language worker did not answer the environment reload in time", ErrorCode::Internal,
                     now);
  }
  if (deadlines_.take_due(Timer::Part, now) && parting_) part_now(now);
  if (!deadlines_.take_due(Timer::Whole, now) || !operation_) return;
  const std::string where = parting_                   ? "while the worker had answers to give"
                            : operation_->candidate    ? operation_->is_package_here
                                                             ? "while its package was unpacked or compared"
                                                             : "while its package was fetched"
                            : !has_session_            ? "without a session to the runtime " + runtime_.url
                            : process_ != Process::Up  ? "while the language worker started"
                            : !is_initialised()        ? "while the runtime was to initialise the worker"
                            : loaded_ == Loaded::Asked ? "while the worker loaded the application"
                                                       : "while the runtime was to take the worker";
  const std::string reason = "the command ran out of time " + where;
  if (operation_->kind == Kind::Specialize && !operation_->candidate) {
    // The scheduler holds it against the application's settings only where the application had its turn.
    const bool had_its_turn =
        !parting_ && has_session_ && process_ == Process::Up && loaded_ == Loaded::Asked;
    return fail_application(reason, had_its_turn ? ErrorCode::Internal : ErrorCode::Timeout, now);
  }
  fail(ErrorCode::Timeout, reason, now);
}

}  // namespace windlass::agent
