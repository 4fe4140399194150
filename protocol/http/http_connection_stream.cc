// An exchange whose bodies flow: the request's to the handler as it wants it, the answer's to the client as
// it takes it. Nothing is held beyond what was read from the socket at once and what the handler wrote.
#include <array>
#include <cstdio>
#include <utility>

#include "protocol/http/http_connection.h"

namespace windlass {
namespace {

std::string chunk_head(std::size_t bytes) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "%zx\r\n", bytes);
  return text.data();
}

}  // namespace

// What a handler holds: it outlives the connection, or the request that it was made for.
class HttpConnection::StreamSide final : public HttpExchange {
 public:
  StreamSide(std::weak_ptr<HttpConnection> connection, std::uint64_t number)
      : connection_(std::move(connection)), number_(number) {}

  void set_reading(bool is_wanted) override {
    if (const auto self = live()) self->set_reading(is_wanted);
  }
  void answer(HttpResponse response) override {
    if (const auto self = live()) self->answer_stream(response);
  }
  void answer_unless_begun(Duration after, HttpResponse response) override {
    if (const auto self = live()) self->answer_late(after, std::move(response));
  }
  void begin(HttpStreamedHead head) override {
    if (const auto self = live()) self->begin_answer(head);
  }
  void write(std::string_view bytes) override {
    if (const auto self = live()) self->write_stream(bytes);
  }
  void finish() override {
    if (const auto self = live()) self->finish_stream();
  }
  void abort() override {
    if (const auto self = live()) self->abort_stream();
  }

 private:
  std::shared_ptr<HttpConnection> live() const {
    auto self = connection_.lock();
    return self && self->is_stream(number_) ? self : nullptr;
  }

  std::weak_ptr<HttpConnection> connection_;
  std::uint64_t number_;
};

// False: the handler wants the request whole.
bool HttpConnection::begin_stream() {
  flow_ = Flow{};
  flow_->number = ++request_number_;
  flow_->is_body_over = !reader_.head().has_body;
  state_ = State::Streaming;
  auto events = listener_.handler_.stream(reader_.request(),
                                          std::make_shared<StreamSide>(weak_from_this(), flow_->number));
  if (!events) {
    if (state_ == State::Streaming) {
      flow_.reset();
      state_ = State::Reading;
      return false;
    }
    return true;  // it answered at once
  }
  ++listener_.counters_.requests;
  if (state_ != State::Streaming) return true;
  flow_->events = std::move(events);
  reader_.stream_body();
  if (reader_.head().expects_continue) {
    output_ = "HTTP/1.1 100 Continue\r\n\r\n";
    flush_stream();
  }
  if (state_ == State::Streaming) time_stream();
  return true;
}

void HttpConnection::set_reading(bool is_wanted) {
  if (std::exchange(flow_->is_reading, is_wanted) || !is_wanted) return;
  time_stream();
  advance();
  if (state_ != State::Closed) wait_readable();
}

void HttpConnection::advance_stream() {
  while (state_ == State::Streaming && flow_->is_reading && !flow_->is_body_over) {
    const HttpReader::State state = reader_.handle_bytes(input_);
    if (state == HttpReader::State::Refused) {
      if (flow_->has_begun) return close();
      const auto events = flow_->events;
      is_last_ = true;
      answer_stream(to_response(reader_.problem()));
      if (events) events->on_gone();
      return;
    }
    if (state == HttpReader::State::Complete) flow_->is_body_over = true;
    hand_on_body();
    if (state == HttpReader::State::More) return;
  }
}

void HttpConnection::hand_on_body() {
  const std::string bytes = reader_.take_body();
  const auto events = flow_->events;  // they may end the exchange
  const bool is_over = flow_->is_body_over;
  if (!bytes.empty()) events->on_body(bytes);
  if (is_over && flow_) events->on_body_end();
}

