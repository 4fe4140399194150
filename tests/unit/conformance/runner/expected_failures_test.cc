#include "conformance/runner/expected_failures.h"

#include <gtest/gtest.h>

#include "tests/unit/conformance/runner/sample_report.h"

namespace windlass::conformance {
namespace {

using Known = std::vector<ExpectedFailures::Known>;

std::string refusal(std::string_view text) {
  const auto failures = ExpectedFailures::parse(text, "known.txt");
  return failures ? "" : failures.error().reason;
}

RunReport applied(std::string_view text, std::vector<CaseResult> cases, const Known& known,
                  bool strict = false) {
  RunReport report;
  report.strict = strict;
  report.cases = std::move(cases);
  auto failures = ExpectedFailures::parse(text, "known.txt");
  EXPECT_TRUE(failures) << failures.error().reason;
  failures->apply(report, known);
  return report;
}

TEST(ExpectedFailures, AreReadWithCommentsAndRevisions) {
  const auto failures = ExpectedFailures::parse(
      "# why\n\n  HSK-1/register-first  # issue 17\r\nRES-14/replay@1\nRES-14/replay@2\nHSK-2/x",
      "known.txt");
  ASSERT_TRUE(failures) << failures.error().reason;
  EXPECT_TRUE(failures->contains("HSK-1/register-first", 1));
  EXPECT_TRUE(failures->contains("HSK-1/register-first", 2));
  EXPECT_TRUE(failures->contains("RES-14/replay", 1));
  EXPECT_TRUE(failures->contains("HSK-2/x", 2));
  EXPECT_FALSE(failures->contains("HSK-2/y", 2));
  EXPECT_TRUE(ExpectedFailures::parse("", "known.txt"));
}

TEST(ExpectedFailures, RevisionOfAnEntryIsTheOnlyOneItCovers) {
  const auto failures = ExpectedFailures::parse("RES-14/replay@1\n", "known.txt");
  ASSERT_TRUE(failures);
  EXPECT_TRUE(failures->contains("RES-14/replay", 1));
  EXPECT_FALSE(failures->contains("RES-14/replay", 2));
}

TEST(ExpectedFailures, AreRefusedWithTheLine) {
  for (const char* text : {"HSK-1", "HSK-1/", "/a", "hsk-1/a", "HSK-/a", "HSKX-1/a", "HSK-1/A", "HSK-1/a b",
                           "HSK-1a/b", "HSK"}) {
    EXPECT_EQ(refusal("# a\n" + std::string{text}),
              "known.txt, line 2: '" + std::string{text} + "' is not a case id such as HSK-1/register-first");
  }
  for (const char* text : {"HSK-1/a@", "HSK-1/a@3", "HSK-1/a@1@2", "HSK-1/a@ 1"}) {
    EXPECT_EQ(refusal(text), "known.txt, line 1: '" + std::string{text} +
                                 "' names no revision: write @1 or @2 after the id");
  }
  EXPECT_EQ(refusal("HSK-1/a\n\nHSK-1/a@2"), "known.txt, line 3: 'HSK-1/a@2' is there already, in line 1");
  EXPECT_EQ(refusal("\x1B[2J\xFF"),
            "known.txt, line 1: '␛[2J\uFFFD' is not a case id such as HSK-1/register-first");
}

TEST(ExpectedFailures, FailureThatIsListedDoesNotCount) {
  const RunReport report = applied("HSK-1/a\n", {sample_case("HSK-1/a", Verdict::Failed)}, {{"HSK-1/a", 2}});
  EXPECT_EQ(report.expected_failures, std::vector<std::string>{"HSK-1/a@2"});
  EXPECT_TRUE(report.stale.empty());
  EXPECT_EQ(exit_code(report), 0);
}

TEST(ExpectedFailures, EntryWhoseCasePassesIsStale) {
  const RunReport report =
      applied("# x\nHSK-1/a@2\n", {sample_case("HSK-1/a", Verdict::Ok)}, {{"HSK-1/a", 2}});
  EXPECT_EQ(report.stale,
            std::vector<std::string>{"known.txt, line 2: HSK-1/a@2 passes now; take the line out"});
  EXPECT_EQ(exit_code(report), 1);
}

TEST(ExpectedFailures, EntryWithoutACaseIsStale) {
  const RunReport report = applied("HSK-1/a@1\n", {}, {{"HSK-1/a", 2}});
  EXPECT_EQ(report.stale,
            std::vector<std::string>{
                "known.txt, line 1: HSK-1/a@1 names no case; take the line out or mend the id"});
}

TEST(ExpectedFailures, FilterMakesNothingStale) {
  const Known both{{"HSK-1/a", 1}, {"HSK-1/a", 2}};
  EXPECT_TRUE(applied("HSK-1/a\n", {}, both).stale.empty());
  // Revision 1, which may fail, was not asked for.
  EXPECT_TRUE(applied("HSK-1/a\n", {sample_case("HSK-1/a", Verdict::Ok)}, both).stale.empty());
}

TEST(ExpectedFailures, EntryForBothRevisionsHoldsWhileOneFails) {
  const Known both{{"HSK-1/a", 1}, {"HSK-1/a", 2}};
  const RunReport report = applied(
      "HSK-1/a\n",
      {sample_case("HSK-1/a", Verdict::Ok), sample_case("HSK-1/a", Verdict::Failed, Level::Must, 1)}, both);
  EXPECT_TRUE(report.stale.empty());
  EXPECT_EQ(report.expected_failures, std::vector<std::string>{"HSK-1/a@1"});
}

TEST(ExpectedFailures, NonStrictIsAFailureOfAStrictRunOnly) {
  const Known known{{"HSK-1/a", 2}};
  EXPECT_EQ(applied("HSK-1/a\n", {sample_case("HSK-1/a", Verdict::NonStrict)}, known, true).stale.size(), 0U);
  EXPECT_EQ(applied("HSK-1/a\n", {sample_case("HSK-1/a", Verdict::NonStrict)}, known, false).stale.size(),
            1U);
}

}  // namespace
}  // namespace windlass::conformance
