#include "scheduler/shell/admin_app_json.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace windlass {
namespace {

using codec::JsonWriter;

template <std::size_t N>
void write_names(JsonWriter& json, const char (&name)[N], const std::vector<std::string>& names) {
  json.begin_list(name);
  for (const std::string& each : names) json.item(each);
  json.end_list();
}

template <std::size_t N>
void write_moment(JsonWriter& json, const char (&name)[N], WallTime time) {
  json.time(name, time, JsonWriter::TimeStyle::MillisecondsZ);
}

void write_version(JsonWriter& json, const AppRecord& app, bool is_newest) {
  json.begin();
  json.text("code_version", app.key.code_version);
  json.text("metadata_version", app.metadata_version);
  json.text("language", app.language);
  json.text("digest", app.digest);
  json.integer("bytes", app.bytes);
  json.begin_list("settings");
  for (const auto& [name, value] : app.settings) json.item(name);
  json.end_list();
  json.integer("settings_version", app.settings_version);
  json.text_if_any("rollout_stopped", app.rollout_stopped);
  if (app.weight) json.integer("weight", *app.weight);
  write_moment(json, "deployed_at", app.deployed_at);
  json.boolean("newest", is_newest);
  json.end();
}

// Of a runtime that cannot be reached nobody is ready.
void write_runtime_application(JsonWriter& json, const RuntimeApplication& app, bool is_connected) {
  json.text("metadata_version", app.metadata_version);
  write_names(json, "code_versions", app.code_versions);
  write_names(json, "functions", app.functions);
  if (!app.warnings.empty()) write_names(json, "warnings", app.warnings);
  json.integer("ready", is_connected ? app.ready : 0);
  json.integer("detached", is_connected ? app.detached : app.ready + app.detached);
  if (!is_connected) return;
  json.integer("workers", app.workers);
  json.integer("in_flight", app.in_flight);
  json.integer("pending", app.pending);
}

// The newest last.
std::vector<AppRecord> versions_of(const SchedulerCore& core, const TenantId& tenant,
                                   const std::string& application_id) {
  std::vector<AppRecord> versions;
  core.apps().for_each_app([&](const AppRecord& each) {
    if (each.key.tenant == tenant && each.key.application_id == application_id) versions.push_back(each);
  });
  std::ranges::sort(versions, {}, &AppRecord::number);
  return versions;
}

// Each once, however many workers could not load it.
void write_load_failures(JsonWriter& json, const TenantId& tenant, const std::string& application_id,
                         const SchedulerCore& core) {
  std::map<std::string, const RuntimeWorker*> failing;  // by the worker's id
  core.fleet().for_each(tenant, [&](const Worker& each) {
    if (!each.session || each.runtime == nullptr) return;
    for (const RuntimeWorker& worker : each.runtime->known_workers) {
      if (!worker.load_failures.empty()) failing.emplace(worker.worker_id, &worker);
    }
  });
  std::set<std::tuple<std::string, std::string, std::string>> failures;  // code version, function, reason
  if (!failing.empty()) {
    core.fleet().for_each(tenant, [&](const Worker& each) {
      if (each.language_worker == nullptr || each.language_worker->application_id != application_id) return;
      const auto found = failing.find(each.language_worker->worker_id);
      if (found == failing.end()) return;
      for (const auto& [function, reason] : found->second->load_failures) {
        failures.emplace(each.language_worker->code_version, function, reason);
      }
    });
  }
  json.begin_list("load_failures");
  for (const auto& [code_version, function, reason] : failures) {
    json.begin();
    json.text_if_any("code_version", code_version);
    json.text("function", function);
    json.text_if_any("reason", reason);
    json.end();
  }
  json.end_list();
}

void write_counts(JsonWriter& json, const RuntimeWorker& known, bool is_now) {
  if (is_now) {
    json.integer("in_flight", known.in_flight);
    json.integer("slots", known.slots);
  }
  json.integer("done", known.done);
  json.integer("failed", known.failed);
  json.integer("abandoned", known.abandoned);
  json.integer("functions_loaded", known.functions_loaded);
  json.begin_list("load_failures");
  for (const auto& [function, reason] : known.load_failures) {
    json.begin();
    json.text("function", function);
    json.text_if_any("reason", reason);
    json.end();
  }
  json.end_list();
}

std::string_view shown_state(const Worker& worker, const SchedulerCore& core) {
  const LanguageWorkerStatus& status = *worker.language_worker;
  if (!is_reachable(core.fleet(), worker, status.runtime)) return to_string(PlaceState::Detached);
  if (status.state != "ready") return status.state;
  return to_string(state_at_runtime(core.fleet(), worker, status.runtime));
}

}  // namespace

