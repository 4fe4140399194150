#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "protocol/base/random.h"
#include "protocol/base/timer_queue.h"

namespace windlass {
namespace {

constexpr Instant after(std::int64_t count) {
  return Instant{milliseconds{count}};
}

struct Timed {
  TimerQueue<Timed>::Node node{this};
};

TEST(TimerQueue, HandsNothingOutBeforeADeadlineThatMovedLater) {
  TimerQueue<Timed> queue;
  Timed timed;
  queue.set(timed.node, after(10));
  queue.set(timed.node, after(30));
  EXPECT_EQ(queue.pop_due(after(20)), nullptr);
  EXPECT_EQ(queue.next(), after(30)) << "it has found its new place";
  EXPECT_EQ(queue.pop_due(after(30)), &timed);
  EXPECT_EQ(queue.next(), std::nullopt);
}

TEST(TimerQueue, HearsADeadlineThatMovedLaterAndThenEarlier) {
  TimerQueue<Timed> queue;
  Timed timed;
  queue.set(timed.node, after(20));
  queue.set(timed.node, after(50));
  queue.set(timed.node, after(5));
  EXPECT_EQ(queue.next(), after(5));
  EXPECT_EQ(queue.pop_due(after(5)), &timed);
}

// Against a plain list of deadlines, whatever is set, moved and cleared: the same are due, and nobody is
// woken too late.
TEST(TimerQueue, AgreesWithAListOfDeadlines) {
  Random random{7};
  TimerQueue<Timed> queue;
  std::array<Timed, 40> timed;
  std::array<std::optional<Instant>, 40> wanted;
  std::int64_t now = 0;
  for (int step = 0; step < 20'000; ++step) {
    const std::size_t i = random.below(timed.size());
    wanted[i] = random.one_in(8)
                    ? std::nullopt
                    : std::optional{after(now + static_cast<std::int64_t>(random.below(std::uint64_t{100})))};
    queue.set(timed[i].node, wanted[i]);
    if (!random.one_in(4)) continue;
    now += static_cast<std::int64_t>(random.below(std::uint64_t{10}));
    while (const Timed* const due = queue.pop_due(after(now))) {
      auto& deadline = wanted[static_cast<std::size_t>(due - timed.data())];
      ASSERT_TRUE(deadline && *deadline <= after(now));
      deadline.reset();
    }
    for (const auto& each : wanted) {
      if (!each) continue;
      ASSERT_GT(*each, after(now)) << "it was due";
      ASSERT_LE(queue.next(), *each);
    }
  }
  for (Timed& each : timed) queue.clear(each.node);
}

}  // namespace
}  // namespace windlass
