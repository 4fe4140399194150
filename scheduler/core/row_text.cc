#include "scheduler/core/row_text.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "protocol/base/check.h"
#include "protocol/base/limits.h"
#include "protocol/codec/json_writer.h"
#include "protocol/crypto/text_encoding.h"

namespace windlass {
namespace {

using codec::JsonWriter;
using simdjson::dom::object;
using Target = CommandTarget::Kind;

constexpr std::string_view kHex = "0123456789abcdef";
constexpr std::array<std::pair<std::string_view, RowKind>, 8> kKinds{{
    {"command", RowKind::Command},
    {"message", RowKind::Message},
    {"revocation", RowKind::Revocation},
    {"denial", RowKind::Denial},
    {"drain", RowKind::Drain},
    {"app", RowKind::App},
    {"assignment", RowKind::Assignment},
    {"active", RowKind::Active},
}};

void append_part(std::string& key, std::string_view part) {
  key += '/';
  for (const char c : part) {
    const bool is_plain = c != '/' && c != '%';
    key += is_plain ? c : '%';
    if (is_plain) continue;
    key += kHex[static_cast<unsigned char>(c) >> 4U];
    key += kHex[static_cast<unsigned char>(c) & 0xfU];
  }
}

template <class... Parts>
std::string make_row(std::string_view kind, const Parts&... parts) {
  std::string key{kind};
  (append_part(key, parts), ...);
  return key;
}

// The parts after the kind; nothing for a key that was not made by make_row.
std::optional<std::vector<std::string>> parts_of(std::string_view row) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row[i] == '/') {
      parts.emplace_back();
    } else if (parts.empty()) {
      continue;
    } else if (row[i] != '%') {
      parts.back() += row[i];
    } else {
      if (i + 2 >= row.size()) return std::nullopt;
      const std::size_t high = kHex.find(row[i + 1]);
      const std::size_t low = kHex.find(row[i + 2]);
      if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
      parts.back() += static_cast<char>(high << 4U | low);
      i += 2;
    }
  }
  return parts;
}

std::uint64_t count_of(WallTime time) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, time.time_since_epoch().count()));
}

void write_message(JsonWriter& json, const StoredMessage& message) {
  json.text("id", message.id);
  json.text_if_any("corr", message.corr);
  json.text("type", message.type);
  json.text("payload", message.payload);
  if (!message.attachment) return;
  json.begin("attachment");
  json.text("type", message.attachment->type);
  json.text("base64url", base64url_encode(message.attachment->bytes));
  json.end();
}

template <std::size_t N>
void write_pairs(JsonWriter& json, const char (&name)[N], const std::map<std::string, std::string>& pairs) {
  json.begin_list(name);
  for (const auto& [key, value] : pairs) {
    json.item(key);
    json.item(value);
  }
  json.end_list();
}

void write_target(JsonWriter& json, const CommandRecord& record) {
  if (record.target.is_of_application()) json.text("application", record.target.name);
  if (record.type == kInvokeType && record.target.kind == Target::Application) json.integer("for_workers", 1);
  if (record.target.kind == Target::Language) json.text("language", record.target.name);
  if (record.is_idempotent) json.integer("idempotent", 1);
  if (record.moves > 0) json.integer("moves", record.moves);
}

template <class Members>
Bytes write_object(const Members& members) {
  Bytes text;
  JsonWriter json{text};
  json.begin();
  members(json);
  json.end();
  json.finish();
  return text;
}

// How many parts follow the kind in a key. A message's may have one more.
std::size_t parts_wanted(RowKind kind) {
  if (kind == RowKind::Message) return 4;
  if (kind == RowKind::App) return 3;
  return kind >= RowKind::Issued ? 1 : 2;
}

// Reads members and remembers the first one that is not as it should be.
class Members {
 public:
  explicit Members(object members) : members_(members) {}

