#include "protocol/websocket/reader.h"

#include <algorithm>
#include <cstring>

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

std::uint64_t big_endian(const char* bytes, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < count; ++i) value = (value << 8U) | static_cast<unsigned char>(bytes[i]);
  return value;
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
  for (;;) {
    if (state_ == State::Header && !read_header()) break;
    if (state_ != State::Payload) break;
    auto event = is_control(opcode_) ? read_control() : read_data();
    if (event) return event;
    if (state_ == State::Payload) break;  // the rest of the payload has not come yet
  }
  if (failure_) return *failure_;
  return std::optional<ReadEvent>{};
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
    length = big_endian(at, wide ? 8 : 2);
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
  utf8_.reset();
}

std::optional<ReadEvent> FrameReader::read_control() {
  if (control_size_ == 0 && input_.size() >= remaining_) {
    const auto payload = input_.first(remaining_);
    input_ = input_.subspan(remaining_);
    unmask(payload);
    return control_event(view(payload));
  }
  const std::size_t taken = std::min<std::size_t>(remaining_, input_.size());
  std::copy_n(input_.begin(), taken, control_.begin() + control_size_);
  input_ = input_.subspan(taken);
  control_size_ = static_cast<std::uint8_t>(control_size_ + taken);
  remaining_ -= taken;
  if (remaining_ > 0) return std::nullopt;
  const auto payload = std::span<char>{control_}.first(control_size_);
  control_size_ = 0;
  unmask(payload);
  return control_event(view(payload));
}

std::optional<ReadEvent> FrameReader::control_event(BytesView payload) {
  state_ = State::Header;
  switch (opcode_) {
    case Opcode::Ping:
      return Ping{payload};
    case Opcode::Pong:
      return Pong{payload};
    default:
      return close_event(payload);
  }
}

std::optional<ReadEvent> FrameReader::close_event(BytesView payload) {
  Close close;
  if (payload.size() == 1) {
    return fail(ErrorCode::ProtoWebSocket, CloseCode::ProtocolError, "close frame has half a code");
  }
  if (payload.size() >= 2) {
    close.code = static_cast<CloseCode>(big_endian(payload.data(), 2));
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
  return close;
}

std::optional<ReadEvent> FrameReader::read_data() {
  const bool whole = final_ && fragments_ == 1 && buffer_.empty() && input_.size() >= remaining_;
  if (!whole) return read_part();

  const auto payload = input_.first(remaining_);
  input_ = input_.subspan(remaining_);
  state_ = State::Header;
  fragments_ = 0;
  const bool ascii = unmask(payload);
  if (kind_ == MessageKind::Text && !ascii && !is_utf8(view(payload))) return fail_utf8();
  return Message{kind_, view(payload)};
}

// A fragment, or a frame that the end of the input cuts: checked and kept as far as it came.
std::optional<ReadEvent> FrameReader::read_part() {
  const std::size_t taken = std::min<std::size_t>(remaining_, input_.size());
  const auto bytes = input_.first(taken);
  input_ = input_.subspan(taken);
  remaining_ -= taken;
  const bool ascii = unmask(bytes);
  key_ = key_.rotated(taken);
  if (kind_ == MessageKind::Text) {
    const bool plain = ascii && utf8_.is_complete();
    if (!plain && !utf8_.handle_bytes(view(bytes))) return fail_utf8();
  }
  append(view(bytes));
  if (remaining_ > 0) return std::nullopt;

  state_ = State::Header;
  if (!final_) return std::nullopt;
  if (kind_ == MessageKind::Text && !utf8_.is_complete()) return fail_utf8();
  fragments_ = 0;
  handed_out_ = true;
  return Message{kind_, buffer_};
}

// Returns whether the bytes are known to be ASCII; a client's reader has nothing to unmask and does not look.
bool FrameReader::unmask(std::span<char> bytes) {
  return side_ == Side::Server && apply_mask(bytes, key_);
}

// Grows with what arrived and never with what a header announces, so a peer pays for memory with bytes.
void FrameReader::append(BytesView bytes) {
  const std::size_t needed = buffer_.size() + bytes.size() + kPaddingBytes;
  if (buffer_.capacity() < needed) buffer_.reserve(std::max(needed, 2 * buffer_.capacity()));
  buffer_.append(bytes);
}

std::nullopt_t FrameReader::fail_utf8() {
  return fail(ErrorCode::ProtoWebSocket, CloseCode::InvalidPayload, "text is not UTF-8");
}

std::nullopt_t FrameReader::fail(ErrorCode code, CloseCode close, const char* reason, SourceLine where) {
  state_ = State::Failed;
  failure_.emplace(code, Blame::Peer, reason, where);
  failure_code_ = close;
  input_ = {};
  Bytes{}.swap(buffer_);
  return std::nullopt;
}

}  // namespace windlass::websocket
