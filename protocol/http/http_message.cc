#include "protocol/http/http_message.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <iterator>

#include "protocol/codec/json_writer.h"

namespace windlass {

namespace {

struct Phrase {
  std::uint16_t status;
  std::string_view text;
};
// By status.
constexpr Phrase kPhrases[] = {
    {100, "Continue"},
    {101, "Switching Protocols"},
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {203, "Non-Authoritative Information"},
    {204, "No Content"},
    {205, "Reset Content"},
    {206, "Partial Content"},
    {300, "Multiple Choices"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {402, "Payment Required"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {423, "Locked"},
    {424, "Failed Dependency"},
    {425, "Too Early"},
    {426, "Upgrade Required"},
    {428, "Precondition Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {451, "Unavailable For Legal Reasons"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
    {507, "Insufficient Storage"},
    {508, "Loop Detected"},
    {511, "Network Authentication Required"},
};

std::string status_line(std::uint16_t status) {
  std::string line = "HTTP/1.1 " + std::to_string(status) + ' ';
  line += reason_phrase(status);
  return line += "\r\n";
}

void append_field(std::string& wire, std::string_view name, std::string_view value) {
  wire.append(name).append(": ").append(value).append("\r\n");
}

bool is_date(std::string_view name) {
  return std::ranges::equal(name, std::string_view{"date"},
                            [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; });
}

// A date that the function gave counts.
void append_fields(std::string& wire, const std::vector<std::pair<std::string, std::string>>& headers,
                   std::string_view date) {
  bool has_date = date.empty();
  for (const auto& [name, value] : headers) {
    append_field(wire, name, value);
    has_date = has_date || is_date(name);
  }
  if (!has_date) append_field(wire, "Date", date);
}

// A client of HTTP/1.0 takes silence for the end of the connection, and then waits for that end.
void append_connection(std::string& wire, const WireFraming& framing) {
  if (framing.is_last) {
    wire += "Connection: close\r\n";
  } else if (framing.is_old) {
    wire += "Connection: keep-alive\r\n";
  }
}

}  // namespace

std::string_view reason_phrase(std::uint16_t status) {
  const auto* const found = std::ranges::lower_bound(kPhrases, status, {}, &Phrase::status);
  return found != std::end(kPhrases) && found->status == status ? found->text : std::string_view{};
}

HttpResponse to_response(const Problem& problem) {
  HttpResponse response{problem.status, "application/problem+json", {}};
  codec::JsonWriter json{response.body};
  json.begin();
  json.text("type", "about:blank");
  json.text("title", reason_phrase(problem.status));
  json.integer("status", problem.status);
  json.text("detail", problem.detail);
  json.text("code", problem.code);
  json.end();
  json.finish();
  response.body += '\n';
  return response;
}

std::string http_date(std::int64_t unix_seconds) {
  std::tm fields{};
  const auto time = static_cast<std::time_t>(unix_seconds);
  std::array<char, 64> text{};
  if (::gmtime_r(&time, &fields) == nullptr ||
      std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &fields) == 0) {
    return {};
  }
  return text.data();
}

std::string to_wire(const HttpResponse& response, const WireFraming& framing) {
  std::string wire = status_line(response.status);
  // These never have a body, and may not say how long it would be (RFC 9110, 8.6); of a 304 nobody knows.
  const bool has_body = response.status >= 200 && response.status != 204 && response.status != 304;
  if (has_body) wire += "Content-Length: " + std::to_string(response.body.size()) + "\r\n";
  if (!response.content_type.empty()) append_field(wire, "Content-Type", response.content_type);
  append_fields(wire, response.headers, framing.date);
  if (!response.may_be_cached) wire += "Cache-Control: no-store\r\n";
  append_connection(wire, framing);
  wire += "\r\n";
  if (!framing.is_head_only && has_body) wire += response.body;
  return wire;
}

std::string to_wire(const HttpStreamedHead& head, bool is_chunked, const WireFraming& framing) {
  std::string wire = status_line(head.status);
  append_fields(wire, head.headers, framing.date);
  if (head.body_bytes) wire += "Content-Length: " + std::to_string(*head.body_bytes) + "\r\n";
  if (is_chunked) wire += "Transfer-Encoding: chunked\r\n";
  append_connection(wire, framing);
  return wire += "\r\n";
}

}  // namespace windlass
