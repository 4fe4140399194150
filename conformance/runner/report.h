// A finished run, and its three reports: JSON for programs (and to be rendered again), JUnit for CI systems,
// one HTML page for people. All three are pure functions, and none trusts a byte of what came over the wire.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/runner/verdict.h"
#include "protocol/base/result.h"

namespace windlass::conformance {

struct RunReport {
  std::string title;         // what a reader calls this run
  std::string subject;       // the URL or command that was judged; never a secret
  std::string tool_version;  // of windlass-conformance
  std::string started_at;    // 2026-01-31T12:00:00Z
  double milliseconds = 0;
  bool strict = false;
  std::vector<int> revisions;
  std::vector<CaseResult> cases;
  std::vector<std::string> expected_failures;  // case_key of each failure that was expected
  std::vector<std::string> stale;  // why an entry of the expected failures no longer holds, a sentence each
};

// How a result stands in its run.
enum class Standing : std::uint8_t {
  Passed,
  Tolerated,  // failed, but the level of the clause does not demand it here
  Expected,   // failed, as the expected failures say
  Failed,
};

// "HSK-1/register-first@2": a case of both revisions has two results.
std::string case_key(std::string_view id, int revision);
std::string case_key(const CaseResult& result);

Standing standing(const RunReport& report, const CaseResult& result);

// By area, id and revision: cases that ran side by side end in any order, and reports are compared.
std::vector<const CaseResult*> in_order(const RunReport& report);

std::array<std::size_t, kVerdicts> count_verdicts(const RunReport& report);
std::size_t count_standing(const RunReport& report, Standing which);

// 0: nothing counts against the judged and no expected failure is stale. 1: something does. 3: nothing but
// cases that the runner could not play. (2 is misuse, which has no report.)
int exit_code(const RunReport& report);

// Members are named as in the structs, in snake_case, with these beside them: "format" (kReportFormat),
// "exit_code", "summary" (how often each verdict came), and in a case "verdict" (the worse axis) and
// "standing". "close" is null when it was not judged. In "wire" an event has "kind" (sent, received, note,
// step), "milliseconds", "connection" and "text".
inline constexpr std::string_view kReportFormat = "windlass-conformance-report/1";
std::string report_json(const RunReport& report);
// Reads what report_json wrote; members it does not know are passed over. The error names the member that is
// wrong.
Result<RunReport> report_from_json(std::string_view text);

// A testsuite for each area; a testcase is named "<id> revision <n>". Tolerated and expected failures are
// skipped tests, each with its reason; a stale entry is a failed testcase of the suite "expected-failures".
std::string report_junit(const RunReport& report);

// One page without any other resource. "?filter=..." in its address fills the filter box,
// "#HSK-1/register-first@2" opens a case.
std::string report_html(const RunReport& report);

std::string_view to_string(Standing which);        // "passed", "tolerated", "expected", "failed"
std::string_view to_string(WireEvent::Kind kind);  // "sent", "received", "note", "step"

}  // namespace windlass::conformance
