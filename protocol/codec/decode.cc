// The only file that sees the JSON parser. It owns the order of decoding: size, split, grammar, envelope,
// payload.
#include "protocol/codec/decode.h"

#include <simdjson.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "protocol/base/big_endian.h"
#include "protocol/base/check.h"
#include "protocol/codec/tape_reader.h"
#include "protocol/codec/validators.h"

namespace windlass {
namespace {

constexpr std::size_t kCapacityMin = 1024;

}  // namespace

struct Decoder::Impl {
  const Frame* decode(BytesView message, MessageKind kind, Expect expect);
  bool parse(BytesView envelope);
  const Frame* read(Revision as, MessageKind kind, BytesView attachment);
  const Frame* read_handshake(MessageKind kind, BytesView attachment);
  bool read_head(Revision as, MessageKind kind, BytesView attachment);
  bool read_attachment(MessageKind kind, BytesView attachment);
  const Frame* read_any(MessageKind kind, BytesView attachment);
  const Frame* refuse(ErrorCode code, const char* reason);
  const Frame* refuse_frame();
  void grow(std::size_t bytes);

  // Finds a member of the document's root, or of its payload.
  bool find(std::string_view name);
  std::string_view find_string(std::string_view name);
  std::optional<std::uint64_t> find_protocol();

