#include "scheduler/core/runtime_text.h"

#include <simdjson.h>

#include <algorithm>
#include <utility>

#include "protocol/base/clip.h"
#include "protocol/codec/json_writer.h"

namespace windlass {
namespace {

using codec::JsonWriter;
using simdjson::dom::element;

constexpr std::size_t kStatusTextMax = 512;  // of one text that a peer says of itself
constexpr std::size_t kStatusListMax = 4096;
constexpr std::size_t kLoadFailuresMax = 32;  // of one worker

std::string text_at(const element& object, std::string_view name) {
  std::string_view text;
  if (object[name].get_string().get(text) != simdjson::SUCCESS) return {};
  return std::string{clip(text, kStatusTextMax)};
}

// A flag counts as one, a list as its length: peers say "ready" either way.
std::uint64_t count_at(const element& object, std::string_view name) {
  element found;
  if (object[name].get(found) != simdjson::SUCCESS) return 0;
  std::uint64_t number = 0;
  if (found.get_uint64().get(number) == simdjson::SUCCESS) return number;
  bool flag = false;
  if (found.get_bool().get(flag) == simdjson::SUCCESS) return flag ? 1 : 0;
  simdjson::dom::array list;
  return found.get_array().get(list) == simdjson::SUCCESS ? list.size() : 0;
}

// Of a list of texts, of objects with a name, or of an object's member names.
std::vector<std::string> names_at(const element& object, std::string_view name) {
  std::vector<std::string> names;
  simdjson::dom::array list;
  simdjson::dom::object members;
  if (object[name].get_array().get(list) == simdjson::SUCCESS) {
    for (const element each : list) {
      std::string_view text;
      std::string found = each.get_string().get(text) == simdjson::SUCCESS
                              ? std::string{clip(text, kStatusTextMax)}
                              : text_at(each, "name");
      if (!found.empty() && names.size() < kStatusListMax) names.push_back(std::move(found));
    }
  } else if (object[name].get_object().get(members) == simdjson::SUCCESS) {
    for (const auto member : members) {
      if (names.size() < kStatusListMax) names.emplace_back(clip(member.key, kStatusTextMax));
    }
  }
  return names;
}

std::optional<double> number_at(const element& object, std::string_view name) {
  double number = 0;
  if (object[name].get_double().get(number) == simdjson::SUCCESS) return number;
  return std::nullopt;
}

RuntimeWorker runtime_worker(const element& object) {
  RuntimeWorker worker{.worker_id = text_at(object, "worker"),
                       .state = text_at(object, "state"),
                       .has_counts = object["slots"].error() == simdjson::SUCCESS,
                       .in_flight = count_at(object, "in_flight"),
                       .slots = count_at(object, "slots"),
                       .done = count_at(object, "done"),
                       .failed = count_at(object, "failed"),
                       .abandoned = count_at(object, "abandoned"),
                       .functions_loaded = count_at(object, "functions_loaded"),
                       .load_failures = {},
                       .status_latency_ms = number_at(object, "status_latency_ms"),
                       .specialization_ms = number_at(object, "specialization_ms")};
  simdjson::dom::array list;
  if (object["load_failures"].get_array().get(list) != simdjson::SUCCESS) return worker;
  for (const element each : list) {
    if (worker.load_failures.size() >= kLoadFailuresMax) break;
    worker.load_failures.emplace_back(text_at(each, "function"), text_at(each, "reason"));
  }
  return worker;
}

// A worker is named after the instance that started it, with a dot and a number behind.
void read_detached(const element& document, RuntimeStatus& status) {
  status.detached_left_out = count_at(document, "detached_left_out");
  simdjson::dom::array list;
  if (document["workers"].get_array().get(list) != simdjson::SUCCESS) return;
  for (const element each : list) {
    bool is_detached = false;
    if (each["detached"].get_bool().get(is_detached) != simdjson::SUCCESS || !is_detached) continue;
    const std::string worker = text_at(each, "worker");
    if (status.detached.size() < kStatusListMax) {
      status.detached.insert(worker.substr(0, worker.rfind('.')));
    } else {
      ++status.detached_left_out;
    }
  }
}

template <class Members>
std::string object_text(const Members& members) {
  std::string text;
  JsonWriter json{text};
  json.begin();
  members(json);
  json.end();
  json.finish();
  return text;
}

std::string settings_text(const std::map<std::string, std::string>& settings) {
  std::string text = "{";
  for (const auto& [name, value] : settings) {
    if (text.size() > 1) text += ',';
    text += json_quoted(name) + ':' + json_quoted(value);
  }
  return text + '}';
}

}  // namespace

struct RuntimeReader::Impl {
  // Nothing for what is not JSON; it came through the codec, so that cannot be.
  std::optional<element> parse(std::string_view text) {
    element document;
    if (parser.parse(text.data(), text.size()).get(document) != simdjson::SUCCESS) return std::nullopt;
    return document;
  }
  simdjson::dom::parser parser;
};

RuntimeReader::RuntimeReader() : impl_(std::make_unique<Impl>()) {}
RuntimeReader::~RuntimeReader() = default;

namespace {

// Bounds on an agent's list of confinement gaps; larger than any real list.
constexpr std::size_t kGapsMax = 16;
constexpr std::size_t kGapBytesMax = 512;

}  // namespace

LanguageWorkerStatus RuntimeReader::worker_status(std::string_view payload) {
  LanguageWorkerStatus status;
  const auto document = impl_->parse(payload);
  if (!document) return status;
  status.worker_id = text_at(*document, "worker_id");
  status.language = text_at(*document, "language");
  status.runtime = text_at(*document, "runtime");
  status.state = text_at(*document, "state");
  status.drained_for = text_at(*document, "drained_for");
  status.pid = count_at(*document, "pid");
  status.last_error = text_at(*document, "last_error");
  element package;
  if ((*document)["package"].get(package) == simdjson::SUCCESS) {
    status.package_bytes = count_at(package, "bytes");
    status.package_total = count_at(package, "total");
  }
  status.confinement = text_at(*document, "confinement");
  simdjson::dom::array gaps;
  if ((*document)["confinement_gaps"].get_array().get(gaps) == simdjson::SUCCESS) {
    for (const element each : gaps) {
      std::string_view gap;
      if (status.confinement_gaps.size() < kGapsMax && each.get(gap) == simdjson::SUCCESS)
        status.confinement_gaps.emplace_back(clip(gap, kGapBytesMax));
    }
  }
  element application;
  if ((*document)["application"].get(application) == simdjson::SUCCESS) {
    status.application_id = text_at(application, "application_id");
    status.metadata_version = text_at(application, "metadata_version");
    status.code_version = text_at(application, "code_version");
  }
  return status;
}

RuntimeStatus RuntimeReader::runtime_status(std::string_view payload) {
  RuntimeStatus status;
  const auto document = impl_->parse(payload);
  if (!document) return status;
  status.url = text_at(*document, "url");
  status.http = text_at(*document, "http");
  status.grpc = text_at(*document, "grpc");
  status.health = text_at(*document, "health");
  status.memory_pressure = text_at(*document, "memory_pressure");
  // The list is left out of a status that would be too long.
  status.workers = std::max(count_at(*document, "workers_total"), count_at(*document, "workers"));
  read_detached(*document, status);
  simdjson::dom::array list;
  if ((*document)["workers"].get_array().get(list) == simdjson::SUCCESS) {
    for (const element each : list) {
      if (status.known_workers.size() >= kStatusListMax) break;
      const RuntimeWorker& worker = status.known_workers.emplace_back(runtime_worker(each));
      if (!worker.state.empty() && worker.state != "Ready") {
        status.unready.emplace(worker.worker_id, worker.state);
      }
    }
  }
  if ((*document)["applications"].get_array().get(list) != simdjson::SUCCESS) return status;
  for (const element each : list) {
    if (status.applications.size() >= kStatusListMax) break;
    status.applications.push_back({.application_id = text_at(each, "application_id"),
                                   .metadata_version = text_at(each, "metadata_version"),
                                   .code_versions = names_at(each, "code_versions"),
                                   .functions = names_at(each, "functions"),
                                   .warnings = names_at(each, "warnings"),
                                   .ready = count_at(each, "ready"),
                                   .detached = count_at(each, "detached"),
                                   .workers = count_at(each, "workers"),
                                   .in_flight = count_at(each, "in_flight"),
                                   .pending = count_at(each, "pending")});
    status.in_flight += status.applications.back().in_flight;
  }
  return status;
}

RuntimeSignal RuntimeReader::signal(std::string_view payload) {
  RuntimeSignal signal;
  const auto document = impl_->parse(payload);
  if (!document) return signal;
  signal.kind = text_at(*document, "kind");
  signal.application_id = text_at(*document, "application_id");
  signal.worker = text_at(*document, "worker");
  signal.reason = text_at(*document, "reason");
  signal.urgent = count_at(*document, "urgent") != 0;
  signal.urgency = text_at(*document, "urgency");
  signal.agent_brings_next = count_at(*document, "agent_brings_next") != 0;
  return signal;
}

std::optional<PackageRequest> RuntimeReader::package_request(std::string_view payload) {
  const auto document = impl_->parse(payload);
  if (!document) return std::nullopt;
  PackageRequest request{text_at(*document, "digest"), 0};
  const bool has_offset = (*document)["offset"].get_uint64().get(request.offset) == simdjson::SUCCESS;
  if (request.digest.empty() || !has_offset) return std::nullopt;
  return request;
}

CommandOutcome RuntimeReader::outcome(std::string_view payload) {
  const auto document = impl_->parse(payload);
  if (!document) return {};
  CommandOutcome outcome;
  bool ok = false;
  outcome.ok = (*document)["ok"].get_bool().get(ok) == simdjson::SUCCESS && ok;
  if (outcome.ok) return outcome;
  outcome.reason = text_at(*document, "reason");
  if (outcome.reason.empty()) outcome.reason = "the worker gave no reason";
  // Every other code has another cause: the agent stops, time is over, the package does not come.
  outcome.is_of_application = text_at(*document, "code") == to_string(ErrorCode::Internal);
  return outcome;
}

std::string RuntimeReader::application_id(std::string_view payload) {
  const auto document = impl_->parse(payload);
  return document ? text_at(*document, "application_id") : std::string{};
}

std::string json_quoted(std::string_view text) {
  const std::string object = object_text([&](JsonWriter& json) { json.text("q", text); });
  return object.substr(5, object.size() - 6);
}

std::string specialize_payload(const AppRecord& app, const AssignmentRecord& assignment) {
  return object_text([&](JsonWriter& json) {
    json.text("application_id", app.key.application_id);
    json.text("metadata_version", app.metadata_version);
    json.text("code_version", app.key.code_version);
    json.text("language", app.language);
    json.begin("package");
    json.text("digest", app.digest);
    json.integer("bytes", app.bytes);
    json.end();
    json.integer("epoch", assignment.epoch);
    json.raw("settings", settings_text(app.settings));
    if (assignment.runtime_url.empty()) return;
    json.begin("runtime");
    json.text_if_any("id", assignment.runtime);
    json.text("url", assignment.runtime_url);
    json.end();
  });
}

std::string release_payload(std::string_view application_id) {
  return object_text([&](JsonWriter& json) { json.text("application_id", application_id); });
}

std::string split_payload(std::string_view application_id, std::string_view metadata_version,
                          const Weights& weights) {
  std::string text = "{";
  for (const auto& [version, weight] : weights) {
    text += (text.size() > 1 ? "," : "") + json_quoted(version) + ':' + std::to_string(weight);
  }
  return object_text([&](JsonWriter& json) {
    json.text("application_id", application_id);
    json.text_if_any("metadata_version", metadata_version);
    json.raw("weights", text + '}');
  });
}

std::string grants_payload(const GrantUpdate& update, std::uint64_t epoch) {
  std::string granted = "[";
  for (const auto& [instance, application] : update.granted) {
    granted += (granted.size() > 1 ? "," : "");
    granted += R"({"instance":)" + json_quoted(instance) + R"(,"application_id":)" + json_quoted(application);
    granted += '}';
  }
  return object_text([&](JsonWriter& json) {
    json.integer("epoch", epoch);
    json.boolean("whole", update.is_whole);
    if (update.is_whole) json.boolean("first", update.is_first);
    json.boolean("more", update.has_more);
    json.raw("granted", granted + ']');
    json.begin_list("revoked");
    for (const std::string& instance : update.revoked) json.item(instance);
    json.end_list();
  });
}

std::string applications_payload(const std::map<std::string, ServedApplication>& applications) {
  std::string list = "[";
  for (const auto& each : applications) {
    list += list.size() > 1 ? "," : "";
    list += object_text([&](JsonWriter& json) {
      json.text("application_id", each.first);
      json.text_if_any("metadata_version", each.second.metadata_version);
      if (!each.second.is_awaited) json.boolean("awaited", false);
    });
  }
  return object_text([&](JsonWriter& json) { json.raw("applications", list + ']'); });
}

std::string package_part_payload(const PackageRequest& request, std::uint64_t total) {
  return object_text([&](JsonWriter& json) {
    json.text("digest", request.digest);
    json.integer("offset", request.offset);
    json.integer("total", total);
  });
}

std::string package_refusal_payload(const PackageRequest& request, ErrorCode code, std::string_view error) {
  return object_text([&](JsonWriter& json) {
    json.text("digest", request.digest);
    json.text("code", to_string(code));
    json.text("error", error);
  });
}

std::string shown_payload(std::string_view type, std::string_view payload) {
  if (type != kSpecializeType) return std::string{payload};
  simdjson::dom::parser parser;
  simdjson::dom::object members;
  if (parser.parse(payload.data(), payload.size()).get_object().get(members) != simdjson::SUCCESS) {
    return "{}";
  }
  std::string text = "{";
  for (const auto member : members) {
    if (text.size() > 1) text += ',';
    text += json_quoted(member.key) + ':';
    simdjson::dom::object settings;
    if (member.key != "settings") {
      text += simdjson::minify(member.value);
    } else if (member.value.get_object().get(settings) == simdjson::SUCCESS) {
      text += '[';
      for (const auto setting : settings) text += json_quoted(setting.key) + ',';
      if (text.back() == ',') text.pop_back();
      text += ']';
    } else {
      text += "[]";
    }
  }
  return text + '}';
}

}  // namespace windlass
