#include "conformance/runner/expected_failures.h"

#include <algorithm>
#include <utility>

#include "conformance/runner/report_text.h"

namespace windlass::conformance {
namespace {

constexpr std::string_view kBlanks = " \t\r";
constexpr std::size_t kShownColumns = 80;

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-';
}

// As in case.schema.json: ^[A-Z]{3}-[0-9]+/[a-z0-9-]+$
bool is_case_id(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos || slash < 5 || slash + 1 == text.size() || text[3] != '-')
    return false;
  return std::ranges::all_of(text.substr(0, 3), is_upper) &&
         std::ranges::all_of(text.substr(4, slash - 4), is_digit) &&
         std::ranges::all_of(text.substr(slash + 1), is_name);
}

}  // namespace

bool ExpectedFailures::Entry::covers(std::string_view case_id, int case_revision) const {
  return id == case_id && (!revision || *revision == case_revision);
}

Result<ExpectedFailures> ExpectedFailures::parse(std::string_view text, std::string_view name) {
  ExpectedFailures failures;
  failures.name_ = name;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::string_view whole = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), whole.size() + 1));
    const std::string_view entry = trimmed(whole.substr(0, whole.find('#')));
    if (entry.empty()) continue;
    const auto refuse = [&](const std::string& why) {
      return Error{ErrorCode::Internal, Blame::Local,
                   std::string{name} + ", line " + std::to_string(line) + ": '" +
                       one_line(entry, kShownColumns) + "' " + why};
    };
    const std::size_t at = entry.find('@');
    Entry made{std::string{entry.substr(0, at)}, std::nullopt, line};
    if (!is_case_id(made.id)) return refuse("is not a case id such as HSK-1/register-first");
    if (at != std::string_view::npos) {
      const std::string_view revision = entry.substr(at + 1);
      if (revision != "1" && revision != "2") return refuse("names no revision: write @1 or @2 after the id");
      made.revision = revision == "1" ? 1 : 2;
    }
    const auto overlaps = [&](const Entry& other) {
      return other.id == made.id && (!other.revision || !made.revision || other.revision == made.revision);
    };
    if (const auto other = std::ranges::find_if(failures.entries_, overlaps);
        other != failures.entries_.end()) {
      return refuse("is there already, in line " + std::to_string(other->line));
    }
    failures.entries_.push_back(std::move(made));
  }
  return failures;
}

bool ExpectedFailures::contains(std::string_view id, int revision) const {
  return std::ranges::any_of(entries_, [&](const Entry& each) { return each.covers(id, revision); });
}

std::string ExpectedFailures::why_stale(const Entry& entry, const RunReport& report,
                                        const std::vector<Known>& known) const {
  const auto named =
      std::ranges::count_if(known, [&](const Known& each) { return entry.covers(each.id, each.revision); });
  const std::string shown = name_ + ", line " + std::to_string(entry.line) + ": " +
                            (entry.revision ? case_key(entry.id, *entry.revision) : entry.id);
  if (named == 0) return shown + " names no case; take the line out or mend the id";
  const auto passed = std::ranges::count_if(report.cases, [&](const CaseResult& each) {
    return entry.covers(each.id, each.revision) && passes(each, report.strict);
  });
  if (passed == named) return shown + " passes now; take the line out";
  return {};
}

void ExpectedFailures::apply(RunReport& report, const std::vector<Known>& known) const {
  report.expected_failures.clear();
  report.stale.clear();
  for (const CaseResult* each : in_order(report)) {
    if (!passes(*each, report.strict) && contains(each->id, each->revision)) {
      report.expected_failures.push_back(case_key(*each));
    }
  }
  for (const Entry& entry : entries_) {
    if (std::string why = why_stale(entry, report, known); !why.empty())
      report.stale.push_back(std::move(why));
  }
}

}  // namespace windlass::conformance
