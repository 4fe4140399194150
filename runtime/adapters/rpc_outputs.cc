// What a function returned, for whoever asked.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>

#include "protocol/base/utf8.h"
#include "protocol/crypto/percent_encoding.h"
#include "protocol/crypto/text_encoding.h"
#include "protocol/http/http_message.h"
#include "runtime/adapters/rpc_types.h"
#include "runtime/adapters/rpc_values.h"

namespace windlass::runtime {
namespace {

std::string number_text(double value) {
  if (!std::isfinite(value)) return "null";
  std::array<char, 64> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return {digits.data(), end};
}

std::string bytes_json(std::string_view bytes) {
  return "{\"base64url\":\"" + base64url_encode(bytes) + "\"}";
}

template <class Items, class Write>
std::string list_json(const Items& items, Write write) {
  std::string json{'['};
  for (const auto& each : items) {
    if (json.size() > 1) json += ',';
    json += write(each);
  }
  return json + ']';
}

std::string to_json(const rpc::TypedData& data);

std::string to_json(const rpc::RpcHttp& http) {
  std::string json = "{\"status\":" + json_text(http.status_code().empty() ? "200" : http.status_code());
  json += ",\"headers\":{";
  bool is_first = true;
  for (const auto& [name, value] : http.headers()) {
    if (!std::exchange(is_first, false)) json += ',';
    json += json_text(name) + ':' + json_text(value);
  }
  return json + "},\"body\":" + to_json(http.body()) + '}';
}

std::string to_json(const rpc::TypedData& data) {
  switch (data.data_case()) {
    case rpc::TypedData::kString:
      return json_text(data.string());
    case rpc::TypedData::kJson:
      return is_json(data.json()) ? data.json() : json_text(data.json());
    case rpc::TypedData::kBytes:
      return bytes_json(data.bytes());
    case rpc::TypedData::kStream:
      return bytes_json(data.stream());
    case rpc::TypedData::kHttp:
      return to_json(data.http());
    case rpc::TypedData::kInt:
      return std::to_string(data.int_());
    case rpc::TypedData::kDouble:
      return number_text(data.double_());
    case rpc::TypedData::kCollectionBytes:
      return list_json(data.collection_bytes().bytes(), bytes_json);
    case rpc::TypedData::kCollectionString:
      return list_json(data.collection_string().string(), json_text);
    case rpc::TypedData::kCollectionDouble:
      return list_json(data.collection_double().double_(), number_text);
    case rpc::TypedData::kCollectionSint64:
      return list_json(data.collection_sint64().sint64(),
                       [](std::int64_t each) { return std::to_string(each); });
    default:
      return "null";
  }
}

Error shared_memory(std::string_view binding) {
  return {ErrorCode::ProtoSchema, Blame::Peer,
          "the worker put the output '" + std::string{binding} +
              "' into shared memory, which this runtime did not offer"};
}

// The bytes of a body, and the type that goes with its shape.
void put_output_body(HttpOutput& output, const rpc::TypedData& body) {
  switch (body.data_case()) {
    case rpc::TypedData::kBytes:
      output.body = body.bytes();
      output.content_type = "application/octet-stream";
      return;
    case rpc::TypedData::kStream:
      output.body = body.stream();
      output.content_type = "application/octet-stream";
      return;
    case rpc::TypedData::kString:
      output.body = body.string();
      output.content_type = "text/plain; charset=utf-8";
      return;
    case rpc::TypedData::DATA_NOT_SET:
      return;
    default:
      output.body = to_json(body);
      output.content_type = "application/json; charset=utf-8";
  }
}

constexpr std::string_view kReturnBinding = "$return";

// Part of a cookie that is no value: nothing in it may begin another attribute.
std::string attribute_text(std::string_view text) {
  std::string plain;
  for (const char c : text) {
    if (c != ';' && static_cast<unsigned char>(c) >= 0x20 && c != 0x7F) plain.push_back(c);
  }
  return plain;
}

std::string cookie_text(const rpc::RpcHttpCookie& cookie) {
  std::string text = cookie.name() + '=' + percent_encode(cookie.value());
  if (cookie.has_domain() && !cookie.domain().value().empty()) {
    text += "; Domain=" + attribute_text(cookie.domain().value());
  }
  if (cookie.has_path() && !cookie.path().value().empty()) {
    text += "; Path=" + attribute_text(cookie.path().value());
  }
  if (cookie.has_expires() && cookie.expires().has_value()) {
    text += "; Expires=" + http_date(cookie.expires().value().seconds());
  }
  if (cookie.has_max_age() && cookie.max_age().has_value() && !std::isnan(cookie.max_age().value())) {
    using Seconds = std::numeric_limits<std::int32_t>;  // what lies beyond is for ever, or over already
    const double age = std::clamp<double>(cookie.max_age().value(), Seconds::min(), Seconds::max());
    text += "; Max-Age=" + std::to_string(static_cast<std::int32_t>(age));
  }
  if (cookie.has_secure() && cookie.secure().value()) text += "; Secure";
  if (cookie.has_http_only() && cookie.http_only().value()) text += "; HttpOnly";
  if (cookie.same_site() == rpc::RpcHttpCookie::Lax) text += "; SameSite=Lax";
  if (cookie.same_site() == rpc::RpcHttpCookie::Strict) text += "; SameSite=Strict";
  if (cookie.same_site() == rpc::RpcHttpCookie::ExplicitNone) text += "; SameSite=None";
  return text;
}

// Nothing that a function says may end a header early and begin another.
bool is_field_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view{"!#$%&'*+-.^_`|~"}.find(c) != std::string_view::npos;
  });
}
bool is_field_value(std::string_view value) {
  return std::ranges::none_of(
      value, [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F; });
}