void HttpConnection::answer_stream(const HttpResponse& response) {
  if (flow_->has_begun) return abort_stream();
  if (!flow_->is_body_over) is_last_ = true;
  flow_.reset();
  reader_.drop();
  respond(response);
  if (is_advancing_) return;
  advance();
  wait_readable();
}

void HttpConnection::answer_late(Duration after, HttpResponse response) {
  if (flow_->has_begun) return;
  flow_->late = std::move(response);
  set_deadline(after);
}

void HttpConnection::begin_answer(const HttpStreamedHead& head) {
  Flow& flow = *flow_;
  if (std::exchange(flow.has_begun, true)) return;
  flow.late.reset();
  HttpStreamedHead said = head;
  flow.has_body = !reader_.head().is_head_only && said.status != 204 && said.status != 304;
  if (said.status == 204 || said.status == 304) said.body_bytes.reset();
  if (flow.has_body) {
    flow.left = said.body_bytes;
    flow.is_chunked = !said.body_bytes && reader_.head().knows_chunks;
    if (!said.body_bytes && !flow.is_chunked) is_last_ = true;
  }
  // The rest of the request may never be read, and then nothing can follow it.
  if (!listener_.is_listening() || !flow.is_body_over) is_last_ = true;
  output_ += to_wire(said, flow.is_chunked, framing());
  flush_stream();
}

void HttpConnection::write_stream(std::string_view bytes) {
  Flow& flow = *flow_;
  if (!flow.has_begun || flow.is_finished || bytes.empty()) return;
  flow.unreported += bytes.size();
  if (flow.has_body) {
    if (flow.left && bytes.size() > *flow.left) return abort_stream();  // more than it said
    if (flow.left) *flow.left -= bytes.size();
    if (flow.is_chunked) output_ += chunk_head(bytes.size());
    output_ += bytes;
    if (flow.is_chunked) output_ += "\r\n";
  }
  flush_stream();
}

void HttpConnection::finish_stream() {
  Flow& flow = *flow_;
  if (!flow.has_begun || flow.is_finished) return;
  if (flow.left && *flow.left > 0) return abort_stream();  // less than it said
  flow.is_finished = true;
  if (flow.is_chunked) output_ += "0\r\n\r\n";
  flush_stream();
}

// Whoever reads must see that it is not whole, so nothing is sent that would end it well.
void HttpConnection::abort_stream() {
  stream_.reset_when_closed();
  close();
}

void HttpConnection::flush_stream() {
  const SocketStream::Output written = stream_.write(BytesView{output_}.substr(output_used_));
  output_used_ += written.bytes;
  if (written.state == SocketStream::WriteState::Failed) return close();
  const bool is_blocked = written.state == SocketStream::WriteState::Blocked;
  if (!is_blocked) {
    Bytes{}.swap(output_);
    output_used_ = 0;
  }
  if (written.bytes > 0) time_stream();  // by what is left
  if (is_blocked) return stream_.wait_writable();
  if (flow_->is_finished) return end_stream();
  const auto events = flow_->events;
  if (const std::size_t bytes = std::exchange(flow_->unreported, 0); bytes > 0 && events) {
    events->on_written(bytes);
  }
}

void HttpConnection::end_stream() {
  if (!flow_->is_body_over) is_last_ = true;  // the rest is of no use to anybody
  flow_.reset();
  reader_.drop();
  if (is_last_) return linger();
  state_ = State::Reading;
  is_idle_ = input_.empty();
  set_deadline(is_idle_ ? listener_.options_.idle_time : listener_.options_.head_time);
  if (is_advancing_) return;
  advance();
  if (state_ != State::Closed) wait_readable();
}

// A client that does not take what is ready has the time of any answer. A function that has all of its
// request and answers nothing yet has the time of functions.
void HttpConnection::time_stream() {
  if (flow_->late) return;  // its time runs
  if (!output_.empty()) return set_deadline(listener_.options_.write_time);
  const bool is_working = flow_->is_body_over && !flow_->has_begun;
  set_deadline(is_working ? listener_.options_.answer_time : limits::kHttpStreamIdle);
}

}  // namespace windlass
