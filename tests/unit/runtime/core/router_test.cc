// How the router chooses: by load, in turn, by weight, by key.
#include "runtime/core/invocation_router.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/worker.h"

namespace windlass::runtime {
namespace {

class House {
 public:
  explicit House(RoutingStrategy strategy = RoutingStrategy::LeastLoaded, std::size_t keys_max = 10)
      : router(strategy, keys_max) {}

  Worker& add(const std::string& id, std::uint32_t slots, const std::string& version = "v1") {
    workers.push_back(std::make_unique<Worker>(WorkerId{id}));
    workers.back()->route.slots = slots;
    router.add(workers.back()->route, version);
    return *workers.back();
  }

  Worker& add_without(const std::string& id, std::uint32_t slots, const std::string& function,
                      const std::string& reason) {
    workers.push_back(std::make_unique<Worker>(WorkerId{id}));
    workers.back()->route.slots = slots;
    workers.back()->route.lacks = {{function, reason}};
    router.add(workers.back()->route, "v1");
    return *workers.back();
  }

  // Chooses and gives it the work; empty: nobody has a slot.
  std::string pick(const std::string& function = "f") { return given(router.select(function)); }
  std::string pick_by_key(const std::string& key) { return given(router.select_sticky(key, "f")); }

  std::map<std::string, int> picks(int count) {
    std::map<std::string, int> by_worker;
    for (int i = 0; i < count; ++i) ++by_worker[pick()];
    return by_worker;
  }

  std::vector<std::unique_ptr<Worker>> workers;
  InvocationRouter router;

