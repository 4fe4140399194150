#include "protocol/shell/key_rotation.h"

#include <gtest/gtest.h>

namespace windlass {
namespace {

constexpr Duration kLifetime = seconds{3600};
constexpr Instant kStart{seconds{1000}};

TEST(KeyRotation, AKeyIsNeededForATokensLifetimeAfterANewerOneTookOver) {
  KeyRotation keys{{"a"}, kLifetime};
  EXPECT_EQ(keys.older_needed_for(kStart), Duration{});
  EXPECT_TRUE(keys.replace({"b", "a"}, kStart).empty());
  EXPECT_EQ(keys.older_needed_for(kStart + seconds{600}), seconds{3000});
  EXPECT_TRUE(keys.replace({"b"}, kStart + kLifetime).empty());
  EXPECT_EQ(keys.older_needed_for(kStart + kLifetime), Duration{});
}

TEST(KeyRotation, AKeyThatGoesEarlierIsNamed) {
  KeyRotation keys{{"a"}, kLifetime};
  EXPECT_TRUE(keys.replace({"b", "a"}, kStart).empty());
  EXPECT_EQ(keys.replace({"c", "b"}, kStart + seconds{10}), std::vector<std::string>{"a"});
  EXPECT_EQ(keys.replace({"d"}, kStart + seconds{20}), (std::vector<std::string>{"b", "c"}));
  EXPECT_TRUE(keys.replace({"d"}, kStart + seconds{30}).empty());
}

TEST(KeyRotation, AKeyThatIsPutBackOnTopIsNotOld) {
  KeyRotation keys{{"a"}, kLifetime};
  EXPECT_TRUE(keys.replace({"b", "a"}, kStart).empty());
  EXPECT_TRUE(keys.replace({"a", "b"}, kStart + seconds{1}).empty());
  EXPECT_EQ(keys.older_needed_for(kStart + seconds{1}), kLifetime);
  EXPECT_TRUE(keys.replace({"a"}, kStart + seconds{1} + kLifetime).empty());
}

}  // namespace
}  // namespace windlass
