#include "tests/support/websocket_differential.h"

#include <iterator>
#include <sstream>

#include "protocol/websocket/writer.h"
#include "tests/support/beast_oracle.h"
#include "tests/support/websocket_outcome.h"

namespace windlass::support {
namespace {

using websocket::Opcode;
using websocket::Side;

// Small, so that short inputs reach it. Fragments are not counted: Beast does not.
constexpr websocket::ReaderLimits kLimits{.message_bytes_max = 3000, .fragments_max = SIZE_MAX};

// Whether what Beast said is what we mean it to say where we differ from it on purpose.
bool is_intended(const Outcome& ours, const Outcome& beast) {
  const auto same_before = [](const Outcome& a, const Outcome& b) {  // a's events are b's without the last
    return b.events.size() == a.events.size() + 1 &&
           std::equal(a.events.begin(), a.events.end(), b.events.begin());
  };
  // 1. A close reason that is not UTF-8 is InvalidPayload (1007) for us, a protocol error (1002) for Beast.
  if (ours.why == "close reason is not UTF-8") {
    return ours.failure == 1007 && beast.failure == 1002 && ours.events == beast.events;
  }
  // 2. Close codes above 4999 are undefined; Beast takes them.
  if (ours.why == "close code may not be sent" && !beast.failure && same_before(ours, beast)) {
    return beast.events.back().kind == Seen::Kind::Close && beast.events.back().close_code >= 5000;
  }
  // 3. Close code 1014 (bad gateway) was registered after the RFC; Beast still refuses it.
  if (!ours.failure && beast.failure == 1002 && same_before(beast, ours)) {
    return ours.events.back().kind == Seen::Kind::Close && ours.events.back().close_code == 1014;
  }
  // 4. A length with its top bit set is malformed for us (RFC 6455, 5.2) and only too big for Beast.
  if (ours.why == "frame length has its top bit set") {
    return ours.failure == 1002 && beast.failure == 1009 && ours.events == beast.events;
  }
  // 5. Beast does not look at the end of a text whose last fragment is empty, and so delivers text that ends
  //    inside a character. What it says afterwards counts for nothing.
  if (ours.why == "text is not UTF-8" && beast.events.size() > ours.events.size()) {
    const Seen& wrong = beast.events[ours.events.size()];
    return std::equal(ours.events.begin(), ours.events.end(), beast.events.begin()) &&
           wrong.kind == Seen::Kind::Text && !is_utf8(wrong.payload);
  }
  return false;
}

std::string describe(Side side, const char* who, const Outcome& a, const char* other, const Outcome& b) {
  std::ostringstream out;
  out << (side == Side::Server ? "server" : "client") << "\n  " << who << ": " << a << "\n  " << other << ": "
      << b;
  return out.str();
}

}  // namespace

std::optional<std::string> disagreement(Side side, std::string_view bytes, std::uint64_t seed) {
  const Outcome whole = read_all(side, bytes, kLimits);
  Random random{seed};
  for (const std::size_t piece_max : {std::size_t{1}, std::size_t{8}, 1 + bytes.size()}) {
    const Outcome pieces = read_in_pieces(side, bytes, piece_max, random, kLimits);
    if (pieces != whole) return describe(side, "whole", whole, "in pieces", pieces);
  }
  Outcome beast = read_with_beast(side, bytes, kLimits.message_bytes_max);
  if (whole.failure && !beast.failure) {
    // We refuse a header from its first two bytes, Beast when it has come whole. Let it come whole.
    const Outcome later = read_with_beast(
        side, std::string{bytes} + std::string(websocket::kHeaderBytesMax, '\0'), kLimits.message_bytes_max);
    if (later.events == beast.events) beast = later;
  }
  if (whole == beast || is_intended(whole, beast)) return std::nullopt;
  return describe(side, "windlass", whole, "beast", beast);
}

namespace {

Bytes random_payload(bool text, std::size_t size, Random& random) {
  static constexpr const char* kCharacters[] = {"a", "\"key\":1,", "\xC3\xA9", "\xE2\x82\xAC",
                                                "\xF0\x9F\x98\x80"};
  Bytes payload;
  while (payload.size() < size) {
    if (text) {
      payload += kCharacters[random.below(std::size(kCharacters))];
    } else {
      payload += static_cast<char>(random.next());
    }
  }
  return payload;
}

std::size_t random_size(Random& random) {
  switch (random.below(8)) {
    case 0:
      return random.below(4000);
    case 1:
      return 124 + random.below(4);
    case 2:
      return 0;
    default:
      return random.below(40);
  }
}

void append_close_frame(websocket::FrameHeader header, Random& random, Bytes& out) {
  static constexpr unsigned kCodes[] = {999,  1000, 1001, 1003, 1004, 1005, 1006, 1007, 1011, 1013,
                                        1014, 1015, 1016, 2999, 3000, 3999, 4000, 4999, 5000, 65535};
  const unsigned code = kCodes[random.below(std::size(kCodes))];
  Bytes body{static_cast<char>(code >> 8U), static_cast<char>(code)};
  body += random_payload(random.one_in(2), random.below(20), random);
  if (random.one_in(4)) body.resize(random.below(3));
  header.opcode = Opcode::Close;
  append_frame(header, body, out);
}

// One header field made wrong.
void spoil(websocket::FrameHeader& header, Random& random) {
  switch (random.below(6)) {
    case 0:
      header.reserved_bits = static_cast<std::uint8_t>(random.below(8));
      break;
    case 1:
      header.opcode = static_cast<Opcode>(random.below(16));
      break;
    case 2:
      header.final = !header.final;
      break;
    case 3:
      header.mask = header.mask ? websocket::Mask{} : websocket::MaskKey{};
      break;
    case 4:
      header.length_form = static_cast<websocket::LengthForm>(random.below(4));
      break;
    default:
      header.length = random.next() >> random.below(64);
  }
}

void damage(Bytes& stream, Random& random) {
  for (std::uint64_t i = random.below(4); i-- > 0 && !stream.empty();) {
    const std::size_t at = random.below(stream.size());
    switch (random.below(4)) {
      case 0:
        stream[at] = static_cast<char>(static_cast<unsigned>(stream[at]) ^ (1U << random.below(8)));
        break;
      case 1:
        stream[at] = static_cast<char>(random.next());
        break;
      case 2:
        stream.erase(at, 1 + random.below(4));
        break;
      default:
        stream.resize(at);
    }
  }
}

}  // namespace

Bytes damaged_stream(Side side, Random& random) {
  Bytes stream;
  bool fragmented = false;
  bool text = false;
  for (std::uint64_t frames = 1 + random.below(8); frames-- > 0;) {
    websocket::FrameHeader header;
    if (side == Side::Server)
      header.mask = websocket::MaskKey::from(static_cast<std::uint32_t>(random.next()));
    const std::uint64_t kind = random.below(8);
    if (kind == 0 && frames == 0) {
      append_close_frame(header, random, stream);
      continue;
    }
    if (kind <= 1) {
      header.opcode = random.one_in(2) ? Opcode::Ping : Opcode::Pong;
      append_frame(header, random_payload(false, random.below(126), random), stream);
      continue;
    }
    if (!fragmented) text = !random.one_in(3);
    header.opcode = fragmented ? Opcode::Continuation : text ? Opcode::Text : Opcode::Binary;
    header.final = !random.one_in(3);
    fragmented = !header.final;
    Bytes payload = random_payload(text, random_size(random), random);
    if (text && random.one_in(6) && !payload.empty()) payload.pop_back();
    if (random.one_in(20)) spoil(header, random);
    append_frame(header, payload, stream);
  }
  if (random.one_in(2)) damage(stream, random);
  return stream;
}

}  // namespace windlass::support
