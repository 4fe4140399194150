// One connection as the runner sees it: TCP, perhaps TLS, an HTTP head each way, WebSocket frames. It sends
// anything, valid or not, and hands over whatever comes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "protocol/adapters/event_loop.h"
#include "protocol/adapters/socket_stream.h"
#include "protocol/websocket/reader.h"
#include "protocol/websocket/writer.h"

namespace windlass::conformance {

class Wire;

struct HttpHead {
  std::string first_line;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string text;
};

struct WireEnd {
  std::optional<std::uint16_t> code;  // of the peer's close frame; none: it ended without
  std::string reason;
  bool is_ours = false;  // the runner cut it
};

class WireOwner {
 public:
  virtual ~WireOwner() = default;
  virtual void on_head(Wire& wire, const HttpHead& head) = 0;
  virtual void on_message(Wire& wire, BytesView payload, MessageKind kind) = 0;
  virtual void on_pong(Wire& wire, BytesView payload) = 0;
  // The peer broke the rules of WebSocket.
  virtual void on_violation(Wire& wire, const std::string& what) = 0;
  // Once.
  virtual void on_end(Wire& wire, const WireEnd& end) = 0;
};

class Wire final : private ReadinessEvents {
 public:
  // `side` is the runner's. A client sends `request` once it may.
  Wire(EventLoop& loop, SocketStream::Parts parts, websocket::Side side, std::string request,
       WireOwner& owner);

  void begin_frames() { is_open_ = true; }  // the upgrade is done
  bool is_open() const { return is_open_; }
  bool is_ended() const { return is_ended_; }

  void write(BytesView bytes);
  void send_message(BytesView payload, MessageKind kind);
  void send_frame(websocket::FrameHeader header, BytesView payload, bool masked);
  void send_ping(BytesView payload);
  void send_close(std::uint16_t code, std::string_view reason);
  void cut();
  void finish();  // ours is said; what is unsent still leaves
  void stall(bool stalled);

  bool is_client() const { return side_ == websocket::Side::Client; }

 private:
  void on_readable() override;
  void on_writable() override { flush(); }
  void handle_head(std::span<char>& bytes);
  void handle_frames(std::span<char> bytes);
  void flush();
  void end(WireEnd end);
  websocket::Mask mask();

  EventLoop& loop_;
  SocketStream stream_;
  websocket::Side side_;
  websocket::FrameReader reader_;
  std::string request_;
  std::string head_;
  std::string out_;
  WireOwner& owner_;
  std::optional<WireEnd> close_;  // the peer's close frame, while TCP still stands
  bool is_open_ = false;
  bool is_ended_ = false;
  bool is_stalled_ = false;
  bool has_begun_ = false;
  bool has_closed_ = false;  // our close frame left
};

// Runs the loop until its time is over or the condition, asked at the end of each turn, holds.
bool run_until(EventLoop& loop, Instant deadline, const std::function<bool()>& condition);

}  // namespace windlass::conformance
