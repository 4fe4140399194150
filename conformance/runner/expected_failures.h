// Failures that are known and accepted for now: a file that is read by people, with the reason beside each
// entry, and that cannot rot, because an entry that is no longer true fails the run.
//
//   # issue 17: the close code is still 1000
//   HSK-1/register-first
//   RES-4/replay-order@1     # revision 1 only
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/runner/report.h"
#include "protocol/base/result.h"

namespace windlass::conformance {

class ExpectedFailures final {
 public:
  // A case as the runner knows it, whether or not it was chosen for this run.
  struct Known {
    std::string id;
    int revision = 2;
  };

  // `name` is the file's, for the error.
  static Result<ExpectedFailures> parse(std::string_view text, std::string_view name);

  bool contains(std::string_view id, int revision) const;

  // Fills `expected_failures` and `stale` of a report whose cases and `strict` are there. An entry is stale
  // when no case has its id, or when every case it names was run and passed: a filter alone makes nothing
  // stale.
  void apply(RunReport& report, const std::vector<Known>& known) const;

 private:
  struct Entry {
    std::string id;
    std::optional<int> revision;  // none: any
    std::size_t line = 0;
    bool covers(std::string_view case_id, int case_revision) const;
  };

  std::string why_stale(const Entry& entry, const RunReport& report, const std::vector<Known>& known) const;

  std::string name_;
  std::vector<Entry> entries_;
};

}  // namespace windlass::conformance
