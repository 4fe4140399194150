#include "conformance/runner/pattern.h"

#include <gtest/gtest.h>

namespace windlass::conformance {
namespace {

bool fit(const char* pattern, const char* value) {
  Variables captured;
  const json::value parsed = json::parse(value);
  return fits(json::parse(pattern), &parsed, captured);
}

TEST(Pattern, FitsByMemberWhateverElseIsThere) {
  EXPECT_TRUE(fit(R"({"a": {"b": 1}})", R"({"a": {"b": 1, "c": 2}, "d": 3})"));
  EXPECT_FALSE(fit(R"({"a": {"b": 1}})", R"({"a": {"b": 2}})"));
  EXPECT_FALSE(fit(R"({"a": 1})", R"({})"));
  EXPECT_FALSE(fit(R"({"a": 1})", R"([1])"));
  EXPECT_TRUE(fit(R"([1, {"x": 2}])", R"([1, {"x": 2, "y": 3}])"));
  EXPECT_FALSE(fit("[1]", "[1, 2]"));
}

TEST(Pattern, OperatorsSayWhatFits) {
  EXPECT_TRUE(fit(R"({"a": {"$absent": true}})", "{}"));
  EXPECT_FALSE(fit(R"({"a": {"$absent": true}})", R"({"a": null})"));
  EXPECT_TRUE(fit(R"({"a": {"$any": true}})", R"({"a": 0})"));
  EXPECT_FALSE(fit(R"({"a": {"$any": true}})", "{}"));
  EXPECT_TRUE(fit(R"({"$in": [1, {"$prefix": "x"}]})", R"("xy")"));
  EXPECT_FALSE(fit(R"({"$in": [1, 2]})", "3"));
  EXPECT_TRUE(fit(R"({"$all": [{"$gte": 1}, {"$lte": 3}]})", "3"));
  EXPECT_FALSE(fit(R"({"$all": [{"$gte": 1}, {"$lte": 3}]})", "4"));
  EXPECT_TRUE(fit(R"({"a": {"$not": 1}})", "{}"));
  EXPECT_FALSE(fit(R"({"a": {"$not": 1}})", R"({"a": 1})"));
  EXPECT_TRUE(fit(R"({"$contains": "bc"})", R"("abcd")"));
  EXPECT_FALSE(fit(R"({"$prefix": "b"})", R"("abcd")"));
  EXPECT_FALSE(fit(R"({"$gte": 1})", R"("2")"));
  EXPECT_FALSE(fit(R"({"$unknown": 1})", "1"));
}

TEST(Pattern, WhatIsCapturedIsAVariableFromThenOn) {
  Variables captured;
  const json::value frame = json::parse(R"({"id": "f-1", "n": 7})");
  ASSERT_TRUE(
      fits(json::parse(R"({"id": {"$capture": "first"}, "n": {"$capture": "count"}})"), &frame, captured));
  EXPECT_EQ(
      substitute(json::parse(R"({"for": "$first", "n": "$count", "text": "${first}-${count}"})"), captured),
      json::parse(R"({"for": "f-1", "n": 7, "text": "f-1-7"})"));
}

TEST(Pattern, AVariableThatIsNotKnownStaysAsItIsWritten) {
  EXPECT_EQ(substitute(json::parse(R"(["$what", "a ${what}", "$$5", "5$"])"), {}),
            json::parse(R"(["$what", "a ${what}", "$5", "5$"])"));
}

TEST(Pattern, FillIsSoManyLetters) {
  EXPECT_EQ(substitute(json::value("a${fill:3}b"), {}), json::value("axxxb"));
}

TEST(Pattern, MergesObjectsAndRemovesWhatIsNull) {
  json::value target = json::parse(R"({"a": {"b": 1, "c": 2}, "d": [1]})");
  merge(target, json::parse(R"({"a": {"b": null, "e": 3}, "d": [2]})"));
  EXPECT_EQ(target, json::parse(R"({"a": {"c": 2, "e": 3}, "d": [2]})"));
}

}  // namespace
}  // namespace windlass::conformance
