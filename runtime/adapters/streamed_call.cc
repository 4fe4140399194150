#include "runtime/adapters/streamed_call.h"

#include <algorithm>
#include <utility>

namespace windlass::runtime {
namespace {

using function_rpc::HttpStreamFrame;

// A worker writes its answer before it says that the invocation is done, on another way.
constexpr Duration kAnswerAfterOutcome = seconds{5};
constexpr std::string_view kInvocationHeader = "x-ms-invocation-id";

}  // namespace

std::string StreamedCall::first_message(const InvocationId& id) {
  id_ = id;
  function_rpc::HttpStreamHead head = request_.head;  // it may not be taken
  head.headers.emplace_back(kInvocationHeader, id.value());
  is_body_over_ = is_end_sent_ = !head.has_body;
  return function_rpc::write_http_stream(
      {.invocation_id = id.value(), .head = std::move(head), .is_end = is_end_sent_});
}

void StreamedCall::on_begun() {
  is_begun_ = true;
  if (!is_over_ && !is_body_over_) request_.exchange->set_reading(true);
}

void StreamedCall::on_body(std::string_view bytes) {
  waiting_ += bytes;
  pump();
}

void StreamedCall::on_body_end() {
  is_body_over_ = true;
  pump();
}

void StreamedCall::pump() {
  if (is_over_ || !is_begun_) return;
  std::size_t at = 0;
  while (at < waiting_.size() && credit_.left() > 0) {
    const std::size_t bytes = std::min({waiting_.size() - at, credit_.left(), limits::kHttpStreamPartBytes});
    credit_.spend(bytes);
    send({.data = std::string_view{waiting_}.substr(at, bytes)});
    at += bytes;
  }
  waiting_.erase(0, at);
  if (!waiting_.empty()) return request_.exchange->set_reading(false);
  if (is_body_over_) {
    if (!std::exchange(is_end_sent_, true)) send({.is_end = true});
    return;
  }
  request_.exchange->set_reading(credit_.left() > 0);
}

void StreamedCall::send(const HttpStreamFrame& frame) {
  HttpStreamFrame ours = frame;
  ours.invocation_id = id_.value();
  host_.stream_send(id_, function_rpc::write_http_stream(ours));
}

void StreamedCall::on_piece(std::string_view body) {
  if (is_over_) return;
  const auto frame = function_rpc::read_http_stream(body);
  if (!frame) return fail(frame.error().reason);
  take(*frame);
}

void StreamedCall::take(const HttpStreamFrame& frame) {
  if (frame.credit > 0) {
    if (!credit_.grow(frame.credit)) return fail("the agent gave back more than it was sent");
    pump();
    if (is_over_) return;
  }
  if (frame.head) {
    if (std::exchange(has_head_, true)) return fail("the agent sent two answers");
    if (frame.head->status < 200 || frame.head->status > 599)
      return fail("the worker's answer has no status");
    request_.answered(frame.head->status);
    HttpStreamedHead head{frame.head->status, frame.head->headers, frame.head->body_bytes};
    head.headers.insert(head.headers.end(), request_.headers.begin(), request_.headers.end());
    request_.exchange->begin(std::move(head));
  }
  if (!frame.data.empty() && !is_over_) {
    untaken_ += frame.data.size();
    if (!has_head_ || untaken_ > limits::kHttpStreamWindow) return fail("the agent sent more than it may");
    request_.exchange->write(frame.data);
  }
  if (is_over_) return;
  if (frame.abort) return fail(std::string{*frame.abort});
  if (!frame.is_end) return;
  if (!has_head_) return fail("the worker's answer has no head");
  request_.exchange->finish();
  end(false, {});
}

void StreamedCall::on_written(std::size_t bytes) {
  untaken_ -= std::min(bytes, untaken_);
  if (!is_over_) send({.credit = bytes});
}

void StreamedCall::on_gone() {
  end(!is_settled_, "the client left");
}

void StreamedCall::on_lost(std::string_view reason) {
  is_begun_ = false;  // nobody is there to be told
  if (!is_over_) fail(std::string{reason});
}

// A failure that the invocation's outcome will not tell, or tells later.
void StreamedCall::fail(const std::string& why) {
  Outcome outcome;
  outcome.settlement = Settlement::Abandon;
  outcome.cause = Cause::WorkerLost;
  outcome.reason = why;
  answer(request_.explain(outcome));
  end(!is_settled_, why);
}

void StreamedCall::handle_outcome(const Outcome& outcome) {
  is_settled_ = true;
  if (is_over_) return;
  if (outcome.settlement != Settlement::Complete) {
    answer(request_.explain(outcome));
    return end(false, outcome.reason);
  }
  // The answer is on its way, unless the function gave none.
  if (!has_head_) request_.exchange->answer_unless_begun(kAnswerAfterOutcome, request_.explain(outcome));
}

void StreamedCall::answer(HttpResponse response) {
  if (has_head_) return request_.exchange->abort();
  request_.answered(response.status);
  request_.exchange->answer(std::move(response));
}

void StreamedCall::end(bool is_cancelled, std::string_view abort) {
  if (std::exchange(is_over_, true)) return;
  if (is_begun_ && !abort.empty()) send({.abort = abort});
  host_.stream_over(id_, is_cancelled);
}

}  // namespace windlass::runtime
