#include "protocol/http/http_message.h"

#include "protocol/codec/json_writer.h"

namespace windlass {

std::string_view reason_phrase(std::uint16_t status) {
  switch (status) {
    case 200:
      return "OK";
    case 202:
      return "Accepted";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 507:
      return "Insufficient Storage";
    default:
      return "";
  }
}

HttpResponse to_response(const Problem& problem) {
  HttpResponse response{problem.status, "application/problem+json", {}, {}};
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

std::string to_wire(const HttpResponse& response, bool is_last, bool is_head_only) {
  std::string wire = "HTTP/1.1 " + std::to_string(response.status) + ' ';
  wire += reason_phrase(response.status);
  wire += "\r\nContent-Length: " + std::to_string(response.body.size()) + "\r\n";
  if (!response.content_type.empty()) wire += "Content-Type: " + response.content_type + "\r\n";
  for (const auto& [name, value] : response.headers) {
    wire += name;
    wire += ": ";
    wire += value;
    wire += "\r\n";
  }
  // What an operator sees is of the moment, and no cache's business.
  wire += "Cache-Control: no-store\r\n";
  if (is_last) wire += "Connection: close\r\n";
  wire += "\r\n";
  if (!is_head_only) wire += response.body;
  return wire;
}

}  // namespace windlass
