#include "runtime/adapters/status_text.h"

#include <algorithm>
#include <utility>

#include "protocol/base/clip.h"
#include "protocol/codec/json_writer.h"
#include "runtime/adapters/function_json.h"
#include "runtime/adapters/rpc_values.h"

namespace windlass::runtime {
namespace {

using codec::JsonWriter;

// So that one application of many broken functions does not push the rest out of a status.
constexpr std::size_t kFailuresShownMax = 16;
constexpr std::size_t kWarningsShownMax = 16;
constexpr std::size_t kReasonShownBytesMax = 256;
constexpr std::size_t kLostShownMax = 20;
constexpr std::size_t kUnreadyShownMax = 2048;  // of a status that names nobody else

void write_version(JsonWriter& json, const ApplicationVersion& version) {
  json.begin("application");
  json.text("application_id", version.job_host.application_id);
  json.text("metadata_version", version.job_host.metadata_version);
  json.text("code_version", version.code_version);
  json.end();
}

// Reasons come from user code, so they are cut and mended.
void write_failures(JsonWriter& json, const std::vector<std::pair<std::string, std::string>>& failures) {
  json.begin_list("load_failures");
  for (std::size_t i = 0; i < failures.size() && i < kFailuresShownMax; ++i) {
    json.begin();
    json.raw("function", json_text(failures[i].first));
    json.raw("reason", json_text(clip(failures[i].second, kReasonShownBytesMax)));
    json.end();
  }
  json.end_list();
}

double in_milliseconds(Duration time) {
  return static_cast<double>(time / std::chrono::microseconds{1}) / 1000.0;
}

void write_counts(JsonWriter& json, std::uint64_t done, std::uint64_t failed, std::uint64_t abandoned) {
  json.integer("done", done);
  json.integer("failed", failed);
  json.integer("abandoned", abandoned);
}

void write_lacking(JsonWriter& json, const JobHostView& host) {
  json.begin_list("load_failures");
  std::size_t shown = 0;
  for (const FunctionView& each : host.functions) {
    if (each.lacking == 0 && each.load_failure.empty()) continue;
    if (++shown > kFailuresShownMax) break;
    json.begin();
    json.raw("function", json_text(each.function->name));
    json.integer("workers", each.lacking);
    json.boolean("everywhere", !each.load_failure.empty());
    if (!each.load_failure.empty()) {
      json.raw("reason", json_text(clip(each.load_failure, kReasonShownBytesMax)));
    }
    json.end();
  }
  json.end_list();
}

// What functions want and do not get. Only their worker knows the functions of many applications, so it is
// told here.
void write_warnings(JsonWriter& json, const JobHostView& host) {
  std::vector<std::string> warnings;
  for (const FunctionView& each : host.functions) {
    for (std::string& warning : output_warnings(*each.function)) warnings.push_back(std::move(warning));
    if (warnings.size() >= kWarningsShownMax) break;
  }
  if (warnings.empty()) return;
  warnings.resize(std::min(warnings.size(), kWarningsShownMax));
  json.begin_list("warnings");
  for (const std::string& each : warnings) json.item(clip(each, kReasonShownBytesMax));
  json.end_list();
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
  write_counts(json, host.done, host.failed, host.abandoned);
  if (is_whole) write_lacking(json, host);
  if (is_whole) write_warnings(json, host);
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
  json.raw("language_version", json_text(worker.language_version));
  json.boolean("detached", worker.is_detached);
  json.boolean("unfit", worker.is_unfit);
  write_counts(json, worker.done, worker.failed, worker.abandoned);
  json.integer("functions_loaded", worker.functions_loaded);
  write_failures(json, worker.load_failures);
  if (worker.status_latency) json.number("status_latency_ms", in_milliseconds(*worker.status_latency));
  if (worker.specialization_took) {
    json.number("specialization_ms", in_milliseconds(*worker.specialization_took));
  }
  json.end();
}

bool is_gone(const WorkerView& worker) {
  return worker.state == WorkerState::Abandoned || worker.state == WorkerState::Disconnected;
}

// Its agent may well call it ready.
bool is_unready(const WorkerView& worker) {
  const bool is_unable = worker.state == WorkerState::Draining || worker.state == WorkerState::Unhealthy;
  return worker.is_detached || (is_unable && worker.application);
}

// Those that are gone, the last first, for as long as the core keeps them.
void write_lost(JsonWriter& json, const std::vector<WorkerView>& workers) {
  std::vector<const WorkerView*> lost;
  for (const WorkerView& worker : workers) {
    if (is_gone(worker)) lost.push_back(&worker);
  }
  std::ranges::sort(lost, std::ranges::greater{}, &WorkerView::lost_at);
  if (lost.size() > kLostShownMax) lost.resize(kLostShownMax);
  json.begin_list("lost_workers");
  for (const WorkerView* const worker : lost) {
    json.begin();
    json.text("worker", worker->worker.value());
    json.text("state", to_string(worker->state));
    if (worker->application) write_version(json, *worker->application);
    json.raw("reason", json_text(clip(worker->lost_because, kReasonShownBytesMax)));
    write_counts(json, worker->done, worker->failed, worker->abandoned);
    json.end();
  }
  json.end_list();
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
  json.text_if_any("health_reason", health.reason);
  json.text("memory_pressure", health.memory_pressure);
  json.integer("workers_total", health.total_workers);
  json.integer("workers_ready", health.ready_workers);
  json.integer("workers_detached", health.detached_workers);
  json.integer("placeholders", health.placeholders);
  json.begin_list("applications");
  for (const JobHostView& host : core.job_hosts()) {
    if (host.key != placeholder_job_host()) write_application(json, host, workers, is_whole);
  }
  json.end_list();
  json.begin_list("workers");
  std::size_t unready = 0;
  for (const WorkerView& worker : workers) {
    if (is_gone(worker)) continue;
    if (is_whole) {
      write_worker(json, worker);
    } else if (is_unready(worker) && ++unready <= kUnreadyShownMax) {
      json.begin();
      json.text("worker", worker.worker.value());
      json.text("state", to_string(worker.state));
      json.boolean("detached", worker.is_detached);
      json.end();
    }
  }
  json.end_list();
  if (unready > kUnreadyShownMax) json.integer("detached_left_out", unready - kUnreadyShownMax);
  if (is_whole) write_lost(json, workers);
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
  json.boolean("urgent", signal.is_urgent());
  json.text("urgency", to_string(signal.urgency));
  if (signal.kind == Signal::Kind::Replace) json.boolean("agent_brings_next", signal.is_agents);
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
  json.integer("placeholders", health.placeholders);
  json.integer("detached_workers", health.detached_workers);
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
