// SHA-256, HMAC-SHA256 and the comparison that goes with them, over OpenSSL. Owns no keys and no randomness:
// secrets are drawn by shells, and a core that could draw them would not replay.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "protocol/base/bytes.h"

namespace windlass {

inline constexpr std::size_t kDigestBytes = 32;
using Digest = std::array<std::uint8_t, kDigestBytes>;

// The bytes of a digest, as everything else takes them. Valid as long as the digest.
BytesView view_of(const Digest& digest);

Digest sha256(BytesView data);

// Hashes a list of parts. Each part is preceded by its length (8 bytes, big-endian), so two different lists
// never feed the same bytes to the hash: ("ab", "c") and ("a", "bc") differ, and so do lists of different
// length.
Digest sha256_parts(std::span<const BytesView> parts);

Digest hmac_sha256(BytesView key, BytesView data);

// Takes the same time wherever the first difference is. Lengths are not secret: different ones are unequal at
// once.
bool constant_time_equal(BytesView left, BytesView right);

}  // namespace windlass
