#include "worker-agent/core/run_record.h"

#include <gtest/gtest.h>

namespace windlass::agent {
namespace {

const RunOutcome kOutcome{.end = RunEnd::Exited,
                          .code = 3,
                          .standard_output = "a b\nend\n",
                          .standard_error = "",
                          .is_cut = true,
                          .took = milliseconds{5},
                          .reason = "why"};

TEST(RunRecord, AnOutcomeIsReadAsItWasWritten) {
  const auto parsed = parse_run_record(std::string{kBegun} + encode_outcome(kOutcome));
  ASSERT_TRUE(std::holds_alternative<RunOutcome>(parsed));
  EXPECT_EQ(std::get<RunOutcome>(parsed), kOutcome);
}

TEST(RunRecord, EveryTornRecordIsBegunOrNotAndNeverAnOutcome) {
  const std::string whole = std::string{kBegun} + encode_outcome(kOutcome);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto parsed = parse_run_record(whole.substr(0, size));
    ASSERT_TRUE(std::holds_alternative<RunProgress>(parsed)) << size;
    EXPECT_EQ(std::get<RunProgress>(parsed),
              size < kBegun.size() ? RunProgress::NotBegun : RunProgress::Begun);
  }
  EXPECT_TRUE(std::holds_alternative<RunProgress>(parse_run_record(whole + "x")));
}

}  // namespace
}  // namespace windlass::agent
