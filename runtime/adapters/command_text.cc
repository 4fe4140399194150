#include "runtime/adapters/command_text.h"

#include <simdjson.h>

#include "protocol/base/clip.h"
#include "protocol/base/limits.h"
#include "protocol/codec/json_writer.h"
#include "runtime/adapters/runtime_metrics.h"

namespace windlass::runtime {
namespace {

constexpr std::uint64_t kTimeoutMsMax = 24ULL * 3600 * 1000;
constexpr std::size_t kStickyKeyBytesMax = 256;
constexpr std::uint64_t kWeightMax = 1'000'000;

Error wrong_command(std::string reason) {
  return {ErrorCode::ProtoSchema, Blame::Peer, std::move(reason)};
}

// Calls `read(name, value)`, which says whether it took the member, for each member.
template <class Read>
Result<Done> read_members(std::string_view payload, const Read& read) {
  simdjson::dom::parser parser;
  simdjson::dom::object members;
  if (parser.parse(payload.data(), payload.size()).get_object().get(members) != simdjson::SUCCESS) {
    return wrong_command("the payload must be a JSON object");
  }
  for (const auto member : members) {
    if (Result<Done> taken = read(member.key, member.value); !taken) return taken;
  }
  return Done{};
}

Result<Done> take_text(std::string_view name, simdjson::dom::element value, std::string& to) {
  std::string_view text;
  if (value.get_string().get(text) != simdjson::SUCCESS) {
    return wrong_command(std::string{name} + " must be text");
  }
  to = text;
  return Done{};
}

Result<Done> take_weights(simdjson::dom::element value, SplitCommand& command) {
  simdjson::dom::object weights;
  if (value.get_object().get(weights) != simdjson::SUCCESS) {
    return wrong_command("weights must be an object of code versions and whole numbers");
  }
  for (const auto weight : weights) {
    std::uint64_t number = 0;
    if (weight.value.get_uint64().get(number) != simdjson::SUCCESS || number > kWeightMax) {
      return wrong_command("the weight of '" + std::string{weight.key} +
                           "' must be a whole number from 0 to 1000000");
    }
    command.weights.emplace_back(weight.key, static_cast<std::uint32_t>(number));
  }
  return Done{};
}

Result<Done> take_granted(simdjson::dom::element value, GrantUpdate& update) {
  simdjson::dom::array list;
  if (value.get_array().get(list) != simdjson::SUCCESS) return wrong_command("granted must be a list");
  for (const simdjson::dom::element each : list) {
    std::string_view instance;
    std::string_view application;
    if (each["instance"].get_string().get(instance) != simdjson::SUCCESS || instance.empty() ||
        each["application_id"].get_string().get(application) != simdjson::SUCCESS || application.empty()) {
      return wrong_command("each of granted must name an instance and an application_id");
    }
    update.granted.emplace_back(instance, application);
  }
  return Done{};
}

Result<Done> take_revoked(simdjson::dom::element value, GrantUpdate& update) {
  simdjson::dom::array list;
  if (value.get_array().get(list) != simdjson::SUCCESS) return wrong_command("revoked must be a list");
  for (const simdjson::dom::element each : list) {
    std::string_view instance;
    if (each.get_string().get(instance) != simdjson::SUCCESS) {
      return wrong_command("each of revoked must be the name of an instance");
    }
    update.revoked.emplace_back(instance);
  }
  return Done{};
}

// What a scheduler compares; the cause beside it is for people.
ErrorCode code_of(Cause cause) {
  switch (cause) {
    case Cause::TimedOut:
    case Cause::CallerLeft:
      return ErrorCode::Timeout;
    case Cause::UnknownFunction:
      return ErrorCode::CmdUnknown;
    case Cause::NoWorker:
    case Cause::Overloaded:
      return ErrorCode::LimitCapacity;
    case Cause::TooLarge:
      return ErrorCode::LimitFrame;
    case Cause::Stopping:
    case Cause::Cancelled:
      return ErrorCode::SessionDraining;
    default:
      return ErrorCode::Internal;
  }
}

std::string list_text(const std::vector<std::string>& items) {
  std::string text = "[";
  for (const std::string& item : items) text += (text.size() > 1 ? "," : "") + json_text(item);
  return text + "]";
}

}  // namespace

Result<InvokeCommand> read_invoke_command(std::string_view payload) {
  InvokeCommand command;
  const auto read = [&](std::string_view name, simdjson::dom::element value) -> Result<Done> {
    if (name == "application_id") return take_text(name, value, command.application_id);
    if (name == "function") return take_text(name, value, command.function);
    if (name == "text") {
      command.data.kind = Datum::Kind::Text;
      return take_text(name, value, command.data.value);
    }
    if (name == "sticky_key") return take_text(name, value, command.sticky_key);
    if (name == "traceparent") return take_text(name, value, command.trace_parent);
    if (name == "data" && !value.is_null()) {
      command.data = {Datum::Kind::Json, simdjson::minify(value)};
    } else if (name == "timeout_ms") {
      std::uint64_t count = 0;
      if (value.get_uint64().get(count) != simdjson::SUCCESS || count == 0 || count > kTimeoutMsMax) {
        return wrong_command("timeout_ms must be a whole number from 1 to 86400000");
      }
      command.timeout = milliseconds{count};
    }
    return Done{};
  };
  if (const auto done = read_members(payload, read); !done) return done.error();
  if (command.application_id.empty() || command.function.empty()) {
    return wrong_command("application_id and function are needed: they name what is to be invoked");
  }
  if (command.sticky_key.size() > kStickyKeyBytesMax) {
    return wrong_command("sticky_key must have 256 bytes at most");
  }
  return command;
}

Result<SplitCommand> read_split_command(std::string_view payload) {
  SplitCommand command;
  const auto read = [&](std::string_view name, simdjson::dom::element value) -> Result<Done> {
    if (name == "application_id") return take_text(name, value, command.application_id);
    if (name == "metadata_version") return take_text(name, value, command.metadata_version.emplace());
    if (name == "weights") return take_weights(value, command);
    return Done{};
  };
  if (const auto done = read_members(payload, read); !done) return done.error();
  if (command.application_id.empty()) return wrong_command("application_id is needed");
  return command;
}

Result<DrainWorkerCommand> read_drain_worker_command(std::string_view payload) {
  DrainWorkerCommand command;
  const auto read = [&](std::string_view name, simdjson::dom::element value) -> Result<Done> {
    if (name == "worker") return take_text(name, value, command.worker);
    return Done{};
  };
  if (const auto done = read_members(payload, read); !done) return done.error();
  if (command.worker.empty()) return wrong_command("worker is needed: the id of the one to drain");
  return command;
}

Result<GrantUpdate> read_grants(std::string_view payload) {
  GrantUpdate update;
  const auto read = [&](std::string_view name, simdjson::dom::element value) -> Result<Done> {
    if (name == "granted") return take_granted(value, update);
    if (name == "revoked") return take_revoked(value, update);
    bool is_good = true;
    if (name == "epoch") is_good = value.get_uint64().get(update.epoch) == simdjson::SUCCESS;
    if (name == "whole") is_good = value.get_bool().get(update.is_whole) == simdjson::SUCCESS;
    if (name == "first") is_good = value.get_bool().get(update.is_first.emplace()) == simdjson::SUCCESS;
    if (name == "more") is_good = value.get_bool().get(update.has_more) == simdjson::SUCCESS;
    if (is_good) return Done{};
    return wrong_command(std::string{name} + " is not of the kind that it must be");
  };
  if (const auto done = read_members(payload, read); !done) return done.error();
  return update;
}

Result<AssignedApplications> read_assigned_applications(std::string_view payload) {
  AssignedApplications applications;
  bool is_there = false;
  const auto read = [&](std::string_view name, simdjson::dom::element value) -> Result<Done> {
    if (name != "applications") return Done{};
    simdjson::dom::array list;
    if (value.get_array().get(list) != simdjson::SUCCESS) return wrong_command("applications must be a list");
    is_there = true;
    for (const auto each : list) {
      std::string_view application_id;
      std::string_view version;
      if (each["application_id"].get_string().get(application_id) != simdjson::SUCCESS) {
        return wrong_command("an application of the list has no application_id");
      }
      if (each["metadata_version"].get_string().get(version) != simdjson::SUCCESS) version = {};
      bool is_awaited = true;
      if (each["awaited"].get_bool().get(is_awaited) != simdjson::SUCCESS) is_awaited = true;
      applications.insert_or_assign(std::string{application_id},
                                    AssignedApplication{std::string{version}, is_awaited});
    }
    return Done{};
  };
  if (const auto done = read_members(payload, read); !done) return done.error();
  if (!is_there) return wrong_command("applications is needed: all that are to be served here");
  return applications;
}

std::string done_result() {
  return R"({"ok":true})";
}

std::string refused_result(const Error& error) {
  std::string text;
  codec::JsonWriter json{text};
  json.begin();
  json.boolean("ok", false);
  json.text("code", to_string(error.code));
  json.text("reason", sayable(error.reason, limits::kReasonBytesMax));
  json.end();
  json.finish();
  return text;
}

std::string outcome_result(const Outcome& outcome, const std::vector<std::string>& logs,
                           std::size_t bytes_max) {
  const bool is_ok = outcome.settlement == Settlement::Complete;
  Result<JsonOutput> output = is_ok ? read_json_output(outcome.body) : JsonOutput{};
  if (!output) return refused_result(output.error());
  std::string text;
  codec::JsonWriter json{text};
  json.begin();
  json.boolean("ok", is_ok);
  if (is_ok) {
    json.raw("return", output->return_value);
    json.raw("outputs", output->outputs);
  } else {
    json.text("code", to_string(code_of(outcome.cause)));
    json.raw("reason", json_text(clip(outcome.reason, limits::kReasonBytesMax)));
    json.text("cause", to_string(outcome.cause));
    if (!outcome.result.stack_trace.empty())
      json.raw("stack", json_text(clip(outcome.result.stack_trace, 16 * 1024)));
  }
  json.raw("logs", list_text(logs));
  json.integer("took_ms", static_cast<std::uint64_t>(outcome.took / milliseconds{1}));
  json.text("worker", outcome.worker.value());
  json.end();
  json.finish();
  if (text.size() <= bytes_max) return text;
  return refused_result({ErrorCode::LimitFrame, Blame::Local,
                         "the function ran, but its result is larger than a message can be"});
}

}  // namespace windlass::runtime
