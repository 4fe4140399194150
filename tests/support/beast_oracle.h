// Boost.Beast's WebSocket stream as a second opinion on a byte stream. Beast compiles slowly, so only
// beast_oracle.cc sees it.
#pragma once

#include <cstddef>
#include <string_view>

#include "protocol/websocket/frame.h"
#include "tests/support/websocket_outcome.h"

namespace windlass::support {

// What Beast, being `side`, makes of `bytes` that arrive after a real handshake and are followed by the end
// of the connection.
Outcome read_with_beast(websocket::Side side, std::string_view bytes, std::size_t message_bytes_max);

}  // namespace windlass::support
