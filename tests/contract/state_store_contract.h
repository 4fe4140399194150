// What every StateStore promises, whatever keeps the rows. A store's test gives a Home, which is where the
// rows live while no store is open, and instantiates the suite:
//   struct Home { std::unique_ptr<StateStore> open(); std::unique_ptr<StateStore> open_small(); };
// open_small has room for about 200 KB.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "protocol/base/random.h"
#include "scheduler/seams/state_store.h"

namespace windlass {

inline Write put(std::string key, Bytes value) {
  return {std::move(key), std::move(value)};
}

inline Write erase(std::string key) {
  return {std::move(key), std::nullopt};
}

inline std::map<std::string, Bytes> rows_of(StateStore& store) {
  const auto snapshot = store.load();
  std::map<std::string, Bytes> rows;
  EXPECT_TRUE(snapshot.has_value());
  if (!snapshot) return rows;
  const std::string* previous = nullptr;
  for (const Row& row : snapshot->rows) {
    EXPECT_TRUE(previous == nullptr || *previous < row.key) << "sorted, and each once: " << row.key;
    previous = &row.key;
    rows.emplace(row.key, row.value);
  }
  return rows;
}

inline Version version_of(StateStore& store) {
  const auto snapshot = store.load();
  EXPECT_TRUE(snapshot.has_value());
  return snapshot ? snapshot->version : Version{~0ULL};
}

inline Version must_commit(StateStore& store, const WriteBatch& batch, Version expected) {
  const auto version = store.commit(batch, expected);
  EXPECT_TRUE(version.has_value()) << (version ? "" : version.error().reason);
  return version ? *version : Version{~0ULL};
}

template <class Home>
class StateStoreContract : public ::testing::Test {
 protected:
  using Rows = std::map<std::string, Bytes>;
  Home home_;
};

TYPED_TEST_SUITE_P(StateStoreContract);

TYPED_TEST_P(StateStoreContract, BeginsEmptyAtVersionZero) {
  const auto store = this->home_.open();
  EXPECT_EQ(version_of(*store), Version{0});
  EXPECT_TRUE(rows_of(*store).empty());
}

TYPED_TEST_P(StateStoreContract, CountsCommitsAndShowsWhatTheyWrote) {
  const auto store = this->home_.open();
  EXPECT_EQ(must_commit(*store, {put("a", "1"), put("b", "2")}, Version{0}), Version{1});
  EXPECT_EQ(must_commit(*store, {put("a", "3"), erase("b"), erase("never there")}, Version{1}), Version{2});
  EXPECT_EQ(rows_of(*store), (typename TestFixture::Rows{{"a", "3"}}));
  EXPECT_EQ(version_of(*store), Version{2});
}

TYPED_TEST_P(StateStoreContract, TheLaterOfTwoWritesToOneKeyHolds) {
  const auto store = this->home_.open();
  must_commit(*store, {put("a", "1"), erase("a"), put("b", "1"), put("b", "2"), erase("c"), put("c", "3")},
              Version{0});
  EXPECT_EQ(rows_of(*store), (typename TestFixture::Rows{{"b", "2"}, {"c", "3"}}));
}

TYPED_TEST_P(StateStoreContract, RefusesAStaleVersionAndWritesNothingOfIt) {
  const auto store = this->home_.open();
  must_commit(*store, {put("a", "1")}, Version{0});
  for (const Version wrong : {Version{0}, Version{2}, Version{77}}) {
    const auto refused = store->commit({put("a", "wrong"), put("b", "wrong")}, wrong);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::StoreStale);
  }
  EXPECT_EQ(rows_of(*store), (typename TestFixture::Rows{{"a", "1"}}));
  EXPECT_EQ(must_commit(*store, {put("a", "2")}, Version{1}), Version{2}) << "and it goes on";
}

TYPED_TEST_P(StateStoreContract, AnEmptyBatchChangesNothingButIsComparedToo) {
  const auto store = this->home_.open();
  must_commit(*store, {put("a", "1")}, Version{0});
  EXPECT_EQ(must_commit(*store, {}, Version{1}), Version{1});
  EXPECT_FALSE(store->commit({}, Version{0}).has_value());
  EXPECT_EQ(version_of(*store), Version{1});
}

