// One WebSocket connection on one loop, from TLS handshake to the end of TCP. Owned by a ConnectionTable.
//
//   Tls -> Head -> Open -> Closing -> Lingering -> Ended
//
// Closing: our close frame is on its way and the peer's is awaited. Lingering: the owner was told the end;
// the peer gets time to read what we sent last. Any state may go straight to Ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "protocol/adapters/connection_events.h"
#include "protocol/adapters/event_loop.h"
#include "protocol/adapters/opening.h"
#include "protocol/adapters/opening_failure.h"
#include "protocol/adapters/readiness.h"
#include "protocol/adapters/socket_stream.h"
#include "protocol/base/limits.h"
#include "protocol/seams/transport.h"
#include "protocol/websocket/reader.h"
#include "protocol/websocket/writer.h"

namespace windlass {

class ConnectionTable;

struct ConnectionOptions {
  std::size_t message_bytes_max = limits::kFrameBytesBeforeAuthMax;  // until set_message_bytes_max
  std::size_t send_buffer_bytes_max = limits::kSendBufferBytesMax;
  Duration tls_deadline = limits::kHandshakeStage;
  Duration head_deadline = limits::kHandshakeStage;  // for the HTTP upgrade
  Duration close_deadline = limits::kCloseLinger;
  Duration stall_deadline = limits::kSendStall;  // for a peer that does not read
  Duration dead_link_after = limits::kDeadLink;  // for a peer that acknowledges or takes nothing; 0: for ever
};

// A connection on its way between two loops. Destroying it closes the socket.
struct DetachedConnection {
  ConnectionId id;
  websocket::Side side;
  SocketStream::Parts parts;
  PeerInfo peer;
  websocket::FrameReader reader;
  Bytes message;  // delivered again, first
  MessageKind kind;
  Bytes unread;  // input after it
  Bytes unsent;  // frames not written yet
};

class WebSocketConnection final : public Transport, private ReadinessEvents, private TimerTarget {
 public:
  struct Start {
    ConnectionId id;
    websocket::Side side;
    SocketStream::Parts parts;
    std::unique_ptr<Opening> opening;
    PeerInfo peer;
  };

  // `table` and `options` must outlive the connection.
  WebSocketConnection(Start start, const ConnectionOptions& options, ConnectionTable& table);
  WebSocketConnection(std::unique_ptr<DetachedConnection> detached, const ConnectionOptions& options,
                      ConnectionTable& table);

  // For the owner, from on_opened to on_closed.
  SendStatus send(BytesView message, MessageKind kind) override;
  void close(std::uint16_t code, std::string_view reason) override;
  void ping(BytesView payload);  // at most 125 bytes; the peer's pong is not reported
  void set_message_bytes_max(std::size_t bytes) override { reader_.set_message_bytes_max(bytes); }
  // Takes the connection off its loop, from inside on_message and with that call's arguments: the loop that
  // it is attached to begins with on_opened and the same message. Nothing more is reported here.
  std::unique_ptr<DetachedConnection> detach(BytesView message, MessageKind kind);

  ConnectionId id() const { return id_; }
  const PeerInfo& peer() const { return peer_; }
  std::size_t unsent_bytes() const { return out_.size() - out_used_ + stream_->unsent_bytes(); }

  // For the table.
  void start();
  void flush();                           // the Write phase of a turn in which it was corked
  void abandon(std::string_view reason);  // ends it at once; reported as usual
  void forget();                          // ends it at once; nothing is reported
  bool is_opening() const { return state_ == State::Tls || state_ == State::Head; }
  // It said enough for an answer of ours: its TLS handshake is under way, or behind it.
  bool was_answered() const { return stream_->tls() != nullptr && stream_->tls()->has_answered(); }
  bool is_ended() const { return state_ == State::Ended; }
  bool is_corked() const { return corked_; }
  bool is_client() const { return side_ == websocket::Side::Client; }
  bool was_open() const { return was_open_; }
  bool take_report();  // true once, when the owner is to be told
  CloseFacts facts() const;

 private:
  enum class State : std::uint8_t { Tls, Head, Open, Closing, Lingering, Ended };

  struct Record {
    std::uint16_t code = 0;
    CloseInitiator initiator = CloseInitiator::Network;
    std::string reason = {};
    std::uint16_t http_status = 0;
    std::optional<Duration> retry_after = std::nullopt;
    OpeningFailure opening = OpeningFailure::PeerLeft;  // of one that was still opening
  };

  static std::uint16_t number(websocket::CloseCode code) { return static_cast<std::uint16_t>(code); }

  void on_readable() override;
  void on_writable() override;
  void on_timer() override;

  void enter_head();
  void step_head(std::span<char>& bytes);
  void enter_open();
  void read_messages(std::span<char> bytes);
  void handle_event(const websocket::ReadEvent& event);
  void handle_close(const websocket::Close& close);
  void handle_end(SocketStream::ReadState state);
  void fail(websocket::CloseCode code, std::string_view reason);
  void write_out();
  void drop_output();
  void check_backlog();
  void cork();
  void linger();
  void end();
  void record(Record record);
  void report();
  void set_deadline(Duration after);
  websocket::Mask mask();

  ConnectionId id_;
  ConnectionTable& table_;
  const ConnectionOptions& options_;
  std::unique_ptr<SocketStream> stream_;
  std::unique_ptr<Opening> opening_;
  std::unique_ptr<Record> record_;                // how it ended, once it does
  std::unique_ptr<DetachedConnection> attached_;  // between construction and start()
  PeerInfo peer_;
  websocket::FrameReader reader_;
  LoopTimer timer_;
  Bytes out_;  // lent by the loop while it is not empty
  std::size_t out_used_ = 0;
  websocket::Side side_;
  State state_ = State::Tls;
  bool corked_ = false;
  bool blocked_ = false;        // the socket is full
  bool owes_writable_ = false;  // the owner was told that it is blocked
  bool write_failed_ = false;
  bool finished_ = false;  // our end of the stream is closed
  bool was_open_ = false;
  bool reported_ = false;
  bool report_due_ = false;
  bool detached_ = false;
};

}  // namespace windlass
