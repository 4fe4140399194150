// The vocabulary of RFC 6455 shared by the reader and the writer: sides, opcodes, close codes, header shape.
// No extension is ever negotiated, so the reserved bits have no meaning here.
#pragma once

#include <cstddef>
#include <cstdint>

namespace windlass::websocket {

// Which end of the connection *we* are. A client masks what it sends and a server does not.
enum class Side : std::uint8_t { Client, Server };

enum class Opcode : std::uint8_t {
  Continuation = 0x0,
  Text = 0x1,
  Binary = 0x2,
  Close = 0x8,
  Ping = 0x9,
  Pong = 0xA,
};

// Codes 3000 to 4999 belong to libraries and applications and are carried as their number.
enum class CloseCode : std::uint16_t {
  Normal = 1000,
  GoingAway = 1001,
  ProtocolError = 1002,
  UnsupportedData = 1003,
  NoStatus = 1005,  // never on the wire: the peer's close frame had no body
  Abnormal = 1006,  // never on the wire: the connection ended without a close frame
  InvalidPayload = 1007,
  PolicyViolation = 1008,
  TooBig = 1009,
  InternalError = 1011,
  ServiceRestart = 1012,
  TryAgainLater = 1013,
  BadGateway = 1014,
};

// Whether a close frame may carry this code.
constexpr bool is_sendable(CloseCode code) {
  const auto number = static_cast<std::uint16_t>(code);
  return (number >= 1000 && number <= 1003) || (number >= 1007 && number <= 1014) ||
         (number >= 3000 && number <= 4999);
}

inline constexpr std::size_t kHeaderBytesMax = 14;  // 2, an 8-byte length, a 4-byte masking key
inline constexpr std::size_t kControlBytesMax = 125;

}  // namespace windlass::websocket
