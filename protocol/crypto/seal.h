// Bytes at rest that only the holder of a key can read or change: AES-256-GCM, over OpenSSL. What is sealed
// is bound to where it lies (`place`, such as a row's key), so it cannot be passed off as something else.
//
// Several keys may be known by their names (kid): the first seals, all open, which is how keys are changed.
// Each sealer seals under a key of its own, derived from the first key and a salt that its maker draws at
// random, and counts its nonces: so none is ever used twice, however much is sealed. Draws nothing itself.
//
//   0x01 'W' 'S' | length of kid | kid | salt, 16 bytes | nonce, 12 bytes | what was sealed | tag, 16 bytes
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "protocol/base/bytes.h"
#include "protocol/base/result.h"
#include "protocol/crypto/digest.h"

namespace windlass {

inline constexpr std::size_t kSealKeyBytes = 32;
inline constexpr std::size_t kSealSaltBytes = 16;

struct SealKey {
  std::string kid;
  Bytes secret;
};

class Sealer final {
 public:
  // At least one key, each of 32 bytes with a name of its own; a salt of 16 random bytes.
  static Result<Sealer> create(std::vector<SealKey> keys, BytesView salt);

  Bytes seal(BytesView clear, BytesView place);
  // E.STORE.INVALID: it was changed, lies in another place, or its key is not known.
  Result<Bytes> open(BytesView sealed, BytesView place) const;

  static bool is_sealed(BytesView bytes);
  // The name of the key that sealed it; empty: it is not sealed.
  static std::string_view kid_of(BytesView sealed);
  const std::string& newest() const { return keys_.front().kid; }

 private:
  Sealer(std::vector<SealKey> keys, BytesView salt);
  const SealKey* find(std::string_view kid) const;

  std::vector<SealKey> keys_;
  Bytes salt_;
  Digest own_key_{};
  std::uint64_t sealed_ = 0;
};

}  // namespace windlass
