// Byte sequences. Text and raw bytes travel as std::string / std::string_view: the codecs below us speak
// `char`, and one type for both saves a cast at every edge.
#pragma once

#include <string>
#include <string_view>

namespace windlass {

using Bytes = std::string;
using BytesView = std::string_view;

}  // namespace windlass
