// An HTTP/1.1 response from bytes, its body handed on in pieces. Owns no socket.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "protocol/base/bytes.h"
#include "protocol/http/http_message.h"

namespace windlass {

class HttpResponseReader final {
 public:
  explicit HttpResponseReader(bool is_head_only);  // of a HEAD: no body follows
  ~HttpResponseReader();
  HttpResponseReader(const HttpResponseReader&) = delete;
  HttpResponseReader& operator=(const HttpResponseReader&) = delete;

  enum class State : std::uint8_t {
    More,      // wants further bytes; take_body() has what came
    Head,      // once: head() is there; go on with handle_bytes
    Complete,  // take_body() has the rest
    Refused,   // see problem()
  };
  // Takes what it used from the front of `input` and leaves the rest.
  State handle_bytes(Bytes& input);
  State handle_end();  // the peer sends no more

  // All headers as they came, those of framing too.
  const HttpStreamedHead& head() const { return head_; }
  std::string take_body();
  const std::string& problem() const { return problem_; }

 private:
  struct Parser;
  State read_head();
  State refuse(std::string problem);

  bool is_head_only_;
  std::unique_ptr<Parser> parser_;
  HttpStreamedHead head_;
  std::string problem_;
};

}  // namespace windlass
