#include <gtest/gtest.h>

#include <string>

#include "protocol/token/revocations.h"

namespace windlass {
namespace {

constexpr milliseconds kKept{1000};

WallTime at(std::int64_t count) {
  return WallTime{milliseconds{count}};
}

TEST(Revocations, HoldForOneWorkerOfOneTenantOnly) {
  Revocations revocations{kKept};
  revocations.add("acme", "w1", at(50), at(50));
  EXPECT_EQ(revocations.revoked_until("acme", "w1"), at(50));
  EXPECT_EQ(revocations.revoked_until("acme", "w2"), WallTime::min());
  EXPECT_EQ(revocations.revoked_until("other", "w1"), WallTime::min());
  EXPECT_EQ(revocations.revoked_until("acm", "ew1"), WallTime::min());
}

TEST(Revocations, NeverMoveBack) {
  Revocations revocations{kKept};
  revocations.add("acme", "w1", at(50), at(50));
  revocations.add("acme", "w1", at(40), at(40));
  EXPECT_EQ(revocations.revoked_until("acme", "w1"), at(50));
  revocations.add("acme", "w1", at(60), at(60));
  EXPECT_EQ(revocations.revoked_until("acme", "w1"), at(60));
  EXPECT_EQ(revocations.size(), 1U);
}

//= TOK-7
TEST(Revocations, ForgetExpiredOnesAndStillCoverThemIfTheClockStepsBack) {
  Revocations revocations{kKept};
  revocations.add("acme", "w1", at(50), at(50));
  revocations.add("acme", "w2", at(1049), at(1049));
  EXPECT_EQ(revocations.size(), 2U) << "a token of w1 issued at 50 is still good at 1049";
  revocations.add("acme", "w2", at(1050), at(1050));
  EXPECT_EQ(revocations.size(), 1U);
  EXPECT_EQ(revocations.revoked_until("acme", "w1"), at(50));
  EXPECT_EQ(revocations.floor(), at(50));
}

//= TOK-7
TEST(Revocations, AtTheBoundTheFloorRisesAndNobodyIsUnrevoked) {
  Revocations revocations{kKept, 3};
  for (int i = 0; i < 10; ++i) {
    revocations.add("acme", std::to_string(i), at(100 + i), at(100 + i));
    EXPECT_LE(revocations.size(), 3U);
  }
  for (int i = 0; i < 10; ++i) {
    EXPECT_GE(revocations.revoked_until("acme", std::to_string(i)), at(100 + i)) << i;
  }
  EXPECT_EQ(revocations.floor(), at(106));
  EXPECT_EQ(revocations.revoked_until("acme", "bystander"), at(106)) << "no further than what was forgotten";
}

}  // namespace
}  // namespace windlass
