// Bounds of HTTP beside those of limits.h: of framing, and of bodies that flow instead of being held.
#pragma once

#include <cstddef>

#include "protocol/base/time.h"

namespace windlass::limits {

inline constexpr std::size_t kHttpChunkExtensionBytesMax = 256;   // of one chunk
inline constexpr std::size_t kHttpChunkLinesBytesMax = 8 * 1024;  // a chunk's line, or all trailers

// Connections of a listener whose places are all taken by requests that wait: for probes, which do not.
inline constexpr std::size_t kHttpSparePlaces = 16;

// Streams. Without a byte either way for so long, an exchange ends.
inline constexpr Duration kHttpStreamIdle = seconds{240};
inline constexpr std::size_t kHttpStreamWindow = 256 * 1024;    // of one body, on the way to whoever takes it
inline constexpr std::size_t kHttpStreamPartBytes = 64 * 1024;  // in one message
// Of a request's head. The server inside a Node worker refuses 16 KiB without a word to the function, which
// would wait for its request until its time is over.
inline constexpr std::size_t kHttpStreamHeadBytesMax = 15 * 1024;
inline constexpr std::size_t kHttpStreamsMax = 1024;  // that one agent forwards at once

static_assert(kHttpStreamPartBytes <= kHttpStreamWindow);

}  // namespace windlass::limits
