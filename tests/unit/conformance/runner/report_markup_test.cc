// The reports in markup: JUnit and HTML. That parsers and a browser agree is for html_report_test.py.
#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <array>

#include "conformance/runner/report.h"
#include "conformance/runner/report_html_parts.h"
#include "protocol/base/utf8.h"
#include "tests/unit/conformance/runner/sample_report.h"

namespace windlass::conformance {
namespace {

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::size_t times(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

RunReport hostile_report() {
  RunReport report = sample_report();
  for (CaseResult& each : report.cases) {
    for (std::string* text : {&each.id, &each.clause, &each.area, &each.says, &each.outcome,
                              &each.close_outcome, &each.expected, &each.came}) {
      *text += hostile_text();
    }
    each.steps.push_back(hostile_text());
    for (const auto kind :
         {WireEvent::Kind::Sent, WireEvent::Kind::Received, WireEvent::Kind::Note, WireEvent::Kind::Step}) {
      each.wire.push_back({kind, 3, hostile_text(), hostile_text()});
      each.wire.push_back({kind, 3, "main", R"({"type":"</script><script>alert(3)</script>"})"});
    }
  }
  report.title = report.subject = report.tool_version = report.started_at = hostile_text();
  report.stale = {hostile_text()};
  return report;
}

// No control characters, and nothing that is not UTF-8.
void expect_clean(const std::string& text) {
  EXPECT_TRUE(is_utf8(text));
  for (const char c : text)
    EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20U || c == '\n' || c == '\t') << int{c};
  EXPECT_FALSE(has(text, "\u202E"));
}

TEST(ReportJunit, HasASuiteForEachAreaAndACaseForEachRevision) {
  RunReport report = sample_report();
  report.cases[1].area = "resume";
  const std::string xml = report_junit(report);
  EXPECT_TRUE(has(
      xml,
      R"(<testsuites name="Scheduler of staging" tests="5" failures="1" errors="0" skipped="2" time="65">)"))
      << xml;
  EXPECT_TRUE(
      has(xml, R"(<testsuite name="handshake" tests="4" failures="1" errors="0" skipped="2" time="0.05")"));
  EXPECT_TRUE(has(xml, R"(<testsuite name="resume" tests="1" failures="0")"));
  EXPECT_TRUE(has(xml, R"(<testcase name="HSK-1/first revision 1" classname="conformance.handshake")"));
  EXPECT_TRUE(has(xml, R"(<property name="subject" value="wss://staging.example:7443"/>)"));
  EXPECT_TRUE(has(xml, R"(<property name="close" value="OK"/>)"));
}

TEST(ReportJunit, FailureSaysWhatWasExpectedAndWhatCame) {
  const std::string xml = report_junit(sample_report());
  EXPECT_TRUE(has(xml,
                  "<failure type=\"FAILED\" message=\"FAILED: {&quot;type&quot;: &quot;control.ack&quot;}\">"
                  "A register before the handshake is refused.\n"
                  "expected: {&quot;type&quot;: &quot;control.reset&quot;}\ncame: {&quot;type&quot;: "
                  "&quot;control.ack&quot;}"))
      << xml;
  EXPECT_TRUE(has(xml, "<skipped message=\"a SHOULD does not count here; WRONG-CODE: "));
  EXPECT_TRUE(has(xml, "<skipped message=\"expected failure; UNIMPLEMENTED: "));
}

TEST(ReportJunit, TellsTheRunnersFaultsAndStaleEntriesApart) {
  RunReport report = sample_report();
  report.cases = {sample_case("HSK-1/first", Verdict::HarnessError)};
  report.stale = {"known.txt, line 3: gone"};
  const std::string xml = report_junit(report);
  EXPECT_TRUE(has(xml, "<error type=\"HARNESS-ERROR\""));
  EXPECT_TRUE(has(xml, "<testsuite name=\"expected-failures\" tests=\"1\" failures=\"1\""));
}

TEST(ReportJunit, HostileTextStaysText) {
  const std::string xml = report_junit(hostile_report());
  expect_clean(xml);
  for (const char* part : {"<script", "<img", "]]>", "<![CDATA["}) EXPECT_FALSE(has(xml, part)) << part;
}

TEST(ReportHtml, HasARowForEachResultAndALogInEach) {
  const std::string html = report_html(sample_report());
  EXPECT_TRUE(has(html, "<table id=\"matrix\">"));
  EXPECT_TRUE(has(html, R"(data-case="HSK-1/first" data-revision="1" data-verdict="NON-STRICT")"));
  EXPECT_TRUE(has(html, R"(data-case="HSK-1/first" data-revision="2" data-verdict="OK")"));
  EXPECT_EQ(times(html, "<tr id="), 5U);
  EXPECT_EQ(times(html, "<ol class=\"wire\">"), 5U);
  EXPECT_EQ(times(html, "<details>"), 5U);
  EXPECT_TRUE(has(html, "2.5 ms</time>"));
  EXPECT_TRUE(
      has(html, "{&quot;type&quot;: &quot;control.ack&quot;, &quot;payload&quot;: {&quot;ok&quot;: true}}"));
  EXPECT_TRUE(has(html, "✗ Failed: 1 of 5"));
  EXPECT_TRUE(has(html, "href=\"#HSK-2/second@2\""));
}

TEST(ReportHtml, NeedsNoOtherResource) {
  const std::string html = report_html(sample_report());
  for (const char* part : {" src=", "url(", "<link", "@import", "http://", "https://"})
    EXPECT_FALSE(has(html, part)) << part;
}

TEST(ReportHtml, HostileTextStaysText) {
  const std::string html = report_html(hostile_report());
  expect_clean(html);
  EXPECT_EQ(times(html, "<script"), 1U);
  EXPECT_EQ(times(html, "</script"), 1U);
  EXPECT_FALSE(has(html, "<img"));
}

TEST(ReportHtml, PolicyLetsItsOwnScriptRunAndNoOther) {
  std::array<unsigned char, 32> digest{};
  const std::string_view script = report_script();
  ASSERT_EQ(EVP_Digest(script.data(), script.size(), digest.data(), nullptr, EVP_sha256(), nullptr), 1);
  std::array<unsigned char, 45> base64{};
  EVP_EncodeBlock(base64.data(), digest.data(), static_cast<int>(digest.size()));
  EXPECT_EQ(std::string(base64.begin(), base64.end() - 1), report_script_hash());
  EXPECT_TRUE(
      has(report_html(sample_report()), "script-src 'sha256-" + std::string{report_script_hash()} + "'"));
}

TEST(ReportHtml, LongLogsAndLongFramesAreCutInTheMiddleAndAtTheEnd) {
  RunReport report = sample_report();
  report.cases.resize(1);
  report.cases[0].wire.assign(1000, {WireEvent::Kind::Received, 1, "main", "{}"});
  report.cases[0].wire[0].text = '"' + std::string(1'000'000, 'x') + '"';
  const std::string html = report_html(report);
  EXPECT_LT(html.size(), 200'000U);
  EXPECT_TRUE(has(html, "600 lines are left out here"));
  EXPECT_TRUE(has(html, "1000002 bytes in all"));
  EXPECT_EQ(times(html, "<li class=\"received\">"), 400U);
}

TEST(ReportHtml, RunWithoutFailuresSaysSo) {
  RunReport report = sample_report();
  report.cases.erase(report.cases.begin());
  const std::string html = report_html(report);
  EXPECT_TRUE(has(html, "✓ Passed"));
  EXPECT_FALSE(has(html, "id=\"failures\""));
  EXPECT_TRUE(has(report_html(RunReport{}), "<table id=\"matrix\">"));
}

}  // namespace
}  // namespace windlass::conformance
