// Boost.Beast's WebSocket stream as a second opinion on a byte stream. Beast compiles slowly, so only
// beast_oracle.cc sees it.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "protocol/websocket/frame.h"
#include "tests/support/websocket_outcome.h"

namespace windlass::support {

// What Beast, being `side`, makes of `bytes` that arrive after a real handshake and are followed by the end
// of the connection.
Outcome read_with_beast(websocket::Side side, std::string_view bytes, std::size_t message_bytes_max);

// What Beast, being a server, answers to this upgrade request.
std::string beast_answer(std::string_view request);

// Whether Beast, being a client, takes `answer` to its upgrade request for a WebSocket server's.
bool beast_takes_answer(const std::function<std::string(std::string request)>& answer);

}  // namespace windlass::support
