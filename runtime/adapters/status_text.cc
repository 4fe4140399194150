#include "runtime/adapters/status_text.h"

#include <algorithm>

#include "protocol/codec/json_writer.h"
#include "runtime/adapters/rpc_values.h"

namespace windlass::runtime {
namespace {

using codec::JsonWriter;

void write_version(JsonWriter& json, const ApplicationVersion& version) {
  json.begin("application");
  json.text("application_id", version.job_host.application_id);
  json.text("metadata_version", version.job_host.metadata_version);
  json.text("code_version", version.code_version);
  json.end();
}

void write_application(JsonWriter& json, const JobHostView& host, const std::vector<WorkerView>& workers,
                       bool is_whole) {
  json.begin();
  json.text("application_id", host.key.application_id);
  json.text("metadata_version", host.key.metadata_version);
  json.text("state", to_string(host.state));
  if (!host.failure.empty()) json.raw("failure", json_text(host.failure));
  json.begin_list("code_versions");
  std::vector<std::string_view> versions;
  for (const WorkerView& worker : workers) {
    if (!worker.application || worker.application->job_host != host.key) continue;
    const std::string_view version = worker.application->code_version;
    if (std::find(versions.begin(), versions.end(), version) != versions.end()) continue;
    versions.push_back(version);
    json.item(version);
  }
  json.end_list();
  json.begin_list("functions");
  if (is_whole) {
    for (const FunctionView& each : host.functions) json.item(each.function->name);
  }
  json.end_list();
  json.integer("ready", host.ready);
  json.integer("detached", host.detached);
  json.integer("workers", host.workers);
  json.integer("in_flight", host.in_flight);
  json.integer("pending", host.pending);
  json.end();
}

void write_worker(JsonWriter& json, const WorkerView& worker) {
  json.begin();
  json.text("worker", worker.worker.value());
  json.text("state", to_string(worker.state));
  if (worker.application) write_version(json, *worker.application);
  json.integer("in_flight", worker.in_flight);
  json.integer("slots", worker.slots);
  json.raw("language", json_text(worker.language));
  json.boolean("detached", worker.is_detached);
  json.end();
}

std::string status_of(const RuntimeCore& core, const StatusPlaces& places, bool is_whole) {
  const std::vector<WorkerView> workers = core.workers();
  const RuntimeHealth health = core.health();
  std::string text;
  JsonWriter json{text};
  json.begin();
  json.text("url", places.url);
  json.text_if_any("http", places.http);
  json.text_if_any("grpc", places.grpc);
  json.text("health", to_string(health.level));
  json.integer("workers_total", health.total_workers);
  json.begin_list("applications");
  for (const JobHostView& host : core.job_hosts()) {
    if (host.key != placeholder_job_host()) write_application(json, host, workers, is_whole);
  }
  json.end_list();
  json.begin_list("workers");
  for (const WorkerView& worker : workers) {
    const bool is_gone = worker.state == WorkerState::Abandoned || worker.state == WorkerState::Disconnected;
    if (is_whole && !is_gone) write_worker(json, worker);
  }
  json.end_list();
  json.end();
  json.finish();
  return text;
}

}  // namespace

std::string status_text(const RuntimeCore& core, const StatusPlaces& places, std::size_t bytes_max) {
  std::string text = status_of(core, places, true);
  return text.size() <= bytes_max ? text : status_of(core, places, false);
}

std::string signal_text(const Signal& signal) {
  std::string text;
  JsonWriter json{text};
  json.begin();
  json.text("kind", to_string(signal.kind));
  json.text("application_id", signal.job_host.application_id);
  json.text("metadata_version", signal.job_host.metadata_version);
  json.text_if_any("worker", signal.worker.value());
  json.boolean("urgent", signal.is_urgent);
  json.raw("reason", json_text(signal.reason));
  json.end();
  json.finish();
  return text;
}

std::string health_text(const RuntimeHealth& health, bool has_grpc) {
  std::string text;
  JsonWriter json{text};
  json.begin();
  json.text("status", to_string(health.level));
  json.text_if_any("reason", health.reason);
  json.text("grpc_server", has_grpc ? "listening" : "off");
  json.integer("total_workers", health.total_workers);
  json.integer("ready_workers", health.ready_workers);
  json.integer("active_jobhosts", health.active_job_hosts);
  json.number("memory_utilization", health.memory_utilization);
  json.integer("pending_invocations", health.pending_invocations);
  json.end();
  json.finish();
  return text;
}

std::string_view to_string(Signal::Kind kind) {
  switch (kind) {
    case Signal::Kind::NoFreeSlot:
      return "NoFreeSlot";
    case Signal::Kind::SlotFree:
      return "SlotFree";
    case Signal::Kind::Replace:
      return "Replace";
    case Signal::Kind::ScaleUp:
      return "ScaleUp";
    case Signal::Kind::ScaleDown:
      return "ScaleDown";
  }
  return "";
}

std::string_view to_string(RuntimeHealth::Level level) {
  switch (level) {
    case RuntimeHealth::Level::Healthy:
      return "Healthy";
    case RuntimeHealth::Level::Degraded:
      return "Degraded";
    case RuntimeHealth::Level::Unhealthy:
      return "Unhealthy";
  }
  return "";
}

}  // namespace windlass::runtime
