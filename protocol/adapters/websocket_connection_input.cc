// How a connection opens and what its input means; the rest of the class is in websocket_connection.cc.
#include "protocol/adapters/connection_table.h"
#include "protocol/adapters/peer_info.h"
#include "protocol/adapters/websocket_connection.h"

#include <utility>

namespace windlass {

using websocket::CloseCode;

// ---- opening ----

void WebSocketConnection::enter_head() {
  state_ = State::Head;
  if (stream_->tls() != nullptr) read_certificate(stream_->tls()->ssl(), peer_);
  set_deadline(options_.head_deadline);
  cork();
  opening_->begin(out_);
}

void WebSocketConnection::step_head(std::span<char>& bytes) {
  cork();
  Opening::Step step = opening_->handle_bytes(bytes, out_);
  if (step.state == Opening::State::More) return;
  opening_.reset();
  if (step.state == Opening::State::Open) return enter_open();
  record({number(CloseCode::Abnormal), CloseInitiator::Network, std::move(step.reason), step.http_status,
          step.retry_after, opening_failure_of(step.http_status)});
  linger();
}

void WebSocketConnection::enter_open() {
  state_ = State::Open;
  was_open_ = true;
  timer_.set(std::nullopt);
  table_.opening_done();
  table_.events().on_opened(id_, *this);
}

// ---- open ----

void WebSocketConnection::read_messages(std::span<char> bytes) {
  reader_.handle_bytes(bytes);
  for (;;) {
    const auto event = reader_.poll_event();
    if (!event) return fail(reader_.failure_code(), event.error().reason);
    if (!*event) return;
    handle_event(**event);
    // Whoever takes the connection away, or ends it, has seen to the rest of the input.
    if (detached_) return;
    if (state_ != State::Open && state_ != State::Closing) {
      static_cast<void>(reader_.take_input());
      return;
    }
  }
}

void WebSocketConnection::handle_event(const websocket::ReadEvent& event) {
  if (const auto* const message = std::get_if<websocket::Message>(&event)) {
    if (state_ == State::Open) table_.events().on_message(id_, message->payload, message->kind);
  } else if (const auto* const ping = std::get_if<websocket::Ping>(&event)) {
    if (state_ != State::Open) return;
    cork();
    websocket::append_pong(ping->payload, mask(), out_);
  } else if (const auto* const close = std::get_if<websocket::Close>(&event)) {
    handle_close(*close);
  }
}

void WebSocketConnection::handle_close(const websocket::Close& close) {
  if (state_ == State::Open) {
    cork();
    websocket::append_close(close.code, {}, mask(), out_);
    record({number(close.code), CloseInitiator::Peer, std::string{close.reason}});
  }
  linger();
}

void WebSocketConnection::fail(CloseCode code, std::string_view reason) {
  if (state_ == State::Open) {
    cork();
    websocket::append_close(code, reason, mask(), out_);
    record({number(code), CloseInitiator::Local, std::string{reason}});
  }
  linger();
}

// The peer sends nothing more.
void WebSocketConnection::handle_end(SocketStream::ReadState state) {
  std::string why = state == SocketStream::ReadState::Failed ? stream_->failure() : "the peer hung up";
  if (is_opening()) {
    why = (state_ == State::Tls ? "the TLS handshake failed: " : "the HTTP upgrade failed: ") + why;
  }
  record({.code = number(CloseCode::Abnormal),
          .reason = std::move(why),
          .opening = stream_->has_tls_failed() ? OpeningFailure::Tls : OpeningFailure::PeerLeft});
  // The alert that says what was wrong must not be overtaken by the reset of a socket closed with unread
  // input.
  if (state_ != State::Lingering && stream_->has_tls_failed()) {
    linger();
    return stream_->wait_readable();
  }
  end();
}

}  // namespace windlass
