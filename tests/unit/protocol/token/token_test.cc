#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "protocol/crypto/digest.h"
#include "protocol/crypto/text_encoding.h"
#include "protocol/token/token.h"

namespace windlass {
namespace {

constexpr WallTime kNow{milliseconds{1'800'000'000'000}};
constexpr milliseconds kLifetime = std::chrono::duration_cast<milliseconds>(limits::kTokenLifetime);

SigningKey key(const std::string& kid, char fill = 'a') {
  return {kid, std::string(32, fill)};
}

TokenAuthority authority(std::vector<SigningKey> keys = {key("k1")}) {
  auto made = TokenAuthority::with_keys(std::move(keys));
  EXPECT_TRUE(made.has_value());
  return std::move(made).value();
}

constexpr TokenSubject kSubject{.sid = "s-1", .wid = "i-7f", .tenant = "acme", .gen = 3};

// What somebody who holds the key could sign, canonical or not.
std::string signed_text(const SigningKey& with, std::string_view text) {
  return std::string(text) + "." + base64url_encode(view_of(hmac_sha256(with.secret, text)));
}

std::string signed_payload(const SigningKey& with, std::string_view payload) {
  return signed_text(with, base64url_encode(payload));
}

std::string reason(const Result<TokenClaims>& verified) {
  if (verified) return "verified";
  EXPECT_EQ(verified.error().code, ErrorCode::SessionInvalidToken);
  EXPECT_EQ(verified.error().blame, Blame::Peer);
  return verified.error().reason;
}

//= TOK-1
TEST(Token, IsPayloadAndItsSignatureInBase64Url) {
  const std::string token = authority().issue(kSubject, kNow);
  EXPECT_EQ(token,
            signed_payload(key("k1"), R"({"sid":"s-1","wid":"i-7f","tenant":"acme","exp":1800003600000,)"
                                      R"("iat":1800000000000,"kid":"k1","gen":3})"));
  EXPECT_EQ(token.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."),
            std::string::npos);
}

//= TOK-1
TEST(Token, VerifiesToTheClaimsItWasIssuedWith) {
  TokenAuthority tokens = authority();
  const auto claims = tokens.verify(tokens.issue(kSubject, kNow), kNow);
  ASSERT_TRUE(claims.has_value());
  EXPECT_EQ(*claims, (TokenClaims{"s-1", "i-7f", "acme", kNow + kLifetime, kNow, "k1", 3}));
}

TEST(Token, CarriesOddIdsUnchangedEvenAtTheirLargest) {
  TokenAuthority tokens = authority({key(std::string(32, 'k'))});
  for (const std::string& unit :
       {std::string("\""), std::string("\\"), std::string("\x01"), std::string("\0", 1), std::string("é"),
        std::string("\xf0\x9f\x9a\xa2"), std::string(".")}) {
    std::string id;
    while (id.size() + unit.size() <= limits::kIdBytesMax) id += unit;
    const std::string tenant = id.substr(0, limits::kTenantBytesMax);
    const TokenSubject subject{.sid = id, .wid = id, .tenant = tenant, .gen = limits::kIntegerMax};
    const std::string token = tokens.issue(subject, kNow);
    EXPECT_LE(token.size(), limits::kTokenBytesMax);
    const auto claims = tokens.verify(token, kNow);
    ASSERT_TRUE(claims.has_value()) << unit;
    EXPECT_EQ(claims->sid, id);
    EXPECT_EQ(claims->wid, id);
    EXPECT_EQ(claims->tenant, tenant);
    EXPECT_EQ(claims->gen, limits::kIntegerMax);
  }
}

//= TOK-5
TEST(Token, IsGoodUntilExpAndNotAtIt) {
  TokenAuthority tokens = authority();
  const std::string token = tokens.issue(kSubject, kNow);
  EXPECT_TRUE(tokens.verify(token, kNow + kLifetime - milliseconds{1}).has_value());
  EXPECT_EQ(reason(tokens.verify(token, kNow + kLifetime)), "the token has expired");
  EXPECT_EQ(reason(tokens.verify(token, kNow + 2 * kLifetime)), "the token has expired");
}

TEST(Token, OfAnotherKeyDoesNotVerify) {
  const std::string token = authority({key("k1", 'b')}).issue(kSubject, kNow);
  EXPECT_EQ(reason(authority({key("k1", 'a')}).verify(token, kNow)), "the signature does not verify");
}

TEST(Token, CutAnywhereDoesNotVerify) {
  TokenAuthority tokens = authority();
  const std::string token = tokens.issue(kSubject, kNow);
  for (std::size_t size = 0; size < token.size(); ++size) {
    ASSERT_FALSE(tokens.verify(std::string_view(token).substr(0, size), kNow).has_value()) << size;
    ASSERT_FALSE(tokens.verify(std::string_view(token).substr(size + 1), kNow).has_value()) << size;
  }
}

TEST(Token, WithAnyBitFlippedDoesNotVerify) {
  TokenAuthority tokens = authority();
  const std::string token = tokens.issue(kSubject, kNow);
  for (std::size_t place = 0; place < token.size(); ++place) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::string flipped = token;
      flipped[place] = static_cast<char>(static_cast<unsigned char>(flipped[place]) ^ (1U << bit));
      ASSERT_FALSE(tokens.verify(flipped, kNow).has_value()) << place << ":" << bit;
    }
  }
}

