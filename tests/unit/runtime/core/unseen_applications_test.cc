#include "runtime/core/unseen_applications.h"

#include <gtest/gtest.h>

namespace windlass::runtime {
namespace {

constexpr Instant kRuntimeStart{seconds{1000}};

TEST(UnseenApplications, AreWaitedForUntilEachCameOrTheirTimeIsOver) {
  UnseenApplications unseen{seconds{45}};
  EXPECT_FALSE(unseen.is_any(kRuntimeStart)) << "nobody is known yet";
  unseen.begin({"bank", "shop"}, kRuntimeStart);
  EXPECT_TRUE(unseen.is_any(kRuntimeStart));
  EXPECT_EQ(unseen.poll_timeout(), kRuntimeStart + seconds{45});
  unseen.update({"bank"});
  EXPECT_TRUE(unseen.is_any(kRuntimeStart + seconds{44}));
  EXPECT_FALSE(unseen.is_any(kRuntimeStart + seconds{45}));
  unseen.update({});
  EXPECT_FALSE(unseen.is_any(kRuntimeStart));
  EXPECT_FALSE(unseen.poll_timeout());
}

TEST(UnseenApplications, WhoWasSeenOrIsAssignedLaterIsNotWaitedFor) {
  UnseenApplications unseen{seconds{45}};
  unseen.begin({"bank"}, kRuntimeStart);
  unseen.begin({"shop"}, kRuntimeStart);
  EXPECT_FALSE(unseen.is_any(kRuntimeStart)) << "bank came, shop is new";
  unseen.begin({"bank", "shop"}, kRuntimeStart);
  EXPECT_FALSE(unseen.is_any(kRuntimeStart)) << "the routes of bank are known";
}

}  // namespace
}  // namespace windlass::runtime
