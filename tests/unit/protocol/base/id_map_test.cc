#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "protocol/base/id_map.h"
#include "protocol/base/ids.h"
#include "protocol/base/random.h"

namespace windlass {
namespace {

TEST(IdMap, KnowsNobodyWhileItIsEmpty) {
  const IdMap<ConnectionId, std::unique_ptr<int>> map;
  EXPECT_EQ(map.find(ConnectionId{1}), nullptr);
  EXPECT_EQ(map.size(), 0U);
}

TEST(IdMap, KeepsObjectsInTheirPlaceWhileItGrows) {
  IdMap<ConnectionId, std::unique_ptr<int>> map;
  const int* const first = &map.insert(ConnectionId{1}, std::make_unique<int>(7));
  for (std::uint64_t i = 2; i < 1000; ++i) map.insert(ConnectionId{i}, std::make_unique<int>(0));
  EXPECT_EQ(map.find(ConnectionId{1}), first);
}

// Numbers in a row on several loops, as connections have them, that come and go in any order.
TEST(IdMap, AgreesWithAnOrderedMap) {
  Random random{11};
  IdMap<ConnectionId, std::unique_ptr<std::uint64_t>> map;
  std::map<ConnectionId, std::uint64_t> expected;
  for (std::uint64_t step = 0; step < 50'000; ++step) {
    const ConnectionId id{(random.below(std::uint64_t{3}) << 48U) + 1 + random.below(std::uint64_t{300})};
    if (const auto known = expected.find(id); known != expected.end()) {
      ASSERT_NE(map.find(id), nullptr);
      ASSERT_EQ(*map.find(id), known->second);
      map.erase(id);
      expected.erase(known);
    } else {
      ASSERT_EQ(map.find(id), nullptr);
      map.erase(id);
      map.insert(id, std::make_unique<std::uint64_t>(step));
      expected.emplace(id, step);
    }
    ASSERT_EQ(map.size(), expected.size());
  }
  std::uint64_t sum = 0;
  map.for_each([&](std::uint64_t value) { sum += value; });
  for (const auto& [id, value] : expected) sum -= value;
  EXPECT_EQ(sum, 0U);
}

}  // namespace
}  // namespace windlass