void write_assignment_members(JsonWriter& json, const AssignmentRecord& assignment, std::string_view state) {
  json.text("worker", assignment.worker.instance.value());
  json.text("application_id", assignment.application_id);
  json.text_if_any("code_version", assignment.code_version);
  json.text_if_any("runtime", assignment.runtime);
  json.text("state", state);
  json.text_if_any("reason", assignment.reason);
  json.text("command", assignment.command);
  if (assignment.epoch > 0) json.integer("epoch", assignment.epoch);
  json.integer("settings_version", assignment.settings_version);
  json.boolean("wanted", assignment.holds_place());
  if (assignment.is_owed) json.boolean("owed", true);
  write_moment(json, "since", assignment.since);
}

void write_language_worker(JsonWriter& json, const Worker& worker, const SchedulerCore& core) {
  const LanguageWorkerStatus& status = *worker.language_worker;
  json.begin("language_worker");
  json.text_if_any("worker_id", status.worker_id);
  json.text_if_any("language", status.language);
  json.text_if_any("runtime", status.runtime);
  json.text("state", shown_state(worker, core));
  json.text_if_any("drained_for", status.drained_for);
  json.text_if_any("application_id", status.application_id);
  json.text_if_any("metadata_version", status.metadata_version);
  json.text_if_any("code_version", status.code_version);
  if (worker.is_connected()) json.integer("pid", status.pid);
  json.text_if_any("last_error", status.last_error);
  json.text_if_any("confinement", status.confinement);
  if (!status.confinement_gaps.empty()) {
    json.begin_list("confinement_gaps");
    for (const std::string& each : status.confinement_gaps) json.item(each);
    json.end_list();
  }
  if (worker.is_connected() && status.package_total > 0) {
    json.begin("package");
    json.integer("bytes", status.package_bytes);
    json.integer("total", status.package_total);
    json.end();
  }
  json.end();
}

void write_invocations(JsonWriter& json, const Worker& worker, const SchedulerCore& core) {
  if (worker.language_worker == nullptr || worker.language_worker->worker_id.empty()) return;
  const RuntimeWorker* known = nullptr;
  const Worker* runtime = nullptr;
  core.fleet().for_each(worker.key.tenant, [&](const Worker& each) {
    if (known != nullptr || !each.session || each.runtime == nullptr) return;
    const auto found = std::ranges::find(each.runtime->known_workers, worker.language_worker->worker_id,
                                         &RuntimeWorker::worker_id);
    if (found == each.runtime->known_workers.end()) return;
    known = &*found;
    runtime = &each;
  });
  if (known == nullptr) return;
  json.begin("invocations");
  json.text("runtime", runtime->key.instance.value());
  // Of a runtime that is not there what was counted up to `told_at` is told, and not how things are now.
  const bool is_now = runtime->is_connected();
  if (is_now) json.text("state", known->state);
  if (known->has_counts) write_counts(json, *known, is_now);
  if (is_now && known->status_latency_ms) json.number("status_latency_ms", *known->status_latency_ms);
  if (known->specialization_ms) json.number("specialization_ms", *known->specialization_ms);
  write_moment(json, "told_at", runtime->runtime->at);
  json.end();
}

