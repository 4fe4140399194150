#include "scheduler/shell/admin_json.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "protocol/crypto/text_encoding.h"
#include "scheduler/shell/admin_app_json.h"

namespace windlass {
namespace {

using codec::JsonWriter;

template <std::size_t N>
void write_time(JsonWriter& json, const char (&name)[N], WallTime time) {
  json.time(name, time, JsonWriter::TimeStyle::MillisecondsZ);
}

template <std::size_t N>
void write_texts(JsonWriter& json, const char (&name)[N], const std::vector<std::string>& texts) {
  json.begin_list(name);
  for (const std::string& text : texts) json.item(text);
  json.end_list();
}

void write_load(JsonWriter& json, const LoadReported& load, Detail detail) {
  json.begin("load");
  json.boolean("healthy", load.healthy);
  json.integer("inflight", load.inflight);
  if (load.cpu_pct) json.number("cpu_pct", *load.cpu_pct);
  if (load.mem_pct) json.number("mem_pct", *load.mem_pct);
  if (load.disk_pct) json.number("disk_pct", *load.disk_pct);
  if (load.latency_ms) json.number("latency_ms", *load.latency_ms);
  if (detail == Detail::Full && !load.metrics.empty()) json.raw("metrics", load.metrics);
  json.end();
}

// Only what placement and dispatch go by.
void write_profile(JsonWriter& json, const WorkerProfile& profile, Detail detail) {
  json.text_if_any("name", profile.worker_name);
  json.text_if_any("version", profile.version);
  json.text_if_any("hostname", profile.hostname);
  json.integer("max_parallel", profile.max_parallel);
  if (detail == Detail::Short) return;
  write_texts(json, "runtimes", profile.runtimes);
  write_texts(json, "payload_types", profile.payload_types);
}

void write_counters(JsonWriter& json, const WorkerCounters& counters) {
  json.begin("counters");
  json.integer("sessions", counters.sessions);
  json.integer("resumes", counters.resumes);
  json.integer("frames_in", counters.frames_in);
  json.integer("commands_sent", counters.commands_sent);
  json.integer("results", counters.results);
  json.integer("duplicates", counters.duplicates);
  json.integer("heartbeats", counters.heartbeats);
  json.integer("frames_refused", counters.frames_refused);
  json.integer("twins_suspected", counters.twins_suspected);
  json.integer("times_lost", counters.times_lost);
  json.end();
}

void write_attachment(JsonWriter& json, const std::optional<StoredAttachment>& attachment) {
  if (!attachment) return;
  json.begin("attachment");
  json.text("type", attachment->type);
  json.text("base64url", base64url_encode(attachment->bytes));
  json.end();
}

}  // namespace

void write_denial(JsonWriter& json, const Denial& denial) {
  json.begin();
  json.text("tenant", denial.worker.tenant.value());
  json.text("id", denial.worker.instance.value());
  write_time(json, "since", denial.since);
  json.end();
}

void write_worker(JsonWriter& json, const Worker& worker, const SchedulerCore& core, Detail detail) {
  json.begin();
  json.text("tenant", worker.key.tenant.value());
  json.text("id", worker.key.instance.value());
  json.text("role", to_string(worker.role));
  json.integer("revision", static_cast<std::uint64_t>(worker.revision));
  json.text("state", to_string(worker.state));
  json.boolean("draining", worker.is_draining);
  if (core.is_denied(worker.key)) json.boolean("denied", true);
  // For a worker that is not connected, report only facts that cannot have changed.
  const bool is_here = worker.is_connected();
  if (is_here) json.text("liveness", to_string(worker.liveness));
  const std::string_view unfitness = unfitness_of(worker);
  json.text("placement", unfitness.empty() ? std::string_view{"open"} : unfitness);
  json.text_if_any("session_id", worker.session ? worker.session_id : std::string{});
  json.text_if_any("address", worker.address);
  write_time(json, "first_seen", worker.first_seen);
  write_time(json, "since", worker.since);
  write_time(json, "heard_at", worker.heard_at);
  if (worker.profile) write_profile(json, *worker.profile, detail);
  if (is_here && worker.load) write_load(json, *worker.load, detail);
  if (worker.language_worker) write_language_worker(json, worker, core);
  if (const AssignmentRecord* const assignment = core.apps().assignment_of(worker.key)) {
    json.begin("assignment");
    write_assignment_members(json, *assignment, to_string(core.state_of(*assignment)));
    json.end();
  }
  json.begin("commands");
  json.integer("in_flight", core.outbox().in_flight(worker.key));
  json.integer("waiting", core.outbox().waiting(worker.key));
  json.integer("results", worker.counters.results);
  json.end();
  json.text_if_any("end_code", worker.end_code);
  json.text_if_any("end_reason", worker.end_reason);
  if (detail == Detail::Full) {
    write_invocations(json, worker, core);
    write_counters(json, worker.counters);
    if (const auto drain = core.drain_of(worker.key)) {
      json.begin("drain");
      json.text_if_any("reason", drain->reason);
      write_time(json, "until", drain->until);
      json.end();
    }
  }
  json.end();
}

void write_command(JsonWriter& json, const CommandView& command, Detail detail) {
  const CommandRecord& record = command.record;
  json.begin();
  json.text("tenant", record.key.tenant.value());
  json.text("id", record.key.id);
  json.text_if_any("worker", record.worker.value());
  if (record.target.is_of_application()) json.text("application", record.target.name);
  if (record.target.kind == CommandTarget::Kind::Language) json.text("language", record.target.name);
  if (record.target.kind != CommandTarget::Kind::Worker) {
    json.boolean("idempotent", record.is_idempotent);
    json.integer("moves", record.moves);
  }
  json.text("type", record.type);
  json.text("state", to_string(command.state));
  json.integer("number", record.number);
  json.integer("sends", command.sends);
  write_time(json, "created_at", record.created_at);
  json.integer("timeout_ms", static_cast<std::uint64_t>(record.timeout.count()));
  if (command.result != nullptr || command.failure != nullptr) {
    write_time(json, "finished_at", record.finished_at);
  }
  if (detail == Detail::Full) json.raw("payload", shown_payload(record.type, record.payload));
  if (command.result != nullptr) {
    json.begin("result");
    json.text("id", command.result->id);
    json.text("type", command.result->type);
    if (detail == Detail::Full) {
      json.raw("payload", command.result->payload);
      write_attachment(json, command.result->attachment);
    }
    json.end();
  }
  if (command.failure != nullptr) {
    json.begin("failure");
    json.text("code", to_string(command.failure->code));
    json.text("reason", command.failure->reason);
    json.boolean("may_have_run", command.failure->may_have_run);
    json.end();
  }
  json.end();
}

void write_message(JsonWriter& json, const InboxRecord& record) {
  json.begin();
  json.text("tenant", record.worker.tenant.value());
  json.text("worker", record.worker.instance.value());
  json.integer("number", record.number);
  write_time(json, "received_at", record.received_at);
  json.text("id", record.message.id);
  json.text_if_any("corr", record.message.corr);
  json.text("type", record.message.type);
  json.raw("payload", record.message.payload);
  write_attachment(json, record.message.attachment);
  json.end();
}

Problem problem_of(const Error& error) {
  const auto status = [&]() -> std::uint16_t {
    switch (error.code) {
      case ErrorCode::ProtoJson:
      case ErrorCode::ProtoSchema:
        return 400;
      case ErrorCode::CmdUnknown:
        return 404;
      case ErrorCode::ProtoState:
      case ErrorCode::SessionUnknown:
      case ErrorCode::SessionDraining:
      case ErrorCode::ResultDuplicate:
        return 409;
      case ErrorCode::LimitFrame:
        return 413;
      case ErrorCode::LimitCapacity:
        return 429;
      case ErrorCode::StoreFull:
        return 507;
      case ErrorCode::StoreStale:
      case ErrorCode::StoreInvalid:
      case ErrorCode::StoreFailed:
        return 503;
      default:
        return 500;
    }
  }();
  return {status, std::string{to_string(error.code)}, error.reason};
}

}  // namespace windlass
