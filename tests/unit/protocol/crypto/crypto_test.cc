#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <vector>

#include "protocol/base/random.h"
#include "protocol/crypto/digest.h"
#include "protocol/crypto/text_encoding.h"

namespace windlass {
namespace {

std::string hex(const Digest& digest) {
  return hex_encode(view_of(digest));
}

Digest parts(const std::vector<BytesView>& list) {
  return sha256_parts(list);
}

TEST(Sha256, GivesThePublishedDigests) {  // FIPS 180-4 examples
  EXPECT_EQ(hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(Sha256, OfPartsIsTheHashOfLengthsAndParts) {
  const std::string framed = std::string("\0\0\0\0\0\0\0\2", 8) + "ab" + std::string("\0\0\0\0\0\0\0\0", 8);
  EXPECT_EQ(parts({"ab", ""}), sha256(framed));
}

TEST(Sha256, OfPartsTellsApartListsThatConcatenateAlike) {
  const std::set<Digest> digests = {parts({"ab", "c"}), parts({"a", "bc"}), parts({"abc"}),
                                    parts({"abc", ""}), parts({"", "abc"}), parts({}),
                                    parts({""})};
  EXPECT_EQ(digests.size(), 7U);
}

TEST(HmacSha256, GivesThePublishedCodes) {  // RFC 4231, cases 1, 2 and 6
  EXPECT_EQ(hex(hmac_sha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(
      hex(hmac_sha256(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(ConstantTimeEqual, AgreesWithEquality) {
  EXPECT_TRUE(constant_time_equal("", ""));
  EXPECT_TRUE(constant_time_equal("same", "same"));
  EXPECT_FALSE(constant_time_equal("same", "sama"));
  EXPECT_FALSE(constant_time_equal("same", "tame"));
  EXPECT_FALSE(constant_time_equal("same", "same "));
}

TEST(Base64Url, GivesThePublishedTexts) {  // RFC 4648 section 10, without padding
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", ""},           {"f", "Zg"},          {"fo", "Zm8"},         {"foo", "Zm9v"},
      {"foob", "Zm9vYg"}, {"fooba", "Zm9vYmE"}, {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : cases) {
    EXPECT_EQ(base64url_encode(bytes), text);
    EXPECT_EQ(base64url_decode(text), bytes);
  }
  EXPECT_EQ(base64url_encode("\xfb\xff"), "-_8");
}

TEST(Base64Url, RoundTripsAnyBytes) {
  Random random{1};
  for (std::size_t size = 0; size < 200; ++size) {
    Bytes bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random.below(256));
    ASSERT_EQ(base64url_decode(base64url_encode(bytes)), bytes);
  }
}

TEST(Base64Url, AcceptsOnlyTheOneTextOfItsBytes) {
  for (const std::string_view text :
       {"Zg==", "Zm8=", "Z", "Zm9vY", "Zm9v+", "Zm9/", "Zm9v\n", " Zg", "Zm 9v", "Z.9v"}) {
    EXPECT_EQ(base64url_decode(text), std::nullopt) << text;
  }
  // Every text of two characters, and of three that start with A, is refused or is exactly what its bytes
  // encode to.
  int accepted = 0;
  for (unsigned first = 0; first < 256; ++first) {
    for (unsigned second = 0; second < 256; ++second) {
      const std::array characters = {'A', static_cast<char>(first), static_cast<char>(second)};
      for (const std::size_t skipped : {0U, 1U}) {
        const std::string text(characters.begin() + skipped, characters.end());
        const auto bytes = base64url_decode(text);
        if (!bytes) continue;
        ++accepted;
        ASSERT_EQ(base64url_encode(*bytes), text);
      }
    }
  }
  EXPECT_EQ(accepted, 256 + 64 * 16);  // one byte; two bytes of which the first six bits are zero
}

TEST(Hex, IsLowerCase) {
  EXPECT_EQ(hex_encode(std::string_view("\x00\xab\xff", 3)), "00abff");
}

}  // namespace
}  // namespace windlass
