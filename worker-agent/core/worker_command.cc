#include "worker-agent/core/worker_command.h"

#include <simdjson.h>

#include <algorithm>

#include "protocol/base/limits.h"
#include "protocol/codec/json_writer.h"

namespace windlass::agent {
namespace {

using simdjson::SUCCESS;

Error bad_payload(std::string reason) {
  return {ErrorCode::ProtoSchema, Blame::Peer, std::move(reason)};
}

bool is_digest(std::string_view text) {
  return text.size() == 64 &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// A name that goes into files, logs and other systems' keys.
std::optional<Error> read_name(simdjson::dom::object object, const char* key, std::string& into) {
  std::string_view text;
  if (object[key].get(text) != SUCCESS || text.empty() || text.size() > limits::kNameBytesMax) {
    return bad_payload(std::string{key} + " must be text of 1 to 256 bytes");
  }
  if (std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20; })) {
    return bad_payload(std::string{key} + " may not contain control characters");
  }
  into = text;
  return std::nullopt;
}

std::optional<Error> read_settings(simdjson::dom::object object, Application& application) {
  simdjson::dom::element element;
  if (object["settings"].get(element) != SUCCESS) return std::nullopt;
  simdjson::dom::object settings;
  if (element.get(settings) != SUCCESS) return bad_payload("settings must be an object of texts");
  std::size_t bytes = 0;
  for (const auto [key, value] : settings) {
    std::string_view text;
    if (value.get(text) != SUCCESS) return bad_payload("settings must be an object of texts");
    bytes += key.size() + text.size();
    if (application.settings.size() == kSettingsMax || bytes > kSettingsBytesMax) {
      return bad_payload("settings may be at most 4096, of at most 512 KiB together");
    }
    const bool is_wrong = key.empty() || key.find('=') != std::string_view::npos ||
                          key.find('\0') != std::string_view::npos ||
                          text.find('\0') != std::string_view::npos;
    if (is_wrong)
      return bad_payload("a setting's name may not be empty nor contain '=', and no zero byte is allowed");
    application.settings.emplace_back(key, text);
  }
  return std::nullopt;
}

std::optional<Error> read_application(simdjson::dom::object object, Application& application) {
  for (const auto& [key, into] :
       {std::pair{"application_id", &application.application_id},
        std::pair{"metadata_version", &application.metadata_version},
        std::pair{"code_version", &application.code_version}, std::pair{"language", &application.language}}) {
    if (auto error = read_name(object, key, *into)) return error;
  }
  simdjson::dom::object package;
  std::string_view digest;
  if (object["package"].get(package) != SUCCESS || package["digest"].get(digest) != SUCCESS ||
      !is_digest(digest)) {
    return bad_payload("package.digest must be a SHA-256 in 64 lower-case hex digits");
  }
  application.package_digest = digest;
  if (package["bytes"].get(application.package_bytes) != SUCCESS || application.package_bytes == 0) {
    return bad_payload("package.bytes must be the size of the package");
  }
  return read_settings(object, application);
}

std::optional<Error> read_runtime(simdjson::dom::object object, std::optional<RuntimeTarget>& into) {
  simdjson::dom::element element;
  if (object["runtime"].get(element) != SUCCESS || element.is_null()) return std::nullopt;
  simdjson::dom::object runtime;
  std::string_view url;
  if (element.get(runtime) != SUCCESS || runtime["url"].get(url) != SUCCESS || url.empty() ||
      url.size() > 1024) {
    return bad_payload("runtime.url must be the address of a runtime");
  }
  std::string_view id;
  if (runtime["id"].get(id) != SUCCESS || id.size() > limits::kIdBytesMax) id = {};
  into = RuntimeTarget{std::string{id}, std::string{url}};
  return std::nullopt;
}

void write_runtime(codec::JsonWriter& json, const RuntimeTarget& runtime) {
  json.begin("runtime");
  json.text("id", runtime.id);
  json.text("url", runtime.url);
  json.end();
}

}  // namespace

bool is_worker_command(std::string_view type) {
  return type == kSpecialize || type == kReassign || type == kRelease || type == kResume;
}

Result<WorkerCommand> parse_worker_command(std::string_view type, std::string_view payload, RunId id) {
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  if (parser.parse(payload.data(), payload.size()).get(object) != SUCCESS) {
    return bad_payload("the payload must be a JSON object");
  }
  WorkerCommand command{.id = std::move(id), .what = Release{}};
  if (type == kRelease) return command;
  if (type == kResume) {
    command.what = Resume{};
    return command;
  }
  std::optional<RuntimeTarget> runtime;
  if (auto error = read_runtime(object, runtime)) return *std::move(error);
  if (type == kReassign) {
    if (!runtime) return bad_payload("runtime is missing: it says where to go");
    command.what = Reassign{*std::move(runtime)};
    return command;
  }
  Specialize specialize{.application = {}, .runtime = std::move(runtime)};
  if (auto error = read_application(object, specialize.application)) return *std::move(error);
  command.what = std::move(specialize);
  return command;
}

std::string assignment_text(const Assignment& assignment) {
  std::string text;
  codec::JsonWriter json{text};
  json.begin();
  if (assignment.runtime) write_runtime(json, *assignment.runtime);
  if (assignment.is_drained) json.boolean("drained", true);
  if (assignment.is_drained_for_memory) json.boolean("drained_for_memory", true);
  if (const auto& application = assignment.application) {
    json.begin("application");
    json.text("application_id", application->application_id);
    json.text("metadata_version", application->metadata_version);
    json.text("code_version", application->code_version);
    json.text("language", application->language);
    json.begin("package");
    json.text("digest", application->package_digest);
    json.integer("bytes", application->package_bytes);
    json.end();
    // Names are the operator's, so they are written as values.
    json.begin_list("setting_names");
    for (const auto& [name, value] : application->settings) json.item(name);
    json.end_list();
    json.begin_list("setting_values");
    for (const auto& [name, value] : application->settings) json.item(value);
    json.end_list();
    json.end();
  }
  json.end();
  json.finish();
  return text;
}

Result<Assignment> parse_assignment(std::string_view text) {
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  if (parser.parse(text.data(), text.size()).get(object) != SUCCESS) {
    return bad_payload("it is no JSON object");
  }
  Assignment assignment;
  if (auto error = read_runtime(object, assignment.runtime)) return *std::move(error);
  if (object["drained"].get(assignment.is_drained) != SUCCESS) assignment.is_drained = false;
  if (object["drained_for_memory"].get(assignment.is_drained_for_memory) != SUCCESS) {
    assignment.is_drained_for_memory = false;
  }
  simdjson::dom::object inner;
  if (object["application"].get(inner) != SUCCESS) return assignment;
  assignment.application.emplace();
  if (auto error = read_application(inner, *assignment.application)) return *std::move(error);
  simdjson::dom::array names;
  simdjson::dom::array values;
  if (inner["setting_names"].get(names) != SUCCESS || inner["setting_values"].get(values) != SUCCESS ||
      names.size() != values.size()) {
    return bad_payload("its settings are not whole");
  }
  auto value = values.begin();
  for (const simdjson::dom::element name : names) {
    std::string_view key;
    std::string_view setting;
    if (name.get(key) != SUCCESS || (*value).get(setting) != SUCCESS)
      return bad_payload("its settings are not texts");
    assignment.application->settings.emplace_back(key, setting);
    ++value;
  }
  return assignment;
}

}  // namespace windlass::agent
