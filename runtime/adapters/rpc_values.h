// Trigger data to the body of an InvocationRequest, and the body of an InvocationResponse to what its asker
// understands: JSON, or an HTTP response.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/base/result.h"
#include "protocol/base/time.h"
#include "runtime/core/messages.h"

namespace windlass::runtime {

// A value for a function.
struct Datum {
  enum class Kind : std::uint8_t { Null, Text, Json, Bytes };
  Kind kind = Kind::Null;
  std::string value = {};
};

// W3C trace context.
struct TraceContext {
  std::string parent;
  std::string state = {};
};

struct TriggerInput {
  std::string binding;  // the trigger's name
  Datum data;
  std::vector<std::pair<std::string, Datum>> metadata = {};
  TraceContext trace = {};
};
std::string write_invocation_body(const TriggerInput& input);

using TextPairs = std::vector<std::pair<std::string, std::string>>;

struct HttpInput {
  std::string binding;
  std::string method;
  std::string url;
  TextPairs headers = {};          // names in lower case; a name twice: joined by a comma
  TextPairs headers_as_sent = {};  // the same with their names as they came
  TextPairs query = {};
  TextPairs params = {};  // of the route
  std::string content_type = {};
  std::string body = {};
  TraceContext trace = {};
};
// The capabilities of the worker say which of several shapes it understands.
std::string write_http_invocation_body(const HttpInput& input, const TextMap& capabilities);

struct HttpOutput {
  std::uint16_t status = 200;
  TextPairs headers = {};  // cookies too
  std::string content_type = {};
  std::string body = {};
};
// Of a function whose HTTP output is its return value, or the binding of this name.
Result<HttpOutput> read_http_output(std::string_view invocation_response, std::string_view output_binding);

// The other way: an InvocationResponse that returns this answer.
std::string write_http_output(const HttpOutput& output);

struct JsonOutput {
  std::string return_value;  // JSON; null if there is none
  std::string outputs;       // a JSON object, by binding name
};
Result<JsonOutput> read_json_output(std::string_view invocation_response);

// JSON text of a text.
std::string json_text(std::string_view text);
bool is_json(std::string_view text);

}  // namespace windlass::runtime