  simdjson::dom::parser parser;
  std::unique_ptr<char[]> padded;  // the parser reads up to SIMDJSON_PADDING bytes beyond the text
  std::size_t capacity = 0;
  codec::ParsedText document;
  codec::DecodedFrame frame;
  Violation violation;
  std::size_t frame_bytes_max = limits::kFrameBytesMax;
  codec::TapeReader reader{violation};
};

Decoder::Decoder() : impl_(std::make_unique<Impl>()) {}
Decoder::~Decoder() = default;

const Frame* Decoder::decode(BytesView message, MessageKind kind, Expect expect) {
  return impl_->decode(message, kind, expect);
}
const Violation& Decoder::violation() const {
  return impl_->violation;
}
void Decoder::set_frame_bytes_max(std::size_t bytes) {
  impl_->frame_bytes_max = bytes;
}

const Frame* Decoder::Impl::decode(BytesView message, MessageKind kind, Expect expect) {
  //= LIM-1
  if (message.size() > frame_bytes_max) return refuse(ErrorCode::LimitFrame, "is larger than a frame may be");
  BytesView envelope = message;
  BytesView attachment;
  if (kind == MessageKind::Binary) {
    const std::size_t rest = message.size() - std::min(message.size(), kEnvelopeLengthBytes);
    if (message.size() < kEnvelopeLengthBytes || big_endian(message.substr(0, kEnvelopeLengthBytes)) > rest) {
      return refuse(ErrorCode::ProtoJson, "ends before the envelope that its first 4 bytes announce");
    }
    //= ATT-1
    envelope = message.substr(kEnvelopeLengthBytes, big_endian(message.substr(0, kEnvelopeLengthBytes)));
    attachment = message.substr(kEnvelopeLengthBytes + envelope.size());
  }
  if (!parse(envelope)) return nullptr;
  switch (expect) {
    case Expect::RevisionOne:
      return read(Revision::One, kind, attachment);
    case Expect::RevisionTwo:
      return read(Revision::Two, kind, attachment);
    case Expect::Any:
      break;
  }
  return read_any(kind, attachment);
}

bool Decoder::Impl::parse(BytesView envelope) {
  if (envelope.size() > capacity) grow(envelope.size());
  std::copy(envelope.begin(), envelope.end(), padded.get());
  constexpr bool kCopyAgain = false;
  const auto parsed = parser.parse(padded.get(), envelope.size(), kCopyAgain);
  if (parsed.error() != simdjson::SUCCESS) {
    //= ENV-10
    refuse(ErrorCode::ProtoJson, simdjson::error_message(parsed.error()));
    return false;
  }
  // Strings live in the parser's memory; objects handed on as text are slices of what came.
  document = {parser.doc.tape.get(), parser.doc.string_buf.get(),
              parser.implementation->structural_indexes.get(), parser.implementation->n_structural_indexes,
              envelope.data()};
  reader.start(document);
  if (reader.is_object()) return true;
  reader.reject("must be an object");
  violation.frame_id.clear();
  violation.frame_type.clear();
  return false;
}

// Before anything is known of the peer. What it says first decides: the protocol a handshake names; a resume
// comes first in revision 1 only. For the rest revision 2 is ours, so its violations are the ones reported.
const Frame* Decoder::Impl::read_any(MessageKind kind, BytesView attachment) {
  const std::string_view type = find_string("type");
  if (type == "control.handshake") return read_handshake(kind, attachment);
  //= REV-6
  if (type == "control.resume") {
    if (const Frame* one = read(Revision::One, kind, attachment)) return one;
  }
  if (const Frame* two = read(Revision::Two, kind, attachment)) return two;
  Violation of_two = violation;
  if (const Frame* one = read(Revision::One, kind, attachment)) return one;
  violation = std::move(of_two);
  return nullptr;
}

// The payload of a revision that is not spoken here has rules that are not known here; its envelope is read
// by ours, so that the answer can name whom it is for.
const Frame* Decoder::Impl::read_handshake(MessageKind kind, BytesView attachment) {
  const std::optional<std::uint64_t> protocol = find_protocol();
  if (protocol == 1U) return read(Revision::One, kind, attachment);
  if (!protocol || protocol == 2U || *protocol > limits::kIntegerMax) {
    return read(Revision::Two, kind, attachment);
  }
  if (!read_head(Revision::Two, kind, attachment)) return refuse_frame();
  //= HSK-2
  Handshake unspoken;
  unspoken.protocol = *protocol;
  frame.body = unspoken;
  return &frame;
}

const Frame* Decoder::Impl::read(Revision as, MessageKind kind, BytesView attachment) {
  if (!read_head(as, kind, attachment)) return refuse_frame();
  reader.go_to(frame.payload);
  if (!frame.type.starts_with("control.")) {
    //= ENV-3, ATT-3
    Data& data = frame.body.emplace<Data>(Data{frame.type, reader.raw(), std::nullopt});
    if (frame.attachment_bytes) data.attachment = Attachment{frame.attachment_type, attachment};
  } else {
    switch (codec::read_payload(reader, as, frame)) {
      case codec::PayloadRead::Known:
        break;
      case codec::PayloadRead::NotKnown:
        //= ENV-11
        frame.body = UnknownControl{frame.type};
        break;
      case codec::PayloadRead::Refused:
        return refuse_frame();
    }
  }
  return &frame;
}

// All but the payload.
inline bool Decoder::Impl::read_head(Revision as, MessageKind kind, BytesView attachment) {
  if (as == Revision::One && kind == MessageKind::Binary) {
    return reader.reject("revision 1 has no binary messages");
  }
  frame.revision = as;
  frame.corr = {};
  frame.seq.reset();
  frame.ack_for = {};
  frame.ack_request = false;
  frame.flags.clear();
  frame.ext = {};
  frame.attachment_bytes.reset();
  reader.start(document);
  //= ENV-2
  return codec::read_envelope(reader, as, frame) && read_attachment(kind, attachment);
}

bool Decoder::Impl::read_attachment(MessageKind kind, BytesView attachment) {
  //= ATT-2
  if (!frame.attachment_bytes) {
    if (kind == MessageKind::Text) return true;
    return reader.reject("attachment", "is required in a binary message");
  }
  if (kind == MessageKind::Text) return reader.reject("attachment", "travels in a binary message only");
  if (*frame.attachment_bytes == attachment.size()) return true;
  reader.reject("bytes", "must equal the number of bytes behind the envelope");
  return reader.within("attachment");
}

const Frame* Decoder::Impl::refuse(ErrorCode code, const char* reason) {
  violation = {code, {}, reason, {}, {}};
  return nullptr;
}

// After the document was parsed: says whose fault it is as far as it can be read.
const Frame* Decoder::Impl::refuse_frame() {
  // What an answer may quote: an ack that names the frame must be valid itself.
  const auto readable = [](std::string_view text, std::size_t bytes_max) {
    const bool quotable =
        text.size() <= bytes_max && std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
    return quotable ? text : std::string_view{};
  };
  violation.frame_id = readable(find_string("id"), limits::kIdBytesMax);
  violation.frame_type = readable(find_string("type"), limits::kTypeBytesMax);
  return nullptr;
}

void Decoder::Impl::grow(std::size_t bytes) {
  capacity = std::bit_ceil(std::max(bytes, kCapacityMin));
  padded = std::make_unique<char[]>(capacity + simdjson::SIMDJSON_PADDING);
  CHECK(parser.doc.allocate(capacity) == simdjson::SUCCESS);
  // The parser counts the document as a level of its own.
  CHECK(parser.allocate(capacity, limits::kNestingDepthMax + 1) == simdjson::SUCCESS);
}

bool Decoder::Impl::find(std::string_view name) {
  for (bool more = reader.enter(); more; more = reader.next()) {
    if (reader.key() == name) return true;
    reader.skip();
  }
  return false;
}

std::string_view Decoder::Impl::find_string(std::string_view name) {
  reader.start(document);
  return find(name) && reader.is_string() ? reader.string() : std::string_view{};
}

// Of a handshake that can be read that far; not negative.
std::optional<std::uint64_t> Decoder::Impl::find_protocol() {
  reader.start(document);
  if (!find("payload") || !reader.is_object() || !find("protocol")) return std::nullopt;
  if (!reader.is_integer() || reader.is_negative()) return std::nullopt;
  return reader.integer();
}

}  // namespace windlass
