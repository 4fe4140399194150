#include "conformance/runner/verdict.h"

#include <gtest/gtest.h>

#include "tests/unit/conformance/runner/sample_report.h"

namespace windlass::conformance {
namespace {

TEST(Verdict, HasANameThatReadsBack) {
  for (std::size_t i = 0; i < kVerdicts; ++i) {
    const auto verdict = static_cast<Verdict>(i);
    EXPECT_EQ(verdict_from(to_string(verdict)), verdict);
  }
  EXPECT_EQ(to_string(Verdict::HarnessError), "HARNESS-ERROR");
  EXPECT_EQ(to_string(Verdict::NonStrict), "NON-STRICT");
  EXPECT_EQ(verdict_from("ok"), std::nullopt);
  EXPECT_EQ(verdict_from(""), std::nullopt);
}

TEST(Verdict, IsTheWorseOfBothAxes) {
  CaseResult result = sample_case("HSK-1/a", Verdict::Ok);
  EXPECT_EQ(worst(result), Verdict::Ok);
  result.close = Verdict::Unclean;
  EXPECT_EQ(worst(result), Verdict::Unclean);
  result.behaviour = Verdict::Failed;
  EXPECT_EQ(worst(result), Verdict::Failed);
}

TEST(Verdict, OfAStrictRunIsNotHiddenByAnInformationalOne) {
  CaseResult result = sample_case("HSK-1/a", Verdict::Informational);
  result.close = Verdict::NonStrict;
  EXPECT_EQ(worst(result), Verdict::NonStrict);
  std::swap(result.behaviour, *result.close);
  EXPECT_EQ(worst(result), Verdict::NonStrict);
  EXPECT_TRUE(passes(result, false));
  EXPECT_FALSE(passes(result, true));
}

TEST(Verdict, PassesWhenItIsOkOrOnlyWorthKnowing) {
  for (std::size_t i = 0; i < kVerdicts; ++i) {
    const auto verdict = static_cast<Verdict>(i);
    const bool fine = verdict == Verdict::Ok || verdict == Verdict::Informational;
    EXPECT_EQ(passes(sample_case("HSK-1/a", verdict), true), fine) << to_string(verdict);
    EXPECT_EQ(passes(sample_case("HSK-1/a", verdict), false), fine || verdict == Verdict::NonStrict);
  }
}

TEST(Verdict, CountsByTheLevelOfItsClause) {
  EXPECT_TRUE(counts(sample_case("HSK-1/a", Verdict::Failed), false));
  EXPECT_FALSE(counts(sample_case("HSK-1/a", Verdict::Failed, Level::Should), false));
  EXPECT_TRUE(counts(sample_case("HSK-1/a", Verdict::Failed, Level::Should), true));
  EXPECT_FALSE(counts(sample_case("HSK-1/a", Verdict::Failed, Level::May), true));
  EXPECT_FALSE(counts(sample_case("HSK-1/a", Verdict::Ok), true));
  EXPECT_TRUE(counts(sample_case("HSK-1/a", Verdict::NonStrict), true));
}

}  // namespace
}  // namespace windlass::conformance
