#include "runtime/core/log_limits.h"

#include <gtest/gtest.h>

namespace windlass::runtime {
namespace {

constexpr Instant kBegun{seconds{1000}};

TEST(LogThrottle, LeavesOutWhatAWorkerSaysBeyondItsBurstAndCountsIt) {
  LogThrottle throttle{{.worker_lines = 10, .invocation_lines = 1000, .burst_seconds = 2}};
  int admitted = 0;
  for (int i = 0; i < 300; ++i) admitted += throttle.admit("w-1", "", 10, kBegun) ? 1 : 0;
  EXPECT_EQ(admitted, 20);
  EXPECT_TRUE(throttle.admit("w-2", "", 10, kBegun));  // another worker's lines are its own
  EXPECT_EQ(throttle.poll_timeout(), kBegun + seconds{5});
  EXPECT_FALSE(throttle.poll_report(kBegun + seconds{4}));
  const auto report = throttle.poll_report(kBegun + seconds{5});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->worker, "w-1");
  EXPECT_EQ(report->lines, 280U);
  EXPECT_EQ(report->bytes, 2800U);
  EXPECT_FALSE(throttle.poll_report(kBegun + seconds{5}));
  EXPECT_FALSE(throttle.poll_timeout());
}

TEST(LogThrottle, LetsLinesThroughAgainAsTimePasses) {
  LogThrottle throttle{{.worker_lines = 10, .invocation_lines = 1000, .burst_seconds = 1}};
  for (int i = 0; i < 50; ++i) static_cast<void>(throttle.admit("w-1", "", 1, kBegun));
  EXPECT_FALSE(throttle.admit("w-1", "", 1, kBegun));
  EXPECT_TRUE(throttle.admit("w-1", "", 1, kBegun + milliseconds{150}));
  EXPECT_FALSE(throttle.admit("w-1", "", 1, kBegun + milliseconds{150}));
}

TEST(LogThrottle, OneInvocationDoesNotTakeTheLinesOfAnother) {
  LogThrottle throttle{{.worker_lines = 100, .invocation_lines = 10, .burst_seconds = 1}};
  int loud = 0;
  for (int i = 0; i < 1000; ++i) loud += throttle.admit("w-1", "loud", 1, kBegun) ? 1 : 0;
  EXPECT_EQ(loud, 10);
  EXPECT_TRUE(throttle.admit("w-1", "quiet", 1, kBegun));
}

TEST(LogThrottle, CountsTheBytesOfLongLines) {
  LogThrottle throttle{
      {.worker_lines = 1000, .invocation_lines = 1000, .burst_seconds = 1, .worker_bytes = 1000}};
  int admitted = 0;
  for (int i = 0; i < 100; ++i) admitted += throttle.admit("w-1", "", 300, kBegun) ? 1 : 0;
  EXPECT_EQ(admitted, 4);
}

TEST(LogThrottle, KeepsABoundedNumberOfInvocationsApart) {
  LogThrottle throttle{
      {.worker_lines = 100'000, .invocation_lines = 2, .burst_seconds = 1, .invocations_max = 8}};
  int admitted = 0;
  for (int i = 0; i < 100; ++i) admitted += throttle.admit("w-1", std::to_string(i), 1, kBegun) ? 1 : 0;
  EXPECT_EQ(admitted, 8 + 2);  // the others share one limit
}

TEST(LogThrottle, TellsEverythingAtTheEnd) {
  LogThrottle throttle{{.worker_lines = 1, .burst_seconds = 1}};
  for (int i = 0; i < 3; ++i) static_cast<void>(throttle.admit("w-1", "", 1, kBegun));
  ASSERT_TRUE(throttle.poll_report(kBegun, true));
  EXPECT_FALSE(throttle.poll_report(kBegun, true));
}

TEST(LogText, IsNotCutInTheMiddleOfACharacter) {
  const std::string text = std::string(kLogTextBytesMax - 1, 'a') + "\xC3\xA9";
  EXPECT_EQ(log_text(text), std::string(kLogTextBytesMax - 1, 'a'));
}

}  // namespace
}  // namespace windlass::runtime
