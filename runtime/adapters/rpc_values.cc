#include "runtime/adapters/rpc_values.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "protocol/base/utf8.h"
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
  rpc::InvocationRequest request;
  rpc::ParameterBinding& binding = *request.add_input_data();
  binding.set_name(input.binding);
  rpc::RpcHttp& http = *binding.mutable_data()->mutable_http();
  http.set_method(clean(input.method));
  http.set_url(clean(input.url));
  const bool is_nullable = has(capabilities, "UseNullableValueDictionaryForHttp");
  const auto put_pairs = [&](const TextPairs& from, auto& plain, auto& nullable, bool leaves_out_empty) {
    for (const auto& [name, value] : from) {
      if (value.empty() && leaves_out_empty) continue;
      if (is_nullable) {
        nullable[clean(name)].set_value(clean(value));
      } else {
        plain[clean(name)] = clean(value);
      }
    }
  };
  put_pairs(input.headers, *http.mutable_headers(), *http.mutable_nullable_headers(),
            has(capabilities, "IgnoreEmptyValuedRpcHttpHeaders"));
  put_pairs(input.query, *http.mutable_query(), *http.mutable_nullable_query(), false);
  put_pairs(input.params, *http.mutable_params(), *http.mutable_nullable_params(), false);
  put_body(http, input, capabilities);
  if (!has(capabilities, "RpcHttpTriggerMetadataRemoved")) {
    for (const auto& [name, value] : input.params) {
      (*request.mutable_trigger_metadata())[clean(name)].set_string(clean(value));
    }
  }
  put(request, input.trace);
  return request.SerializeAsString();
}

}  // namespace windlass::runtime
