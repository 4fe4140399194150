// Our frame reader against Boost.Beast on one byte stream: same events, same decision, same close code, apart
// from the differences we intend. They are listed in the .cc; nothing else may differ.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/base/bytes.h"
#include "protocol/base/random.h"
#include "protocol/websocket/frame.h"

namespace windlass::support {

// What the two disagree about, or nothing. Our reader gets the bytes whole, one by one and in random pieces.
std::optional<std::string> disagreement(websocket::Side side, std::string_view bytes, std::uint64_t seed);

// A stream of frames that are mostly valid for a receiver on `side`, then damaged here and there.
Bytes damaged_stream(websocket::Side side, Random& random);

}  // namespace windlass::support