TEST(Token, WithAnythingAddedDoesNotVerify) {
  TokenAuthority tokens = authority();
  const std::string token = tokens.issue(kSubject, kNow);
  for (const std::string_view more : {"=", "==", ".", "A", " ", "\n", ".AAAA"}) {
    EXPECT_FALSE(tokens.verify(token + std::string(more), kNow).has_value()) << more;
    EXPECT_FALSE(tokens.verify(std::string(more) + token, kNow).has_value()) << more;
  }
}

//= TOK-4
TEST(Token, IsNotParsedBeforeItsSignatureVerified) {
  TokenAuthority tokens = authority();
  const std::string good = tokens.issue(kSubject, kNow);
  const std::string signature = good.substr(good.find('.'));
  EXPECT_EQ(reason(tokens.verify("!!!" + signature, kNow)), "the signature does not verify");
  EXPECT_EQ(reason(tokens.verify(base64url_encode("{}") + signature, kNow)), "the signature does not verify");
  // With a good signature the same texts get as far as the parser.
  EXPECT_EQ(reason(tokens.verify(signed_text(key("k1"), "!!!"), kNow)), "the payload is not base64url");
  EXPECT_EQ(reason(tokens.verify(signed_payload(key("k1"), "{}"), kNow)),
            "the payload is not in canonical form");
}

TEST(Token, ThatIsMalformedSaysWhatIsWrong) {
  const TokenAuthority tokens = authority();
  EXPECT_EQ(reason(tokens.verify("", kNow)), "the token has no signature");
  EXPECT_EQ(reason(tokens.verify("abcd", kNow)), "the token has no signature");
  EXPECT_EQ(reason(tokens.verify(".", kNow)), "the signature is malformed");
  EXPECT_EQ(reason(tokens.verify("abcd.abcd", kNow)), "the signature is malformed");
  EXPECT_EQ(reason(tokens.verify("abcd." + std::string(43, '!'), kNow)), "the signature is malformed");
  EXPECT_EQ(reason(tokens.verify(std::string(limits::kTokenBytesMax + 1, 'A'), kNow)),
            "the token is too long");
}

