// One HTTP request that is streamed to a worker's agent and its answer back: between the client's exchange
// and the pieces on the agent's channel. Holds no more than the window of each direction. Loop thread only.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/base/http_limits.h"
#include "protocol/base/limits.h"
#include "protocol/function_rpc/http_stream.h"
#include "protocol/http/http_message.h"
#include "runtime/core/runtime_core.h"
#include "runtime/seams/invocation_stream.h"

namespace windlass::runtime {

// What a call has done for it.
class StreamedCallHost {
 public:
  virtual ~StreamedCallHost() = default;
  virtual void stream_send(const InvocationId& invocation, std::string message) = 0;
  // Nothing more is to come of it; with `is_cancelled` nobody waits for its outcome either.
  virtual void stream_over(const InvocationId& invocation, bool is_cancelled) = 0;
};

class StreamedCall final : public HttpExchangeEvents, public InvocationStream {
 public:
  // How the client is told of an outcome that no HTTP answer came with.
  using Explain = std::function<HttpResponse(const Outcome& outcome)>;
  struct Request {
    function_rpc::HttpStreamHead head;  // without the invocation's own headers
    std::shared_ptr<HttpExchange> exchange;
    std::vector<std::pair<std::string, std::string>> headers;  // of ours, for the answer
    Explain explain;
    std::function<void(std::uint16_t status)> answered;  // once
  };
  StreamedCall(StreamedCallHost& host, Request request) : host_(host), request_(std::move(request)) {}

  void handle_taken(const InvocationId& id) { id_ = id; }
  void handle_outcome(const Outcome& outcome);

  std::string first_message(const InvocationId& id) override;
  void on_begun() override;
  void on_piece(std::string_view body) override;
  void on_lost(std::string_view reason) override;

  void on_body(std::string_view bytes) override;
  void on_body_end() override;
  void on_written(std::size_t bytes) override;
  void on_gone() override;

 private:
  void pump();
  void send(const function_rpc::HttpStreamFrame& frame);
  void take(const function_rpc::HttpStreamFrame& frame);
  void answer(HttpResponse response);  // in the place of one that did not come
  void fail(const std::string& why);
  void end(bool is_cancelled, std::string_view abort);

  StreamedCallHost& host_;
  Request request_;
  InvocationId id_;
  function_rpc::HttpStreamCredit credit_{limits::kHttpStreamWindow};  // of the request's body
  std::string waiting_;                                               // of the body, beyond the credit
  std::size_t untaken_ = 0;                                           // of the answer's body, by the client
  bool is_begun_ = false;                                             // a worker has it
  bool is_body_over_ = false;
  bool is_end_sent_ = false;
  bool has_head_ = false;    // of the answer
  bool is_settled_ = false;  // its invocation has its outcome
  bool is_over_ = false;
};

}  // namespace windlass::runtime
