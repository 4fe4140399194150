// Session tokens: issues, verifies, rotates keys, revokes. Whether a token is the newest of its session
// (TOK-2, FEN-4) is the session's to judge, by `gen`. Pure: keys and time are arguments.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/base/limits.h"
#include "protocol/base/result.h"
#include "protocol/base/time.h"
#include "protocol/token/revocations.h"
#include "protocol/token/token_payload.h"

namespace windlass {

struct SigningKey {
  std::string kid;     // 1 to 32 of [A-Za-z0-9_-]
  std::string secret;  // at least 32 bytes
};

// Whom a token is for. The views need to live for the call only.
struct TokenSubject {
  std::string_view sid;
  std::string_view wid;
  std::string_view tenant;
  std::uint64_t gen = 0;
};

// A token is `<text>.<signature>`: text = base64url(payload JSON, see token_payload.h), signature =
// base64url(HMAC-SHA256(secret, text)). The signature covers the text as it stands in the token, so nothing
// is decoded before it has been verified.
class TokenAuthority final {
 public:
  // Refuses no keys, more than limits::kSigningKeysMax, malformed or equal ones, and a lifetime below 1 ms:
  // errors of the operator's configuration, hence Blame::Local. The first key signs; all verify.
  static Result<TokenAuthority> with_keys(std::vector<SigningKey> newest_first,
                                          Duration lifetime = limits::kTokenLifetime);

  TokenAuthority(TokenAuthority&&) = default;
  TokenAuthority& operator=(TokenAuthority&&) = default;

  // Ids are bounded by limits.h and `gen` by 2^53-1: the codec and the session see to that. `iat` is `now`,
  // or later where a revocation of this worker would strike the new token as well.
  std::string issue(const TokenSubject& subject, WallTime now);

  // E.SESSION.INVALID_TOKEN says in its reason which check failed, never what the token or a key held.
  Result<TokenClaims> verify(std::string_view token, WallTime now) const;

  // Rotation: put the new key first and drop the old one a token lifetime later. Revocations stay. On an
  // error nothing changes.
  Result<Done> set_keys(std::vector<SigningKey> newest_first);

  // No token issued to this worker so far verifies any more. A revocation is memory: an owner that must keep
  // it across a restart stores it, and calls this again with the time of then before anything is issued.
  void revoke(std::string_view tenant, std::string_view wid, WallTime now);

 private:
  TokenAuthority(std::vector<SigningKey> keys, milliseconds lifetime);

  std::vector<SigningKey> keys_;
  milliseconds lifetime_;
  WallTime latest_iat_{};  // of all tokens issued; a wall clock that steps back must not let one escape a
                           // revocation
  Revocations revocations_;
};

}  // namespace windlass