 private:
  static std::string given(RouteNode* node) {
    if (node == nullptr) return {};
    InvocationRouter::take(*node);
    return node->owner->id.value();
  }
};

using Counts = std::map<std::string, int>;

TEST(Router, PicksAnUnfitWorkerOnlyWhenNoOtherHasASlot) {
  for (const auto strategy : {RoutingStrategy::LeastLoaded, RoutingStrategy::RoundRobin}) {
    House house{strategy};
    Worker& unfit = house.add("unfit", 8);
    house.add("fit", 2);
    InvocationRouter::set_unfit(unfit.route, true);
    EXPECT_EQ(house.picks(3), (Counts{{"fit", 2}, {"unfit", 1}}));
    InvocationRouter::release(house.workers[1]->route);
    EXPECT_EQ(house.pick(), "fit");
    InvocationRouter::set_unfit(unfit.route, false);
    EXPECT_EQ(house.picks(7), (Counts{{"unfit", 7}})) << "it is as good as any again";
    EXPECT_EQ(house.pick(), "");
    EXPECT_EQ(house.router.free_slots(), 0U);
  }
}

TEST(Router, PicksTheWorkerWithMostFreeSlots) {
  House house;
  house.add("a", 2);
  Worker& b = house.add("b", 5);
  house.add("c", 3);
  EXPECT_EQ(house.pick(), "b");
  EXPECT_EQ(house.pick(), "b");
  EXPECT_EQ(house.picks(2), (Counts{{"b", 1}, {"c", 1}})) << "both have three";
  EXPECT_EQ(house.router.free_slots(), 6U);
  InvocationRouter::release(b.route);
  EXPECT_EQ(house.router.free_slots(), 7U);
  EXPECT_EQ(house.pick(), "b");
}

TEST(Router, EqualsTakeTurns) {
  House house;
  for (const char* id : {"a", "b", "c"}) house.add(id, 10);
  EXPECT_EQ(house.picks(9), (Counts{{"a", 3}, {"b", 3}, {"c", 3}}));
}

TEST(Router, GivesNobodyMoreThanItsSlots) {
  House house;
  house.add("a", 1);
  Worker& b = house.add("b", 2);
  EXPECT_EQ(house.picks(3), (Counts{{"a", 1}, {"b", 2}}));
  EXPECT_EQ(house.pick(), "");
  EXPECT_EQ(house.router.free_slots(), 0U);
  InvocationRouter::release(b.route);
  EXPECT_EQ(house.pick(), "b");
  EXPECT_EQ(house.pick(), "");
}

TEST(Router, RoundRobinTakesTurnsWhateverTheLoad) {
  House house{RoutingStrategy::RoundRobin};
  house.add("a", 2);
  house.add("b", 100);
  EXPECT_EQ(house.picks(4), (Counts{{"a", 2}, {"b", 2}}));
  EXPECT_EQ(house.picks(3), (Counts{{"b", 3}})) << "a is full";
}

TEST(Router, KnowsAWorkerOnlyWhileItIsThere) {
  House house;
  Worker& a = house.add("a", 5);
  house.add("b", 1);
  EXPECT_EQ(house.pick(), "a");
  house.router.remove(a.route);
  EXPECT_EQ(house.router.workers(), 1U);
  EXPECT_EQ(house.picks(2), (Counts{{"b", 1}, {"", 1}}));
  InvocationRouter::release(a.route);
  house.router.add(a.route, "v1");
  EXPECT_EQ(house.router.free_slots(), 5U) << "what ended meanwhile was counted";
}

TEST(Router, ASplitIsExactAndMixed) {
  House house;
  house.add("old", 1000, "v1");
  house.add("new", 1000, "v2");
  house.router.set_split({{"v1", 80}, {"v2", 20}});
  for (int run = 0; run < 20; ++run) EXPECT_EQ(house.picks(5), (Counts{{"new", 1}, {"old", 4}}));
}

TEST(Router, AVersionWithoutAFreeSlotLeavesItsShareToTheOthers) {
  House house;
  house.add("old", 1, "v1");
  house.add("new", 100, "v2");
  house.router.set_split({{"v1", 90}, {"v2", 10}});
  EXPECT_EQ(house.picks(10), (Counts{{"new", 9}, {"old", 1}}));
}

TEST(Router, AVersionOfWeightZeroGetsNothing) {
  House house;
  house.add("old", 100, "v1");
  house.add("new", 1, "v2");
  house.router.set_split({{"v1", 0}, {"v2", 100}});
  EXPECT_EQ(house.picks(3), (Counts{{"new", 1}, {"", 2}})) << "rather nobody";
}

TEST(Router, AVersionNotNamedStandsInUntilOneThatIsHasAWorker) {
  House house;
  house.add("old", 100, "v1");
  house.router.set_split({{"v2", 100}});
  EXPECT_EQ(house.picks(3), (Counts{{"old", 3}}));
  Worker& fresh = house.add("new", 100, "v2");
  EXPECT_EQ(house.picks(3), (Counts{{"new", 3}}));
  house.router.remove(fresh.route);
  EXPECT_EQ(house.picks(3), (Counts{{"old", 3}}));
}

TEST(Router, SlotsOfAVersionThatGetsNothingAreNotFree) {
  House house;
  house.add("old", 100, "v1");
  Worker& unnamed = house.add("other", 10, "v3");
  house.router.set_split({{"v1", 0}, {"v2", 100}});
  EXPECT_EQ(house.router.free_slots(), 10U) << "of the one that stands in";
  EXPECT_TRUE(house.router.is_in_service(unnamed.route));
  Worker& fresh = house.add("new", 2, "v2");
  EXPECT_EQ(house.router.free_slots(), 2U);
  EXPECT_FALSE(house.router.is_in_service(unnamed.route));
  house.router.suspend(fresh.route);
  EXPECT_EQ(house.router.free_slots(), 10U);
  EXPECT_FALSE(house.router.is_in_service(fresh.route));
}

TEST(Router, WithoutASplitVersionsShareByLoad) {
  House house;
  house.add("old", 10, "v1");
  house.add("new", 10, "v2");
  house.router.set_split({{"v1", 100}});
  EXPECT_EQ(house.picks(4), (Counts{{"old", 4}}));
  house.router.set_split({});
  EXPECT_EQ(house.picks(4), (Counts{{"new", 4}}));
}

TEST(Router, AFunctionThatFailedToLoadGoesToVersionsThatHaveIt) {
  House house;
  house.add_without("old", 100, "f", "no such module");
  Worker& fresh = house.add("new", 2, "v2");

  EXPECT_EQ(house.router.load_failure("f"), nullptr);
  EXPECT_EQ(house.picks(3), (Counts{{"new", 2}, {"", 1}}));
  EXPECT_EQ(house.pick("g"), "old");
  house.router.remove(fresh.route);
  ASSERT_NE(house.router.load_failure("f"), nullptr);
  EXPECT_EQ(*house.router.load_failure("f"), "no such module");
}

TEST(Router, AFunctionThatOneWorkerCouldNotLoadGoesToOthersOfItsVersion) {
  for (const RoutingStrategy strategy : {RoutingStrategy::LeastLoaded, RoutingStrategy::RoundRobin}) {
    House house{strategy};
    Worker& broken = house.add_without("broken", 100, "f", "no such module");
    Worker& whole = house.add("whole", 2);
    EXPECT_EQ(house.router.load_failure("f"), nullptr);
    EXPECT_EQ(house.picks(3), (Counts{{"whole", 2}, {"", 1}}));
    EXPECT_EQ(house.pick("g"), "broken");
    house.router.suspend(whole.route);
    ASSERT_NE(house.router.load_failure("f"), nullptr) << "all that are left lack it";
    house.router.add(whole.route, "v1");
    EXPECT_EQ(house.router.load_failure("f"), nullptr);
    house.router.remove(broken.route);
    EXPECT_EQ(house.router.load_failure("f"), nullptr);
  }
}

TEST(Router, AKeyWhoseWorkerLacksTheFunctionGoesElsewhereForThatFunctionOnly) {
  House house{RoutingStrategy::Sticky};
  house.add_without("broken", 100, "f", "no such module");
  house.add("whole", 50);
  EXPECT_EQ(house.router.select_sticky("key", "g")->owner->id.value(), "broken");
  EXPECT_EQ(house.router.select_sticky("key", "f")->owner->id.value(), "whole");
  EXPECT_EQ(house.router.select_sticky("key", "g")->owner->id.value(), "broken");
}

TEST(Router, AKeyKeepsItsWorkerEvenWithoutAFreeSlot) {
  House house;
  house.add("a", 2);
  house.add("b", 2);
  const std::string first = house.pick_by_key("customer-1");
  EXPECT_NE(house.pick_by_key("customer-2"), first);
  EXPECT_EQ(house.pick_by_key("customer-1"), first);
  RouteNode* const again = house.router.select_sticky("customer-1", "f");
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->owner->id.value(), first);
  EXPECT_EQ(again->free(), 0U);
}

TEST(Router, AKeyWaitsForASuspendedWorkerAndLeavesARemovedOne) {
  House house;
  Worker& a = house.add("a", 2);
  EXPECT_EQ(house.pick_by_key("k"), "a");
  house.add("b", 2);
  house.router.suspend(a.route);
  EXPECT_EQ(house.router.select_sticky("k", "f"), &a.route);
  house.router.remove(a.route);
  EXPECT_EQ(house.pick_by_key("k"), "b");
}

TEST(Router, ForgetsTheKeyUnusedForLongest) {
  House house{RoutingStrategy::Sticky, 2};
  Worker& a = house.add("a", 9);
  EXPECT_EQ(house.pick_by_key("k1"), "a");
  EXPECT_EQ(house.pick_by_key("k2"), "a");
  EXPECT_EQ(house.pick_by_key("k1"), "a");
  house.add("b", 100);
  EXPECT_EQ(house.pick_by_key("k3"), "b") << "k2 made room";
  EXPECT_EQ(house.pick_by_key("k1"), "a");
  EXPECT_EQ(house.pick_by_key("k2"), "b");
  EXPECT_EQ(a.route.keys.size(), 1U);
}

// A split once left keys where they were, so that a version taken out of service went on working.
TEST(Router, ASplitTakesKeysAwayFromAVersionOfWeightZero) {
  House house;
  house.add("old", 100, "v1");
  EXPECT_EQ(house.pick_by_key("k"), "old");
  house.add("new", 10, "v2");
  house.router.set_split({{"v1", 0}, {"v2", 100}});
  EXPECT_EQ(house.pick_by_key("k"), "new");
}

TEST(Router, AKeyLeavesAVersionNotNamedOnceOneThatIsHasAWorker) {
  House house;
  house.add("old", 100, "v1");
  EXPECT_EQ(house.pick_by_key("k"), "old");
  house.router.set_split({{"v2", 100}});
  EXPECT_EQ(house.pick_by_key("k"), "old") << "nobody else is there";
  house.add("new", 10, "v2");
  EXPECT_EQ(house.pick_by_key("k"), "new");
}

}  // namespace
}  // namespace windlass::runtime