//= TOK-3
TEST(Token, MustNameTheKeyThatSignedIt) {
  const TokenAuthority tokens = authority({key("new", 'n'), key("old", 'o')});
  const auto naming = [](const std::string& kid) {
    return R"({"sid":"s","wid":"w","tenant":"t","exp":1900000000000,"iat":1800000000000,"kid":")" + kid +
           R"(","gen":0})";
  };
  EXPECT_TRUE(tokens.verify(signed_payload(key("old", 'o'), naming("old")), kNow).has_value());
  EXPECT_EQ(reason(tokens.verify(signed_payload(key("old", 'o'), naming("new")), kNow)),
            "kid does not name the key that signed");
  EXPECT_EQ(reason(tokens.verify(signed_payload(key("old", 'o'), naming("foreign")), kNow)),
            "kid does not name the key that signed");
}

//= TOK-3
TEST(Token, SurvivesTheRotationOfKeysUntilItsOwnIsDropped) {
  TokenAuthority tokens = authority({key("k1", '1')});
  const std::string before = tokens.issue(kSubject, kNow);
  ASSERT_TRUE(tokens.set_keys({key("k2", '2'), key("k1", '1')}).has_value());
  const std::string after = tokens.issue(kSubject, kNow);
  EXPECT_EQ(tokens.verify(before, kNow)->kid, "k1");
  EXPECT_EQ(tokens.verify(after, kNow)->kid, "k2");
  ASSERT_TRUE(tokens.set_keys({key("k3", '3'), key("k2", '2')}).has_value());
  EXPECT_EQ(reason(tokens.verify(before, kNow)), "the signature does not verify");
  EXPECT_EQ(tokens.verify(after, kNow)->kid, "k2");
}

//= TOK-7
TEST(Token, OfARevokedWorkerStopsVerifyingAndOthersDoNot) {
  TokenAuthority tokens = authority();
  const std::string revoked = tokens.issue(kSubject, kNow);
  const std::string same_name_elsewhere =
      tokens.issue({.sid = "s-2", .wid = "i-7f", .tenant = "other", .gen = 0}, kNow);
  const std::string colleague = tokens.issue({.sid = "s-3", .wid = "i-80", .tenant = "acme", .gen = 0}, kNow);
  tokens.revoke("acme", "i-7f", kNow + seconds{1});
  EXPECT_EQ(reason(tokens.verify(revoked, kNow + seconds{1})), "the token was revoked");
  EXPECT_TRUE(tokens.verify(same_name_elsewhere, kNow + seconds{1}).has_value());
  EXPECT_TRUE(tokens.verify(colleague, kNow + seconds{1}).has_value());
}

//= TOK-7
TEST(Token, RevokedStaysRevokedAcrossARotationOfKeys) {
  TokenAuthority tokens = authority({key("k1", '1')});
  const std::string token = tokens.issue(kSubject, kNow);
  tokens.revoke("acme", "i-7f", kNow);
  ASSERT_TRUE(tokens.set_keys({key("k2", '2'), key("k1", '1')}).has_value());
  EXPECT_EQ(reason(tokens.verify(token, kNow)), "the token was revoked");
}

//= TOK-7
TEST(Token, IssuedBeforeTheClockSteppedBackIsRevokedToo) {
  TokenAuthority tokens = authority();
  const std::string token = tokens.issue(kSubject, kNow);
  tokens.revoke("acme", "i-7f", kNow - seconds{60});
  EXPECT_EQ(reason(tokens.verify(token, kNow - seconds{60})), "the token was revoked");
}

TEST(Token, IssuedAfterARevocationInTheSameMillisecondIsGood) {
  TokenAuthority tokens = authority();
  tokens.revoke("acme", "i-7f", kNow);
  const auto claims = tokens.verify(tokens.issue(kSubject, kNow), kNow);
  ASSERT_TRUE(claims.has_value());
  EXPECT_EQ(claims->iat, kNow + milliseconds{1});
  EXPECT_EQ(claims->exp, kNow + milliseconds{1} + kLifetime);
}

