#include "scheduler/shell/admin_app_json.h"

#include <algorithm>
#include <map>
#include <string>
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
  write_moment(json, "deployed_at", app.deployed_at);
  json.boolean("newest", is_newest);
  json.end();
}

void write_runtime_application(JsonWriter& json, const RuntimeApplication& app) {
  json.text("metadata_version", app.metadata_version);
  write_names(json, "code_versions", app.code_versions);
  write_names(json, "functions", app.functions);
  json.integer("ready", app.ready);
  json.integer("detached", app.detached);
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

}  // namespace

void write_assignment_members(JsonWriter& json, const AssignmentRecord& assignment) {
  json.text("worker", assignment.worker.instance.value());
  json.text("application_id", assignment.application_id);
  json.text_if_any("code_version", assignment.code_version);
  json.text_if_any("runtime", assignment.runtime);
  json.text("state", to_string(assignment.state));
  json.text_if_any("reason", assignment.reason);
  json.text("command", assignment.command);
  write_moment(json, "since", assignment.since);
}

void write_language_worker(JsonWriter& json, const LanguageWorkerStatus& status) {
  json.begin("language_worker");
  json.text_if_any("worker_id", status.worker_id);
  json.text_if_any("language", status.language);
  json.text_if_any("runtime", status.runtime);
  json.text("state", status.state);
  json.text_if_any("application_id", status.application_id);
  json.text_if_any("metadata_version", status.metadata_version);
  json.text_if_any("code_version", status.code_version);
  json.integer("pid", status.pid);
  json.text_if_any("last_error", status.last_error);
  json.end();
}

void write_app(JsonWriter& json, const TenantId& tenant, const std::string& application_id,
               const SchedulerCore& core) {
  json.begin();
  json.text("tenant", tenant.value());
  json.text("application_id", application_id);
  const std::vector<AppRecord> versions = versions_of(core, tenant, application_id);
  json.begin_list("versions");
  for (const AppRecord& each : versions) write_version(json, each, &each == &versions.back());
  json.end_list();
  std::map<AssignmentState, std::uint64_t> counts;
  json.begin_list("assignments");
  core.apps().for_each_assignment([&](const AssignmentRecord& each) {
    if (each.worker.tenant != tenant || each.application_id != application_id) return;
    ++counts[each.state];
    json.begin();
    write_assignment_members(json, each);
    json.end();
  });
  json.end_list();
  json.begin("workers");
  json.integer("ready", counts[AssignmentState::Ready]);
  json.integer("pending", counts[AssignmentState::Pending]);
  json.integer("failed", counts[AssignmentState::Failed]);
  json.integer("releasing", counts[AssignmentState::Releasing]);
  json.integer("lost", counts[AssignmentState::Lost]);
  json.end();
  json.begin_list("runtimes");
  core.fleet().for_each(tenant, [&](const Worker& each) {
    if (!each.session || each.runtime == nullptr) return;
    for (const RuntimeApplication& app : each.runtime->applications) {
      if (app.application_id != application_id) continue;
      json.begin();
      json.text("id", each.key.instance.value());
      write_runtime_application(json, app);
      json.end();
    }
  });
  json.end_list();
  json.end();
}

void write_runtime(JsonWriter& json, const Worker& worker) {
  json.begin();
  json.text("tenant", worker.key.tenant.value());
  json.text("id", worker.key.instance.value());
  json.text("state", to_string(worker.state));
  json.text("liveness", to_string(worker.liveness));
  json.text_if_any("address", worker.address);
  write_moment(json, "since", worker.since);
  if (worker.runtime) {
    const RuntimeStatus& status = *worker.runtime;
    json.text_if_any("url", status.url);
    json.text_if_any("http", status.http);
    json.text_if_any("grpc", status.grpc);
    json.text_if_any("health", status.health);
    json.integer("workers", status.workers);
    json.integer("in_flight", status.in_flight);
    write_moment(json, "told_at", status.at);
    json.begin_list("applications");
    for (const RuntimeApplication& each : status.applications) {
      json.begin();
      json.text("application_id", each.application_id);
      write_runtime_application(json, each);
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
    write_moment(json, "at", each.at);
    json.end();
  }
  json.end_list();
  json.end();
}

}  // namespace windlass
