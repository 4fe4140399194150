#include "conformance/runner/wire.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "protocol/adapters/loop_buffers.h"

namespace windlass::conformance {
namespace {

constexpr std::size_t kHeadBytesMax = 65'536;
constexpr std::size_t kMessageBytesMax = 16U << 20U;  // of the judged: more is its mistake
constexpr std::size_t kUnsentBytesMax = 64U << 20U;

class LoopWait final : private TurnEnd, private TimerTarget {
 public:
  LoopWait(EventLoop& loop, Instant deadline, const std::function<bool()>& condition)
      : loop_(loop), timer_(loop, *this), condition_(condition) {
    loop_.add_turn_end(TurnPhase::Decide, *this);
    timer_.set(deadline);
    loop_.turn_again();
    loop_.run();
  }
  ~LoopWait() override { loop_.remove_turn_end(TurnPhase::Decide, *this); }
  bool holds() const { return holds_; }

 private:
  void on_turn_end(TurnPhase /*phase*/) override {
    if (!holds_ && condition_()) {
      holds_ = true;
      loop_.stop();
    }
  }
  void on_timer() override { loop_.stop(); }

  EventLoop& loop_;
  LoopTimer timer_;
  const std::function<bool()>& condition_;
  bool holds_ = false;
};

HttpHead parse_head(const std::string& text) {
  HttpHead head;
  head.text = text;
  std::size_t at = text.find("\r\n");
  head.first_line = text.substr(0, at);
  while (at != std::string::npos && at + 2 < text.size()) {
    const std::size_t end = text.find("\r\n", at + 2);
    const std::string line = text.substr(at + 2, end == std::string::npos ? end : end - at - 2);
    at = end;
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    std::string name = line.substr(0, colon);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const std::size_t value = line.find_first_not_of(' ', colon + 1);
    head.headers[name] = value == std::string::npos ? "" : line.substr(value);
  }
  return head;
}

}  // namespace

bool run_until(EventLoop& loop, Instant deadline, const std::function<bool()>& condition) {
  if (condition()) return true;
  return LoopWait{loop, deadline, condition}.holds();
}

Wire::Wire(EventLoop& loop, SocketStream::Parts parts, websocket::Side side, std::string request,
           WireOwner& owner)
    : loop_(loop),
      stream_(loop, std::move(parts), *this),
      side_(side),
      reader_(side, {.message_bytes_max = kMessageBytesMax}),
      request_(std::move(request)),
      owner_(owner) {
  if (is_client() && stream_.tls() != nullptr) stream_.begin_tls();
  if (is_client() && stream_.is_ready()) {
    has_begun_ = true;
    write(request_);
  }
  stream_.wait_readable();
}

void Wire::on_readable() {
  if (is_ended_ || is_stalled_) return;
  const auto input = stream_.read();
  std::span<char> bytes = input.bytes;
  if (is_client() && stream_.is_ready() && !std::exchange(has_begun_, stream_.is_ready())) write(request_);
  if (!is_open_ && !bytes.empty()) handle_head(bytes);
  if (is_open_ && !is_ended_ && !bytes.empty()) handle_frames(bytes);
  if (is_ended_) return;
  if (input.state == SocketStream::ReadState::Ended || input.state == SocketStream::ReadState::Failed) {
    WireEnd why = close_.value_or(WireEnd{});
    if (!close_ && input.state == SocketStream::ReadState::Failed) why.reason = stream_.failure();
    return end(std::move(why));
  }
  flush();
  if (!is_stalled_) stream_.wait_readable();
}

void Wire::handle_head(std::span<char>& bytes) {
  head_.append(bytes.data(), bytes.size());
  const std::size_t end_of_head = head_.find("\r\n\r\n");
  if (end_of_head == std::string::npos) {
    bytes = {};
    if (head_.size() > kHeadBytesMax) {
      owner_.on_violation(*this, "its HTTP head does not end");
      cut();
    }
    return;
  }
  const std::size_t rest = head_.size() - end_of_head - 4;
  bytes = bytes.last(std::min(rest, bytes.size()));
  head_.resize(end_of_head + 4);
  owner_.on_head(*this, parse_head(head_));
}

void Wire::handle_frames(std::span<char> bytes) {
  if (close_) return;
  reader_.handle_bytes(bytes);
  while (!is_ended_) {
    const auto event = reader_.poll_event();
    if (!event) {
      owner_.on_violation(*this, event.error().reason);
      return cut();
    }
    if (!*event) return;
    if (const auto* const message = std::get_if<websocket::Message>(&**event)) {
      owner_.on_message(*this, message->payload, message->kind);
    } else if (const auto* const ping = std::get_if<websocket::Ping>(&**event)) {
      websocket::append_pong(ping->payload, mask(), out_);
    } else if (const auto* const pong = std::get_if<websocket::Pong>(&**event)) {
      owner_.on_pong(*this, pong->payload);
    } else if (const auto* const close = std::get_if<websocket::Close>(&**event)) {
      close_ = WireEnd{static_cast<std::uint16_t>(close->code), std::string{close->reason}, false};
      if (!has_closed_) websocket::append_close(close->code, {}, mask(), out_);
      flush();
      if (!is_ended_) stream_.finish();
      return end(*close_);
    }
    if (is_stalled_) {
      static_cast<void>(reader_.take_input());
      return;
    }
  }
}

void Wire::write(BytesView bytes) {
  if (is_ended_) return;
  out_.append(bytes);
  flush();
}

void Wire::send_message(BytesView payload, MessageKind kind) {
  if (is_ended_) return;
  if (kind == MessageKind::Text) {
    websocket::append_text(payload, mask(), out_);
  } else {
    websocket::append_binary(payload, mask(), out_);
  }
  flush();
}

void Wire::send_frame(websocket::FrameHeader header, BytesView payload, bool masked) {
  if (is_ended_) return;
  header.mask =
      masked ? websocket::Mask{websocket::MaskKey::from(loop_.buffers().random_word())} : std::nullopt;
  websocket::append_frame(header, payload, out_);
  flush();
}

void Wire::send_ping(BytesView payload) {
  if (is_ended_) return;
  websocket::append_ping(payload, mask(), out_);
  flush();
}

void Wire::send_close(std::uint16_t code, std::string_view reason) {
  if (is_ended_) return;
  has_closed_ = true;
  websocket::append_close(static_cast<websocket::CloseCode>(code), reason, mask(), out_);
  flush();
}

void Wire::cut() {
  if (is_ended_) return;
  stream_.reset_when_closed();
  end({std::nullopt, "the runner cut it", true});
}

void Wire::finish() {
  if (is_ended_) return;
  flush();
  if (!is_ended_) stream_.finish();
}

void Wire::stall(bool stalled) {
  is_stalled_ = stalled;
  if (!stalled && !is_ended_) stream_.wait_readable();
}

void Wire::flush() {
  if (is_ended_ || !stream_.is_ready() || (out_.empty() && stream_.unsent_bytes() == 0)) return;
  const auto written = stream_.write(out_);
  out_.erase(0, written.bytes);
  if (written.state == SocketStream::WriteState::Blocked) stream_.wait_writable();
  // A peer that does not read gets nothing more; how it ends is told by the reading side.
  if (written.state == SocketStream::WriteState::Failed || out_.size() > kUnsentBytesMax) out_.clear();
}

void Wire::end(WireEnd end) {
  if (std::exchange(is_ended_, true)) return;
  owner_.on_end(*this, end);
}

websocket::Mask Wire::mask() {
  if (!is_client()) return std::nullopt;
  return websocket::MaskKey::from(loop_.buffers().random_word());
}

}  // namespace windlass::conformance
