// What every PackageStore does, as tests of one that make() gives.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "protocol/crypto/digest.h"
#include "protocol/crypto/text_encoding.h"
#include "scheduler/seams/package_store.h"

namespace windlass {

template <class World>
class PackageStoreContract : public ::testing::Test {
 protected:
  static std::string digest_of(const Bytes& bytes) { return hex_encode(view_of(sha256(bytes))); }
  World world_;
};

TYPED_TEST_SUITE_P(PackageStoreContract);

TYPED_TEST_P(PackageStoreContract, IsWholeAfterItsLastPieceAndNotBefore) {
  const auto store = this->world_.make({});
  const Bytes bytes = "0123456789";
  const std::string digest = this->digest_of(bytes);
  EXPECT_EQ(store->put({digest, 0, 10, "0123"})->next, 4U);
  EXPECT_FALSE(store->read(digest, 0, 100).has_value());
  EXPECT_EQ(store->look(digest).next, 4U);
  EXPECT_TRUE(store->put({digest, 4, 10, "456789"})->is_whole);
  EXPECT_EQ(store->read(digest, 3, 4)->bytes, "3456");
  EXPECT_EQ(store->read(digest, 8, 100)->bytes, "89");
  EXPECT_EQ(store->read(digest, 8, 100)->total, 10U);
  EXPECT_FALSE(store->read(digest, 10, 1).has_value());
  EXPECT_EQ(store->whole(), std::vector{digest});
  EXPECT_TRUE(store->put({digest, 0, 10, "0123"})->is_whole) << "once more changes nothing";
  store->remove(digest);
  EXPECT_FALSE(store->look(digest).is_whole);
}

TYPED_TEST_P(PackageStoreContract, RefusesWhatIsNotWhatItsNameSays) {
  const auto store = this->world_.make({});
  const std::string digest = this->digest_of("other");
  EXPECT_EQ(store->put({digest, 0, 3, "abc"}).error().code, ErrorCode::PkgInvalid);
  EXPECT_EQ(store->look(digest).next, 0U) << "nothing is kept";
  EXPECT_TRUE(store->whole().empty());
  EXPECT_EQ(store->put({"../../etc/passwd", 0, 3, "abc"}).error().code, ErrorCode::ProtoSchema);
  EXPECT_FALSE(store->read("../x", 0, 1).has_value());
}

TYPED_TEST_P(PackageStoreContract, SaysWhereAPieceBelongs) {
  const auto store = this->world_.make({});
  const std::string digest = this->digest_of("abcdef");
  EXPECT_EQ(store->put({digest, 3, 6, "def"}).error().code, ErrorCode::ResultDuplicate);
  ASSERT_TRUE(store->put({digest, 0, 6, "abc"}).has_value());
  EXPECT_EQ(store->put({digest, 2, 6, "c"}).error().code, ErrorCode::ResultDuplicate);
  ASSERT_TRUE(store->put({digest, 0, 6, "ab"}).has_value()) << "0 begins anew";
  EXPECT_TRUE(store->put({digest, 2, 6, "cdef"})->is_whole);
}

TYPED_TEST_P(PackageStoreContract, HoldsNoMoreThanItMay) {
  const auto store = this->world_.make({.package_bytes_max = 8, .all_bytes_max = 10, .unfinished_max = 2});
  EXPECT_EQ(store->put({std::string(64, '1'), 0, 9, "a"}).error().code, ErrorCode::LimitFrame);
  ASSERT_TRUE(store->put({this->digest_of("12345678"), 0, 8, "12345678"}).has_value());
  EXPECT_EQ(store->put({std::string(64, '2'), 0, 3, "a"}).error().code, ErrorCode::StoreFull);
  EXPECT_TRUE(store->put({std::string(64, '2'), 0, 2, "a"}).has_value());
}

REGISTER_TYPED_TEST_SUITE_P(PackageStoreContract, IsWholeAfterItsLastPieceAndNotBefore,
                            RefusesWhatIsNotWhatItsNameSays, SaysWhereAPieceBelongs, HoldsNoMoreThanItMay);

}  // namespace windlass
