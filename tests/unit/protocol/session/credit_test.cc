// Credit as two endpoints live with it: refusals, probes, windows that close and open.
#include <gtest/gtest.h>

#include "tests/support/lone_scheduler.h"
#include "tests/support/session_pair.h"

namespace windlass {
namespace {

using testing::LoneScheduler;
using testing::message;
using testing::Note;
using testing::numbered;
using testing::object;
using testing::SessionPair;

SessionConfig window_of(Credit credit) {
  SessionConfig config = testing::quick_config();
  config.receive_credit = credit;
  return config;
}

TEST(Credit, RefusesWhatWouldBlockAndLeavesTheMessageToItsOwner) {
  SessionPair pair{testing::worker_options(), window_of({4, 1000})};
  pair.own_at_once = false;
  pair.start();
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(pair.worker.send(message(numbered("m", i)), pair.now()));
  Message fifth = message("fifth");
  //= WIN-9
  const auto refused = pair.worker.send(std::move(fifth), pair.now());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::SessionWouldBlock);
  EXPECT_EQ(fifth.id(), "fifth");  // NOLINT(bugprone-use-after-move): that is the promise.
  pair.advance(seconds{1});
  EXPECT_TRUE(pair.seen_by_worker<Writable>().empty());
  pair.scheduler.own(pair.handle(), 1, pair.now());
  pair.advance(milliseconds{10});
  //= WIN-9
  EXPECT_EQ(pair.seen_by_worker<Writable>().size(), 1U);
  EXPECT_TRUE(pair.worker.send(std::move(fifth), pair.now()));
}

TEST(Credit, OfOnePeerBlocksNobodyElse) {
  LoneScheduler scheduler;
  const ConnectionId a = scheduler.open();
  scheduler.make_ready(a);
  const ConnectionId b = scheduler.open();
  scheduler.make_ready(b, 2, {.sender_id = "i-2"});
  std::size_t taken = 0;
  while (scheduler.endpoint.send(scheduler.handle("i-1"), message(numbered("a", taken)), scheduler.now()))
    ++taken;
  EXPECT_EQ(taken, 256U);
  //= WIN-9
  EXPECT_TRUE(scheduler.endpoint.send(scheduler.handle("i-2"), message("b"), scheduler.now()));
  scheduler.settle();
  EXPECT_EQ(of_type(scheduler.notes[b], "biz.test").size(), 1U);
}

TEST(Credit, IsBackOnlyWhenTheRefusedSizeFits) {
  LoneScheduler scheduler;
  const ConnectionId connection = scheduler.open();
  scheduler.make_ready(connection);
  scheduler.say(connection, LoneScheduler::ack(0, {256, 1 << 20}));
  ASSERT_TRUE(scheduler.endpoint.send(scheduler.handle(), message("m0", object(600'000)), scheduler.now()));
  ASSERT_TRUE(scheduler.endpoint.send(scheduler.handle(), message("m1"), scheduler.now()));
  scheduler.settle();
  ASSERT_FALSE(
      scheduler.endpoint.send(scheduler.handle(), message("large", object(900'000)), scheduler.now()));
  Ack same = LoneScheduler::ack(0);
  same.state->held.set_first(2);
  scheduler.say(connection, same);
  //= WIN-9
  EXPECT_TRUE(scheduler.seen<Writable>().empty()) << "frames are free, bytes are not";
  scheduler.say(connection, LoneScheduler::ack(1));
  EXPECT_EQ(scheduler.seen<Writable>().size(), 1U);
}

TEST(Credit, IsProbedForWhileTheWindowIsClosed) {
  SessionPair pair{testing::worker_options(), window_of({2, 1000})};
  pair.own_at_once = false;
  pair.start();
  std::uint64_t probes = 0;
  pair.filter = [&](const Frame& frame, bool from_worker) {
    if (from_worker && std::holds_alternative<Ack>(frame.body) && frame.ack_request) ++probes;
    return true;
  };
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(pair.worker.send(message(numbered("m", i)), pair.now()));
  pair.advance(seconds{1});
  EXPECT_EQ(probes, 0U) << "nobody waits";
  ASSERT_FALSE(pair.worker.send(message("m"), pair.now()));
  pair.advance(milliseconds{1260});
  //= WIN-11
  EXPECT_GE(probes, 4U);
  EXPECT_LE(probes, 7U);
  pair.cut();
  pair.advance(seconds{1});
  ASSERT_EQ(pair.worker.state(), SessionState::Ready);
  const std::uint64_t before = probes;
  pair.advance(seconds{1});
  //= WIN-11
  EXPECT_GE(probes - before, 3U) << "on the next connection too";
  pair.scheduler.own(pair.handle(), 2, pair.now());
  pair.settle();
  const std::uint64_t after = probes;
  pair.advance(seconds{5});
  EXPECT_EQ(probes, after) << "until credit comes";
}

TEST(Credit, LostOnItsWayIsFoundByAProbe) {
  SessionPair pair{testing::worker_options(), window_of({2, 1000})};
  pair.own_at_once = false;
  pair.start();
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(pair.worker.send(message(numbered("m", i)), pair.now()));
  pair.advance(milliseconds{10});
  ASSERT_FALSE(pair.worker.send(message("m"), pair.now()));
  pair.filter = [](const Frame&, bool from_worker) { return from_worker; };
  pair.scheduler.own(pair.handle(), 2, pair.now());
  pair.advance(milliseconds{20});
  EXPECT_TRUE(pair.seen_by_worker<Writable>().empty());
  pair.filter = [](const Frame&, bool) { return true; };
  pair.advance(milliseconds{300});
  //= WIN-11
  EXPECT_EQ(pair.seen_by_worker<Writable>().size(), 1U);
}

TEST(Credit, IsAnnouncedAtOnceWhenAClosedWindowOpens) {
  LoneScheduler scheduler{window_of({64, 1 << 20})};
  scheduler.own_at_once = false;
  const ConnectionId connection = scheduler.open();
  scheduler.make_ready(connection);
  for (Seq seq = 0; seq < 64; ++seq) scheduler.say_data(connection, seq);
  scheduler.advance(milliseconds{10});
  scheduler.notes[connection].clear();
  scheduler.endpoint.own(scheduler.handle(), 1, scheduler.now());
  scheduler.settle();
  //= WIN-12
  const auto acks = scheduler.acks(connection);
  ASSERT_EQ(acks.size(), 1U) << "one frame is far from a quarter of the window";
  EXPECT_EQ(acks[0].state->owned_next, 1U);
  EXPECT_EQ(acks[0].state->credit.frames, 64U);
}

TEST(Credit, IsAnnouncedAtOnceWhenTheOwnerOpensAClosedWindow) {
  LoneScheduler scheduler{window_of({0, 1 << 20})};
  const ConnectionId connection = scheduler.open();
  const Note accept = scheduler.make_ready(connection);
  EXPECT_EQ(accept.position.credit.frames, 0U);
  scheduler.endpoint.set_receive_credit(scheduler.handle(), {8, 1 << 20}, scheduler.now());
  scheduler.settle();
  //= WIN-12
  ASSERT_EQ(scheduler.acks(connection).size(), 1U);
  EXPECT_EQ(scheduler.acks(connection)[0].state->credit.frames, 8U);
}

TEST(Credit, KeepsItsRightEdgeAcrossConnections) {
  LoneScheduler scheduler{window_of({8, 1000})};
  scheduler.own_at_once = false;
  const ConnectionId first = scheduler.open();
  const Note accept = scheduler.make_ready(first);
  scheduler.say_data(first, 0);
  scheduler.endpoint.set_receive_credit(scheduler.handle(), {2, 10}, scheduler.now());
  scheduler.endpoint.handle_closed(first, scheduler.now());
  const ConnectionId second = scheduler.open();
  scheduler.greet(second);
  scheduler.say(second, scheduler.resume_of(accept, 0, 0));
  //= WIN-10
  //= RES-9
  EXPECT_EQ(scheduler.last_accept(second).position.credit, (Credit{8, 1000}));
  for (Seq seq = 1; seq < 8; ++seq) scheduler.say_data(second, seq);
  EXPECT_EQ(scheduler.seen<Delivered>().size(), 8U);
}

TEST(Credit, OverrunIsDroppedAcknowledgedAndCharged) {
  SessionConfig config = window_of({4, 1000});
  config.error_budget = 2;
  LoneScheduler scheduler{config};
  scheduler.own_at_once = false;
  const ConnectionId connection = scheduler.open();
  scheduler.make_ready(connection);
  scheduler.say_data(connection, 4);
  //= WIN-7
  EXPECT_TRUE(scheduler.seen<Delivered>().empty());
  ASSERT_EQ(scheduler.acks(connection).size(), 1U);
  EXPECT_TRUE(scheduler.acks(connection)[0].ok) << "with the current state, not a refusal";
  EXPECT_EQ(scheduler.session()->stream().counters().outside_window, 1U);
  scheduler.say_data(connection, 5);
  EXPECT_EQ(scheduler.session()->state(), SessionState::Ready);
  scheduler.say_data(connection, 6);
  //= WIN-7
  EXPECT_EQ(scheduler.refusal(connection), "E.LIMIT.ERRORS");
}

TEST(Credit, CoversTheEnvelopeOfTheLargestFrame) {
  SessionPair pair;
  pair.start();
  //= LIM-1
  const auto refused = pair.worker.send(message("large", object(limits::kFrameBytesMax)), pair.now());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::LimitFrame);
  EXPECT_TRUE(pair.worker.send(message("fits", object(limits::kFrameBytesMax - limits::kEnvelopeBytesMax)),
                               pair.now()));
}

}  // namespace
}  // namespace windlass
