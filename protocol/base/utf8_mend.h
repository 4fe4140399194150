// Text from a peer that does not check its own: what is not UTF-8 becomes U+FFFD, as decoders of the Encoding
// Standard, .NET among them, have it.
#pragma once

#include <string>

#include "protocol/base/bytes.h"

namespace windlass {

// Valid text comes back as it is. One U+FFFD stands for each maximal part of a character that is cut short or
// cannot be one, so a surrogate encoded in three bytes becomes three.
[[nodiscard]] std::string mended_utf8(BytesView text);

}  // namespace windlass
