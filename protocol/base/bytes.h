// Byte sequences. Text and raw bytes travel as std::string / std::string_view: the codecs below us speak
// `char`, and one type for both saves a cast at every edge.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace windlass {

using Bytes = std::string;
using BytesView = std::string_view;

// The two kinds of WebSocket message. Binary ones carry an attachment.
enum class MessageKind : std::uint8_t { Text, Binary };

}  // namespace windlass
