// The JSON inside a session token, in the one spelling that we write: keys in a fixed order, no white space,
// the least escaping. Whatever else is refused, so that a token has one text and no JSON library has to judge
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/base/time.h"

namespace windlass {

struct TokenClaims {
  std::string sid;  // session
  std::string wid;  // worker_instance_id
  std::string tenant;
  WallTime exp{};
  WallTime iat{};
  std::string kid;        // the key that signed
  std::uint64_t gen = 0;  // rises with every token of a session (TOK-2)
  friend bool operator==(const TokenClaims&, const TokenClaims&) = default;
};

// {"sid":"..","wid":"..","tenant":"..","exp":<ms>,"iat":<ms>,"kid":"..","gen":<n>}. Integers are 0 to 2^53-1,
// times are milliseconds since the Unix epoch. In strings `"` and `\` take a backslash, bytes below 0x20 are
// \u00xx in lower-case hex, all other bytes stand for themselves.
std::string encode_token_payload(const TokenClaims& claims);

// Nothing unless encode_token_payload() of the claims gives exactly this text.
std::optional<TokenClaims> parse_token_payload(std::string_view text);

}  // namespace windlass
