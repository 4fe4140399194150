// Bytes from the peer to WebSocket events. Pure: the caller owns the socket and its read buffer.
//
//   reader.handle_bytes(input);                        // any number of bytes, cut anywhere
//   for (;;) {
//     auto event = reader.poll_event();
//     if (!event) { send close(reader.failure_code()), then drop the connection; break; }
//     if (!*event) break;                              // the input is used up; read more
//     ... act on **event before the next call ...
//   }
//
// One frame is parsed per poll, so a limit raised while handling one message already counts for the next.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "protocol/base/bytes.h"
#include "protocol/base/limits.h"
#include "protocol/base/result.h"
#include "protocol/base/utf8.h"
#include "protocol/websocket/frame.h"
#include "protocol/websocket/mask.h"

namespace windlass::websocket {

// Views in events point into the caller's input when a whole unfragmented frame lies there (it is unmasked in
// place, nothing is copied or allocated) and into the reader otherwise. Either way they hold until the next
// poll_event, and no longer than the caller leaves its input buffer alone.
struct Message {
  MessageKind kind = MessageKind::Text;
  BytesView payload;  // of Text: valid UTF-8
};

struct Ping {
  BytesView payload;  // to be echoed in a pong
};

struct Pong {
  BytesView payload;
};

// The last event: whatever follows a close is ignored.
struct Close {
  CloseCode code = CloseCode::NoStatus;
  BytesView reason;  // valid UTF-8
};

using ReadEvent = std::variant<Message, Ping, Pong, Close>;

struct ReaderLimits {
  std::size_t message_bytes_max = limits::kFrameBytesBeforeAuthMax;  // over all fragments together
  std::size_t fragments_max = limits::kFragmentsMax;                 // frames of one message, empty ones too
};

class FrameReader {
 public:
  // `side` is ours: a server's reader demands masked frames, a client's refuses them.
  explicit FrameReader(Side side, ReaderLimits limits = {}) : limits_(limits), side_(side) {}

  // The bytes stay the caller's and are changed in place (unmasked) until poll_event returned no event or an
  // error. The previous input must be used up or taken back.
  void handle_bytes(std::span<char> input);

  // An event; none when the input is used up; or the peer's mistake (ProtoWebSocket, LimitFrame), which is
  // final: every further poll repeats it.
  Result<std::optional<ReadEvent>> poll_event();

  // What a close frame must say after poll_event returned an error.
  CloseCode failure_code() const;

  // Takes back the input that no event was made of yet, for an owner that must pause in the middle.
  std::span<char> take_input();

  // Frames whose header was not parsed yet must keep the new limit; a lower one also ends a message in
  // progress that its next fragment would take past it.
  void set_message_bytes_max(std::size_t bytes) { limits_.message_bytes_max = bytes; }

  bool is_closed() const { return state_ == State::Closed; }       // a close frame was read
  std::size_t buffer_bytes() const { return buffer_.capacity(); }  // heap memory held between calls

 private:
  enum class State : std::uint8_t { Header, Payload, Closed, Failed };

  bool read_header();
  bool begin_frame(const char* head);
  bool check_flags(unsigned char first, unsigned char second);
  bool check_message_length(std::uint64_t length);
  void begin_data_frame();
  void read_control(std::optional<ReadEvent>& event);
  void finish_control(BytesView payload, std::optional<ReadEvent>& event);
  void finish_close(BytesView payload, std::optional<ReadEvent>& event);
  void read_data(std::optional<ReadEvent>& event);
  void read_part(std::optional<ReadEvent>& event);
  bool unmask(std::span<char> bytes);
  void fail_utf8();
  void fail(ErrorCode code, CloseCode close, const char* reason, SourceLine where = SourceLine::here());

  std::span<char> input_;        // not used yet
  std::uint64_t remaining_ = 0;  // payload bytes of this frame still to come
  ReaderLimits limits_;
  std::size_t fragments_ = 0;  // frames of the message in progress; 0 between messages
  Bytes buffer_;               // the message in progress, or the one just handed out
  std::optional<Error> failure_;
  CloseCode failure_code_ = CloseCode::ProtocolError;
  MaskKey key_;
  Utf8Checker utf8_;  // between characters whenever a message begins, or the last one had failed
  Side side_;
  State state_ = State::Header;
  Opcode opcode_ = Opcode::Continuation;  // of this frame
  MessageKind kind_ = MessageKind::Text;  // of the message in progress
  bool final_ = false;
  bool handed_out_ = false;                     // the last event views buffer_
  std::uint8_t header_size_ = 0;                // bytes in header_
  std::uint8_t control_size_ = 0;               // bytes in control_
  std::array<char, kHeaderBytesMax> header_;    // a header cut by the end of the input
  std::array<char, kControlBytesMax> control_;  // a control payload cut so; may come between fragments
};

}  // namespace windlass::websocket