TYPED_TEST_P(StateStoreContract, IsTheSameAfterReopening) {
  typename TestFixture::Rows rows;
  {
    const auto store = this->home_.open();
    must_commit(*store, {put("a", "1"), put("b", "2")}, Version{0});
    must_commit(*store, {put("c", "3"), erase("a")}, Version{1});
    rows = rows_of(*store);
  }
  const auto store = this->home_.open();
  EXPECT_EQ(rows_of(*store), rows);
  EXPECT_EQ(must_commit(*store, {put("d", "4")}, Version{2}), Version{3});
}

TYPED_TEST_P(StateStoreContract, KeepsLargeEmptyAndBinaryValues) {
  const std::string large(3 * 1024 * 1024, 'x');
  std::string binary;
  for (int i = 0; i < 512; ++i) binary.push_back(static_cast<char>(i));
  {
    const auto store = this->home_.open();
    must_commit(*store, {put("large", large), put("empty", ""), put("binary", binary)}, Version{0});
  }
  const auto store = this->home_.open();
  EXPECT_EQ(rows_of(*store),
            (typename TestFixture::Rows{{"binary", binary}, {"empty", ""}, {"large", large}}));
}

TYPED_TEST_P(StateStoreContract, KeepsManyRowsInOneBatchAndInManyBatches) {
  typename TestFixture::Rows expected;
  Random random{1};
  Version version{0};
  const auto store = this->home_.open();
  WriteBatch first;
  for (int i = 0; i < 20'000; ++i) {
    first.push_back(put("row/" + std::to_string(random.below(1'000'000)), std::to_string(i)));
    expected[first.back().key] = std::to_string(i);
  }
  version = must_commit(*store, first, version);
  for (int i = 0; i < 200; ++i) {
    WriteBatch batch;
    for (int j = 0; j < 20; ++j) {
      const std::string key = "row/" + std::to_string(random.below(1'000'000));
      if (random.one_in(3)) {
        batch.push_back(erase(key));
        expected.erase(key);
      } else {
        batch.push_back(put(key, std::string(random.below(300), 'y')));
        expected[key] = *batch.back().value;
      }
    }
    version = must_commit(*store, batch, version);
  }
  EXPECT_EQ(version, Version{201});
  EXPECT_EQ(rows_of(*store), expected);
}

TYPED_TEST_P(StateStoreContract, WithoutRoomRefusesTheWholeBatchAndRecoversWhenThereIsSome) {
  const auto store = this->home_.open_small();
  must_commit(*store, {put("kept", "as it was")}, Version{0});
  WriteBatch batch{put("kept", "changed")};
  for (int i = 0; i < 100; ++i) batch.push_back(put("more/" + std::to_string(i), std::string(10'000, 'z')));
  const auto refused = store->commit(batch, Version{1});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::StoreFull) << refused.error().reason;
  EXPECT_EQ(rows_of(*store), (typename TestFixture::Rows{{"kept", "as it was"}})) << "nothing half-written";
  EXPECT_EQ(version_of(*store), Version{1});
  EXPECT_EQ(must_commit(*store, {put("small", "fits")}, Version{1}), Version{2}) << "what fits is taken";
}

TYPED_TEST_P(StateStoreContract, ErasingMakesRoomForWhatWasRefused) {
  const auto store = this->home_.open_small();
  Version version{0};
  int kept = 0;
  for (; kept < 1000; ++kept) {
    const auto next = store->commit({put("fill/" + std::to_string(kept), std::string(10'000, 'z'))}, version);
    if (!next) break;
    version = *next;
  }
  ASSERT_GT(kept, 2);
  ASSERT_LT(kept, 1000) << "it never was full";
  EXPECT_EQ(rows_of(*store).size(), static_cast<std::size_t>(kept));
  version = must_commit(*store, {erase("fill/0"), erase("fill/1"), erase("fill/2")}, version);
  version = must_commit(*store, {put("new", std::string(10'000, 'n'))}, version);
  EXPECT_EQ(rows_of(*store).size(), static_cast<std::size_t>(kept - 2));
}

REGISTER_TYPED_TEST_SUITE_P(StateStoreContract, BeginsEmptyAtVersionZero, CountsCommitsAndShowsWhatTheyWrote,
                            TheLaterOfTwoWritesToOneKeyHolds, RefusesAStaleVersionAndWritesNothingOfIt,
                            AnEmptyBatchChangesNothingButIsComparedToo, IsTheSameAfterReopening,
                            KeepsLargeEmptyAndBinaryValues, KeepsManyRowsInOneBatchAndInManyBatches,
                            WithoutRoomRefusesTheWholeBatchAndRecoversWhenThereIsSome,
                            ErasingMakesRoomForWhatWasRefused);

}  // namespace windlass
