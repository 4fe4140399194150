#include "worker-agent/native/metadata.h"

#include <algorithm>

#include "worker-agent/native/include/windlass/json.h"
#include "worker-agent/native/limits.h"

namespace windlass::native {
namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_function_name(std::string_view name) {
  return !name.empty() && name.size() <= kFunctionNameBytesMax && is_letter(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '-'; });
}

bool is_trigger(const Binding& binding) {
  return binding.type.ends_with("Trigger");
}

std::string property_text(const Property::Any& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return json_quote(*text);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  std::string list = "[";
  for (const std::string& item : std::get<std::vector<std::string>>(value)) {
    if (list.size() > 1) list += ',';
    list += json_quote(item);
  }
  return list + "]";
}

void set_duration(std::chrono::seconds seconds, google::protobuf::Duration* duration) {
  duration->set_seconds(seconds.count());
}

void describe_retry(const Retry& retry, rpc::RpcRetryOptions* options) {
  options->set_max_retry_count(retry.count_max);
  if (retry.strategy == Retry::Strategy::Fixed) {
    options->set_retry_strategy(rpc::RpcRetryOptions::fixed_delay);
    set_duration(retry.delay, options->mutable_delay_interval());
  } else {
    options->set_retry_strategy(rpc::RpcRetryOptions::exponential_backoff);
    set_duration(retry.delay, options->mutable_minimum_interval());
    set_duration(retry.delay_max, options->mutable_maximum_interval());
  }
}

}  // namespace

std::optional<std::string> fault_of(const Function& function) {
  const std::string who = "function '" + function.name + "'";
  if (!is_function_name(function.name)) {
    return who + ": a name is a letter and then letters, digits, '_' or '-', at most " +
           std::to_string(kFunctionNameBytesMax) + " characters";
  }
  if (!function.handler) return who + " has no handler";
  if (std::count_if(function.bindings.begin(), function.bindings.end(), is_trigger) != 1) {
    return who + " needs exactly one trigger: one binding whose type ends in 'Trigger'";
  }
  for (const Binding& binding : function.bindings) {
    if (binding.name.empty() || binding.type.empty()) return who + " has a binding without a name or a type";
    if (is_trigger(binding) && binding.direction != Binding::Direction::In) {
      return who + ": its trigger '" + binding.name + "' must have direction In";
    }
    const auto same = [&](const Binding& other) { return other.name == binding.name; };
    if (std::count_if(function.bindings.begin(), function.bindings.end(), same) != 1) {
      return who + " has two bindings named '" + binding.name + "'";
    }
  }
  const Retry& retry = function.retry;
  if (retry.strategy != Retry::Strategy::None &&
      (retry.count_max < -1 || retry.delay.count() < 0 ||
       (retry.strategy == Retry::Strategy::Exponential && retry.delay_max < retry.delay))) {
    return who + ": its retry needs a count of -1 or more, and a shortest delay not above the longest";
  }
  return std::nullopt;
}

std::string raw_binding(const Binding& binding) {
  std::string text = "{\"type\":" + json_quote(binding.type) + ",\"name\":" + json_quote(binding.name) +
                     ",\"direction\":" + (binding.direction == Binding::Direction::In ? "\"in\"" : "\"out\"");
  for (const Property& property : binding.properties) {
    text += ',' + json_quote(property.name) + ':' + property_text(property.value);
  }
  return text + "}";
}

void describe(const Function& function, std::string_view library, std::string_view directory,
              rpc::RpcFunctionMetadata* metadata) {
  metadata->set_name(function.name);
  metadata->set_function_id(function.name);
  metadata->set_directory(std::string(directory));
  metadata->set_script_file(std::string(library));
  metadata->set_entry_point(function.name);
  metadata->set_language("native");
  metadata->mutable_status()->set_status(rpc::StatusResult::Success);
  for (const Binding& binding : function.bindings) {
    metadata->add_raw_bindings(raw_binding(binding));
    rpc::BindingInfo& info = (*metadata->mutable_bindings())[binding.name];
    info.set_type(binding.type);
    info.set_direction(binding.direction == Binding::Direction::In ? rpc::BindingInfo::in
                                                                   : rpc::BindingInfo::out);
  }
  if (function.retry.strategy != Retry::Strategy::None)
    describe_retry(function.retry, metadata->mutable_retry_options());
}

bool is_http(const Function& function) {
  return std::any_of(function.bindings.begin(), function.bindings.end(),
                     [](const Binding& binding) { return binding.type == "httpTrigger"; });
}

}  // namespace windlass::native
