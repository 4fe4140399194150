#include "conformance/runner/case.h"

#include <gtest/gtest.h>

#include <set>

#include "conformance/runner/embedded.h"

namespace windlass::conformance {
namespace {

std::string schema() {
  return embedded_files().at("conformance/case.schema.json");
}

CaseTexts built_in() {
  constexpr std::string_view kFolder = "conformance/cases/";
  CaseTexts texts;
  for (const auto& [path, text] : embedded_files()) {
    if (path.starts_with(kFolder)) texts[path.substr(kFolder.size())] = text;
  }
  return texts;
}

Result<std::vector<Case>> read_one(const std::string& text) {
  return read_cases({{"area/name.json", text}}, schema());
}

constexpr const char* kGood = R"({"id": "HSK-1/name", "level": "SHOULD", "revision": "both", "role": "worker",
  "negative": true, "says": "A sentence that is long enough.", "needs": ["hook:send"], "auto": {"ack": false},
  "faults": [{"do": "reorder", "match": {"type": "biz.x"}, "times": 2}], "deadline_ms": 1500,
  "steps": [{"open": {}}, {"expect": {"type": "biz.x"}, "within_ms": 10}],
  "behaviour": {"done": "OK", "closed": "UNCLEAN"}, "close": {"1011": "OK", "open": "NON-STRICT"}})";

TEST(CaseFile, IsReadAsItIsWritten) {
  const auto cases = read_one(kGood);
  ASSERT_TRUE(cases.has_value()) << cases.error().reason;
  const Case& read = cases->front();
  EXPECT_EQ(read.clause, "HSK-1");
  EXPECT_EQ(read.area, "area");
  EXPECT_EQ(read.level, Level::Should);
  EXPECT_EQ(read.role, Role::Worker);
  EXPECT_EQ(read.revisions, (std::vector<int>{1, 2}));
  EXPECT_TRUE(read.needs_hook("send") && !read.needs_hook("drain"));
  EXPECT_TRUE(!read.auto_ack && read.auto_answer);
  EXPECT_EQ(read.faults.at(0).kind, Fault::Kind::Reorder);
  EXPECT_EQ(read.faults.at(0).times, 2U);
  EXPECT_EQ(read.deadline, milliseconds{1500});
  EXPECT_EQ(read.steps.size(), 2U);
  EXPECT_EQ(read.behaviour.at("closed"), Verdict::Unclean);
  EXPECT_EQ(read.close.at("open"), Verdict::NonStrict);
}

TEST(CaseFile, WhatIsWrongIsNamedWithItsFile) {
  std::string wrong = kGood;
  wrong.replace(wrong.find("\"open\": {}"), 10, "\"opne\": {}");
  for (const std::string& text : {std::string{"{"}, std::string{"{}"}, wrong}) {
    const auto cases = read_one(text);
    ASSERT_FALSE(cases.has_value()) << text;
    EXPECT_NE(cases.error().reason.find("area/name.json"), std::string::npos) << cases.error().reason;
  }
  EXPECT_FALSE(read_cases({{"a/x.json", kGood}, {"b/y.json", kGood}}, schema()).has_value())
      << "one id twice";
}

// What an implementer is promised of the suite as it is built.
TEST(BuiltInCases, AreManyAndHalfOfThemNegative) {
  const auto cases = read_cases(built_in(), schema());
  ASSERT_TRUE(cases.has_value()) << cases.error().reason;
  EXPECT_GE(cases->size(), 200U);
  std::size_t negative = 0;
  std::set<Role> roles;
  for (const Case& each : *cases) {
    negative += each.negative ? 1 : 0;
    roles.insert(each.role);
  }
  EXPECT_GE(negative * 2, cases->size());
  EXPECT_EQ(roles.size(), 2U);
}

}  // namespace
}  // namespace windlass::conformance
