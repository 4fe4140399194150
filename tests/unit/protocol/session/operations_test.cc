// Random operations on a pair of endpoints, many seeds. A failure names its seed;
// WINDLASS_OPERATIONS_SEED=<n> replays it alone, WINDLASS_OPERATIONS_SEEDS=<n> runs more of them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/support/session_operations.h"

namespace windlass {
namespace {

using testing::Choices;
using testing::run_session_operations;

constexpr std::size_t kOperations = 400;

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::stoull(text);
}

TEST(SessionOperations, KeepEveryPromiseWhateverHappens) {
  const std::uint64_t only = number_from("WINDLASS_OPERATIONS_SEED", 0);
  const std::uint64_t first = only != 0 ? only : 1;
  const std::uint64_t last = only != 0 ? only : number_from("WINDLASS_OPERATIONS_SEEDS", 150);
  std::uint64_t delivered = 0;
  std::uint64_t resumed = 0;
  std::uint64_t ended = 0;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    Choices choices{seed};
    const auto report = run_session_operations(choices, kOperations, only != 0);
    ASSERT_EQ(report.failure, "") << "replay with WINDLASS_OPERATIONS_SEED=" << seed;
    delivered += report.delivered;
    resumed += report.resumed;
    ended += report.ended;
  }
  if (only != 0) return;
  // The runs did something worth checking.
  EXPECT_GT(delivered, 20 * last);
  EXPECT_GT(resumed, last);
  EXPECT_GT(ended, last);
}

TEST(SessionOperations, ReplayFromTheBytesThatWereTaken) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Choices by_seed{seed};
    const auto first = run_session_operations(by_seed, kOperations);
    Choices by_bytes{std::span{by_seed.taken()}};
    const auto second = run_session_operations(by_bytes, kOperations);
    EXPECT_EQ(first.operations, second.operations);
    EXPECT_EQ(first.delivered, second.delivered);
    EXPECT_EQ(first.resumed, second.resumed);
    EXPECT_EQ(first.ended, second.ended);
  }
}

}  // namespace
}  // namespace windlass
