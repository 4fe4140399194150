#include <map>

#include "conformance/runner/report.h"
#include "conformance/runner/report_text.h"

namespace windlass::conformance {
namespace {

constexpr std::size_t kMessageColumns = 300;

// An attribute with its name. A parser would make spaces of line feeds, so they are written as references.
std::string attribute(std::string_view name, std::string_view value) {
  std::string text{' '};
  (text += name) += "=\"";
  for (const char c : escaped(value)) {
    if (c == '\n') {
      text += "&#10;";
    } else if (c == '\t') {
      text += "&#9;";
    } else {
      text += c;
    }
  }
  return text += '"';
}

std::string junit_seconds(double milliseconds) {
  return json_number(milliseconds / 1000);
}

std::string property(std::string_view name, std::string_view value) {
  return "      <property" + attribute("name", name) + attribute("value", value) + "/>\n";
}

std::string failure_text(const CaseResult& result) {
  std::string text = result.says + "\nexpected: " + result.expected + "\ncame: " + result.came +
                     "\noutcome: " + result.outcome;
  if (!result.close_outcome.empty()) text += "\nconnection ended: " + result.close_outcome;
  return text;
}

std::string outcome_element(const RunReport& report, const CaseResult& result) {
  const std::string verdict{to_string(worst(result))};
  const std::string message =
      one_line(verdict + ": " + (result.came.empty() ? result.says : result.came), kMessageColumns);
  switch (standing(report, result)) {
    case Standing::Passed:
      return {};
    case Standing::Tolerated: {
      const std::string why = "a " + std::string{to_string(result.level)} + " does not count here; ";
      return "      <skipped" + attribute("message", why + message) + "/>\n";
    }
    case Standing::Expected:
      return "      <skipped" + attribute("message", "expected failure; " + message) + "/>\n";
    case Standing::Failed:
      break;
  }
  // CI systems tell what is broken in the tested (failure) from what is broken in the test (error).
  const std::string_view element = worst(result) == Verdict::HarnessError ? "error" : "failure";
  return "      <" + std::string{element} + attribute("type", verdict) + attribute("message", message) + ">" +
         escaped(failure_text(result)) + "</" + std::string{element} + ">\n";
}

std::string testcase(const RunReport& report, const CaseResult& result) {
  std::string text = "    <testcase" +
                     attribute("name", result.id + " revision " + std::to_string(result.revision)) +
                     attribute("classname", "conformance." + result.area) +
                     attribute("time", junit_seconds(result.milliseconds)) + ">\n";
  text += "      <properties>\n";
  const auto add = [&](std::string_view name, std::string_view value) {
    text += "  " + property(name, value);
  };
  add("clause", result.clause);
  add("level", to_string(result.level));
  add("role", to_string(result.role));
  add("revision", std::to_string(result.revision));
  add("verdict", to_string(worst(result)));
  add("behaviour", to_string(result.behaviour));
  if (result.close) add("close", to_string(*result.close));
  text += "      </properties>\n";
  return text + outcome_element(report, result) + "    </testcase>\n";
}

struct Suite {
  std::string testcases;
  std::size_t tests = 0;
  std::size_t failures = 0;
  std::size_t errors = 0;
  std::size_t skipped = 0;
  double milliseconds = 0;

  void count(const RunReport& report, const CaseResult& result) {
    ++tests;
    milliseconds += result.milliseconds;
    const Standing stands = standing(report, result);
    if (stands == Standing::Failed) ++(worst(result) == Verdict::HarnessError ? errors : failures);
    if (stands == Standing::Tolerated || stands == Standing::Expected) ++skipped;
  }
  std::string counts() const {
    return attribute("tests", std::to_string(tests)) + attribute("failures", std::to_string(failures)) +
           attribute("errors", std::to_string(errors)) + attribute("skipped", std::to_string(skipped));
  }
};

std::map<std::string, Suite> suites_of(const RunReport& report) {
  std::map<std::string, Suite> suites;
  for (const CaseResult* each : in_order(report)) {
    Suite& suite = suites[each->area];
    suite.count(report, *each);
    suite.testcases += testcase(report, *each);
  }
  for (const std::string& sentence : report.stale) {
    Suite& suite = suites["expected-failures"];
    ++suite.tests;
    ++suite.failures;
    suite.testcases += "    <testcase" + attribute("name", sentence) +
                       attribute("classname", "conformance.expected-failures") + attribute("time", "0") +
                       ">\n      <failure" + attribute("type", "STALE") + attribute("message", sentence) +
                       "/>\n    </testcase>\n";
  }
  return suites;
}

}  // namespace

std::string report_junit(const RunReport& report) {
  const auto suites = suites_of(report);
  Suite all;
  for (const auto& [area, suite] : suites) {
    all.tests += suite.tests;
    all.failures += suite.failures;
    all.errors += suite.errors;
    all.skipped += suite.skipped;
  }
  std::string xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites" +
                    attribute("name", report.title) + all.counts() +
                    attribute("time", junit_seconds(report.milliseconds)) + ">\n";
  std::string revisions;
  for (const int each : report.revisions) revisions += (revisions.empty() ? "" : " ") + std::to_string(each);
  for (const auto& [area, suite] : suites) {
    xml += "  <testsuite" + attribute("name", area) + suite.counts() +
           attribute("time", junit_seconds(suite.milliseconds)) + attribute("timestamp", report.started_at) +
           ">\n    <properties>\n";
    xml += property("subject", report.subject) + property("tool_version", report.tool_version) +
           property("strict", report.strict ? "true" : "false") + property("revisions", revisions);
    xml += "    </properties>\n" + suite.testcases + "  </testsuite>\n";
  }
  return xml + "</testsuites>\n";
}

}  // namespace windlass::conformance