  bool has(std::string_view name) const { return members_[name].error() == simdjson::SUCCESS; }
  std::string text(std::string_view name) {
    std::string_view value;
    if (members_[name].get_string().get(value) != simdjson::SUCCESS) note(name);
    return std::string{value};
  }
  std::string text_if_any(std::string_view name) { return has(name) ? text(name) : std::string{}; }
  std::uint64_t number(std::string_view name) {
    std::uint64_t value = 0;
    if (members_[name].get_uint64().get(value) != simdjson::SUCCESS || value > limits::kIntegerMax)
      note(name);
    return value;
  }
  milliseconds span(std::string_view name) { return milliseconds{static_cast<std::int64_t>(number(name))}; }
  WallTime time(std::string_view name) { return WallTime{span(name)}; }
  Members inside(std::string_view name) {
    object value;
    if (members_[name].get_object().get(value) != simdjson::SUCCESS) note(name);
    return Members{value};
  }
  // Names and values in turns, which is how write_pairs writes them.
  std::map<std::string, std::string> pairs(std::string_view name) {
    std::map<std::string, std::string> found;
    simdjson::dom::array list;
    if (members_[name].get_array().get(list) != simdjson::SUCCESS) note(name);
    std::optional<std::string> key;
    for (const simdjson::dom::element each : list) {
      std::string_view text;
      if (each.get_string().get(text) != simdjson::SUCCESS) note(name);
      if (!key) {
        key = std::string{text};
      } else {
        found.emplace(std::move(*std::exchange(key, std::nullopt)), text);
      }
    }
    if (key) note(name);
    return found;
  }
  void note(std::string_view name) {
    if (wrong_.empty()) wrong_ = name;
  }
  void note(const Members& inner) { note(inner.wrong_); }
  const std::string& wrong() const { return wrong_; }

 private:
  object members_;
  std::string wrong_;
};

StoredMessage read_message(Members& members) {
  StoredMessage message;
  message.id = members.text("id");
  message.corr = members.text_if_any("corr");
  message.type = members.text("type");
  message.payload = members.text("payload");
  if (!members.has("attachment")) return message;
  Members attachment = members.inside("attachment");
  auto bytes = base64url_decode(attachment.text("base64url"));
  if (!bytes) attachment.note("base64url");
  message.attachment = StoredAttachment{attachment.text("type"), std::move(bytes).value_or("")};
  if (!attachment.wrong().empty()) members.note(attachment);
  return message;
}

void read_target(Members& members, CommandRecord& record) {
  if (members.has("application")) {
    const bool is_serving = record.type == kInvokeType && !members.has("for_workers");
    record.target = {is_serving ? Target::Serving : Target::Application, members.text("application")};
  } else if (members.has("language")) {
    record.target = {Target::Language, members.text("language")};
  } else if (record.worker.value().empty()) {
    members.note("worker");
  }
  record.is_idempotent = members.has("idempotent");
  if (members.has("moves")) record.moves = static_cast<std::uint32_t>(members.number("moves"));
}

CommandRecord read_command(CommandKey key, Members& members) {
  CommandRecord record;
  record.key = std::move(key);
  record.worker = InstanceId{members.text_if_any("worker")};
  record.type = members.text("type");
  read_target(members, record);
  record.payload = members.text("payload");
  record.number = members.number("number");
  record.created_at = members.time("created_ms");
  record.timeout = members.span("timeout_ms");
  if (members.has("result")) {
    Members result = members.inside("result");
    record.result = read_message(result);
    if (!result.wrong().empty()) members.note(result);
  } else if (members.has("failure")) {
    Members failure = members.inside("failure");
    const auto code = error_code_from(failure.text("code"));
    if (!code) members.note("failure");
    record.failure =
        Failure{code.value_or(ErrorCode::Internal), failure.text("reason"), failure.has("may_have_run")};
  }
  if (record.is_finished()) record.finished_at = members.time("finished_ms");
  return record;
}

AppRecord read_app(AppKey key, Members& members) {
  AppRecord record;
  record.key = std::move(key);
  record.metadata_version = members.text("metadata_version");
  record.language = members.text("language");
  record.digest = members.text("digest");
  record.bytes = members.number("bytes");
  record.settings = members.pairs("settings");
  if (members.has("settings_version")) record.settings_version = members.number("settings_version");
  record.number = members.number("number");
  record.deployed_at = members.time("deployed_ms");
  if (members.has("weight")) record.weight = members.number("weight");
  if (members.has("proven_version"))
    record.proven = {members.number("proven_version"), members.pairs("proven_settings")};
  record.rollout_stopped = members.text_if_any("rollout_stopped");
  return record;
}

AssignmentRecord read_assignment(WorkerKey worker, Members& members) {
  AssignmentRecord record;
  record.worker = std::move(worker);
  record.application_id = members.text("application_id");
  record.metadata_version = members.text("metadata_version");
  record.code_version = members.text("code_version");
  record.runtime = members.text_if_any("runtime");
  record.runtime_url = members.text_if_any("runtime_url");
  record.command = members.text("command");
  const auto state = assignment_state_from(members.text("state"));
  if (!state) members.note("state");
  record.state = state.value_or(AssignmentState::Failed);
  record.reason = members.text_if_any("reason");
  record.since = members.time("since_ms");
  // Rows of earlier versions have none of these.
  if (members.has("epoch")) record.epoch = members.number("epoch");
  if (members.has("settings_version")) record.settings_version = members.number("settings_version");
  record.is_owed = members.has("owed");
  record.is_refill = members.has("refill");
  return record;
}

