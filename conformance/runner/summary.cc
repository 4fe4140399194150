#include "conformance/runner/summary.h"

#include <algorithm>
#include <array>
#include <map>

#include "conformance/runner/report_text.h"

namespace windlass::conformance {
namespace {

constexpr std::size_t kDetailColumns = 1000;

struct AreaCounts {
  std::size_t cases = 0;
  std::size_t non_strict = 0;
  std::array<std::size_t, 4> standings{};
};

using SummaryRow = std::array<std::string, 7>;

// Names to the left, numbers to the right, zeros as dots so that the others stand out.
std::string aligned(const std::vector<SummaryRow>& rows) {
  std::array<std::size_t, std::tuple_size_v<SummaryRow>> widths{};
  for (const SummaryRow& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], text_columns(row[i]));
  }
  std::string text;
  for (const SummaryRow& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - text_columns(row[i]), ' ');
      text += i == 0 ? row[i] + padding : "  " + padding + row[i];
    }
    text += '\n';
  }
  return text;
}

SummaryRow row_of(const std::string& name, const AreaCounts& counts) {
  const auto shown = [](std::size_t number) {
    return number == 0 ? std::string{"."} : std::to_string(number);
  };
  const auto stands = [&](Standing which) {
    return shown(counts.standings[static_cast<std::size_t>(which)]);
  };
  return {one_line(name, 40),       shown(counts.cases),         stands(Standing::Passed),
          stands(Standing::Failed), stands(Standing::Tolerated), stands(Standing::Expected),
          shown(counts.non_strict)};
}

std::string area_table(const RunReport& report) {
  std::map<std::string, AreaCounts> areas;
  AreaCounts all;
  for (const CaseResult& each : report.cases) {
    for (AreaCounts* counts : {&areas[each.area], &all}) {
      ++counts->cases;
      ++counts->standings[static_cast<std::size_t>(standing(report, each))];
      if (worst(each) == Verdict::NonStrict) ++counts->non_strict;
    }
  }
  std::vector<SummaryRow> rows{{"area", "cases", "passed", "failed", "tolerated", "expected", "non-strict"}};
  for (const auto& [name, counts] : areas) rows.push_back(row_of(name, counts));
  rows.push_back(row_of("all", all));
  return aligned(rows);
}

std::string detail(std::string_view label, std::string_view text) {
  return text.empty() ? std::string{} : "    " + std::string{label} + one_line(text, kDetailColumns) + '\n';
}

std::string whole_entry(const CaseResult& result) {
  return "  " + std::string{to_string(worst(result))} + ' ' + one_line(case_key(result), 100) + '\n' +
         detail("", result.says) + detail("expected: ", result.expected) + detail("came:     ", result.came) +
         "    look:     windlass-conformance ... --id " + one_line(result.id, 100) + " --revision " +
         std::to_string(result.revision) + " --verbose\n";
}

std::string short_entry(const CaseResult& result) {
  return "  " + std::string{to_string(worst(result))} + ' ' + one_line(case_key(result), 100) + '\n' +
         detail("", result.says) + detail("came:     ", result.came);
}

template <class Is, class Entry>
std::string section(const RunReport& report, std::string_view title, const Is& is, const Entry& entry) {
  std::string text;
  for (const CaseResult* each : in_order(report)) {
    if (is(*each)) text += entry(*each);
  }
  return text.empty() ? text : '\n' + std::string{title} + '\n' + text;
}

std::string last_line(const RunReport& report) {
  const std::size_t failed = count_standing(report, Standing::Failed);
  const std::string ran =
      std::to_string(report.cases.size()) + " cases in " + duration_text(report.milliseconds);
  switch (exit_code(report)) {
    case 0:
      return "PASSED: " + ran;
    case 3:
      return "NOT JUDGED: " + std::to_string(failed) + " cases could not be played; " + ran;
    default:
      break;
  }
  std::string text = "FAILED: " + std::to_string(failed) + " of " + ran;
  if (!report.stale.empty()) text += ", " + std::to_string(report.stale.size()) + " stale expected failures";
  return text;
}

}  // namespace

std::string summary_text(const RunReport& report) {
  const auto stands = [&](Standing which) {
    return [&report, which](const CaseResult& each) { return standing(report, each) == which; };
  };
  std::string text = area_table(report);
  text += section(report, "failures:", stands(Standing::Failed), whole_entry);
  text += section(report, "failures of SHOULD and MAY, which do not count here:", stands(Standing::Tolerated),
                  short_entry);
  text += section(report, "expected failures:", stands(Standing::Expected), short_entry);
  const auto is_non_strict = [&](const CaseResult& each) {
    return !report.strict && worst(each) == Verdict::NonStrict;
  };
  text += section(report, "NON-STRICT, which --strict would refuse:", is_non_strict, short_entry);
  if (!report.stale.empty()) {
    text += "\nexpected failures that no longer hold:\n";
    for (const std::string& each : report.stale) text += "  " + one_line(each, kDetailColumns) + '\n';
  }
  return text + '\n' + last_line(report) + '\n';
}

}  // namespace windlass::conformance
