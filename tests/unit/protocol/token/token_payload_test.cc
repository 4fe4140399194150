#include <gtest/gtest.h>

#include <string>

#include "protocol/base/limits.h"
#include "protocol/base/random.h"
#include "protocol/token/token_payload.h"

namespace windlass {
namespace {

WallTime issued_at(std::int64_t count) {
  return WallTime{milliseconds{count}};
}

TokenClaims claims() {
  return {.sid = "s-1",
          .wid = "i-7f",
          .tenant = "acme",
          .exp = issued_at(3600001),
          .iat = issued_at(1),
          .kid = "k1",
          .gen = 7};
}

constexpr std::string_view kText =
    R"({"sid":"s-1","wid":"i-7f","tenant":"acme","exp":3600001,"iat":1,"kid":"k1","gen":7})";

//= TOK-1
TEST(TokenPayload, IsJsonInOneFixedSpelling) {
  EXPECT_EQ(encode_token_payload(claims()), kText);
  EXPECT_EQ(parse_token_payload(kText), claims());
}

TEST(TokenPayload, EscapesQuotesBackslashesAndControlCharactersOnly) {
  TokenClaims odd = claims();
  odd.sid = "a\"b\\c/";
  odd.wid = std::string("\0\n\x1f\x7f", 4);
  odd.tenant = "Zürich \xe6\x97\xa5";
  const std::string text = encode_token_payload(odd);
  EXPECT_NE(text.find(R"("sid":"a\"b\\c/","wid":"\u0000\u000a\u001f)"
                      "\x7f\",\"tenant\":\"Zürich \xe6\x97\xa5\""),
            std::string::npos)
      << text;
  EXPECT_EQ(parse_token_payload(text), odd);
}

TEST(TokenPayload, RoundTripsAnyBytesInItsIds) {
  Random random{11};
  for (int round = 0; round < 500; ++round) {
    TokenClaims any = claims();
    for (std::string* id : {&any.sid, &any.wid, &any.tenant, &any.kid}) {
      id->resize(random.below(40));
      for (char& byte : *id) byte = static_cast<char>(random.below(256));
    }
    any.gen = random.below(limits::kIntegerMax + 1);
    ASSERT_EQ(parse_token_payload(encode_token_payload(any)), any);
  }
}

TEST(TokenPayload, RefusesEveryOtherSpelling) {
  const auto refuses = [](std::string_view from, std::string_view to) {
    std::string text{kText};
    const auto place = text.find(from);
    ASSERT_NE(place, std::string::npos) << from;
    text.replace(place, from.size(), to);
    EXPECT_EQ(parse_token_payload(text), std::nullopt) << text;
  };
  refuses("{", " {");
  refuses("}", "} ");
  refuses("}", ",\"more\":1}");
  refuses("s-1", "s\\u002d1");            // escaped without need
  refuses("s-1", "s\\/1");                //
  refuses("s-1", "s\\n1");                // the short form of \u000a
  refuses("s-1", "s\\u000A1");            // upper case
  refuses("s-1", "s\\u00");               // cut off
  refuses("s-1", "s\n1");                 // not escaped
  refuses("\"gen\":7", "\"gen\":07");     //
  refuses("\"gen\":7", "\"gen\":7.0");    //
  refuses("\"gen\":7", "\"gen\":-7");     //
  refuses("\"gen\":7", "\"gen\":\"7\"");  //
  refuses("\"gen\":7", "\"gen\":");       //
  refuses("\"gen\":7", "\"gen\":9007199254740992");
  refuses("\"gen\":7", "\"gen\":18446744073709551617");
  refuses(R"("sid":"s-1","wid":"i-7f")", R"("wid":"i-7f","sid":"s-1")");
  refuses(R"("tenant":"acme",)", "");
}

TEST(TokenPayload, RefusesEveryPrefix) {
  for (std::size_t size = 0; size < kText.size(); ++size) {
    ASSERT_EQ(parse_token_payload(kText.substr(0, size)), std::nullopt) << size;
  }
}

TEST(TokenPayload, WhatItParsesItWouldWriteTheSameWay) {
  Random random{12};
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text{kText};
    for (std::uint64_t edits = 1 + random.below(3); edits > 0; --edits) {
      text[random.below(text.size())] = static_cast<char>(random.below(128));
    }
    const auto parsed = parse_token_payload(text);
    if (!parsed) continue;
    ++accepted;
    ASSERT_EQ(encode_token_payload(*parsed), text);
  }
  EXPECT_GT(accepted, 100);  // else nothing was tried
}

}  // namespace
}  // namespace windlass
