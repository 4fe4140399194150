#include "scheduler/shell/admin_request.h"

#include <gtest/gtest.h>

#include "protocol/crypto/percent_encoding.h"

namespace windlass {
namespace {

using Parts = std::vector<std::string>;

std::string reason(const Result<Done>& result) {
  return result ? "" : result.error().reason;
}

TEST(AdminTarget, IsDecodedPartByPart) {
  const auto target = parse_target("/v1/a%2Fb/c%20d?x=1%262&y");
  ASSERT_TRUE(target.has_value());
  EXPECT_EQ(target->path, (Parts{"v1", "a/b", "c d"}));
  EXPECT_EQ(target->query.at("x"), "1&2");
  EXPECT_EQ(target->query.at("y"), "");
  EXPECT_TRUE(parse_target("/")->path.empty());
}

TEST(AdminTarget, IsRefusedWhenItIsBroken) {
  for (const char* text : {"", "v1", "http://x/", "/%", "/%4", "/%zz", "/?x=%f", "/?x=1&x=2"}) {
    EXPECT_FALSE(parse_target(text).has_value()) << text;
  }
}

TEST(PercentEncoding, GivesBackEveryByte) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_EQ(percent_decode(percent_encode(all)), all);
  EXPECT_EQ(percent_encode("a/b c~"), "a%2Fb%20c~");
}

TEST(AdminQuery, FindsWhatNobodyAskedFor) {
  const auto target = parse_target("/?tenant=a&limit=7&extra=1");
  QueryReader query{*target};
  EXPECT_EQ(query.text("tenant"), "a");
  EXPECT_EQ(query.integer("limit", {1, 10}), 7U);
  EXPECT_EQ(query.text("absent"), std::nullopt);
  EXPECT_EQ(reason(query.finish()), "query parameter 'extra' is not known here");
}

TEST(AdminQuery, RefusesNumbersThatAreNoneOrOutOfRange) {
  for (const std::string value : {"", "0", "11", "-1", "1.5", "7x", "99999999999999999999999"}) {
    const auto target = parse_target("/?limit=" + value);
    QueryReader query{*target};
    EXPECT_EQ(query.integer("limit", {1, 10}), std::nullopt);
    EXPECT_EQ(reason(query.finish()), "query parameter 'limit': a whole number from 1 to 10 is wanted")
        << value;
  }
}

TEST(AdminBody, KeepsAnObjectByteForByte) {
  BodyReader body{"{ \"p\" : { \"b\":1.50,\n\"a\":\"\\u0041\" } , \"n\":3,\"t\":\"\\u0041\"}"};
  EXPECT_EQ(body.object("p"), "{ \"b\":1.50,\n\"a\":\"\\u0041\" }");
  EXPECT_EQ(body.integer("n", {0, 10}), 3U);
  EXPECT_EQ(body.text("t"), "A");
  EXPECT_TRUE(body.finish().has_value());
}

TEST(AdminBody, MayBeEmpty) {
  BodyReader body{""};
  EXPECT_EQ(body.text("t"), std::nullopt);
  EXPECT_TRUE(body.finish().has_value());
}

TEST(AdminBody, NamesTheMemberThatIsWrong) {
  const auto told = [](const char* text) {
    BodyReader body{text};
    body.text("t");
    body.integer("n", {1, 9});
    body.object("p");
    return reason(body.finish());
  };
  EXPECT_EQ(told(R"({"t":1})"), "/t: a text is wanted");
  EXPECT_EQ(told(R"({"t":null})"), "/t: a text is wanted");
  EXPECT_EQ(told(R"({"n":"1"})"), "/n: a whole number from 1 to 9 is wanted");
  EXPECT_EQ(told(R"({"n":-1})"), "/n: a whole number from 1 to 9 is wanted");
  EXPECT_EQ(told(R"({"n":1e1})"), "/n: a whole number from 1 to 9 is wanted");
  EXPECT_EQ(told(R"({"n":10})"), "/n: a whole number from 1 to 9 is wanted");
  EXPECT_EQ(told(R"({"p":"{}"})"), "/p: a JSON object is wanted");
  EXPECT_EQ(told(R"({"a/b~":1})"), "/a~1b~0: no such member is known here");
  EXPECT_EQ(told(R"({"t":"a","t":"a"})"), "/t: it is given twice");
  EXPECT_EQ(told("[1]"), "the body is not a JSON object");
  EXPECT_EQ(told("7"), "the body is not a JSON object");
  EXPECT_TRUE(told(R"({"t":"a"} x)").starts_with("the body is not JSON"));
  EXPECT_TRUE(told(R"({"t":)").starts_with("the body is not JSON"));
  EXPECT_TRUE(told("{\"t\":\"\xff\"}").starts_with("the body is not JSON"));
}

}  // namespace
}  // namespace windlass
