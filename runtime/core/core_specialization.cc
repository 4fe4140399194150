// From a placeholder to a worker that runs functions: the JobHost is found or made, the worker says which
// functions it has, and is switched to it in one step; then its functions are loaded. What one worker cannot
// index or load is its own failure: every worker is asked, and the first that answers makes the JobHost run.
#include <algorithm>
#include <utility>

#include "protocol/base/mutant.h"
#include "runtime/core/parts.h"

namespace windlass::runtime {
namespace {

// A worker that indexes does not know what the application's settings switch off.
std::vector<FunctionRef> with_settings(std::vector<FunctionRef> functions, const TextMap& settings) {
  for (FunctionRef& function : functions) {
    if (function == nullptr || function->is_disabled || !is_switched_off(settings, function->name)) continue;
    auto disabled = std::make_shared<Function>(*function);
    disabled->is_disabled = true;
    function = std::move(disabled);
  }
  return functions;
}

}  // namespace

void RuntimeCore::Parts::begin_switch(Worker& worker, WorkerSpecialized request, Instant now) {
  const bool is_own = !worker.channel->facts.is_agent;  // asked for from here, not by the peer
  if (!is_own && request.worker != worker.id) {
    return refuse(*worker.channel, "WorkerSpecialized for another worker, '" + request.worker.value() + "'",
                  now);
  }
  if (worker.host == nullptr || worker.state() == WorkerState::Draining) {
    return answer_agent(worker, {RpcStatus::Failure, "the worker is not initialized, or is draining"}, {},
                        request.correlation_id);
  }
  if (request.application.job_host.application_id.empty() ||
      request.application.job_host == placeholder_job_host()) {
    return answer_agent(worker, {RpcStatus::Failure, "the application has no name"}, {},
                        request.correlation_id);
  }
  if (worker.pending_switch != nullptr || worker.phase == Phase::Load) {
    fail_switch(worker, "another application came before it was ready", now);
    if (worker.is_gone()) return;
  }
  worker.is_broken = false;
  worker.answer_due.reset();
  worker.loading.clear();
  recover(worker, now);
  const bool is_unhealthy = worker.state() == WorkerState::Unhealthy;
  if ((is_unhealthy ? worker.recovers_to : worker.state()) != WorkerState::Specializing) {
    registry.advance(worker, WorkerState::Specializing);
  }
  refresh_route(worker, now);
  if (!worker.specializing_since) worker.specializing_since = now;
  merge_capabilities(worker, request.reload);
  if (!request.language.empty()) worker.language = request.language;
  const JobHostKey key = request.application.job_host;
  const RpcResult reloaded = request.reload.result;
  worker.pending_switch = std::make_unique<Switch>();
  worker.pending_switch->request = std::move(request);
  note(Note::Kind::WorkerSpecializing, worker, worker.pending_switch->request.application.text());
  if (!reloaded.is_ok()) return fail_switch(worker, "the environment reload failed: " + reloaded.reason, now);
  Result<JobHost*> found = hosts.find_or_create(key);
  if (!found) return fail_switch(worker, found.error().reason, now);
  hosts.join(worker, *found.value());
  ask_index(worker, now);
}

void RuntimeCore::Parts::ask_index(Worker& worker, Instant now) {
  JobHost& host = *worker.pending_switch->target;
  host.stop_at.reset();
  host.outage.clear();
  retime(host);
  if (host.state != JobHostState::Running) host.state = JobHostState::Starting;
  worker.phase = Phase::Metadata;
  worker.phase_until = now + options.metadata_timeout;
  send(worker, MetadataRequest{worker.pending_switch->request.directory});
  retime(worker);
}

void RuntimeCore::Parts::on(Worker& worker, const MetadataResponse& response, Instant now) {
  if (worker.phase != Phase::Metadata) return;
  JobHost& host = *worker.pending_switch->target;
  const std::string name = host.key.text();
  if (!response.result.is_ok() && response.functions.empty()) {
    return fail_switch(worker, "application " + name + " could not be indexed: " + response.result.reason,
                       now);
  }
  const WorkerSpecialized& request = worker.pending_switch->request;
  const bool is_default = response.use_default_indexing || response.functions.empty();
  const Result<Done> indexed = hosts.index(
      worker, host, is_default ? request.functions : with_settings(response.functions, request.settings));
  if (!indexed) return fail_switch(worker, indexed.error().reason, now);
  if (host.state != JobHostState::Running) {
    host.host_json = request.host_json;
    host.state = JobHostState::Running;
    host.failure.clear();
    note(Note::Kind::JobHostCreated, host);
  }
  for (const auto& [function, reason] : worker.load_failures) {
    notes.push_back({Note::Kind::FunctionLoadFailed, worker.id, host.key, {}, function, reason});
  }
  complete_switch(worker, now);
  dispatch(host, now);
}

void RuntimeCore::Parts::complete_switch(Worker& worker, Instant now) {
  JobHost& host = *worker.pending_switch->target;
  JobHost* const before = worker.host;
  // Slots that its old JobHost's invocations hold stay taken until they are answered.
  worker.application = worker.pending_switch->request.application;
  worker.answer_due = {worker.pending_switch->request.correlation_id, host.key.text()};
  host.capabilities = worker.capabilities;
  hosts.leave_join(worker);
  refresh_route(worker, now);
  hosts.route(worker, &host);
  registry.advance(worker, WorkerState::Specialized);
  note(Note::Kind::Switched, worker, before == nullptr ? "" : "from " + before->key.text());
  end_switch(worker, now);
  if (before != nullptr && before != &host) {
    drop_unregistered(*before, now);
    stop_if_unused(*before, now);
  }
  if (worker.host == &host) load(worker, now);
}

void RuntimeCore::Parts::end_switch(Worker& worker, Instant now) {
  if (worker.pending_switch == nullptr) return;
  hosts.leave_join(worker);
  const std::unique_ptr<Switch> ended = std::move(worker.pending_switch);
  worker.phase = Phase::None;
  worker.phase_until.reset();
  if (MUTANT(switch_reverses_held)) std::ranges::reverse(ended->held);
  for (WorkerMessage& message : ended->held) deliver(worker, std::move(message), now);
}

void RuntimeCore::Parts::fail_switch(Worker& worker, const std::string& reason, Instant now) {
  JobHost* target = nullptr;
  std::string correlation;
  if (worker.pending_switch != nullptr) {
    target = worker.pending_switch->target;
    correlation = worker.pending_switch->request.correlation_id;
  } else if (worker.answer_due) {
    correlation = worker.answer_due->first;
  }
  end_switch(worker, now);
  worker.answer_due.reset();
  worker.loading.clear();
  worker.phase = Phase::None;
  worker.phase_until.reset();
  worker.specializing_since.reset();
  answer_agent(worker, {RpcStatus::Failure, reason}, target == nullptr ? "" : target->key.text(),
               correlation);
  worker.is_broken = true;  // its process holds what cannot run; only another application helps
  if (worker.state() != WorkerState::Unhealthy && worker.state() != WorkerState::Draining) {
    unhealthy(worker, reason, now);
  }
  retime(worker);
  if (target == nullptr) return;
  if (target->state == JobHostState::Starting && target->joining.empty()) {
    target->state = JobHostState::Failed;
    target->failure = reason;
    note(Note::Kind::JobHostFailed, *target, reason);
    // For people, and callers, to see; but who keeps naming applications that fail must not fill the house.
    const bool is_missed = !target->invocations.empty() || !target->functions.empty();
    target->stop_at = is_missed ? now + options.abandoned_keep : now;
    retime(*target);
    while (!target->invocations.empty()) {
      finish(*target->invocations.front(), Cause::JobHostFailed, reason, now);
    }
  }
  drop_unregistered(*target, now);
  stop_if_unused(*target, now);
}

void RuntimeCore::Parts::load(Worker& worker, Instant now) {
  JobHost& host = *worker.host;
  worker.loading.clear();
  worker.replace_at.reset();
  worker.functions_loaded = 0;
  const std::map<std::string_view, std::string_view> lacking(worker.load_failures.begin(),
                                                             worker.load_failures.end());
  std::vector<FunctionRef> functions;
  for (const bool is_disabled : {false, true}) {  // disabled ones last
    for (const FunctionRef& function : host.functions) {
      if (function->is_disabled != is_disabled || lacking.contains(function->name)) continue;
      functions.push_back(function);
      worker.loading.insert(function->id.value());
    }
  }
  if (functions.empty()) return loaded(worker, now);
  worker.phase = Phase::Load;
  worker.phase_until = now + options.load_timeout;
  retime(worker);
  if (worker.has("SupportsLoadResponseCollection")) return send(worker, LoadRequests{std::move(functions)});
  for (FunctionRef& function : functions) send(worker, LoadRequest{std::move(function)});
}

void RuntimeCore::Parts::on(Worker& worker, const LoadResponse& response, Instant now) {
  if (worker.phase != Phase::Load || worker.loading.erase(response.function.value()) == 0) return;
  ++worker.functions_loaded;
  if (!response.result.is_ok()) {
    --worker.functions_loaded;
    const auto& all = worker.host->functions;
    const auto function = std::ranges::find(all, response.function, [](const auto& f) { return f->id; });
    const std::string name = function == all.end() ? response.function.value() : (*function)->name;
    const std::string reason =
        response.result.reason.empty() ? "the worker gave no reason" : response.result.reason;
    worker.load_failures.emplace_back(name, reason);
    notes.push_back({Note::Kind::FunctionLoadFailed, worker.id, worker.host->key, {}, name, reason});
  }
  if (worker.loading.empty()) loaded(worker, now);
}

void RuntimeCore::Parts::loaded(Worker& worker, Instant now) {
  JobHost& host = *worker.host;
  worker.phase = Phase::None;
  worker.phase_until.reset();
  if (worker.specializing_since) worker.specialization_took = now - *worker.specializing_since;
  worker.specializing_since.reset();
  registry.advance(worker, WorkerState::Ready);
  Note ready{Note::Kind::WorkerReady, worker.id, host.key};
  ready.took = worker.specialization_took;
  notes.push_back(std::move(ready));
  RpcResult result{RpcStatus::Success};
  if (worker.functions_loaded == 0) {
    result = {RpcStatus::Failure, "no function of " + host.key.text() + " could be loaded"};
    if (!worker.load_failures.empty()) result.reason += ": " + worker.load_failures.front().second;
  }
  if (const auto due = std::exchange(worker.answer_due, std::nullopt)) {
    answer_agent(worker, std::move(result), due->second, due->first);
  }
  came(worker);
  drop_unregistered(host, now);
  judge_loads(host, now);
  retime(worker);
  refresh_route(worker, now);
}

void RuntimeCore::Parts::on(Worker& worker, ReloadResponse response, Instant now) {
  if (worker.phase != Phase::Reload) return;
  worker.phase = Phase::None;
  worker.phase_until.reset();
  const auto configured = applications.find(std::exchange(worker.specializing_to, {}));
  CHECK(configured != applications.end());
  WorkerSpecialized request;
  request.worker = worker.id;
  request.application = configured->second.version;
  request.directory = configured->second.directory;
  request.functions = configured->second.functions;
  request.settings = configured->second.environment;
  request.reload = std::move(response);
  begin_switch(worker, std::move(request), now);
}

void RuntimeCore::Parts::merge_capabilities(Worker& worker, const ReloadResponse& reload) const {
  if (reload.replaces_capabilities) worker.capabilities.clear();
  for (const auto& [name, value] : reload.capabilities) worker.capabilities.insert_or_assign(name, value);
  if (!worker.has("WorkerStatus")) {
    worker.probe_at.reset();
  } else if (!worker.probe_at) {
    worker.probe_at = worker.heard_at + options.status_interval;
  }
}

void RuntimeCore::Parts::answer_agent(Worker& worker, RpcResult result, std::string job_host_id,
                                      std::string correlation_id) {
  if (worker.is_gone() || !worker.channel->facts.is_agent) return;
  send(worker, SpecializedResponse{std::move(result), std::move(job_host_id), std::move(correlation_id)});
}

}  // namespace windlass::runtime
