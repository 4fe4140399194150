// HTTP requests of workers that stream: the request and its answer travel beside the invocation, in pieces,
// as FunctionRpc messages of our own between runtime and agent. The agent makes the call to the port of the
// worker, which only it can reach.
//
//   runtime to agent: head, then data and credit, then end
//   agent to runtime: credit, head, data, end
//   either: abort, after which neither says more
//
// Both begin with limits::kHttpStreamWindow bytes of credit for data, and get back what the other passed on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/base/result.h"

namespace windlass::function_rpc {

// The capability by which a worker says where it takes requests, and what an agent puts in its place: they
// are to come on the agent's own channel, as above.
inline constexpr std::string_view kHttpUriCapability = "HttpUri";
inline constexpr std::string_view kHttpOnChannel = "windlass:channel";

struct HttpStreamHead {
  std::string method = {};  // of a request
  std::string target = {};
  std::uint16_t status = 0;  // of an answer
  std::vector<std::pair<std::string, std::string>> headers = {};
  bool has_body = false;
  std::optional<std::uint64_t> body_bytes = {};  // none: it ends when it ends
  friend bool operator==(const HttpStreamHead&, const HttpStreamHead&) = default;
};

// One message; each part of it may be there, in this order.
struct HttpStreamFrame {
  std::string_view invocation_id = {};
  std::uint64_t credit = 0;
  std::optional<HttpStreamHead> head = {};
  std::string_view data = {};
  bool is_end = false;
  std::optional<std::string_view> abort = {};  // why
};

// A whole StreamingMessage.
std::string write_http_stream(const HttpStreamFrame& frame);
// From the content of one; views into it. E.PROTO.SCHEMA for bytes that are none.
Result<HttpStreamFrame> read_http_stream(std::string_view body);

// What may still be sent, and what is to be given back to the sender.
class HttpStreamCredit final {
 public:
  explicit HttpStreamCredit(std::size_t window) : left_(window), window_(window) {}
  std::size_t left() const { return left_; }
  void spend(std::size_t bytes) { left_ -= bytes; }
  // False: more than was ever spent, which only a broken peer gives.
  bool grow(std::uint64_t bytes) {
    if (bytes > window_ - left_) return false;
    left_ += static_cast<std::size_t>(bytes);
    return true;
  }

 private:
  std::size_t left_;
  std::size_t window_;
};

}  // namespace windlass::function_rpc
