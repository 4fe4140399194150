// Orders that came before their workers: kept for a while after the start, each let go once.
#include "runtime/core/early_orders.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace windlass::runtime {
namespace {

const Instant kStart{seconds{1000}};

EarlyOrder order(const std::string& id, const std::string& application) {
  return {.id = id, .corr = "", .application_id = application, .payload = "{}"};
}

std::vector<std::string> ids(const std::vector<EarlyOrder>& orders) {
  std::vector<std::string> all;
  all.reserve(orders.size());
  for (const EarlyOrder& each : orders) all.push_back(each.id);
  return all;
}

using Ids = std::vector<std::string>;

TEST(EarlyOrders, LeaveInOrderWhenTheirApplicationIsThere) {
  EarlyOrders early{seconds{60}, 10, kStart};
  early.hold(order("1", "shop"), {}, kStart);
  early.hold(order("2", "other"), {}, kStart);
  early.hold(order("3", "shop"), {}, kStart + seconds{1});
  EXPECT_TRUE(early.take_known([](std::string_view) { return false; }).empty());
  EXPECT_EQ(ids(early.take_known([](std::string_view app) { return app == "shop"; })), (Ids{"1", "3"}));
  EXPECT_EQ(ids(early.take_known([](std::string_view) { return true; })), Ids{"2"});
  EXPECT_FALSE(early.poll_timeout());
}

TEST(EarlyOrders, WaitUntilTheWindowIsOverOrNobodyWaitsForThem) {
  EarlyOrders early{seconds{60}, 10, kStart};
  early.hold(order("patient", "shop"), seconds{600}, kStart + seconds{1});
  early.hold(order("hasty", "shop"), seconds{5}, kStart + seconds{1});
  EXPECT_EQ(early.poll_timeout(), kStart + seconds{6});
  EXPECT_TRUE(early.take_due(kStart + seconds{5}).empty());
  EXPECT_EQ(ids(early.take_due(kStart + seconds{6})), Ids{"hasty"});
  EXPECT_EQ(early.poll_timeout(), kStart + seconds{60});
  EXPECT_EQ(ids(early.take_due(kStart + seconds{60})), Ids{"patient"});
  EXPECT_TRUE(early.take_due(kStart + seconds{600}).empty());
}

TEST(EarlyOrders, AreTakenForAWhileAfterTheStartOnlyAndWithinABound) {
  EarlyOrders early{seconds{60}, 2, kStart};
  EXPECT_TRUE(early.is_open(kStart + seconds{59}));
  EXPECT_FALSE(early.is_open(kStart + seconds{60}));
  early.hold(order("1", "shop"), {}, kStart);
  EXPECT_FALSE(early.is_full());
  early.hold(order("2", "shop"), {}, kStart);
  EXPECT_TRUE(early.is_full());
  EXPECT_EQ(ids(early.close()), (Ids{"1", "2"}));
  EXPECT_FALSE(early.is_full());
  EXPECT_FALSE(early.is_open(kStart));
}

}  // namespace
}  // namespace windlass::runtime
