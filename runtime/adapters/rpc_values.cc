#include "runtime/adapters/rpc_values.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "protocol/base/utf8.h"
#include "protocol/function_rpc/peek.h"
#include "runtime/adapters/rpc_types.h"

namespace windlass::runtime {
namespace {

// Anything that is not UTF-8 cannot be text of a message.
std::string clean(std::string_view text) {
  if (is_utf8(text)) return std::string{text};
  std::string ascii{text};
  std::ranges::replace_if(
      ascii, [](char c) { return static_cast<unsigned char>(c) >= 0x80; }, '?');
  return ascii;
}

void put(rpc::TypedData& to, const Datum& from) {
  switch (from.kind) {
    case Datum::Kind::Null:
      return;
    case Datum::Kind::Text:
      return to.set_string(clean(from.value));
    case Datum::Kind::Json:
      return to.set_json(clean(from.value));
    case Datum::Kind::Bytes:
      return to.set_bytes(from.value);
  }
}

void put(rpc::InvocationRequest& request, const TraceContext& trace) {
  if (trace.parent.empty()) return;
  request.mutable_trace_context()->set_trace_parent(trace.parent);
  request.mutable_trace_context()->set_trace_state(clean(trace.state));
}

bool has(const TextMap& capabilities, std::string_view name) {
  const auto found = capabilities.find(name);
  return found != capabilities.end() && !found->second.empty() && found->second != "false";
}

bool is_text_type(std::string_view type) {
  return type.starts_with("text/") || type.find("json") != std::string_view::npos ||
         type.find("xml") != std::string_view::npos || type.starts_with("application/x-www-form-urlencoded");
}

// Old workers want the body read for them; newer ones ask for its bytes.
void put_body(rpc::RpcHttp& http, const HttpInput& input, const TextMap& capabilities) {
  if (input.body.empty()) return;
  const bool is_raw = has(capabilities, "RawHttpBodyBytes");
  if (is_raw || !is_text_type(input.content_type) || !is_utf8(input.body)) {
    http.mutable_body()->set_bytes(input.body);
  } else if (input.content_type.find("json") != std::string::npos && is_json(input.body)) {
    http.mutable_body()->set_json(input.body);
  } else {
    http.mutable_body()->set_string(input.body);
  }
  if (has(capabilities, "RpcHttpBodyOnly")) return;
  if (is_raw || !is_utf8(input.body)) {
    http.mutable_rawbody()->set_bytes(input.body);
  } else {
    http.mutable_rawbody()->set_string(input.body);
  }
}

using Rpc = rpc::RpcHttp;

struct PairShape {
  bool is_nullable = false;
  bool leaves_out_empty = false;
};

// An entry of a map is a message of a key and a value.
void put_pairs(std::string& to, const TextPairs& from, int field, PairShape shape) {
  for (const auto& [name, value] : from) {
    if (value.empty() && shape.leaves_out_empty) continue;
    std::string text = clean(value);
    if (shape.is_nullable) {
      rpc::NullableString nullable;
      nullable.set_value(std::move(text));
      text = nullable.SerializeAsString();
    }
    std::string entry;
    function_rpc::append_bytes(entry, 1, clean(name));
    function_rpc::append_bytes(entry, 2, text);
    function_rpc::append_bytes(to, static_cast<std::uint32_t>(field), entry);
  }
}

std::string object_json(const TextPairs& pairs) {
  std::string json{'{'};
  for (const auto& [name, value] : pairs) {
    if (json.size() > 1) json += ',';
    json += json_text(name) + ':' + json_text(value);
  }
  return json + '}';
}

void put_metadata(std::string& to, std::string_view name, const rpc::TypedData& value) {
  std::string entry;
  function_rpc::append_bytes(entry, 1, clean(name));
  function_rpc::append_bytes(entry, 2, value.SerializeAsString());
  function_rpc::append_bytes(to, rpc::InvocationRequest::kTriggerMetadataFieldNumber, entry);
}

// The binding data of an HTTP trigger: parameters of the route by name, and all of headers and query. A
// worker that streams reads its headers from here.
void put_trigger_metadata(std::string& to, const HttpInput& input) {
  rpc::TypedData value;
  for (const auto& [name, text] : input.params) {
    value.set_string(clean(text));
    put_metadata(to, name, value);
  }
  value.set_json(object_json(input.query));
  put_metadata(to, "Query", value);
  value.set_json(object_json(input.headers_as_sent.empty() ? input.headers : input.headers_as_sent));
  put_metadata(to, "Headers", value);
}

}  // namespace

bool is_json(std::string_view text) {
  simdjson::dom::parser parser;
  return parser.parse(simdjson::padded_string{text}).error() == simdjson::SUCCESS;
}

std::string json_text(std::string_view text) {
  std::string json{'"'};
  json.reserve(text.size() + 2);
  for (const char c : clean(text)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      json.push_back('\\');
      json.push_back(c);
    } else if (c == '\n') {
      json += "\\n";
    } else if (byte < 0x20) {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\u%04x", byte);
      json += escape.data();
    } else {
      json.push_back(c);
    }
  }
  json.push_back('"');
  return json;
}

std::string write_invocation_body(const TriggerInput& input) {
  rpc::InvocationRequest request;
  rpc::ParameterBinding& binding = *request.add_input_data();
  binding.set_name(input.binding);
  put(*binding.mutable_data(), input.data);
  for (const auto& [name, value] : input.metadata)
    put((*request.mutable_trigger_metadata())[clean(name)], value);
  put(request, input.trace);
  return request.SerializeAsString();
}

std::string write_http_invocation_body(const HttpInput& input, const TextMap& capabilities) {
  rpc::RpcHttp http;
  http.set_method(clean(input.method));
  http.set_url(clean(input.url));
  put_body(http, input, capabilities);
  // A library's map has an order of its own, which changes from run to run. On the wire it is a list, and
  // workers see what stands there: so it is written by hand, in the order of the request.
  std::string request = http.SerializeAsString();
  const bool is_nullable = has(capabilities, "UseNullableValueDictionaryForHttp");
  const bool leaves_out_empty = has(capabilities, "IgnoreEmptyValuedRpcHttpHeaders");
  put_pairs(request, input.headers, is_nullable ? Rpc::kNullableHeadersFieldNumber : Rpc::kHeadersFieldNumber,
            {is_nullable, !is_nullable && leaves_out_empty});
  put_pairs(request, input.query, is_nullable ? Rpc::kNullableQueryFieldNumber : Rpc::kQueryFieldNumber,
            {is_nullable, !is_nullable});
  put_pairs(request, input.params, is_nullable ? Rpc::kNullableParamsFieldNumber : Rpc::kParamsFieldNumber,
            {is_nullable, false});
  std::string data;
  function_rpc::append_bytes(data, rpc::TypedData::kHttpFieldNumber, request);
  std::string binding;
  function_rpc::append_bytes(binding, rpc::ParameterBinding::kNameFieldNumber, input.binding);
  function_rpc::append_bytes(binding, rpc::ParameterBinding::kDataFieldNumber, data);
  std::string body;
  function_rpc::append_bytes(body, rpc::InvocationRequest::kInputDataFieldNumber, binding);
  put_trigger_metadata(body, input);
  rpc::InvocationRequest rest;
  put(rest, input.trace);
  return body + rest.SerializeAsString();
}

}  // namespace windlass::runtime
