#include "protocol/http/http_connection.h"

#include <unistd.h>

#include <utility>

#include "protocol/http/host_name.h"

namespace windlass {
namespace {

constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace

HttpConnection::HttpConnection(HttpListener& listener, std::uint64_t id, SocketStream::Parts parts,
                               std::string peer)
    : listener_(listener),
      id_(id),
      peer_(std::move(peer)),
      timer_(listener.loop_, *this),
      stream_(listener.loop_, std::move(parts), *this),
      reader_(
          {listener.options_.head_bytes_max, listener.options_.body_bytes_max, listener.options_.is_open}) {}

void HttpConnection::begin() {
  // The first request must begin at once: who connects has something to ask.
  is_idle_ = false;
  set_deadline(listener_.options_.head_time);
  wait_readable();
}

void HttpConnection::close() {
  const State before = std::exchange(state_, State::Closed);
  if (before == State::Closed) return;
  if (before == State::Answering) tell_gone();
  held_.reset();
  if (const auto flow = std::exchange(flow_, std::nullopt)) {
    ++listener_.counters_.gone;
    if (flow->events) flow->events->on_gone();
  }
  timer_.set(std::nullopt);
  listener_.forget(id_);
}

void HttpConnection::on_readable() {
  if (state_ == State::Closed) return;
  const SocketStream::Input input = stream_.read();
  if (input.state == SocketStream::ReadState::Failed) return close();
  if (state_ != State::Lingering) input_.append(input.bytes.data(), input.bytes.size());
  if (input.state == SocketStream::ReadState::Ended) {
    has_ended_ = true;
    if (state_ == State::Lingering || state_ == State::Streaming) return close();
    // It might still read, but nobody can tell: whoever goes away looks the same.
    if (state_ == State::Answering) tell_gone();
  }
  if (std::exchange(is_idle_, is_idle_ && input_.empty()) && !is_idle_) {
    set_deadline(listener_.options_.head_time);
  }
  if (state_ == State::Streaming && !input.bytes.empty()) time_stream();
  advance();
  // Nothing more will come, and what is here is no whole request.
  if (has_ended_ && state_ == State::Reading) return close();
  wait_readable();
}

void HttpConnection::on_writable() {
  if (state_ == State::Closed) return;
  state_ == State::Streaming ? flush_stream() : write();
  advance();
  if (has_ended_ && state_ == State::Reading) return close();
  wait_readable();
}

void HttpConnection::on_timer() {
  if (state_ == State::Closed) return;
  ++listener_.counters_.timed_out;
  if (state_ == State::Answering) {
    ++request_number_;  // an answer after this is nobody's
    is_last_ = true;
    tell_gone();
    return refuse({504, "E.TIMEOUT", "no answer was ready in time; ask again to see what came of it"});
  }
  if (state_ == State::Streaming && !flow_->has_begun) {
    const auto events = flow_->events;
    const Problem still{504, "E.TIMEOUT", "the exchange stood still for too long"};
    answer_stream(flow_->late ? HttpResponse{*flow_->late} : to_response(still));
    if (events) events->on_gone();
    return;
  }
  if (state_ != State::Reading || is_idle_ || !stream_.is_ready()) return close();
  refuse({408, "E.TIMEOUT", "the request did not arrive in time"});
}

// Goes on as long as whole requests are here: an answer may come at once or later.
void HttpConnection::advance() {
  if (std::exchange(is_advancing_, true)) return;
  bool is_more = true;
  advance_stream();
  while (is_more && state_ == State::Reading) {
    switch (reader_.handle_bytes(input_)) {
      case HttpReader::State::More:
        is_more = false;
        hold_body();
        break;
      case HttpReader::State::Head:
        handle_head();
        break;
      case HttpReader::State::Complete:
        if (hold_body()) handle_request();
        break;
      case HttpReader::State::Refused:
        refuse(reader_.problem());
        break;
    }
  }
  is_advancing_ = false;
}

void HttpConnection::handle_head() {
  const HttpHead& head = reader_.head();
  HttpRequest& request = reader_.request();
  is_last_ = head.is_last;
  const AccessToken* const token = head.has_token ? listener_.find_token(head.token) : nullptr;
  is_authorized_ = token != nullptr;
  if (token != nullptr) request.token_name = token->name;
  if (head.has_token && !is_authorized_) ++listener_.counters_.unauthorized;
  request.is_authorized = is_authorized_;
  request.id = listener_.next_request_++;
  if (!head.has_body) {
    if (listener_.options_.is_open) begin_stream();
    return;
  }
  if (!is_authorized_ && !listener_.options_.is_open) {
    // Nobody unknown makes us hold anything.
    return refuse({401, head.has_token ? "E.AUTH.INVALID_TOKEN" : "E.AUTH.MISSING_TOKEN",
                   "a good bearer token is wanted in the Authorization header"});
  }
  if (const auto refused = listener_.handler_.refuse(request)) {
    is_last_ = true;  // the body is still to come
    return respond(*refused);
  }
  if (listener_.options_.is_open && begin_stream()) return;
  if (const auto problem = reader_.body_problem()) return refuse(*problem);
  if (!listener_.held_->has_room(head.body_bytes)) return refuse_for_room();
  held_ = std::make_shared<HttpHeld>(listener_.held_);
  begun_ = listener_.loop_.now().steady;
  set_deadline(listener_.options_.body_time);
  if (head.expects_continue && stream_.write(kContinue).state != SocketStream::WriteState::Done) close();
}

// Counts what came of a body. False: all bodies together are too large, and this one is refused.
bool HttpConnection::hold_body() {
  if (!held_ || reader_.body_bytes() == held_->bytes()) return true;
  if (!held_->grow_to(reader_.body_bytes())) {
    refuse_for_room();
    return false;
  }
  set_deadline(listener_.options_.body_time, held_->bytes());
  return true;
}

void HttpConnection::refuse_for_room() {
  ++listener_.counters_.no_room;
  refuse({503, "E.LIMIT.CAPACITY", "requests that came before hold all the memory there is for bodies"});
}

void HttpConnection::handle_request() {
  ++listener_.counters_.requests;
  HttpRequest request = reader_.take();
  if (listener_.is_full() && !listener_.handler_.is_probe(request)) {
    ++listener_.counters_.no_room;
    return refuse({503, "E.LIMIT.CAPACITY", "all places of this listener are taken by requests that wait"});
  }
  look_at_user(request);
  request_id_ = request.id;
  state_ = State::Answering;
  set_deadline(listener_.options_.answer_time);
  // Whoever keeps the answer has the body too, or something made of it.
  listener_.handler_.handle(std::move(request), [weak = weak_from_this(), held = std::exchange(held_, {}),
                                                 number = ++request_number_](const HttpResponse& response) {
    if (const auto self = weak.lock()) self->answer(number, response);
  });
  if (has_ended_ && state_ == State::Answering) tell_gone();
}

void HttpConnection::look_at_user(HttpRequest& request) {
  if (!listener_.options_.asks_for_users || listener_.handler_.is_probe(request)) return;
  if (!owner_) owner_ = socket_owner(peer_, listener_.port_);
  const auto& owner = *owner_;
  // Under a stranger's name a browser lets a stranger's page read the answer.
  const bool is_foreign_page = !request.host.empty() && !is_own_name(name_of_host(request.host));
  request.is_stranger = is_foreign_page || !owner || (owner->user != 0 && owner->user != ::geteuid());
  if (!request.is_stranger) request.user = owner->user;
}

void HttpConnection::tell_gone() {
  if (request_id_ == 0) return;
  ++listener_.counters_.gone;
  listener_.handler_.handle_gone(std::exchange(request_id_, 0));
}

void HttpConnection::answer(std::uint64_t number, const HttpResponse& response) {
  if (state_ != State::Answering || number != request_number_) return;
  respond(response);
  if (is_advancing_) return;
  advance();
  if (has_ended_ && state_ == State::Reading) return close();
  wait_readable();
}

void HttpConnection::refuse(const Problem& problem) {
  is_last_ = true;
  HttpResponse response = to_response(problem);
  if (problem.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  if (problem.status == 503) response.headers.emplace_back("Retry-After", "1");
  respond(response);
}

void HttpConnection::respond(const HttpResponse& response) {
  if ((has_ended_ && input_.empty()) || !listener_.is_listening()) is_last_ = true;
  output_ = to_wire(response, framing());
  if (is_last_) reader_.drop();
  held_.reset();
  output_used_ = 0;
  state_ = State::Writing;
  begun_ = listener_.loop_.now().steady;
  set_deadline(listener_.options_.write_time);
  write();
}

WireFraming HttpConnection::framing() const {
  const HttpHead& head = reader_.head();
  return {is_last_, head.is_head_only, !head.knows_chunks, listener_.date()};
}

void HttpConnection::write() {
  const BytesView rest = BytesView{output_}.substr(output_used_);
  const SocketStream::Output written = stream_.write(rest);
  output_used_ += written.bytes;
  if (written.state == SocketStream::WriteState::Failed) return close();
  if (written.state == SocketStream::WriteState::Blocked) {
    if (state_ == State::Writing) set_deadline(listener_.options_.write_time, output_used_);
    return stream_.wait_writable();
  }
  if (state_ != State::Writing) return;
  Bytes{}.swap(output_);
  output_used_ = 0;
  if (is_last_) return linger();
  state_ = State::Reading;
  is_idle_ = input_.empty();
  set_deadline(is_idle_ ? listener_.options_.idle_time : listener_.options_.head_time);
}

// A close while the peer still sends would throw away our answer before it was read.
void HttpConnection::linger() {
  if (has_ended_) return close();
  stream_.finish();
  state_ = State::Lingering;
  Bytes{}.swap(input_);
  set_deadline(limits::kCloseLinger);
}

// What comes before the answer is out is kept, up to a bound, so that a peer that went away is noticed.
void HttpConnection::wait_readable() {
  if (state_ == State::Closed || has_ended_) return;
  if (state_ == State::Answering || state_ == State::Writing || state_ == State::Streaming) {
    if (input_.size() >= listener_.options_.head_bytes_max) return;
  }
  stream_.wait_readable();
}

void HttpConnection::set_deadline(Duration time) {
  timer_.set(listener_.loop_.now().steady + time);
}

// Of a transfer of which so much is done: each byte buys the time that it takes at the least pace.
void HttpConnection::set_deadline(Duration first, std::size_t bytes) {
  timer_.set(begun_ + first + milliseconds{bytes * 1000 / listener_.options_.bytes_per_second_least});
}

}  // namespace windlass