InboxRecord read_inbox(WorkerKey worker, std::string session, Members& members) {
  InboxRecord record;
  record.worker = std::move(worker);
  record.session = std::move(session);
  record.number = members.number("number");
  record.received_at = members.time("received_ms");
  if (members.has("digest")) {
    record.digest = members.text("digest");
    record.message.id = members.text("id");
    record.message.corr = members.text_if_any("corr");
  } else {
    record.message = read_message(members);
  }
  return record;
}

}  // namespace

std::string command_row(const CommandKey& key) {
  return make_row("command", key.tenant.value(), key.id);
}

std::string message_row(const WorkerKey& worker, std::string_view id, std::string_view corr,
                        std::string_view session) {
  std::string row = make_row("message", worker.tenant.value(), worker.instance.value(), id, corr);
  if (!session.empty()) append_part(row, session);
  return row;
}

std::string revocation_row(const WorkerKey& worker) {
  return make_row("revocation", worker.tenant.value(), worker.instance.value());
}

std::string denial_row(const WorkerKey& worker) {
  return make_row("denial", worker.tenant.value(), worker.instance.value());
}

std::string drain_row(const WorkerKey& worker) {
  return make_row("drain", worker.tenant.value(), worker.instance.value());
}

std::string app_row(const AppKey& key) {
  return make_row("app", key.tenant.value(), key.application_id, key.code_version);
}

std::string assignment_row(const WorkerKey& worker) {
  return make_row("assignment", worker.tenant.value(), worker.instance.value());
}

std::string active_row(const TenantId& tenant, std::string_view application_id) {
  return make_row("active", tenant.value(), application_id);
}

RowKind kind_of(std::string_view row) {
  if (row == kIssuedRow) return RowKind::Issued;
  if (row == kProbeRow) return RowKind::Probe;
  const std::string_view name = row.substr(0, row.find('/'));
  for (const auto& [text, kind] : kKinds) {
    if (name == text) return kind;
  }
  return RowKind::Unknown;
}

Bytes to_row_value(const CommandRecord& record) {
  return write_object([&](JsonWriter& json) {
    json.integer("number", record.number);
    json.text_if_any("worker", record.worker.value());
    write_target(json, record);
    json.text("type", record.type);
    json.text("payload", record.payload);
    json.integer("created_ms", count_of(record.created_at));
    json.integer("timeout_ms", static_cast<std::uint64_t>(record.timeout.count()));
    if (record.result) {
      json.begin("result");
      write_message(json, *record.result);
      json.end();
    } else if (record.failure) {
      json.begin("failure");
      json.text("code", to_string(record.failure->code));
      json.text("reason", record.failure->reason);
      if (record.failure->may_have_run) json.integer("may_have_run", 1);
      json.end();
    }
    if (record.is_finished()) json.integer("finished_ms", count_of(record.finished_at));
  });
}

Bytes to_row_value(const InboxRecord& record) {
  return write_object([&](JsonWriter& json) {
    json.integer("number", record.number);
    json.integer("received_ms", count_of(record.received_at));
    if (record.digest.empty()) return write_message(json, record.message);
    json.text("id", record.message.id);
    json.text_if_any("corr", record.message.corr);
    json.text("digest", record.digest);
  });
}

Bytes to_row_value(const Revocation& revocation) {
  return write_object([&](JsonWriter& json) { json.integer("until_ms", count_of(revocation.until)); });
}

Bytes to_row_value(const Denial& denial) {
  return write_object([&](JsonWriter& json) { json.integer("since_ms", count_of(denial.since)); });
}

Bytes to_row_value(const DrainIntent& drain) {
  return write_object([&](JsonWriter& json) {
    json.text("reason", drain.reason);
    json.integer("until_ms", count_of(drain.until));
  });
}

