#include "runtime/adapters/http_asked.h"

#include <gtest/gtest.h>

#include "protocol/base/limits.h"

namespace windlass::runtime {
namespace {

const IsKey kNoKey = [](std::string_view) { return false; };

TEST(HttpAsked, ReadsPairsOfAQueryDecodedAndJoined) {
  const auto query = read_query("a=1&b=x+y%21&&a=2&flag", kNoKey);
  ASSERT_TRUE(query);
  EXPECT_EQ(query->pairs, (TextPairs{{"a", "1,2"}, {"b", "x y!"}, {"flag", ""}}));
  EXPECT_EQ(query->text, "a=1&b=x+y%21&&a=2&flag");
}

TEST(HttpAsked, TakesTheKeyOutOfTheQueryAndLeavesOtherCodes) {
  const IsKey key = [](std::string_view shown) { return shown == "s+ cret"; };
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
  EXPECT_TRUE(read_query(text, kNoKey));
  EXPECT_FALSE(read_query(text + "&a", kNoKey));
}

TEST(HttpAsked, APathIsReadAsItIsMeant) {
  const auto text = [](std::string_view path) {
    const auto read = read_path(path);
    return read ? read->text : "none";
  };
  EXPECT_EQ(text("/api/a/../b"), "/api/b");
  EXPECT_EQ(text("/api/%2e%2E/%2e/b%20c"), "/b%20c");
  EXPECT_EQ(text("/../../x"), "/x");
  EXPECT_EQ(text("/a/b/.."), "/a/");
  EXPECT_EQ(text("/a/"), "/a/");
  EXPECT_EQ(text("/"), "/");
  EXPECT_EQ(text("//"), "//");
  EXPECT_EQ(text("/a//b%2Fc"), "/a//b%2Fc");
  EXPECT_EQ(text("/a//../b"), "/a/b");
  EXPECT_EQ(read_path("/a//b%2f%2F../")->segments, (std::vector<std::string>{"a", "", "b%2f%2F.."}));
  EXPECT_EQ(text("/%%2F"), "none");
  EXPECT_EQ(text("/%zz"), "none");
  EXPECT_EQ(read_path("/a%20b/..c")->segments, (std::vector<std::string>{"a b", "..c"}));
}

TEST(HttpAsked, BelievesOnlySchemesOfHttp) {
  EXPECT_EQ(forwarded_scheme({{"X-Forwarded-Proto", "HTTPS"}}), "https");
  EXPECT_EQ(forwarded_scheme({{"X-Forwarded-Proto", "javascript"}}), "");
  EXPECT_EQ(forwarded_scheme({}), "");
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
