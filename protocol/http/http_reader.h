// HTTP/1.1 requests from bytes, one after another, bounded. Owns no socket and judges no token: it says when
// a head is complete, so that its owner can decide before any of the body is taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "protocol/base/bytes.h"
#include "protocol/http/http_message.h"

namespace windlass {

struct HttpHead {
  bool is_last = false;           // the connection ends after the answer
  bool has_body = false;          // announced, or of a length yet unknown
  std::uint64_t body_bytes = 0;   // announced; 0: of a length yet unknown
  bool expects_continue = false;  // the client waits before it sends the body
  bool is_head_only = false;      // of a HEAD: the answer has no body
  bool knows_chunks = true;       // HTTP/1.1
  bool has_token = false;
  std::string token;  // of "Authorization: Bearer"; not to be kept or shown
};

struct HttpReaderOptions {
  std::size_t head_bytes_max = 16 * 1024;
  std::size_t body_bytes_max = 1024 * 1024;
  bool keeps_headers = false;  // requests carry all of them, credentials too
};

class HttpReader final {
 public:
  explicit HttpReader(const HttpReaderOptions& options);
  ~HttpReader();
  HttpReader(const HttpReader&) = delete;
  HttpReader& operator=(const HttpReader&) = delete;

  enum class State : std::uint8_t {
    More,      // wants further bytes
    Head,      // once per request: head() is there; go on with handle_bytes
    Complete,  // take() the request; then the next one begins
    Refused,   // see problem(); nothing of this connection makes sense any more
  };
  // Takes what it used from the front of `input` and leaves the rest for the next call.
  State handle_bytes(Bytes& input);

  const HttpHead& head() const { return head_; }
  // After Head, if the body is taken as it comes: it then has no bound of its own.
  void stream_body() { is_streamed_ = true; }
  std::optional<Problem> body_problem()
      const;                // of one that is not: it is too large, or says that it will be
  std::string take_body();  // what came of it since the last call
  // As far as the head says, and what its owner adds; the body comes with take().
  HttpRequest& request() { return request_; }
  std::size_t body_bytes() const;  // of the request under way, taken so far
  const Problem& problem() const { return problem_; }
  HttpRequest take();
  void drop();  // what was read of a request that is refused

 private:
  struct Parser;
  State read_head();
  State read_more(Bytes& input, std::size_t& used);
  void read_token();
  std::optional<Problem> head_problem() const;
  std::optional<Problem> read_target();
  State refuse(Problem problem);

  HttpReaderOptions options_;

  std::unique_ptr<Parser> parser_;
  bool is_streamed_ = false;
  HttpHead head_;
  HttpRequest request_;
  Problem problem_;
};

}  // namespace windlass
