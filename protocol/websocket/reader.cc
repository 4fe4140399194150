#include "protocol/websocket/reader.h"

#include <algorithm>
#include <cstring>

#include "protocol/base/big_endian.h"

namespace windlass::websocket {
namespace {

// Kept between messages so that a steady stream cut at buffer ends does not allocate; more is given back, so
// that an idle connection stays small.
constexpr std::size_t kBufferKeptBytes = 4096;

constexpr std::size_t kLengthMask = 0x7F;
constexpr unsigned kMaskBit = 0x80;

std::size_t header_bytes(unsigned char second) {
  const std::size_t length = second & kLengthMask;
  const std::size_t extended = length == 126 ? 2 : length == 127 ? 8 : 0;
  return 2 + extended + ((second & kMaskBit) != 0 ? 4 : 0);
}

bool is_control(Opcode opcode) {
  return static_cast<unsigned>(opcode) >= 0x8;
}

BytesView view(std::span<const char> bytes) {
  return {bytes.data(), bytes.size()};
}

}  // namespace

void FrameReader::handle_bytes(std::span<char> input) {
  CHECK(input_.empty());
  if (state_ == State::Header || state_ == State::Payload) input_ = input;
}

std::span<char> FrameReader::take_input() {
  return std::exchange(input_, {});
}

CloseCode FrameReader::failure_code() const {
  CHECK(state_ == State::Failed);
  return failure_code_;
}

Result<std::optional<ReadEvent>> FrameReader::poll_event() {
  if (handed_out_) {
    handed_out_ = false;
    buffer_.clear();
    if (buffer_.capacity() > kBufferKeptBytes) Bytes{}.swap(buffer_);
  }
  // Events are built where the caller reads them: copying a fresh one costs more than the rest of a poll.
  Result<std::optional<ReadEvent>> result{std::optional<ReadEvent>{}};
  std::optional<ReadEvent>& event = *result;
  for (;;) {
    if (state_ == State::Header && !read_header()) break;
    if (state_ != State::Payload) break;
    if (is_control(opcode_)) {
      read_control(event);
    } else {
      read_data(event);
    }
    if (event || state_ == State::Payload) break;  // made, or the rest of the payload has not come yet
  }
  if (failure_) result = *failure_;
  return result;
}

// Takes a whole header, usually straight from the input; false when it is not all there yet or is refused.
bool FrameReader::read_header() {
  if (header_size_ == 0 && input_.size() >= 2) {
    const std::size_t size = header_bytes(static_cast<unsigned char>(input_[1]));
    if (input_.size() >= size) {
      const char* head = input_.data();
      input_ = input_.subspan(size);
      return begin_frame(head);
    }
  }
  while (!input_.empty()) {
    header_[header_size_++] = input_.front();
    input_ = input_.subspan(1);
    if (header_size_ < 2) continue;
    const auto first = static_cast<unsigned char>(header_[0]);
    const auto second = static_cast<unsigned char>(header_[1]);
    if (header_size_ == 2 && !check_flags(first, second)) return false;
    if (header_size_ == header_bytes(second)) {
      header_size_ = 0;
      return begin_frame(header_.data());
    }
  }
  return false;
}

// `head` holds a whole header. Everything it can get wrong is refused here, before any payload is kept.
bool FrameReader::begin_frame(const char* head) {
  const auto first = static_cast<unsigned char>(head[0]);
  const auto second = static_cast<unsigned char>(head[1]);
  if (!check_flags(first, second)) return false;

  const char* at = head + 2;
  std::uint64_t length = second & kLengthMask;
  if (length >= 126) {
    const bool wide = length == 127;
    length = big_endian({at, wide ? 8U : 2U});
    at += wide ? 8 : 2;
    if ((length >> 63U) != 0) {
      fail(ErrorCode::ProtoWebSocket, CloseCode::ProtocolError, "frame length has its top bit set");
      return false;
    }
    if (length < (wide ? 0x10000U : 126U)) {
      fail(ErrorCode::ProtoWebSocket, CloseCode::ProtocolError, "frame length is not in its shortest form");
      return false;
    }
  }
  opcode_ = static_cast<Opcode>(first & 0x0FU);
  final_ = (first & 0x80U) != 0;
  if (!is_control(opcode_)) {
    if (!check_message_length(length)) return false;
    begin_data_frame();
  }
  if (side_ == Side::Server) std::memcpy(key_.bytes.data(), at, key_.bytes.size());
  remaining_ = length;
  state_ = State::Payload;
  return true;
}

// What the first two bytes of a header can get wrong.
bool FrameReader::check_flags(unsigned char first, unsigned char second) {
  const char* wrong = nullptr;
  const auto opcode = static_cast<Opcode>(first & 0x0FU);
  //= TRN-3
  if ((first & 0x70U) != 0) {
    wrong = "reserved bits are set";
  } else if (((second & kMaskBit) != 0) != (side_ == Side::Server)) {
    wrong = side_ == Side::Server ? "client frame is not masked" : "server frame is masked";
  } else {
    switch (opcode) {
      case Opcode::Continuation:
        if (fragments_ == 0) wrong = "continuation without a message to continue";
        break;
      case Opcode::Text:
      case Opcode::Binary:
        if (fragments_ != 0) wrong = "new message inside a fragmented one";
        break;
      case Opcode::Close:
      case Opcode::Ping:
      case Opcode::Pong:
        if ((first & 0x80U) == 0) {
          wrong = "control frame is fragmented";
        } else if ((second & kLengthMask) > kControlBytesMax) {
          wrong = "control frame is longer than 125 bytes";
        }
        break;
      default:
        wrong = "opcode is reserved";
    }
  }
  if (wrong == nullptr) return true;
  fail(ErrorCode::ProtoWebSocket, CloseCode::ProtocolError, wrong);
  return false;
}

bool FrameReader::check_message_length(std::uint64_t length) {
  const std::size_t held = buffer_.size();  // fragments so far; the buffer is empty between messages
  //= TRN-5
  if (held > limits_.message_bytes_max || length > limits_.message_bytes_max - held) {
    fail(ErrorCode::LimitFrame, CloseCode::TooBig, "message is larger than allowed");
    return false;
  }
  if (fragments_ >= limits_.fragments_max) {
    fail(ErrorCode::LimitFrame, CloseCode::TooBig, "message has more fragments than allowed");
    return false;
  }
  return true;
}

void FrameReader::begin_data_frame() {
  if (++fragments_ > 1) return;
  kind_ = opcode_ == Opcode::Text ? MessageKind::Text : MessageKind::Binary;
}

void FrameReader::read_control(std::optional<ReadEvent>& event) {
  if (control_size_ == 0 && input_.size() >= remaining_) {
    const auto payload = input_.first(remaining_);
    input_ = input_.subspan(remaining_);
    unmask(payload);
    return finish_control(view(payload), event);
  }
  const std::size_t taken = std::min<std::size_t>(remaining_, input_.size());
  std::copy_n(input_.begin(), taken, control_.begin() + control_size_);
  input_ = input_.subspan(taken);
  control_size_ = static_cast<std::uint8_t>(control_size_ + taken);
  remaining_ -= taken;
  if (remaining_ > 0) return;
  const auto payload = std::span<char>{control_}.first(control_size_);
  control_size_ = 0;
  unmask(payload);
  return finish_control(view(payload), event);
}

void FrameReader::finish_control(BytesView payload, std::optional<ReadEvent>& event) {
  state_ = State::Header;
  switch (opcode_) {
    case Opcode::Ping:
      event = Ping{payload};
      break;
    case Opcode::Pong:
      event = Pong{payload};
      break;
    default:
      finish_close(payload, event);
  }
}

void FrameReader::finish_close(BytesView payload, std::optional<ReadEvent>& event) {
  Close close;
  if (payload.size() == 1) {
    return fail(ErrorCode::ProtoWebSocket, CloseCode::ProtocolError, "close frame has half a code");
  }
  if (payload.size() >= 2) {
    close.code = static_cast<CloseCode>(big_endian(payload.substr(0, 2)));
    close.reason = payload.substr(2);
    if (!is_sendable(close.code)) {
      return fail(ErrorCode::ProtoWebSocket, CloseCode::ProtocolError, "close code may not be sent");
    }
    if (!is_utf8(close.reason)) {
      return fail(ErrorCode::ProtoWebSocket, CloseCode::InvalidPayload, "close reason is not UTF-8");
    }
  }
  state_ = State::Closed;
  input_ = {};
  event = close;
}

void FrameReader::read_data(std::optional<ReadEvent>& event) {
  const bool whole = final_ && fragments_ == 1 && buffer_.empty() && input_.size() >= remaining_;
  if (!whole) return read_part(event);

  const auto payload = input_.first(remaining_);
  input_ = input_.subspan(remaining_);
  state_ = State::Header;
  fragments_ = 0;
  const bool ascii = unmask(payload);
  if (kind_ == MessageKind::Text && !ascii && !is_utf8(view(payload))) return fail_utf8();
  event = Message{kind_, view(payload)};
}

// A fragment, or a frame that the end of the input cuts: checked and kept as far as it came.
void FrameReader::read_part(std::optional<ReadEvent>& event) {
  const std::size_t taken = std::min<std::size_t>(remaining_, input_.size());
  const auto bytes = input_.first(taken);
  input_ = input_.subspan(taken);
  remaining_ -= taken;
  const bool ascii = unmask(bytes);
  key_ = key_.rotated(taken);
  if (kind_ == MessageKind::Text) {
    const bool plain = ascii && utf8_.is_complete();
    //= TRN-4
    if (!plain && !utf8_.handle_bytes(view(bytes))) return fail_utf8();
  }
  // Grows with what arrived and never with what a header announces: a peer pays for memory with bytes.
  buffer_.append(bytes.data(), bytes.size());
  if (remaining_ > 0) return;

  state_ = State::Header;
  if (!final_) return;
  if (kind_ == MessageKind::Text && !utf8_.is_complete()) return fail_utf8();
  fragments_ = 0;
  handed_out_ = true;
  event = Message{kind_, buffer_};
}

// Returns whether the bytes are known to be ASCII; a client's reader has nothing to unmask and does not look.
bool FrameReader::unmask(std::span<char> bytes) {
  return side_ == Side::Server && apply_mask(bytes, key_);
}

void FrameReader::fail_utf8() {
  fail(ErrorCode::ProtoWebSocket, CloseCode::InvalidPayload, "text is not UTF-8");
}

void FrameReader::fail(ErrorCode code, CloseCode close, const char* reason, SourceLine where) {
  state_ = State::Failed;
  failure_.emplace(code, Blame::Peer, reason, where);
  failure_code_ = close;
  input_ = {};
  Bytes{}.swap(buffer_);
}

}  // namespace windlass::websocket
