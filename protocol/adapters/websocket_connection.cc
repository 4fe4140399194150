#include "protocol/adapters/websocket_connection.h"

#include <utility>

#include "protocol/adapters/connection_table.h"
#include "protocol/adapters/loop_buffers.h"
#include "protocol/base/check.h"

namespace windlass {

using websocket::CloseCode;

WebSocketConnection::WebSocketConnection(Start start, const ConnectionOptions& options,
                                         ConnectionTable& table)
    : id_(start.id),
      table_(table),
      options_(options),
      stream_(std::make_unique<SocketStream>(table.loop(), std::move(start.parts),
                                             static_cast<ReadinessEvents&>(*this))),
      opening_(std::move(start.opening)),
      peer_(std::move(start.peer)),
      reader_(start.side, {.message_bytes_max = options.message_bytes_max}),
      timer_(table.loop(), *this),
      side_(start.side) {}

WebSocketConnection::WebSocketConnection(std::unique_ptr<DetachedConnection> detached,
                                         const ConnectionOptions& options, ConnectionTable& table)
    : id_(detached->id),
      table_(table),
      options_(options),
      stream_(std::make_unique<SocketStream>(table.loop(), std::move(detached->parts),
                                             static_cast<ReadinessEvents&>(*this))),
      attached_(std::move(detached)),
      peer_(std::move(attached_->peer)),
      reader_(std::move(attached_->reader)),
      timer_(table.loop(), *this),
      out_(std::move(attached_->unsent)),
      side_(attached_->side),
      state_(State::Open),
      was_open_(true) {}

void WebSocketConnection::start() {
  if (attached_) {
    const auto attached = std::move(attached_);
    if (!out_.empty()) cork();
    table_.events().on_opened(id_, *this);
    if (state_ == State::Open) table_.events().on_message(id_, attached->message, attached->kind);
    if (!detached_ && state_ < State::Lingering) read_messages(attached->unread);
    if (state_ == State::Open) table_.events().on_idle(id_);
  } else if (stream_->is_ready()) {
    enter_head();
  } else {
    set_deadline(options_.tls_deadline);
    if (is_client()) stream_->begin_tls();
  }
  if (state_ != State::Ended) stream_->wait_readable();
}

// ---- the owner's calls: they report nothing themselves ----

SendStatus WebSocketConnection::send(BytesView message, MessageKind kind) {
  if (state_ != State::Open) return SendStatus::Closed;
  cork();
  if (kind == MessageKind::Text) {
    websocket::append_text(message, mask(), out_);
  } else {
    websocket::append_binary(message, mask(), out_);
  }
  if (!blocked_ && out_.size() - out_used_ >= limits::kCorkBytesMax) write_out();
  check_backlog();
  if (state_ != State::Open) return SendStatus::Closed;
  if (!blocked_) return SendStatus::Sent;
  owes_writable_ = true;
  return SendStatus::Blocked;
}

void WebSocketConnection::close(std::uint16_t code, std::string_view reason) {
  if (state_ != State::Open) return;
  cork();
  websocket::append_close(static_cast<CloseCode>(code), reason, mask(), out_);
  record({code, CloseInitiator::Local, std::string{reason}});
  state_ = State::Closing;
  set_deadline(options_.close_deadline);
}

void WebSocketConnection::ping(BytesView payload) {
  if (state_ != State::Open) return;
  cork();
  websocket::append_ping(payload, mask(), out_);
  check_backlog();
}

std::unique_ptr<DetachedConnection> WebSocketConnection::detach(BytesView message, MessageKind kind) {
  CHECK(state_ == State::Open);
  const std::span<char> unread = reader_.take_input();
  // The copies come first: the message may lie in the reader, or in the same buffer as the input.
  std::unique_ptr<DetachedConnection> detached{new DetachedConnection{id_,
                                                                      side_,
                                                                      {},
                                                                      {},
                                                                      websocket::FrameReader{side_},
                                                                      Bytes{message},
                                                                      kind,
                                                                      Bytes{unread.data(), unread.size()},
                                                                      out_.substr(out_used_)}};
  detached->reader = std::move(reader_);
  detached->peer = std::move(peer_);
  detached->parts = stream_->release();
  detached_ = true;
  end();
  return detached;
}

// ---- the loop's calls ----

void WebSocketConnection::on_readable() {
  if (state_ == State::Ended) return;
  const SocketStream::Input input = stream_->read();
  std::span<char> bytes = input.bytes;
  if (state_ == State::Tls && stream_->is_ready()) enter_head();
  if (state_ == State::Head && !bytes.empty()) step_head(bytes);
  if ((state_ == State::Open || state_ == State::Closing) && !bytes.empty()) read_messages(bytes);
  if (state_ == State::Ended) return;
  if (input.state == SocketStream::ReadState::Ended || input.state == SocketStream::ReadState::Failed) {
    return handle_end(input.state);
  }
  if (state_ == State::Open && input.state == SocketStream::ReadState::Drained) {
    table_.events().on_idle(id_);
    if (state_ == State::Ended) return;
  }
  check_backlog();
  if (state_ != State::Ended) stream_->wait_readable();
}

void WebSocketConnection::on_writable() {
  if (state_ == State::Ended) return;
  const std::size_t before = unsent_bytes();
  write_out();
  if (state_ == State::Open && blocked_ && unsent_bytes() < before) set_deadline(options_.stall_deadline);
  if (blocked_ || state_ != State::Open) return;
  timer_.set(std::nullopt);
  if (std::exchange(owes_writable_, false)) table_.events().on_writable(id_);
}

void WebSocketConnection::on_timer() {
  switch (state_) {
    case State::Tls:
      record({.code = number(CloseCode::Abnormal),
              .reason = "the TLS handshake took too long",
              .opening = OpeningFailure::TlsDeadline});
      break;
    case State::Head:
      record({.code = number(CloseCode::Abnormal),
              .reason = "the HTTP upgrade took too long",
              .opening = OpeningFailure::HttpDeadline});
      break;
    case State::Open:
      record({number(CloseCode::PolicyViolation), CloseInitiator::Local, "the peer does not read"});
      break;
    case State::Closing:
    case State::Lingering:
    case State::Ended:
      break;
  }
  stream_->reset_when_closed();
  end();
}

void WebSocketConnection::flush() {
  corked_ = false;
  if (state_ == State::Ended) return;
  write_out();
  //= RTX-2
  // The sends of this turn were answered before anybody knew.
  if (blocked_ && state_ == State::Open && !std::exchange(owes_writable_, true)) {
    table_.events().on_blocked(id_);
  }
}

void WebSocketConnection::abandon(std::string_view reason) {
  if (state_ == State::Ended) return;
  record({.code = number(CloseCode::Abnormal),
          .initiator = CloseInitiator::Local,
          .reason = std::string{reason},
          .opening = OpeningFailure::Displaced});
  stream_->reset_when_closed();
  end();
}

void WebSocketConnection::forget() {
  reported_ = true;
  report_due_ = false;
  abandon({});
}

// ---- output ----

void WebSocketConnection::cork() {
  if (corked_) return;
  corked_ = true;
  if (out_.capacity() <= Bytes{}.capacity()) out_ = table_.loop().buffers().lend();
  table_.cork(*this);
}

void WebSocketConnection::write_out() {
  if (write_failed_) return drop_output();
  const SocketStream::Output output = stream_->write(BytesView{out_}.substr(out_used_));
  out_used_ += output.bytes;
  if (out_used_ == out_.size()) drop_output();
  const bool was_blocked = std::exchange(blocked_, output.state == SocketStream::WriteState::Blocked);
  switch (output.state) {
    case SocketStream::WriteState::Blocked:
      stream_->wait_writable();
      if (!was_blocked && state_ == State::Open) set_deadline(options_.stall_deadline);
      break;
    case SocketStream::WriteState::Failed:
      // What the peer said before it went away, a close frame perhaps, is still to be read, and then its end.
      write_failed_ = true;
      drop_output();
      if (state_ == State::Open) set_deadline(options_.close_deadline);
      break;
    case SocketStream::WriteState::Done:
      if (state_ == State::Lingering && !std::exchange(finished_, true)) stream_->finish();
      break;
  }
}

void WebSocketConnection::drop_output() {
  table_.loop().buffers().take_back(std::exchange(out_, Bytes{}));
  out_used_ = 0;
}

// A peer that does not read what it causes is not waited for.
//= LIM-7
void WebSocketConnection::check_backlog() {
  if (state_ == State::Ended || unsent_bytes() <= options_.send_buffer_bytes_max) return;
  record({number(CloseCode::PolicyViolation), CloseInitiator::Local, "the peer reads too slowly"});
  stream_->reset_when_closed();
  end();
}

// ---- the end ----

void WebSocketConnection::linger() {
  const bool opening = is_opening();
  state_ = State::Lingering;
  if (opening) table_.opening_failed(record_ ? record_->opening : OpeningFailure::PeerLeft);
  set_deadline(options_.close_deadline);
  cork();  // so that flush finishes the stream even if nothing is to be sent
  report();
}

void WebSocketConnection::end() {
  const bool opening = is_opening();
  state_ = State::Ended;
  if (opening) table_.opening_failed(record_ ? record_->opening : OpeningFailure::PeerLeft);
  timer_.set(std::nullopt);
  drop_output();
  report();
  table_.changed(*this);
}

// The first record stands: it says who spoke first.
void WebSocketConnection::record(Record record) {
  if (!record_) record_ = std::make_unique<Record>(std::move(record));
}

void WebSocketConnection::report() {
  const bool told = was_open_ || is_client();
  if (!told || detached_ || !record_ || reported_) return;
  reported_ = true;
  report_due_ = true;
  table_.changed(*this);
}

bool WebSocketConnection::take_report() {
  return std::exchange(report_due_, false);
}

CloseFacts WebSocketConnection::facts() const {
  CHECK(record_ != nullptr);
  return {record_->code, record_->reason, record_->initiator, record_->http_status, record_->retry_after};
}

void WebSocketConnection::set_deadline(Duration after) {
  timer_.set(table_.loop().now().steady + after);
}

websocket::Mask WebSocketConnection::mask() {
  if (!is_client()) return std::nullopt;
  return websocket::MaskKey::from(table_.loop().buffers().random_word());
}

}  // namespace windlass
