// The whole path, both endpoints on a fake link.
#include <gtest/gtest.h>

#include "tests/support/session_pair.h"

namespace windlass {
namespace {

using testing::message;
using testing::numbered;
using testing::SessionPair;

TEST(SessionPair, HandshakesRegistersAndIsReady) {
  SessionPair pair;
  pair.start();
  EXPECT_EQ(pair.worker.state(), SessionState::Ready);
  EXPECT_EQ(pair.scheduler_session().state(), SessionState::Ready);
  //= HSK-7
  ASSERT_EQ(pair.seen_by_scheduler<Registered>().size(), 1U);
  EXPECT_EQ(pair.seen_by_scheduler<Registered>()[0].profile->runtimes, std::vector<std::string>{"native"});
}

TEST(SessionPair, DeliversBothWaysInOrderAndAcknowledges) {
  SessionPair pair;
  pair.start();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(pair.worker.send(message(numbered("w", i)), pair.now()));
    ASSERT_TRUE(pair.scheduler.send(pair.handle(), message(numbered("s", i)), pair.now()));
  }
  pair.advance(milliseconds{10});
  ASSERT_EQ(pair.delivered_to_worker().size(), 100U);
  ASSERT_EQ(pair.delivered_to_scheduler().size(), 100U);
  EXPECT_EQ(pair.delivered_to_worker()[99], "s99");
  EXPECT_TRUE(pair.worker.session()->stream().send_window().empty());
  EXPECT_TRUE(pair.scheduler_session().stream().send_window().empty());
}

TEST(SessionPair, ResumesAfterACutAndLosesNothing) {
  SessionPair pair;
  pair.start();
  pair.filter = [](const Frame& frame, bool) { return !frame.is_data(); };
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(pair.worker.send(message(numbered("w", i)), pair.now()));
  pair.settle();
  EXPECT_TRUE(pair.delivered_to_scheduler().empty());
  pair.cut();
  EXPECT_EQ(pair.worker.state(), SessionState::Backoff);
  pair.filter = [](const Frame&, bool) { return true; };
  pair.advance(seconds{1});
  EXPECT_EQ(pair.worker.state(), SessionState::Ready);
  EXPECT_EQ(pair.delivered_to_scheduler().size(), 10U);
  ASSERT_EQ(pair.seen_by_worker<Established>().size(), 2U);
  EXPECT_TRUE(pair.seen_by_worker<Established>()[1].resumed);
  EXPECT_EQ(pair.seen_by_worker<Established>()[1].replayed, 10U);
}

TEST(SessionPair, DrainsAndCloses) {
  SessionPair pair;
  pair.start();
  ASSERT_TRUE(pair.scheduler.drain(pair.handle(), "scale in", seconds{30}, pair.now()));
  pair.settle();
  EXPECT_EQ(pair.worker.state(), SessionState::Draining);
  ASSERT_EQ(pair.seen_by_worker<DrainRequested>().size(), 1U);
  ASSERT_TRUE(pair.worker.send(message("last"), pair.now()));
  pair.worker.complete_drain(pair.now());
  pair.advance(seconds{1});
  EXPECT_EQ(pair.worker.state(), SessionState::Closed);
  EXPECT_EQ(pair.delivered_to_scheduler(), std::vector<std::string>{"last"});
  EXPECT_EQ(pair.scheduler.sessions(), 0U);
  ASSERT_FALSE(pair.seen_by_scheduler<Ended>().empty());
  EXPECT_EQ(pair.seen_by_scheduler<Ended>()[0].code, "");
}

}  // namespace
}  // namespace windlass
