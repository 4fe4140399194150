#include "runtime/adapters/http_asked.h"

#include <gtest/gtest.h>

#include "protocol/base/limits.h"

namespace windlass::runtime {
namespace {

TEST(HttpAsked, ReadsPairsOfAQueryDecodedAndJoined) {
  const auto query = read_query("a=1&b=x+y%21&&a=2&flag", std::nullopt);
  ASSERT_TRUE(query);
  EXPECT_EQ(query->pairs, (TextPairs{{"a", "1,2"}, {"b", "x y!"}, {"flag", ""}}));
  EXPECT_EQ(query->text, "a=1&b=x+y%21&&a=2&flag");
}

TEST(HttpAsked, TakesTheKeyOutOfTheQueryAndLeavesOtherCodes) {
  const Digest key = sha256("s+ cret");
  const auto query = read_query("a=1&code=s%2B+cret&code=other&b=2&co%64e=s%2b%20cret", key);
  ASSERT_TRUE(query);
  EXPECT_TRUE(query->shows_key);
  EXPECT_EQ(query->text, "a=1&code=other&b=2");
  EXPECT_EQ(query->pairs, (TextPairs{{"a", "1"}, {"code", "other"}, {"b", "2"}}));
  EXPECT_EQ(read_query("code=s%2B+cret", key)->text, "");
  EXPECT_FALSE(read_query("code=wrong", key)->shows_key);
  EXPECT_FALSE(read_query("code=", key)->shows_key);
}

TEST(HttpAsked, BoundsThePairsOfAQuery) {
  std::string text;
  for (std::size_t i = 0; i < limits::kHttpQueryPairsMax; ++i) text += "&a";
  EXPECT_TRUE(read_query(text, std::nullopt));
  EXPECT_FALSE(read_query(text + "&a", std::nullopt));
}

TEST(HttpAsked, JoinsHeadersWithoutTheKey) {
  const TextPairs headers = {{"Host", "x"}, {"X-A", "1"},    {"x-functions-KEY", "k"},
                             {"x-a", "2"},  {"Cookie", "a"}, {"cookie", "b"}};
  EXPECT_EQ(joined_headers(headers), (TextPairs{{"host", "x"}, {"x-a", "1, 2"}, {"cookie", "a; b"}}));
  EXPECT_EQ(header_of(headers, "x-functions-key"), "k");
  EXPECT_EQ(header_of(headers, "x-a"), "1");
  EXPECT_EQ(header_of(headers, "x-b"), "");
}

}  // namespace
}  // namespace windlass::runtime
