// What became of a byte stream that a WebSocket end received: the events it saw and how it ended. Plain
// values, so that any cutting of the stream, and any other implementation, can be compared with ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "protocol/base/error_code.h"
#include "protocol/base/random.h"
#include "protocol/websocket/reader.h"

namespace windlass::support {

struct Seen {
  enum class Kind : std::uint8_t { Text, Binary, Ping, Pong, Close };
  Kind kind = Kind::Text;
  std::string payload;
  std::uint16_t close_code = 0;
  friend bool operator==(const Seen&, const Seen&) = default;
};

struct Outcome {
  std::vector<Seen> events;
  std::optional<std::uint16_t> failure;  // the close code the receiver answers the peer's mistake with
  std::string why;                       // for people; not compared
  friend bool operator==(const Outcome& a, const Outcome& b) {
    return a.events == b.events && a.failure == b.failure;
  }
};

inline std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  constexpr const char* kNames[] = {"text", "binary", "ping", "pong", "close"};
  for (const Seen& seen : outcome.events) {
    out << kNames[static_cast<std::size_t>(seen.kind)] << '(' << seen.payload.size() << " bytes";
    if (seen.kind == Seen::Kind::Close) out << ", " << seen.close_code;
    out << ") ";
  }
  if (outcome.failure) return out << "failed " << *outcome.failure << " (" << outcome.why << ')';
  return out << "no failure";
}

inline Seen copy_of(const websocket::ReadEvent& event) {
  using namespace websocket;
  if (const auto* message = std::get_if<Message>(&event)) {
    const bool text = message->kind == MessageKind::Text;
    return {text ? Seen::Kind::Text : Seen::Kind::Binary, std::string{message->payload}};
  }
  if (const auto* ping = std::get_if<Ping>(&event)) return {Seen::Kind::Ping, std::string{ping->payload}};
  if (const auto* pong = std::get_if<Pong>(&event)) return {Seen::Kind::Pong, std::string{pong->payload}};
  const auto& close = std::get<Close>(event);
  return {Seen::Kind::Close, std::string{close.reason}, static_cast<std::uint16_t>(close.code)};
}

// Feeds one piece and adds what comes of it; false once the reader failed. The piece is copied to memory of
// its exact size, so that address sanitizer sees a step past its end.
inline bool feed(websocket::FrameReader& reader, std::string_view piece, Outcome& outcome) {
  std::vector<char> input(piece.begin(), piece.end());
  reader.handle_bytes(input);
  for (;;) {
    const auto event = reader.poll_event();
    if (!event) {
      outcome.failure = static_cast<std::uint16_t>(reader.failure_code());
      outcome.why = event.error().reason;
      return false;
    }
    if (!*event) return true;
    outcome.events.push_back(copy_of(**event));
  }
}

inline Outcome read_all(websocket::Side side, std::string_view bytes, websocket::ReaderLimits limits = {}) {
  websocket::FrameReader reader{side, limits};
  Outcome outcome;
  feed(reader, bytes, outcome);
  return outcome;
}

inline Outcome read_in_two(websocket::Side side, std::string_view bytes, std::size_t cut,
                           websocket::ReaderLimits limits = {}) {
  websocket::FrameReader reader{side, limits};
  Outcome outcome;
  if (feed(reader, bytes.substr(0, cut), outcome)) feed(reader, bytes.substr(cut), outcome);
  return outcome;
}

// Pieces of 1 to `piece_max` bytes.
inline Outcome read_in_pieces(websocket::Side side, std::string_view bytes, std::size_t piece_max,
                              Random& random, websocket::ReaderLimits limits = {}) {
  websocket::FrameReader reader{side, limits};
  Outcome outcome;
  while (!bytes.empty()) {
    const std::size_t size = std::min<std::size_t>(bytes.size(), 1 + random.below(piece_max));
    if (!feed(reader, bytes.substr(0, size), outcome)) break;
    bytes.remove_prefix(size);
  }
  return outcome;
}

}  // namespace windlass::support
