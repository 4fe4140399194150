#include "protocol/crypto/seal.h"

#include <gtest/gtest.h>

#include <set>

namespace windlass {
namespace {

SealKey key(const std::string& kid, char fill) {
  return {kid, Bytes(kSealKeyBytes, fill)};
}

Sealer sealer(std::vector<SealKey> keys, char salt = 's') {
  auto made = Sealer::create(std::move(keys), Bytes(kSealSaltBytes, salt));
  EXPECT_TRUE(made) << made.error().reason;
  return *std::move(made);
}

TEST(Seal, WhatIsSealedOpensAgainAndDoesNotShow) {
  Sealer ours = sealer({key("k1", 'a')});
  for (const std::string& text : {std::string{}, std::string{"x"}, std::string(100'000, 'm')}) {
    const Bytes sealed = ours.seal(text, "app/acme/shop");
    EXPECT_TRUE(Sealer::is_sealed(sealed));
    EXPECT_EQ(Sealer::kid_of(sealed), "k1");
    EXPECT_TRUE(text.empty() || sealed.find(text) == Bytes::npos);
    const auto opened = ours.open(sealed, "app/acme/shop");
    ASSERT_TRUE(opened) << opened.error().reason;
    EXPECT_EQ(*opened, text);
  }
}

TEST(Seal, AnotherProcessWithTheSameKeyOpensIt) {
  const Bytes sealed = sealer({key("k1", 'a')}, 'x').seal("secret", "row");
  EXPECT_EQ(*sealer({key("k1", 'a')}, 'y').open(sealed, "row"), "secret");
}

TEST(Seal, BelongsToItsPlace) {
  Sealer ours = sealer({key("k1", 'a')});
  const Bytes sealed = ours.seal("secret", "app/acme/shop");
  EXPECT_FALSE(ours.open(sealed, "app/evil/shop"));
}

TEST(Seal, NoBitCanBeChanged) {
  Sealer ours = sealer({key("k1", 'a')});
  const Bytes sealed = ours.seal("secret", "row");
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    Bytes changed = sealed;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(ours.open(changed, "row")) << i;
  }
  for (std::size_t size = 0; size < sealed.size(); ++size)
    EXPECT_FALSE(ours.open(sealed.substr(0, size), "row"));
}

TEST(Seal, TheNewestKeySealsAndOlderOnesOpen) {
  const Bytes old = sealer({key("k1", 'a')}).seal("secret", "row");
  Sealer both = sealer({key("k2", 'b'), key("k1", 'a')});
  EXPECT_EQ(*both.open(old, "row"), "secret");
  EXPECT_EQ(Sealer::kid_of(both.seal("secret", "row")), "k2");
  const auto lost = sealer({key("k2", 'b')}).open(old, "row");
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, ErrorCode::StoreInvalid);
  EXPECT_NE(lost.error().reason.find("key k1, which is not known"), std::string::npos) << lost.error().reason;
}

TEST(Seal, TheSameTextIsNeverSealedTheSameWay) {
  Sealer ours = sealer({key("k1", 'a')});
  std::set<Bytes> seen;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(seen.insert(ours.seal("secret", "row")).second);
}

TEST(Seal, RefusesKeysThatAreNone) {
  const Bytes salt(kSealSaltBytes, 's');
  EXPECT_FALSE(Sealer::create({}, salt));
  EXPECT_FALSE(Sealer::create({{"k1", "short"}}, salt));
  EXPECT_FALSE(Sealer::create({key("", 'a')}, salt));
  EXPECT_FALSE(Sealer::create({key("k1", 'a'), key("k1", 'b')}, salt));
  EXPECT_FALSE(Sealer::create({key("k1", 'a')}, "salt"));
}

TEST(Seal, ClearTextIsNotTakenForSealed) {
  EXPECT_FALSE(Sealer::is_sealed(R"({"number":1})"));
  EXPECT_FALSE(Sealer::is_sealed(""));
  EXPECT_FALSE(sealer({key("k1", 'a')}).open(R"({"number":1})", "row"));
}

}  // namespace
}  // namespace windlass
