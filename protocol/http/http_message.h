// HTTP requests and responses as a listener hands them on: plain values. Where a listener checks tokens they
// end there: a request only says that one was good.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace windlass {

struct HttpRequest {
  std::uint64_t id = 0;  // no other request of the listener has it
  std::string method;    // "GET"
  std::string target;    // path and query as they were sent, escapes and all
  std::string content_type;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};  // all of them, of an open listener only
  bool has_token = false;                                         // a bearer token came along
  bool is_authorized = false;                                     // and it is one of ours
};

struct HttpResponse {
  std::uint16_t status = 200;
  std::string content_type;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};  // ours, beside those of framing
  bool may_be_cached = false;  // else it is of the moment, and no cache's business
};

using HttpAnswer = std::function<void(HttpResponse)>;

class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  // Asked when a head is here and a body will follow. An answer refuses the request: the body is not taken.
  virtual std::optional<HttpResponse> refuse(const HttpRequest& /*head*/) { return std::nullopt; }
  // `answer` is called once, at once or later, on the loop. It may outlive the connection and the listener:
  // then it does nothing.
  virtual void handle(HttpRequest request, HttpAnswer answer) = 0;
  // Nobody waits for the answer to this request any more. It may be answered all the same.
  virtual void handle_gone(std::uint64_t /*request*/) {}
};

// "Not Found"; empty for a status that RFC 9110 does not name.
std::string_view reason_phrase(std::uint16_t status);

// RFC 7807, as application/problem+json.
struct Problem {
  std::uint16_t status = 500;
  std::string code;    // E.*: what programs compare
  std::string detail;  // one sentence: what, where, what to do
};
HttpResponse to_response(const Problem& problem);

// With the framing that lets the connection go on, or says that it ends.
std::string to_wire(const HttpResponse& response, bool is_last, bool is_head_only);

}  // namespace windlass