void write_app(JsonWriter& json, const TenantId& tenant, const std::string& application_id,
               const SchedulerCore& core, AppDetail detail) {
  json.begin();
  json.text("tenant", tenant.value());
  json.text("application_id", application_id);
  if (const ActiveVersion* const active = core.apps().active(tenant, application_id)) {
    json.text("active_metadata_version", active->metadata_version);
  }
  const std::vector<AppRecord> versions = versions_of(core, tenant, application_id);
  json.begin_list("versions");
  for (const AppRecord& each : versions) write_version(json, each, &each == &versions.back());
  json.end_list();
  PlaceCounts counts;
  json.begin_list("assignments");
  core.apps().for_each_assignment([&](const AssignmentRecord& each) {
    if (each.worker.tenant != tenant || each.application_id != application_id) return;
    const PlaceState state = core.state_of(each);
    counts.add(each, state);
    json.begin();
    write_assignment_members(json, each, to_string(state));
    json.end();
  });
  json.end_list();
  json.begin("workers");
  json.integer("wanted", counts.wanted);
  json.integer("ready", counts.of(PlaceState::Ready));
  json.integer("pending", counts.of(PlaceState::Pending));
  json.integer("starting", counts.of(PlaceState::Starting));
  json.integer("failed", counts.of(PlaceState::Failed));
  json.integer("drained", counts.of(PlaceState::Drained));
  json.integer("draining", counts.of(PlaceState::Draining));
  json.integer("unhealthy", counts.of(PlaceState::Unhealthy));
  json.integer("paused", counts.of(PlaceState::Paused));
  json.integer("detached", counts.of(PlaceState::Detached));
  json.integer("releasing", counts.of(PlaceState::Releasing));
  json.integer("lost", counts.of(PlaceState::Lost));
  json.end();
  json.begin_list("runtimes");
  core.fleet().for_each(tenant, [&](const Worker& each) {
    if (!each.session || each.runtime == nullptr) return;
    for (const RuntimeApplication& app : each.runtime->applications) {
      if (app.application_id != application_id) continue;
      json.begin();
      json.text("id", each.key.instance.value());
      write_runtime_application(json, app, each.is_connected());
      json.end();
    }
  });
  json.end_list();
  if (detail == AppDetail::Whole) write_load_failures(json, tenant, application_id, core);
  json.end();
}

void write_runtime(JsonWriter& json, const Worker& worker) {
  json.begin();
  json.text("tenant", worker.key.tenant.value());
  json.text("id", worker.key.instance.value());
  json.text("state", to_string(worker.state));
  if (worker.is_connected()) json.text("liveness", to_string(worker.liveness));
  json.text_if_any("address", worker.address);
  write_moment(json, "since", worker.since);
  if (worker.runtime) {
    const RuntimeStatus& status = *worker.runtime;
    json.text_if_any("url", status.url);
    json.text_if_any("url_refused", status.url_refused);
    json.text_if_any("http", status.http);
    json.text_if_any("grpc", status.grpc);
    if (worker.is_connected()) json.text_if_any("memory_pressure", status.memory_pressure);
    json.text_if_any("health", worker.is_connected() ? std::string_view{status.health} : "Unknown");
    if (worker.is_connected()) {
      json.integer("workers", status.workers);
      json.integer("in_flight", status.in_flight);
    }
    write_moment(json, "told_at", status.at);
    json.begin_list("applications");
    for (const RuntimeApplication& each : status.applications) {
      json.begin();
      json.text("application_id", each.application_id);
      write_runtime_application(json, each, worker.is_connected());
      json.end();
    }
    json.end_list();
  }
  json.begin_list("signals");
  for (const RuntimeSignal& each : worker.signals) {
    json.begin();
    json.text("kind", each.kind);
    json.text_if_any("application_id", each.application_id);
    json.text_if_any("worker", each.worker);
    json.text_if_any("reason", each.reason);
    json.boolean("urgent", each.urgent);
    json.text_if_any("urgency", each.urgency);
    if (each.kind == "Replace") json.boolean("agent_brings_next", each.agent_brings_next);
    write_moment(json, "at", each.at);
    json.end();
  }
  json.end_list();
  json.end();
}

}  // namespace windlass
