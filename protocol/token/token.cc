#include "protocol/token/token.h"

#include <algorithm>
#include <array>
#include <utility>

#include "protocol/crypto/digest.h"
#include "protocol/crypto/text_encoding.h"

namespace windlass {
namespace {

constexpr std::size_t kSecretBytesMin = 32;
constexpr std::size_t kKidBytesMax = 32;

// Each byte of an id takes up to 6 in JSON. The rest is the keys, three integers, `kid` and punctuation.
constexpr std::size_t kPayloadBytesMax =
    (2 * limits::kIdBytesMax + limits::kTenantBytesMax) * 6 + kKidBytesMax + 3 * 16 + 64;
static_assert(kPayloadBytesMax * 4 / 3 + 2 + (kDigestBytes * 4 + 2) / 3 < limits::kTokenBytesMax,
              "any token we issue must verify");

Error refused(const char* reason, SourceLine where = SourceLine::here()) {
  return {ErrorCode::SessionInvalidToken, Blame::Peer, reason, where};
}

Error misconfigured(const char* reason, SourceLine where = SourceLine::here()) {
  return {ErrorCode::Internal, Blame::Local, reason, where};
}

bool is_kid(std::string_view text) {
  const auto allowed = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= kKidBytesMax && std::all_of(text.begin(), text.end(), allowed);
}

Result<Done> check_keys(const std::vector<SigningKey>& keys) {
  if (keys.empty()) return misconfigured("there is no signing key");
  if (keys.size() > limits::kSigningKeysMax) return misconfigured("there are too many signing keys");
  for (auto key = keys.begin(); key != keys.end(); ++key) {
    if (!is_kid(key->kid))
      return misconfigured("the kid of a signing key must be 1 to 32 of A-Z a-z 0-9 _ -");
    if (key->secret.size() < kSecretBytesMin) return misconfigured("a signing key is shorter than 32 bytes");
    const auto is_same = [&](const SigningKey& other) {
      return other.kid == key->kid || other.secret == key->secret;
    };
    if (std::any_of(keys.begin(), key, is_same))
      return misconfigured("two signing keys share a kid or a secret");
  }
  return Done{};
}

WallTime on_the_wire(WallTime time) {
  constexpr WallTime kEpoch{};
  constexpr WallTime kLatest{milliseconds{static_cast<milliseconds::rep>(limits::kIntegerMax)}};
  return std::clamp(time, kEpoch, kLatest);
}

}  // namespace

Result<TokenAuthority> TokenAuthority::with_keys(std::vector<SigningKey> newest_first, Duration lifetime) {
  if (const auto checked = check_keys(newest_first); !checked) return checked.error();
  const auto rounded = std::chrono::duration_cast<milliseconds>(lifetime);
  if (rounded < milliseconds{1}) return misconfigured("the lifetime of a token must be at least 1 ms");
  return TokenAuthority{std::move(newest_first), rounded};
}

TokenAuthority::TokenAuthority(std::vector<SigningKey> keys, milliseconds lifetime)
    : keys_(std::move(keys)), lifetime_(lifetime), revocations_(lifetime) {}

Result<Done> TokenAuthority::set_keys(std::vector<SigningKey> newest_first) {
  if (auto checked = check_keys(newest_first); !checked) return checked;
  keys_ = std::move(newest_first);
  return Done{};
}

std::string TokenAuthority::issue(const TokenSubject& subject, WallTime now) {
  CHECK(subject.sid.size() <= limits::kIdBytesMax);
  CHECK(subject.wid.size() <= limits::kIdBytesMax);
  CHECK(subject.tenant.size() <= limits::kTenantBytesMax);
  // A worker that is let in again right after its revocation gets a token that is later than it, even within
  // one millisecond.
  const WallTime revoked = revocations_.revoked_until(subject.tenant, subject.wid);
  const WallTime iat = on_the_wire(std::max(now, revoked + milliseconds{1}));
  latest_iat_ = std::max(latest_iat_, iat);
  //= TOK-3
  const SigningKey& newest = keys_.front();
  const TokenClaims claims{.sid = std::string(subject.sid),
                           .wid = std::string(subject.wid),
                           .tenant = std::string(subject.tenant),
                           .exp = on_the_wire(iat + lifetime_),
                           .iat = iat,
                           .kid = newest.kid,
                           .gen = subject.gen};
  //= TOK-1
  std::string token = base64url_encode(encode_token_payload(claims));
  const Digest signature = hmac_sha256(newest.secret, token);
  token.append(".").append(base64url_encode(view_of(signature)));
  return token;
}

Result<TokenClaims> TokenAuthority::verify(std::string_view token, WallTime now) const {
  if (token.size() > limits::kTokenBytesMax) return refused("the token is too long");
  const std::size_t dot = token.find('.');
  if (dot == std::string_view::npos) return refused("the token has no signature");
  const std::string_view text = token.substr(0, dot);
  const auto signature = base64url_decode(token.substr(dot + 1));
  if (!signature || signature->size() != kDigestBytes) return refused("the signature is malformed");

  // Every key is tried whatever the others say: `kid` is inside the payload, which is not to be believed yet,
  // and the time taken does not tell which key fits.
  //= TOK-3
  std::array<bool, limits::kSigningKeysMax> fits{};
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    const Digest expected = hmac_sha256(keys_[i].secret, text);
    //= TOK-4
    fits[i] = constant_time_equal(view_of(expected), *signature);
  }
  if (std::find(fits.begin(), fits.end(), true) == fits.end())
    return refused("the signature does not verify");

  const auto payload = base64url_decode(text);
  if (!payload) return refused("the payload is not base64url");
  auto claims = parse_token_payload(*payload);
  if (!claims) return refused("the payload is not in canonical form");
  const auto named =
      std::find_if(keys_.begin(), keys_.end(), [&](const SigningKey& key) { return key.kid == claims->kid; });
  if (named == keys_.end() || !fits[static_cast<std::size_t>(named - keys_.begin())]) {
    return refused("kid does not name the key that signed");
  }
  //= TOK-5
  if (now >= claims->exp) return refused("the token has expired");
  //= TOK-7
  if (claims->iat <= revocations_.revoked_until(claims->tenant, claims->wid)) {
    return refused("the token was revoked");
  }
  return *std::move(claims);
}

void TokenAuthority::revoke(std::string_view tenant, std::string_view wid, WallTime now) {
  //= TOK-7
  revocations_.add(tenant, wid, std::max(on_the_wire(now), latest_iat_), now);
}

}  // namespace windlass