//= TOK-7
TEST(Token, StaysRevokedWhenMoreWorkersAreRevokedThanRemembered) {
  TokenAuthority tokens = authority();
  const std::string first = tokens.issue(kSubject, kNow);
  tokens.revoke("acme", "i-7f", kNow);
  for (std::size_t i = 0; i < limits::kRevokedMax; ++i) {
    tokens.revoke("acme", std::to_string(i), kNow + milliseconds{1});
  }
  EXPECT_EQ(reason(tokens.verify(first, kNow + milliseconds{2})), "the token was revoked");
  const std::string afterwards = tokens.issue(kSubject, kNow + milliseconds{2});
  EXPECT_TRUE(tokens.verify(afterwards, kNow + milliseconds{2}).has_value());
}

TEST(Token, AndItsKeyAreNeverInAnError) {
  const std::string secret = "a secret of more than 32 bytes, a long one";
  TokenAuthority tokens = authority({{"kid-name", secret}});
  const std::string token = tokens.issue(kSubject, kNow);
  tokens.revoke("acme", "revoked-one", kNow);
  std::vector<std::string> wrong = {
      token.substr(1),
      token + "x",
      token.substr(0, token.find('.')),
      "secret-looking-text",
      signed_text({"", secret}, "secret-looking-text="),
      signed_payload({"", secret}, "{\"sid\":\"secret-looking-text\"}"),
      std::string(limits::kTokenBytesMax + 1, 'A'),
      tokens.issue(kSubject, kNow - 2 * kLifetime),
  };
  tokens.revoke("acme", "i-7f", kNow);
  wrong.push_back(token);
  for (const std::string& text : wrong) {
    const auto verified = tokens.verify(text, kNow);
    ASSERT_FALSE(verified.has_value()) << text;
    const std::string& said = verified.error().reason;
    for (const std::string_view hidden : {"secret", "kid-name", "s-1", "i-7f", "AAAA", "eyJ"}) {
      EXPECT_EQ(said.find(hidden), std::string::npos) << said;
    }
    EXPECT_LT(said.size(), 64U);
  }
}

TEST(TokenAuthority, RefusesKeysThatAreNoKeys) {
  const std::vector<std::vector<SigningKey>> wrong = {
      {},
      {{"k1", std::string(31, 'a')}},
      {key("")},
      {key(std::string(33, 'k'))},
      {key("k 1")},
      {key("k\"1")},
      {key("k1", 'a'), key("k1", 'b')},
      {key("k1", 'a'), key("k2", 'a')},
      {key("1", '1'), key("2", '2'), key("3", '3'), key("4", '4'), key("5", '5'), key("6", '6'),
       key("7", '7'), key("8", '8'), key("9", '9')},
  };
  TokenAuthority tokens = authority();
  const std::string token = tokens.issue(kSubject, kNow);
  for (const auto& keys : wrong) {
    const auto made = TokenAuthority::with_keys(keys);
    ASSERT_FALSE(made.has_value());
    EXPECT_EQ(made.error().blame, Blame::Local);
    EXPECT_EQ(made.error().reason.find("aaa"), std::string::npos);
    EXPECT_FALSE(tokens.set_keys(keys).has_value());
    EXPECT_TRUE(tokens.verify(token, kNow).has_value()) << "a refused rotation changes nothing";
  }
  EXPECT_FALSE(TokenAuthority::with_keys({key("k1")}, Duration{0}).has_value());
}

TEST(TokenAuthority, StaysInTheRangeOfTheWireWhateverTheClockSays) {
  TokenAuthority tokens = authority();
  for (const WallTime now : {WallTime{milliseconds{-5}}, WallTime{}, WallTime::max()}) {
    const auto claims = authority().verify(tokens.issue(kSubject, now), WallTime{});
    ASSERT_TRUE(claims.has_value());
    EXPECT_GE(claims->iat, WallTime{});
    EXPECT_LE(static_cast<std::uint64_t>(claims->exp.time_since_epoch().count()), limits::kIntegerMax);
  }
}

}  // namespace
}  // namespace windlass
