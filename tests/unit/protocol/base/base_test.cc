#include <gtest/gtest.h>

#include <set>
#include <string>

#include "protocol/base/deadlines.h"
#include "protocol/base/error_code.h"
#include "protocol/base/random.h"
#include "protocol/base/result.h"
#include "protocol/base/ring.h"

namespace windlass {
namespace {

TEST(Ring, KeepsOrderAcrossGrowthAndWrap) {
  Ring<int> ring;
  int in = 0;
  int out = 0;
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < round; ++i) ring.push_back(in++);
    for (int i = 0; i < round / 2; ++i) ASSERT_EQ(ring.pop_front(), out++);
  }
  for (std::size_t i = 0; i < ring.size(); ++i) ASSERT_EQ(ring[i], out + static_cast<int>(i));
}

TEST(Ring, OwnsNoMemoryWhenNewOrReleased) {
  Ring<std::string> ring;
  EXPECT_EQ(ring.capacity(), 0U);
  ring.push_back("x");
  ring.clear();
  ring.release();
  EXPECT_EQ(ring.capacity(), 0U);
}

enum class Timer { First, Second, Count };

TEST(Deadlines, NextIsTheEarliestAndTakenOnce) {
  Deadlines<Timer> deadlines;
  EXPECT_EQ(deadlines.next(), std::nullopt);
  deadlines.set(Timer::First, Instant{seconds{2}});
  deadlines.set(Timer::Second, Instant{seconds{1}});
  EXPECT_EQ(deadlines.next(), Instant{seconds{1}});
  EXPECT_FALSE(deadlines.take_due(Timer::First, Instant{seconds{1}}));
  EXPECT_TRUE(deadlines.take_due(Timer::Second, Instant{seconds{1}}));
  EXPECT_FALSE(deadlines.take_due(Timer::Second, Instant{seconds{1}}));
  EXPECT_EQ(deadlines.next(), Instant{seconds{2}});
}

TEST(Random, SameSeedSameNumbersAndBoundHeld) {
  Random a{7};
  Random b{7};
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    const auto value = a.below(10);
    ASSERT_EQ(value, b.below(10));
    ASSERT_LT(value, 10U);
    seen.insert(value);
  }
  EXPECT_EQ(seen.size(), 10U);
}

TEST(ErrorCode, TextRoundTripsAndUnknownIsRefused) {
  EXPECT_EQ(to_string(ErrorCode::CmdUnknown), "E.CMD.UNKNOWN");
  EXPECT_EQ(error_code_from("E.TIMEOUT"), ErrorCode::Timeout);
  EXPECT_EQ(error_code_from("E.NOPE"), std::nullopt);
}

TEST(Result, HoldsEitherValueOrError) {
  Result<int> good = 3;
  Result<int> bad = Error{ErrorCode::Internal, Blame::Local, "why"};
  EXPECT_EQ(*good, 3);
  ASSERT_FALSE(bad.has_value());
  EXPECT_EQ(bad.error().reason, "why");
}

}  // namespace
}  // namespace windlass
