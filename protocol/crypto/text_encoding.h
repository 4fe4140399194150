// Bytes as text: base64url without padding (RFC 4648 section 5) and lower-case hex. Decoding is strict, so
// every byte string has exactly one text: a second spelling of a token or a digest would slip past
// comparisons of text.
#pragma once

#include <optional>
#include <string>

#include "protocol/base/bytes.h"

namespace windlass {

std::string base64url_encode(BytesView bytes);

// Nothing for a character outside the alphabet, padding, an impossible length or unused bits that are not
// zero. What that means to the peer is the caller's to say, hence no Error.
std::optional<Bytes> base64url_decode(std::string_view text);

std::string hex_encode(BytesView bytes);

}  // namespace windlass
