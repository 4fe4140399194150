// Functions as workers register them and as they are given to workers to load.
#include <utility>

#include "protocol/codec/json_writer.h"
#include "runtime/adapters/function_json.h"
#include "runtime/adapters/http_asked.h"
#include "runtime/adapters/http_routes.h"
#include "runtime/adapters/rpc_types.h"

namespace windlass::runtime {
namespace {

Duration duration_of(const google::protobuf::Duration& wire) {
  constexpr std::int64_t kYears = 100LL * 365 * 24 * 3600;
  if (wire.seconds() < 0 || wire.seconds() > kYears || wire.nanos() < 0) return {};
  return seconds{wire.seconds()} + std::chrono::nanoseconds{wire.nanos()};
}

std::string_view direction_name(rpc::BindingInfo::Direction direction) {
  if (direction == rpc::BindingInfo::out) return "out";
  return direction == rpc::BindingInfo::inout ? "inout" : "in";
}

// Of workers that give no raw binding.
Binding binding_of(const std::string& name, const rpc::BindingInfo& info) {
  Binding binding{name, info.type(), std::string{direction_name(info.direction())}, {}};
  codec::JsonWriter json{binding.json};
  json.begin();
  json.text("name", binding.name);
  json.text("type", binding.type);
  json.text("direction", binding.direction);
  json.end();
  json.finish();
  return binding;
}

void set_duration_of(google::protobuf::Duration& to, Duration from) {
  const auto whole = std::chrono::duration_cast<seconds>(from);
  to.set_seconds(whole.count());
  to.set_nanos(static_cast<std::int32_t>((from - whole).count()));
}

bool is_trigger_type(std::string_view type) {
  constexpr std::string_view kEnd = "trigger";
  if (type.size() < kEnd.size()) return false;
  const std::string_view end = type.substr(type.size() - kEnd.size());
  for (std::size_t i = 0; i < kEnd.size(); ++i) {
    if ((static_cast<unsigned char>(end[i]) | 0x20U) != static_cast<unsigned char>(kEnd[i])) return false;
  }
  return true;
}

// A route that nobody here can match would be a function that is never found.
std::string route_problem_of(std::string_view name, const Binding& trigger) {
  const auto http = read_http_trigger(trigger);
  if (!http) return "function '" + std::string{name} + "' cannot be used: " + http.error().reason;
  if (const auto route = Route::parse(http->route); !route) {
    return "function '" + std::string{name} + "' is not served: " + route.error().reason;
  }
  return {};
}

}  // namespace

void describe(Function& function);

std::string problem_of(const Function& function) {
  const Binding* trigger = nullptr;
  for (const Binding& each : function.bindings) {
    if (!is_trigger_type(each.type)) continue;
    if (trigger != nullptr) {
      return "function '" + function.name + "' has two triggers, " + trigger->type + " and " + each.type +
             "; keep one";
    }
    trigger = &each;
  }
  if (trigger == nullptr)
    return "function '" + function.name + "' has no trigger; give it one binding that is";
  if (!is_known_trigger(trigger->type)) {
    return "function '" + function.name + "' has a trigger of the unknown type '" + trigger->type +
           "'; nothing here can trigger it";
  }
  return in_lower_case(trigger->type) == "httptrigger" ? route_problem_of(function.name, *trigger)
                                                       : std::string{};
}

RetryOptions retry_of(const rpc::RpcRetryOptions& wire) {
  return {wire.retry_strategy() == rpc::RpcRetryOptions::fixed_delay
              ? RetryOptions::Strategy::FixedDelay
              : RetryOptions::Strategy::ExponentialBackoff,
          wire.max_retry_count(), duration_of(wire.delay_interval()), duration_of(wire.minimum_interval()),
          duration_of(wire.maximum_interval())};
}

FunctionRef function_of(const rpc::RpcFunctionMetadata& wire) {
  auto function = std::make_shared<Function>();
  function->id = FunctionId{wire.function_id().empty() ? wire.name() : wire.function_id()};
  function->name = wire.name();
  function->language = wire.language();
  function->script_file = wire.script_file();
  function->entry_point = wire.entry_point();
  function->directory = wire.directory();
  std::string problem;
  for (const std::string& raw : wire.raw_bindings()) {
    Result<Binding> binding = read_binding(raw);
    if (binding) {
      function->bindings.push_back(*std::move(binding));
    } else if (problem.empty()) {
      problem = "function '" + wire.name() + "' cannot be used: " + binding.error().reason;
    }
  }
  if (wire.raw_bindings().empty()) {
    for (const auto& [name, info] : wire.bindings()) function->bindings.push_back(binding_of(name, info));
  }
  if (wire.has_retry_options()) {
    function->has_retry = true;
    function->retry = retry_of(wire.retry_options());
  }
  if (const auto idempotent = wire.properties().find("windlass.idempotent");
      idempotent != wire.properties().end()) {
    function->is_idempotent = idempotent->second == "true" || idempotent->second == "1";
  }
  if (problem.empty()) problem = problem_of(*function);
  if (wire.has_status() && wire.status().status() == rpc::StatusResult::Failure &&
      (wire.status().has_exception() || !wire.status().result().empty())) {
    // A worker that leaves the status empty means nothing by it: its default reads as a failure.
    function->status = result_of(&wire.status());
  } else if (!problem.empty()) {
    function->status = {RpcStatus::Failure, std::move(problem)};
  }
  rpc::RpcFunctionMetadata given = wire;
  if (given.function_id().empty()) given.set_function_id(function->id.value());
  function->metadata = given.SerializeAsString();
  return function;
}

void describe(Function& function) {
  rpc::RpcFunctionMetadata wire;
  wire.set_name(function.name);
  wire.set_function_id(function.id.value());
  wire.set_directory(function.directory);
  wire.set_script_file(function.script_file);
  wire.set_entry_point(function.entry_point);
  wire.set_language(function.language);
  for (const Binding& each : function.bindings) {
    wire.add_raw_bindings(each.json);
    rpc::BindingInfo& info = (*wire.mutable_bindings())[each.name];
    info.set_type(each.type);
    info.set_direction(each.direction == "out"     ? rpc::BindingInfo::out
                       : each.direction == "inout" ? rpc::BindingInfo::inout
                                                   : rpc::BindingInfo::in);
  }
  if (function.has_retry) {
    rpc::RpcRetryOptions& retry = *wire.mutable_retry_options();
    retry.set_max_retry_count(function.retry.retries_max);
    retry.set_retry_strategy(function.retry.strategy == RetryOptions::Strategy::FixedDelay
                                 ? rpc::RpcRetryOptions::fixed_delay
                                 : rpc::RpcRetryOptions::exponential_backoff);
    set_duration_of(*retry.mutable_delay_interval(), function.retry.delay);
    set_duration_of(*retry.mutable_minimum_interval(), function.retry.delay_least);
    set_duration_of(*retry.mutable_maximum_interval(), function.retry.delay_most);
  }
  function.metadata = wire.SerializeAsString();
}

}  // namespace windlass::runtime