bool is_alike(std::string_view one, std::string_view other) {
  return std::ranges::equal(one, other, [](char a, char b) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    return lower(a) == lower(b);
  });
}

// Framing is the connection's.
bool is_ours(std::string_view name) {
  return is_alike(name, "content-length") || is_alike(name, "transfer-encoding") ||
         is_alike(name, "connection") || is_alike(name, "keep-alive") || is_alike(name, "upgrade");
}

Result<HttpOutput> http_output(const rpc::RpcHttp& http) {
  HttpOutput output;
  put_output_body(output, http.has_body() ? http.body() : http.rawbody());
  if (const std::string& status = http.status_code(); !status.empty()) {
    unsigned number = 0;
    const char* const end = status.data() + status.size();
    if (std::from_chars(status.data(), end, number).ptr != end || number < 200 || number > 599) {
      return Error{ErrorCode::ProtoSchema, Blame::Peer,
                   "the function answered with the HTTP status '" + status + "', which is none"};
    }
    output.status = static_cast<std::uint16_t>(number);
  }
  const auto add = [&](const std::string& name, const std::string& value) {
    if (!is_field_name(name) || !is_field_value(value) || is_ours(name)) return;
    if (is_alike(name, "content-type")) {
      output.content_type = value;
    } else {
      output.headers.emplace_back(name, value);
    }
  };
  for (const auto& [name, value] : http.headers()) add(name, value);
  for (const auto& [name, value] : http.nullable_headers()) add(name, value.value());
  for (const auto& cookie : http.cookies()) {
    const std::string text = cookie_text(cookie);
    if (is_field_name(cookie.name()) && is_field_value(text)) output.headers.emplace_back("Set-Cookie", text);
  }
  return output;
}

}  // namespace

Result<HttpOutput> read_http_output(std::string_view invocation_response, std::string_view output_binding) {
  auto response = parse_rpc<rpc::InvocationResponse>(invocation_response);
  if (!response) return response.error();
  const bool has_return =
      response->has_return_value() && response->return_value().data_case() != rpc::TypedData::DATA_NOT_SET;
  const rpc::TypedData* chosen = has_return ? &response->return_value() : nullptr;
  // Of an output named "$return" the return value is the value, and what else a worker sends under that name
  // is a shell without one. A named output counts more than what the function happens to return.
  const bool is_settled = has_return && output_binding == kReturnBinding;
  for (const auto& each : response->output_data()) {
    if (each.name() != output_binding || is_settled) continue;
    if (each.has_rpc_shared_memory()) return shared_memory(each.name());
    if (chosen == nullptr || each.data().has_http()) chosen = &each.data();
  }
  if (chosen == nullptr) return HttpOutput{.status = 204};
  if (chosen->has_http()) return http_output(chosen->http());
  HttpOutput output;
  put_output_body(output, *chosen);
  return output;
}

std::string write_http_output(const HttpOutput& output) {
  rpc::InvocationResponse response;
  response.mutable_result()->set_status(rpc::StatusResult::Success);
  rpc::RpcHttp& http = *response.mutable_return_value()->mutable_http();
  http.set_status_code(std::to_string(output.status));
  for (const auto& [name, value] : output.headers) {
    if (is_utf8(name) && is_utf8(value)) (*http.mutable_headers())[name] = value;
  }
  if (is_utf8(output.body)) {
    http.mutable_body()->set_string(output.body);
  } else {
    http.mutable_body()->set_bytes(output.body);
  }
  return response.SerializeAsString();
}

std::string read_properties(const rpc::RpcLog& log) {
  std::map<std::string_view, const rpc::TypedData*> sorted;
  for (const auto& [name, value] : log.propertiesmap()) sorted.emplace(name, &value);
  std::string json{'{'};
  for (const auto& [name, value] : sorted) {
    if (json.size() > 1) json += ',';
    json += json_text(name) + ':' + to_json(*value);
  }
  return json + '}';
}

Result<JsonOutput> read_json_output(std::string_view invocation_response) {
  auto response = parse_rpc<rpc::InvocationResponse>(invocation_response);
  if (!response) return response.error();
  JsonOutput output{to_json(response->return_value()), "{"};
  for (const auto& each : response->output_data()) {
    if (each.has_rpc_shared_memory()) return shared_memory(each.name());
    if (output.outputs.size() > 1) output.outputs += ',';
    output.outputs += json_text(each.name()) + ':' + to_json(each.data());
  }
  output.outputs += '}';
  return output;
}

}  // namespace windlass::runtime
