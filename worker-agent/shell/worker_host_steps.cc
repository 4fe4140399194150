// What the relay asks for: processes, packages, and what is told about them.
#include <algorithm>
#include <utility>

#include "protocol/codec/json_writer.h"
#include "worker-agent/adapters/files.h"
#include "worker-agent/adapters/rpc_messages.h"
#include "worker-agent/shell/worker_host.h"

namespace windlass::agent {
namespace {

constexpr std::string_view kLoopback = "127.0.0.1";
constexpr std::size_t kResultLogged = 1024;  // bytes; a long one names many functions
// A stream that closed is mostly an exit under way, whose code is worth more than that of a signal.
constexpr Duration kExitGrace = milliseconds{500};

std::vector<std::string> launch_arguments(const LanguageWorkerSettings& settings, std::uint16_t port,
                                          const std::string& worker_id) {
  std::vector<std::string> all;
  // Those of the executable come before what it executes.
  all.insert(all.end(), settings.config.arguments.begin(), settings.config.arguments.end());
  all.insert(all.end(), settings.arguments.begin(), settings.arguments.end());
  if (!settings.config.worker_path.empty()) all.push_back(settings.config.worker_path);
  const std::string number = std::to_string(port);
  const std::string request = worker_id + "-start";
  const std::string bytes_max = std::to_string(settings.message_bytes_max);
  // Both sets: workers differ in which they read.
  for (const auto& [name, value] : std::initializer_list<std::pair<const char*, std::string>>{
           {"--host", std::string{kLoopback}},
           {"--port", number},
           {"--workerId", worker_id},
           {"--requestId", request},
           {"--grpcMaxMessageLength", bytes_max},
           {"--functions-uri", "http://" + std::string{kLoopback} + ":" + number + "/"},
           {"--functions-worker-id", worker_id},
           {"--functions-request-id", request},
           {"--functions-grpc-max-message-length", bytes_max}}) {
    all.emplace_back(name);
    all.push_back(value);
  }
  return all;
}

std::string status_text(const WorkerStatus& status, std::string_view language, int pid,
                        const WorkerConfinement& confinement, const std::optional<PackageProgress>& fetched) {
  std::string text;
  codec::JsonWriter json{text};
  json.begin();
  json.text("worker_id", status.worker_id);
  json.text("language", language);
  json.text("runtime", status.runtime.id.empty() ? status.runtime.url : status.runtime.id);
  json.text("state", to_string(status.state));
  if (status.is_drained_for_memory) json.text("drained_for", "memory");
  if (const auto& application = status.application) {
    json.begin("application");
    json.text("application_id", application->application_id);
    json.text("metadata_version", application->metadata_version);
    json.text("code_version", application->code_version);
    json.end();
  }
  json.integer("pid", static_cast<std::uint64_t>(pid));
  json.text("confinement", to_string(confinement.how().kind));
  if (!confinement.gaps().empty()) {
    json.begin_list("confinement_gaps");
    for (const std::string& each : confinement.gaps()) json.item(each);
    json.end_list();
  }
  json.text_if_any("last_error", status.last_error);
  if (fetched) {
    json.begin("package");
    json.integer("bytes", fetched->bytes);
    json.integer("total", fetched->total);
    json.end();
  }
  json.end();
  json.finish();
  return text;
}

}  // namespace

void WorkerHost::start() {
  auto earlier = assignment_.read();
  if (!earlier) {
    place_.log.warn("what this worker was before cannot be read, so it begins as a placeholder",
                    {{"file", assignment_.path()}, {"reason", earlier.error().reason}});
  }
  if (const auto renewed = assignment_.renew(); !renewed) {
    place_.log.warn(
        "the stored assignment could not be re-encrypted with the newest key; keep the old key for now",
        {{"file", assignment_.path()}, {"reason", renewed.error().reason}});
  }
  relay_.start(earlier ? *std::move(earlier) : Assignment{}, now());
  run_steps();
  place_.loop.turn_again();
}

void WorkerHost::run_steps() {
  while (auto step = relay_.poll_step()) {
    is_changed_ = true;
    std::visit([this](const auto& what) { run(what); }, *step);
  }
}

std::map<std::string, std::string> WorkerHost::environment(const std::string& folder) const {
  std::map<std::string, std::string> all;
  for (const std::string& each : settings_.environment) {
    const std::size_t equals = each.find('=');
    all[each.substr(0, equals)] = each.substr(equals + 1);
  }
  if (confinement_.is_apart()) all["HOME"] = all["TMPDIR"] = scratch_;  // the agent's are closed to it
  all["FUNCTIONS_WORKER_RUNTIME"] = settings_.config.language;
  all["FUNCTIONS_WORKER_DIRECTORY"] = settings_.config.folder;
  if (!settings_.config.version.empty()) all["FUNCTIONS_WORKER_RUNTIME_VERSION"] = settings_.config.version;
  if (!folder.empty()) all["FUNCTIONS_APPLICATION_DIRECTORY"] = all["AzureWebJobsScriptRoot"] = folder;
  // A proxy is not for the loopback, whatever else it is for.
  for (const char* name : {"no_proxy", "NO_PROXY"}) {
    std::string& value = all[name];
    if (!value.empty()) value += ',';
    value += kLoopback;
  }
  return all;
}

void WorkerHost::run(const Spawn& step) {
  pending_.clear();
  pending_at_ = 0;
  has_stream_ = is_stream_over_ = false;
  http_.reset();
  http_port_ = HttpPort::Unasked;
  server_->expect(step.worker_id);
  {
    const std::lock_guard lock{line_mutex_};
    line_worker_ = step.worker_id;
  }
  packages_->close_all_but(step.folder);
  if (auto scratch = confinement_.fresh_scratch()) {
    scratch_ = *std::move(scratch);
  } else {
    place_.log.error("the language worker's folder cannot be made anew",
                     {{"reason", scratch.error().reason}});
  }
  WorkerLaunch launch{.program = settings_.executable,
                      .arguments = launch_arguments(settings_, server_->port(), step.worker_id),
                      .environment = {},
                      .folder = step.folder.empty() ? settings_.config.folder : step.folder,
                      .supervisor = supervisor_,
                      .confinement = confinement_.how(),
                      .user_lock = confinement_.user_lock()};
  for (const auto& [name, value] : environment(step.folder))
    launch.environment.push_back(std::string{name}.append("=").append(value));
  place_.log.info("a language worker starts",
                  {{"worker", step.worker_id}, {"language", settings_.config.language}});
  process_->start(std::move(launch));
}

void WorkerHost::run(const StopWorker& step) {
  StopGrace grace = settings_.grace;
  if (step.is_polite && server_->send(terminate_message(grace.word))) return process_->stop(grace);
  grace.word = std::min(grace.word, kExitGrace);
  process_->stop(grace);
}

void WorkerHost::run(const ToRuntime& step) {
  to_runtime(step.message);
}

void WorkerHost::run(const SendReload& step) {
  auto variables = environment(step.folder);
  for (const auto& [name, value] : step.application.settings) variables[name] = value;
  static_cast<void>(server_->send(reload_message(variables, step.folder, next_id("reload"))));
}

void WorkerHost::run(const SendSpecialized& step) {
  auto texts = read_package_texts(step.folder);
  if (!texts) return relay_.handle_specialized_answer(false, texts.error().reason, now());
  to_runtime(specialized_message({.application = step.application,
                                  .folder = step.folder,
                                  .worker_id = relay_.status().worker_id,
                                  .correlation_id = next_id("specialize"),
                                  .reload = step.reload,
                                  .host_json = std::move(texts->host_json),
                                  .function_json = std::move(texts->function_json)}));
}

void WorkerHost::run(const FetchPackage& step) {
  // A command that is tried again goes on where the one before was.
  if (fetch_ && fetch_->digest() == step.digest && fetch_->bytes() == step.bytes) return;
  fetch_.reset();
  fetched_.reset();
  wanted_.reset();
  // The store is busy with one; this loop does not wait for it.
  if (is_unpacking_) {
    wanted_ = step;
    return;
  }
  if (!packages_->has(step.digest)) return begin_fetch(step);
  is_unpacking_ = true;
  relay_.handle_package_here(step.digest, now());
  packages_->verify(step.digest, [this, &loop = place_.loop, step](Result<std::string> folder) {
    loop.post([this, step, folder = std::move(folder)] { handle_verified(step, folder); });
  });
}

void WorkerHost::begin_fetch(const FetchPackage& step) {
  if (step.bytes > kPackageBytesMax) {
    return relay_.handle_package_failed(step.digest, ErrorCode::PkgInvalid,
                                        "the package is larger than 1 GiB", now());
  }
  if (const auto begun = packages_->begin(step.digest); !begun) {
    return relay_.handle_package_failed(step.digest, begun.error().code, begun.error().reason, now());
  }
  place_.log.info("a package is fetched", {{"digest", step.digest}, {"bytes", step.bytes}});
  fetch_.emplace(step.digest, step.bytes);
  relay_.handle_package_progress(step.digest, now());
}

void WorkerHost::handle_verified(const FetchPackage& step, const Result<std::string>& folder) {
  is_unpacking_ = false;
  is_changed_ = true;
  if (!folder) {
    place_.log.error("an unpacked package was changed or cannot be read, and is fetched anew",
                     {{"digest", step.digest}, {"reason", folder.error().reason}});
  }
  // Also of the same digest: a process that was started meanwhile found the folder closed.
  if (const auto next = std::exchange(wanted_, std::nullopt)) return run(*next);
  if (folder) return use_package(step.digest, *folder);
  begin_fetch(step);
}

// Opened here and not on the store's thread: a worker that started meanwhile closed all packages but its own.
void WorkerHost::use_package(const std::string& digest, const std::string& folder) {
  if (const auto opened = packages_->open_to_worker(folder); !opened)
    return relay_.handle_package_failed(digest, opened.error().code, opened.error().reason, now());
  relay_.handle_package(digest, folder, now());
}

void WorkerHost::fail_fetch(ErrorCode code, const std::string& reason) {
  const std::string digest = fetch_->digest();
  fetch_.reset();
  if (std::exchange(fetched_, std::nullopt)) is_status_due_ = true;
  is_changed_ = true;
  place_.log.error("a package could not be fetched",
                   {{"digest", digest}, {"code", to_string(code)}, {"reason", reason}});
  relay_.handle_package_failed(digest, code, reason, now());
}

void WorkerHost::see_to_fetch() {
  if (!fetch_) return;
  if (!fetch_->failure().empty()) {
    return fail_fetch(ErrorCode::Timeout, std::string{fetch_->failure()});
  }
  if (!has_scheduler_) return;
  const std::string id = next_id("package");
  if (auto request = fetch_->poll_request(id); request && duties_.send(*std::move(request))) {
    fetch_->handle_requested(id, now());
  }
}

void WorkerHost::handle_part(const Message& part) {
  if (!fetch_) return;
  is_changed_ = true;
  const auto bytes = fetch_->handle_part(part);
  if (!bytes || !*bytes) {
    if (bytes) return;
    return fail_fetch(bytes.error().code, bytes.error().reason);
  }
  if (const auto written = packages_->append(**bytes); !written) {
    return fail_fetch(written.error().code, written.error().reason);
  }
  relay_.handle_package_progress(fetch_->digest(), now());
  tell_progress();
  if (!fetch_->is_complete()) return;
  const std::string digest = fetch_->digest();
  fetch_.reset();
  is_unpacking_ = true;
  relay_.handle_package_here(digest, now());
  packages_->complete([this, &loop = place_.loop, digest](Result<std::string> folder) {
    loop.post([this, digest, folder = std::move(folder)] { handle_fetched(digest, folder); });
  });
}

void WorkerHost::tell_progress() {
  const auto progress = fetch_->poll_progress(now());
  if (!progress) return;
  fetched_ = progress;
  is_status_due_ = true;
  place_.log.info("a package arrives",
                  {{"digest", fetch_->digest()}, {"bytes", progress->bytes}, {"of", progress->total}});
}

void WorkerHost::handle_fetched(const std::string& digest, const Result<std::string>& folder) {
  is_unpacking_ = false;
  is_changed_ = true;
  if (std::exchange(fetched_, std::nullopt)) is_status_due_ = true;
  const auto next = std::exchange(wanted_, std::nullopt);
  // What is wanted by now may be the same package again, for a newer command: what became of the older one's
  // is not its outcome.
  const bool is_wanted_again = next && next->digest == digest;
  if (folder) {
    place_.log.info("a package is unpacked", {{"digest", digest}});
    if (!is_wanted_again) use_package(digest, *folder);
  } else {
    place_.log.error("a package is refused", {{"digest", digest}, {"reason", folder.error().reason}});
    if (!is_wanted_again)
      relay_.handle_package_failed(digest, folder.error().code, folder.error().reason, now());
  }
  if (next) run(*next);
}

void WorkerHost::handle_scheduler_session(bool is_open) {
  has_scheduler_ = is_open;
  is_status_due_ = true;
  if (fetch_ && !is_open) fetch_->handle_session_ended();
}

void WorkerHost::run(const Remember& step) {
  const auto written = assignment_.write(step.assignment);
  if (!written) {
    place_.log.error("what this worker is cannot be kept for a restart",
                     {{"reason", written.error().reason}});
  }
}

void WorkerHost::run(const CommandDone& step) {
  place_.log.info("a command about the language worker is answered",
                  {{"result", std::string_view{step.result}.substr(0, kResultLogged)}});
  duties_.command_done(step);
}

void WorkerHost::run(const Reported& step) {
  const LogFields fields{{"worker", step.worker_id},
                         {"reason", step.how},
                         {"restart_ms", static_cast<std::uint64_t>(step.restart_in / milliseconds{1})}};
  if (step.is_error) return place_.log.error("the language worker ended", fields);
  place_.log.info("the language worker ended", fields);
}

void WorkerHost::tell_status() {
  if (std::exchange(is_changed_, false) && relay_.poll_status()) is_status_due_ = true;
  if (!is_status_due_ || !has_scheduler_) return;
  const std::string id = next_id("status");
  const std::string payload =
      status_text(relay_.status(), settings_.config.language, process_->pid(), confinement_, fetched_);
  is_status_due_ = !duties_.send(Message{{.type = kWorkerStatus, .id = id, .payload = payload}});
}

void WorkerHost::tell_line(const WorkerLine& line) {
  std::string worker;
  {
    const std::lock_guard lock{line_mutex_};
    worker = line_worker_;
  }
  place_.log.info("the language worker says", {{"worker", worker},
                                               {"stream", line.is_error ? "stderr" : "stdout"},
                                               {"text", line.text},
                                               {"cut", line.is_cut},
                                               {"left_out", line.left_out}});
}

std::string WorkerHost::next_id(std::string_view kind) {
  return std::string{kind} + "-" + std::to_string(seed_) + "-" + std::to_string(++ids_);
}

}  // namespace windlass::agent
