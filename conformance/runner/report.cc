#include "conformance/runner/report.h"

#include <algorithm>
#include <tuple>

#include "protocol/base/check.h"

namespace windlass::conformance {

std::string case_key(std::string_view id, int revision) {
  return std::string{id} + '@' + std::to_string(revision);
}

std::string case_key(const CaseResult& result) {
  return case_key(result.id, result.revision);
}

Standing standing(const RunReport& report, const CaseResult& result) {
  if (passes(result, report.strict)) return Standing::Passed;
  if (std::ranges::find(report.expected_failures, case_key(result)) != report.expected_failures.end()) {
    return Standing::Expected;
  }
  return counts(result, report.strict) ? Standing::Failed : Standing::Tolerated;
}

std::vector<const CaseResult*> in_order(const RunReport& report) {
  std::vector<const CaseResult*> cases;
  cases.reserve(report.cases.size());
  for (const CaseResult& each : report.cases) cases.push_back(&each);
  std::ranges::stable_sort(cases, [](const CaseResult* a, const CaseResult* b) {
    return std::tie(a->area, a->id, a->revision) < std::tie(b->area, b->id, b->revision);
  });
  return cases;
}

std::array<std::size_t, kVerdicts> count_verdicts(const RunReport& report) {
  std::array<std::size_t, kVerdicts> counts{};
  for (const CaseResult& each : report.cases) ++counts[static_cast<std::size_t>(worst(each))];
  return counts;
}

std::size_t count_standing(const RunReport& report, Standing which) {
  return static_cast<std::size_t>(std::ranges::count_if(
      report.cases, [&](const CaseResult& each) { return standing(report, each) == which; }));
}

int exit_code(const RunReport& report) {
  bool harness = false;
  for (const CaseResult& each : report.cases) {
    if (standing(report, each) != Standing::Failed) continue;
    if (worst(each) != Verdict::HarnessError) return 1;
    harness = true;
  }
  if (!report.stale.empty()) return 1;
  return harness ? 3 : 0;
}

std::string_view to_string(Standing which) {
  switch (which) {
    case Standing::Passed:
      return "passed";
    case Standing::Tolerated:
      return "tolerated";
    case Standing::Expected:
      return "expected";
    case Standing::Failed:
      return "failed";
  }
  CHECK(false);
}

std::string_view to_string(WireEvent::Kind kind) {
  switch (kind) {
    case WireEvent::Kind::Sent:
      return "sent";
    case WireEvent::Kind::Received:
      return "received";
    case WireEvent::Kind::Note:
      return "note";
    case WireEvent::Kind::Step:
      return "step";
  }
  CHECK(false);
}

}  // namespace windlass::conformance
