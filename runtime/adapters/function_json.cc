#include "runtime/adapters/function_json.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "runtime/adapters/http_asked.h"

namespace windlass::runtime {
namespace {

constexpr std::uintmax_t kFileBytesMax = 1024 * 1024;

constexpr std::array<std::string_view, 36> kTriggers = {"activityTrigger",
                                                        "assistantSkillTrigger",
                                                        "authenticationEventsTrigger",
                                                        "blobTrigger",
                                                        "cosmosDBTrigger",
                                                        "daprBindingTrigger",
                                                        "daprServiceInvocationTrigger",
                                                        "daprTopicTrigger",
                                                        "entityTrigger",
                                                        "eventGridTrigger",
                                                        "eventHubTrigger",
                                                        "httpTrigger",
                                                        "iotHubTrigger",
                                                        "kafkaTrigger",
                                                        "kustoTrigger",
                                                        "localQueueTrigger",
                                                        "manualTrigger",
                                                        "mcpPromptTrigger",
                                                        "mcpResourceTrigger",
                                                        "mcpToolTrigger",
                                                        "mysqlTrigger",
                                                        "natsTrigger",
                                                        "orchestrationTrigger",
                                                        "queueTrigger",
                                                        "rabbitMQTrigger",
                                                        "redisListTrigger",
                                                        "redisPubSubTrigger",
                                                        "redisStreamTrigger",
                                                        "sendGridTrigger",
                                                        "serviceBusTrigger",
                                                        "signalRTrigger",
                                                        "sqlTrigger",
                                                        "syntheticMonitorTrigger",
                                                        "timerTrigger",
                                                        "warmupTrigger",
                                                        "webPubSubTrigger"};

std::string lower(std::string_view text) {
  std::string all{text};
  std::ranges::transform(all, all.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return all;
}

std::string upper(std::string_view text) {
  std::string all{text};
  std::ranges::transform(all, all.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return all;
}

Error wrong(std::string reason, SourceLine where = SourceLine::here()) {
  return {ErrorCode::ProtoSchema, Blame::Peer, std::move(reason), where};
}

std::string text_in(const simdjson::dom::object& object, std::string_view key) {
  std::string_view value;
  return object[key].get(value) == simdjson::SUCCESS ? std::string{value} : std::string{};
}

// "hh:mm:ss", with days in front or a fraction behind if there are any.
std::optional<Duration> time_span(const std::string& text) {
  int days = 0;
  int hours = 0;
  int minutes = 0;
  double rest = 0;
  int used = 0;
  const auto is_whole = [&] { return static_cast<std::size_t>(used) == text.size(); };
  if (std::sscanf(text.c_str(), "%d.%d:%d:%lf%n", &days, &hours, &minutes, &rest, &used) != 4 ||
      !is_whole()) {
    days = 0;
    if (std::sscanf(text.c_str(), "%d:%d:%lf%n", &hours, &minutes, &rest, &used) != 3 || !is_whole()) {
      return std::nullopt;
    }
  }
  // Ten years, however they are written; a number that is none is not within.
  constexpr int kHoursMax = 87'600;
  const bool is_whole_good = days >= 0 && hours >= 0 && minutes >= 0 && days <= kHoursMax / 24 &&
                             hours <= kHoursMax && minutes <= kHoursMax * 60;
  if (!is_whole_good || !(rest >= 0 && rest <= kHoursMax * 3600.0)) return std::nullopt;
  return std::chrono::hours{days * 24 + hours} + std::chrono::minutes{minutes} +
         std::chrono::duration_cast<Duration>(std::chrono::duration<double>{rest});
}

void read_retry(const simdjson::dom::object& object, Function& function) {
  simdjson::dom::object retry;
  if (object["retry"].get(retry) != simdjson::SUCCESS) return;
  function.has_retry = true;
  const bool is_fixed = lower(text_in(retry, "strategy")) != "exponentialbackoff";
  function.retry.strategy =
      is_fixed ? RetryOptions::Strategy::FixedDelay : RetryOptions::Strategy::ExponentialBackoff;
  std::int64_t most = 0;
  if (retry["maxRetryCount"].get(most) != simdjson::SUCCESS) most = 0;
  function.retry.retries_max = static_cast<std::int32_t>(std::clamp<std::int64_t>(most, -1, 1'000'000));
  function.retry.delay = time_span(text_in(retry, "delayInterval")).value_or(Duration{});
  function.retry.delay_least = time_span(text_in(retry, "minimumInterval")).value_or(Duration{});
  function.retry.delay_most = time_span(text_in(retry, "maximumInterval")).value_or(Duration{});
}

bool is_disabled(const simdjson::dom::object& object, const std::string& name, const TextMap* settings) {
  bool flag = false;
  if (object["disabled"].get(flag) == simdjson::SUCCESS && flag) return true;
  if (settings == nullptr) return false;
  // As text it names a setting.
  if (const std::string setting = text_in(object, "disabled");
      !setting.empty() && is_set(*settings, setting)) {
    return true;
  }
  return is_switched_off(*settings, name);
}

std::string read_bindings(const simdjson::dom::object& object, Function& function) {
  simdjson::dom::array bindings;
  if (object["bindings"].get(bindings) != simdjson::SUCCESS) return "it has no list of bindings";
  for (const simdjson::dom::element each : bindings) {
    Result<Binding> binding = read_binding(simdjson::minify(each));
    if (!binding) return binding.error().reason;
    function.bindings.push_back(*std::move(binding));
  }
  return {};
}

}  // namespace

// Writes the metadata that a worker is given to load it with; rpc_functions.cc.
void describe(Function& function);
std::string problem_of(const Function& function);

bool is_known_trigger(std::string_view type) {
  return std::ranges::any_of(kTriggers, [&](std::string_view each) { return lower(each) == lower(type); });
}

Result<Binding> read_binding(std::string_view json) {
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  const simdjson::padded_string padded{json};
  if (parser.parse(padded).get(object) != simdjson::SUCCESS) return wrong("a binding is no JSON object");
  Binding binding{text_in(object, "name"), text_in(object, "type"), lower(text_in(object, "direction")),
                  std::string{json}};
  if (binding.type.empty()) return wrong("a binding has no type");
  if (binding.direction.empty()) binding.direction = "in";
  return binding;
}

FunctionRef read_function_json(std::string_view name, std::string_view text, const FunctionPlace& place) {
  auto function = std::make_shared<Function>();
  function->id = FunctionId{std::string{name}};
  function->name = name;
  function->language = place.language;
  const std::filesystem::path folder = std::filesystem::path{place.directory} / function->name;
  function->directory = folder.string();
  const auto fail = [&](std::string_view why) -> FunctionRef {
    function->status = {RpcStatus::Failure,
                        std::string{name}.append("/function.json cannot be used: ").append(why)};
    describe(*function);
    return function;
  };
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  const simdjson::padded_string padded{text};
  simdjson::dom::element root;
  if (const auto error = parser.parse(padded).get(root); error != simdjson::SUCCESS) {
    return fail(simdjson::error_message(error));
  }
  if (root.get(object) != simdjson::SUCCESS) return fail("it is no JSON object");
  if (const std::string problem = read_bindings(object, *function); !problem.empty()) return fail(problem);
  read_retry(object, *function);
  function->is_disabled = is_disabled(object, function->name, place.settings);
  bool is_idempotent = false;
  function->is_idempotent =
      object["windlass.idempotent"].get(is_idempotent) == simdjson::SUCCESS && is_idempotent;
  function->entry_point = text_in(object, "entryPoint");
  std::string script = text_in(object, "scriptFile");
  if (script.empty() && place.language == "node") script = "index.js";
  if (!script.empty()) function->script_file = (folder / script).lexically_normal().string();
  if (const std::string problem = problem_of(*function); !problem.empty()) return fail(problem);
  describe(*function);
  return function;
}

std::vector<FunctionRef> read_function_jsons(const TextMap& texts, const FunctionPlace& place) {
  std::vector<FunctionRef> functions;
  std::map<std::string, std::string> seen;
  for (const auto& [name, text] : texts) {
    const auto [other, is_new] = seen.try_emplace(lower(name), name);
    if (is_new) {
      functions.push_back(read_function_json(name, text, place));
      continue;
    }
    auto refused = std::make_shared<Function>(*read_function_json(name, text, place));
    refused->status = {RpcStatus::Failure, "two functions are named alike: '" + other->second + "' and '" +
                                               name + "'; rename one"};
    functions.push_back(std::move(refused));
  }
  return functions;
}

Result<TextMap> read_function_folder(const std::string& folder) {
  namespace files = std::filesystem;
  TextMap texts;
  std::error_code error;
  for (files::directory_iterator each{folder, error}, end; !error && each != end; each.increment(error)) {
    const files::path path = each->path() / "function.json";
    std::error_code ignored;
    if (!files::is_regular_file(path, ignored)) continue;
    if (files::file_size(path, ignored) > kFileBytesMax) {
      return Error{ErrorCode::LimitFrame, Blame::Local, path.string() + " is larger than 1 MiB"};
    }
    std::ifstream file{path, std::ios::binary};
    texts[each->path().filename().string()] = std::string{std::istreambuf_iterator<char>{file}, {}};
    if (!file) return Error{ErrorCode::Internal, Blame::Local, path.string() + " cannot be read"};
  }
  if (error) return Error{ErrorCode::Internal, Blame::Local, folder + " cannot be read: " + error.message()};
  return texts;
}

Result<HostSettings> read_host_json(std::string_view text) {
  HostSettings settings;
  if (text.empty()) return settings;
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  const simdjson::padded_string padded{text};
  if (parser.parse(padded).get(object) != simdjson::SUCCESS) return wrong("host.json is no JSON object");
  std::string_view prefix;
  if (object.at_pointer("/extensions/http/routePrefix").get(prefix) == simdjson::SUCCESS) {
    while (prefix.starts_with('/')) prefix.remove_prefix(1);
    while (prefix.ends_with('/')) prefix.remove_suffix(1);
    settings.route_prefix = prefix;
  }
  if (const std::string timeout = text_in(object, "functionTimeout"); !timeout.empty() && timeout != "-1") {
    settings.function_timeout = time_span(timeout);
    if (!settings.function_timeout) return wrong("functionTimeout of host.json is not hh:mm:ss");
  }
  simdjson::dom::element idempotent;
  if (object["idempotent"].get(idempotent) == simdjson::SUCCESS &&
      idempotent.get(settings.is_idempotent) != simdjson::SUCCESS) {
    return wrong("idempotent of host.json must be true or false");
  }
  simdjson::dom::object levels;
  if (object.at_pointer("/logging/logLevel").get(levels) != simdjson::SUCCESS) return settings;
  std::string unknown;
  for (const auto& [category, value] : levels) {
    std::string_view name;
    const auto level = value.get(name) == simdjson::SUCCESS ? read_log_level(name) : std::nullopt;
    if (level) {
      settings.log_levels.set(category, *level);
      continue;
    }
    const std::string text_of = name.empty() ? simdjson::minify(value) : std::string{name};
    unknown += (unknown.empty() ? "" : ", ") + std::string{category} + "=" + text_of;
  }
  if (!unknown.empty()) {
    settings.warnings.push_back("logging.logLevel has levels that are not known and are ignored: " + unknown +
                                "; known are Trace, Debug, Information, Warning, Error, Critical and None");
  }
  return settings;
}

Result<HttpTrigger> read_http_trigger(const Binding& binding) {
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  const simdjson::padded_string padded{binding.json};
  if (parser.parse(padded).get(object) != simdjson::SUCCESS) return wrong("a binding is no JSON object");
  HttpTrigger trigger;
  std::string_view route;
  trigger.has_route = object["route"].get(route) == simdjson::SUCCESS;
  trigger.route = route;
  const std::string level = lower(text_in(object, "authLevel"));
  if (level == "anonymous") trigger.level = AuthLevel::Anonymous;
  if (level == "admin") trigger.level = AuthLevel::Admin;
  simdjson::dom::array methods;
  if (object["methods"].get(methods) != simdjson::SUCCESS) return trigger;
  for (const simdjson::dom::element each : methods) {
    std::string_view method;
    if (each.get(method) != simdjson::SUCCESS) return wrong("methods of an httpTrigger must be texts");
    trigger.methods.push_back(upper(method));
  }
  return trigger;
}

std::vector<std::string> output_warnings(const Function& function) {
  std::vector<std::string> warnings;
  for (const Binding& each : function.bindings) {
    if (each.direction == "in" || in_lower_case(each.type) == "http") continue;
    warnings.push_back("function '" + function.name + "' has the output '" + each.name + "' (" + each.type +
                       "), which goes nowhere: output bindings do not exist yet");
  }
  return warnings;
}

}  // namespace windlass::runtime
