#include <gtest/gtest.h>

#include <algorithm>

#include "conformance/runner/report.h"
#include "conformance/runner/report_text.h"
#include "tests/unit/conformance/runner/sample_report.h"

namespace windlass::conformance {
namespace {

std::string problem_of(const std::string& json) {
  const auto report = report_from_json(json);
  return report ? "" : report.error().reason;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Report, SaysHowAResultStands) {
  RunReport report = sample_report();
  EXPECT_EQ(standing(report, report.cases[0]), Standing::Failed);
  EXPECT_EQ(standing(report, report.cases[1]), Standing::Passed);
  EXPECT_EQ(standing(report, report.cases[2]), Standing::Passed);
  EXPECT_EQ(standing(report, report.cases[3]), Standing::Tolerated);
  EXPECT_EQ(standing(report, report.cases[4]), Standing::Expected);
  report.strict = true;
  EXPECT_EQ(count_standing(report, Standing::Failed), 3U);
}

TEST(Report, EndsTheRunWithACodeThatSaysWhy) {
  RunReport report = sample_report();
  EXPECT_EQ(exit_code(report), 1);
  report.cases.erase(report.cases.begin());
  EXPECT_EQ(exit_code(report), 0);
  report.cases.push_back(sample_case("HSK-5/unplayed", Verdict::HarnessError));
  EXPECT_EQ(exit_code(report), 3);
  report.stale = {"a line"};
  EXPECT_EQ(exit_code(report), 1);
}

TEST(ReportJson, ReadsBackAsItWasWritten) {
  RunReport report = sample_report();
  report.stale = {"a line"};
  report.strict = true;
  report.cases[0].negative = true;
  report.cases[0].role = Role::Worker;
  const std::string json = report_json(report);
  const auto again = report_from_json(json);
  ASSERT_TRUE(again) << again.error().reason;
  EXPECT_EQ(report_json(*again), json);
  EXPECT_EQ(again->cases.size(), report.cases.size());
  EXPECT_EQ(again->cases[0].wire.size(), 4U);
  EXPECT_EQ(again->cases[0].wire[3].text, report.cases[0].wire[3].text);
}

TEST(ReportJson, HasTheSameOrderHoweverCasesEnded) {
  RunReport report = sample_report();
  const std::string json = report_json(report);
  std::ranges::reverse(report.cases);
  EXPECT_EQ(report_json(report), json);
  EXPECT_LT(json.find("HSK-1/first"), json.find("HSK-2/second"));
}

TEST(ReportJson, HoldsWhatAHostilePeerSent) {
  RunReport report = sample_report();
  report.cases[0].came = report.cases[0].wire[3].text = hostile_text();
  const std::string json = report_json(report);
  EXPECT_EQ(json.find('<'), std::string::npos);
  const auto again = report_from_json(json);
  ASSERT_TRUE(again) << again.error().reason;
  EXPECT_EQ(in_order(*again)[2]->came, clean_utf8(hostile_text()));
}

TEST(ReportJson, EmptyRunIsAReportToo) {
  const auto again = report_from_json(report_json(RunReport{}));
  ASSERT_TRUE(again) << again.error().reason;
  EXPECT_TRUE(again->cases.empty());
}

TEST(ReportJson, NamesTheMemberThatIsWrong) {
  const std::string json = report_json(sample_report());
  EXPECT_EQ(problem_of("{}").substr(0, 41), "this is no report of windlass-conformance");
  EXPECT_EQ(problem_of("[]").substr(0, 41), "this is no report of windlass-conformance");
  EXPECT_EQ(problem_of("{").substr(0, 22), "the report is not JSON");
  EXPECT_EQ(problem_of(""), problem_of(" "));
  EXPECT_EQ(problem_of(replaced(json, "\"strict\": false", "\"strict\": 0")),
            "the report cannot be read: report.strict is not true or false");
  EXPECT_EQ(problem_of(replaced(json, "\"behaviour\": \"NON-STRICT\"", "\"behaviour\": \"FINE\"")),
            "the report cannot be read: report.cases[0].behaviour is 'FINE', which is no verdict");
  EXPECT_EQ(problem_of(replaced(json, "\"kind\": \"note\"", "\"kind\": \"x\"")),
            "the report cannot be read: report.cases[0].wire[1].kind is 'x', which is not known");
  EXPECT_EQ(problem_of(replaced(json, "\"revision\": 1", "\"revision\": 1.5")),
            "the report cannot be read: report.cases[0].revision is not a revision");
  EXPECT_EQ(problem_of(replaced(json, "\"close\": null", "\"shut\": null")),
            "the report cannot be read: report.cases[0].close is not text");
  EXPECT_EQ(problem_of(replaced(json, "\"cases\": [", "\"cases\": 7, \"other\": [")),
            "the report cannot be read: report.cases is not an array");
  EXPECT_EQ(problem_of(replaced(json, "\"wire\": [", "\"wire\": [7, ")),
            "the report cannot be read: report.cases[0].wire[0].kind is not text");
}

}  // namespace
}  // namespace windlass::conformance
