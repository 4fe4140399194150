// HTTP requests and responses as a listener hands them on: plain values. Where a listener checks tokens they
// end there: a request only says that one was good.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/base/time.h"

namespace windlass {

struct HttpRequest {
  std::uint64_t id = 0;   // no other request of the listener has it
  std::string method;     // "GET"
  std::string target;     // path and query as they were sent, escapes and all; never with a host
  std::string host = {};  // what it calls this server
  std::string content_type;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};  // all of them, of an open listener only
  bool has_token = false;                                         // a bearer token came along
  bool is_authorized = false;                                     // and it is one of ours
  std::string token_name = {};                                    // whose that one is
  // Of a listener that asks: the client is neither root nor of this process's user, or nobody knows, or it is
  // the browser of one of them and shows a foreign page. Probes are not looked at.
  bool is_stranger = false;
  std::uint32_t user = 0;  // whose client it is, if it is no stranger's
  bool has_body = false;
  std::uint64_t body_bytes = 0;  // announced; 0: of a length yet unknown, if there is a body
};

struct HttpResponse {
  std::uint16_t status = 200;
  std::string content_type;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};  // ours, beside those of framing
  bool may_be_cached = false;  // else it is of the moment, and no cache's business
};

using HttpAnswer = std::function<void(HttpResponse)>;

// The head of an answer whose body follows in pieces.
struct HttpStreamedHead {
  std::uint16_t status = 200;
  std::vector<std::pair<std::string, std::string>> headers = {};  // without those of framing
  std::optional<std::uint64_t> body_bytes = {};                   // none: it ends when it ends
};

// One request whose bodies flow both ways and are never held whole. The connection's side, for the handler:
// it may outlive the connection, and then does nothing. Calls may come back from inside: on_body() from
// set_reading(), on_written() and on_gone() from write() and the two that begin an answer.
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;
  virtual void set_reading(bool is_wanted) = 0;    // whether more of the request's body is handed on
  virtual void answer(HttpResponse response) = 0;  // whole; instead of the three below
  // The same later, if nothing began by then; on_gone() follows.
  virtual void answer_unless_begun(Duration after, HttpResponse response) = 0;
  virtual void begin(HttpStreamedHead head) = 0;
  virtual void write(std::string_view bytes) = 0;  // kept until the client takes them: see on_written
  virtual void finish() = 0;
  virtual void abort() = 0;  // what began is not completed: the connection is cut
};

// The handler's side.
class HttpExchangeEvents {
 public:
  virtual ~HttpExchangeEvents() = default;
  virtual void on_body(std::string_view bytes) = 0;
  virtual void on_body_end() = 0;
  virtual void on_written(std::size_t bytes) = 0;  // of write(), taken by the client's socket
  virtual void on_gone() = 0;                      // the client left, or is too slow; nothing follows
};

class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  // Asked when a head is here and a body will follow. An answer refuses the request: the body is not taken.
  virtual std::optional<HttpResponse> refuse(const HttpRequest& /*head*/) { return std::nullopt; }
  // Asked when a head is here and was not refused. With events, the request is an exchange: they are told of
  // its body from the next turn on, and handle() is not called. `exchange` may be used at once.
  virtual std::shared_ptr<HttpExchangeEvents> stream(const HttpRequest& /*head*/,
                                                     const std::shared_ptr<HttpExchange>& /*exchange*/) {
    return nullptr;
  }
  // Whether the request is one that must be answered even while all places are taken, as it needs no waiting.
  virtual bool is_probe(const HttpRequest& /*request*/) const { return false; }
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

// As RFC 9110 writes dates: "Sun, 06 Nov 1994 08:49:37 GMT".
std::string http_date(std::int64_t unix_seconds);

struct WireFraming {
  bool is_last = false;       // the connection ends after the answer
  bool is_head_only = false;  // of a HEAD
  bool is_old = false;        // of an HTTP/1.0 client, which must be told that the connection goes on
  std::string_view date = {};
};
// With the framing that lets the connection go on, or says that it ends.
std::string to_wire(const HttpResponse& response, const WireFraming& framing);
// Chunked where no length is known and the client understands it.
std::string to_wire(const HttpStreamedHead& head, bool is_chunked, const WireFraming& framing);

}  // namespace windlass
