// Token verification against anyone's bytes: as they come, as edits of a good token, as a payload with a good
// signature, and as ids to issue for. Whatever verifies must be, letter for letter, what issue() writes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "protocol/base/check.h"
#include "protocol/base/limits.h"
#include "protocol/crypto/digest.h"
#include "protocol/crypto/text_encoding.h"
#include "protocol/token/token.h"

namespace windlass {
namespace {

constexpr WallTime kNow{milliseconds{1'800'000'000'000}};

SigningKey key(std::string kid) {
  return {kid, kid + std::string(32, 's')};
}

TokenAuthority authority() {
  return TokenAuthority::with_keys({key("new"), key("old")}).value();
}

std::string signed_by(const SigningKey& with, std::string_view payload) {
  std::string text = base64url_encode(payload);
  const Digest signature = hmac_sha256(with.secret, text);
  return text.append(".").append(base64url_encode(view_of(signature)));
}

void check_refused_or_ours(const TokenAuthority& tokens, std::string_view token) {
  const auto claims = tokens.verify(token, kNow);
  if (!claims) {
    CHECK(claims.error().code == ErrorCode::SessionInvalidToken);
    return;
  }
  CHECK(claims->exp > kNow);
  CHECK(token == signed_by(key(claims->kid), encode_token_payload(*claims)));
}

// Each three bytes of `script` are one edit: what to do, where, and with which character.
std::string edited(std::string token, std::string_view script) {
  for (; script.size() >= 3 && !token.empty(); script.remove_prefix(3)) {
    const std::size_t place = static_cast<unsigned char>(script[1]) % token.size();
    switch (static_cast<unsigned char>(script[0]) % 5) {
      case 0:
        token[place] = script[2];
        break;
      case 1:
        token.insert(place, 1, script[2]);
        break;
      case 2:
        token.erase(place, 1);
        break;
      case 3:
        token.resize(place);
        break;
      default:
        std::swap(token[place], token[static_cast<unsigned char>(script[2]) % token.size()]);
    }
  }
  return token;
}

void issue_for(TokenAuthority& tokens, std::string_view ids) {
  const auto take = [&](std::size_t most) {
    const std::string_view id = ids.substr(0, std::min(ids.size() / 2, most));
    ids.remove_prefix(id.size());
    return id;
  };
  TokenSubject subject{.gen = ids.size()};
  subject.sid = take(limits::kIdBytesMax);
  subject.wid = take(limits::kIdBytesMax);
  subject.tenant = take(limits::kTenantBytesMax);
  const auto claims = tokens.verify(tokens.issue(subject, kNow), kNow);
  CHECK(claims.has_value());
  CHECK(claims->sid == subject.sid);
  CHECK(claims->wid == subject.wid);
  CHECK(claims->tenant == subject.tenant);
  CHECK(claims->gen == subject.gen);
}

}  // namespace
}  // namespace windlass

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace windlass;
  if (size < 1) return 0;
  TokenAuthority tokens = authority();
  const std::string_view rest{reinterpret_cast<const char*>(data) + 1, size - 1};
  switch (data[0] % 4) {
    case 0:
      check_refused_or_ours(tokens, rest);
      break;
    case 1: {
      const std::string good = tokens.issue({.sid = "s-1", .wid = "i-7f", .tenant = "acme", .gen = 3}, kNow);
      const std::string changed = edited(good, rest);
      CHECK((changed == good) == tokens.verify(changed, kNow).has_value());
      break;
    }
    case 2:
      check_refused_or_ours(tokens, signed_by(key("old"), rest));
      break;
    default:
      issue_for(tokens, rest);
  }
  return 0;
}