Bytes to_row_value(const AppRecord& app) {
  return write_object([&](JsonWriter& json) {
    json.integer("number", app.number);
    json.text("metadata_version", app.metadata_version);
    json.text("language", app.language);
    json.text("digest", app.digest);
    json.integer("bytes", app.bytes);
    write_pairs(json, "settings", app.settings);
    json.integer("settings_version", app.settings_version);
    json.integer("deployed_ms", count_of(app.deployed_at));
    if (app.weight) json.integer("weight", *app.weight);
    if (app.proven) json.integer("proven_version", app.proven->version);
    if (app.proven) write_pairs(json, "proven_settings", app.proven->settings);
    json.text_if_any("rollout_stopped", app.rollout_stopped);
  });
}

Bytes to_row_value(const AssignmentRecord& assignment) {
  return write_object([&](JsonWriter& json) {
    json.text("application_id", assignment.application_id);
    json.text("metadata_version", assignment.metadata_version);
    json.text("code_version", assignment.code_version);
    json.text_if_any("runtime", assignment.runtime);
    json.text_if_any("runtime_url", assignment.runtime_url);
    json.text("command", assignment.command);
    json.text("state", to_string(assignment.state));
    json.text_if_any("reason", assignment.reason);
    json.integer("since_ms", count_of(assignment.since));
    json.integer("epoch", assignment.epoch);
    json.integer("settings_version", assignment.settings_version);
    if (assignment.is_owed) json.boolean("owed", true);
    if (assignment.is_refill) json.boolean("refill", true);
  });
}

Bytes to_row_value(const ActiveVersion& active) {
  return write_object([&](JsonWriter& json) { json.text("metadata_version", active.metadata_version); });
}

Bytes to_row_value(const IssuedUntil& issued) {
  return write_object([&](JsonWriter& json) { json.integer("at_ms", count_of(issued.at)); });
}

Bytes to_row_value(const StoreProbe& probe) {
  return write_object([&](JsonWriter& json) { json.integer("failures", probe.failures); });
}

struct RowReader::Impl {
  // A payload is the second container of its frame, and the parser counts one more.
  Impl() { CHECK(payloads.allocate(1024, limits::kNestingDepthMax) == simdjson::SUCCESS); }

  simdjson::dom::parser parser;
  simdjson::dom::parser payloads;
};

RowReader::RowReader() : impl_(std::make_unique<Impl>()) {}
RowReader::~RowReader() = default;

Result<AnyRecord> RowReader::read(const Row& row) {
  const auto invalid = [&row](std::string_view what) {
    return Error{ErrorCode::StoreInvalid, Blame::Local,
                 "row '" + row.key + "' of the store cannot be read: " + std::string{what}};
  };
  const auto parts = parts_of(row.key);
  const RowKind kind = kind_of(row.key);
  const std::size_t wanted = parts_wanted(kind);
  const bool has_session = parts && kind == RowKind::Message && parts->size() == wanted + 1;
  if (kind == RowKind::Unknown || !parts || (parts->size() != wanted && !has_session))
    return invalid("its key is not one of ours");
  object document;
  if (impl_->parser.parse(row.value).get_object().get(document) != simdjson::SUCCESS) {
    return invalid("its value is not a JSON object");
  }
  Members members{document};
  const auto worker = [&] { return WorkerKey{TenantId{parts->at(0)}, InstanceId{parts->at(1)}}; };
  const auto build = [&]() -> AnyRecord {
    switch (kind) {
      case RowKind::Command:
        return read_command({TenantId{parts->at(0)}, parts->at(1)}, members);
      case RowKind::Message:
        return read_inbox(worker(), has_session ? parts->back() : std::string{}, members);
      case RowKind::Revocation:
        return Revocation{worker(), members.time("until_ms")};
      case RowKind::Denial:
        return Denial{worker(), members.time("since_ms")};
      case RowKind::Drain:
        return DrainIntent{worker(), members.text("reason"), members.time("until_ms")};
      case RowKind::App:
        return read_app({TenantId{parts->at(0)}, parts->at(1), parts->at(2)}, members);
      case RowKind::Assignment:
        return read_assignment(worker(), members);
      case RowKind::Active:
        return ActiveVersion{TenantId{parts->at(0)}, parts->at(1), members.text("metadata_version")};
      case RowKind::Issued:
        return IssuedUntil{members.time("at_ms")};
      case RowKind::Probe:
      case RowKind::Unknown:
        break;
    }
    return StoreProbe{members.number("failures")};
  };
  AnyRecord record = build();
  if (!members.wrong().empty())
    return invalid("member '" + members.wrong() + "' is missing or of another kind");
  return record;
}

bool RowReader::is_payload(std::string_view text) {
  object document;
  return impl_->payloads.parse(text.data(), text.size()).get_object().get(document) == simdjson::SUCCESS;
}

}  // namespace windlass
