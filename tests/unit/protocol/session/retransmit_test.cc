// Sending again by timer, the last resort on a live connection.
#include <gtest/gtest.h>

#include <set>

#include "protocol/session/retransmit.h"
#include "tests/support/lone_scheduler.h"

namespace windlass {
namespace {

using testing::ids_of;
using testing::LoneScheduler;
using testing::message;
using testing::Note;
using testing::numbered;

TEST(RetransmitTimer, StaysBetweenFloorAndCap) {
  const SessionConfig config;
  RetransmitTimer timer;
  //= RTX-1
  EXPECT_EQ(timer.interval(config), milliseconds{200}) << "without a measurement";
  timer.sample(milliseconds{1});
  EXPECT_EQ(timer.interval(config), milliseconds{200});
  timer.sample(seconds{60});
  EXPECT_EQ(timer.interval(config), seconds{5});
}

TEST(RetransmitTimer, FollowsTheRoundTripPlusFourDeviations) {
  const SessionConfig config;
  RetransmitTimer timer;
  //= RTX-1
  timer.sample(milliseconds{400});
  EXPECT_EQ(timer.interval(config), milliseconds{400 + 4 * 200});
  for (int i = 0; i < 200; ++i) timer.sample(milliseconds{400});
  EXPECT_NEAR(static_cast<double>(timer.interval(config).count()), 400e6, 5e6)
      << "a steady round trip has no deviation";
}

TEST(RetransmitTimer, DoublesByEachAttemptAndStopsAtTheCap) {
  SessionConfig config;
  Random random{1};
  RetransmitTimer timer;
  for (int attempt = 0; attempt < 40; ++attempt) {
    const Duration plain =
        std::min<Duration>(milliseconds{200} * (std::int64_t{1} << std::min(attempt, 20)), seconds{5});
    //= RTX-1
    EXPECT_GE(timer.interval(config), plain) << attempt;
    EXPECT_LE(timer.interval(config), plain + plain / 4) << attempt;
    timer.note_attempt(random);
  }
  timer.note_progress();
  EXPECT_GE(timer.interval(config), seconds{5}) << "nothing was measured";
  timer.sample(milliseconds{1});
  EXPECT_LE(timer.interval(config), milliseconds{250});
}

TEST(RetransmitTimer, DoesNotWakeManyPeersTogether) {
  const SessionConfig config;
  std::set<Duration> intervals;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random random{seed};
    RetransmitTimer timer;
    timer.note_connected(random);
    intervals.insert(timer.interval(config));
  }
  //= RTX-1
  EXPECT_GT(intervals.size(), 80U) << "the first interval has its jitter too";
}

// A scheduler that sends to one ready worker, which says nothing by itself.
struct Sender : LoneScheduler {
  explicit Sender(SessionConfig c = {}) : LoneScheduler(c) {
    connection = open();
    accept = make_ready(connection);
  }
  void send(std::string_view id) {
    ASSERT_TRUE(endpoint.send(handle(), message(id), now()));
    settle();
  }
  std::vector<std::string> sent() {
    std::vector<std::string> ids;
    for (const Note& note : of_type(notes[connection], "biz.test")) ids.push_back(note.id);
    notes[connection].clear();
    return ids;
  }
  ConnectionId connection{0};
  Note accept{Frame{}};
};

TEST(Retransmit, SendsTheOldestFrameThatIsNeitherAcknowledgedNorHeld) {
  Sender sender;
  for (int i = 0; i < 4; ++i) sender.send(numbered("m", i));
  EXPECT_EQ(sender.sent().size(), 4U);
  Ack ack = LoneScheduler::ack(1);
  ack.state->held.set(0);  // frame 1
  sender.say(sender.connection, ack);
  sender.advance(milliseconds{260});
  //= RTX-3
  EXPECT_EQ(sender.sent(), std::vector<std::string>{"m2"});
}

TEST(Retransmit, KeepsIdAndTimeOfAFrameThatIsSentAgain) {
  Sender sender;
  sender.send("m");
  const Note first = of_type(sender.notes[sender.connection], "biz.test").at(0);
  sender.notes[sender.connection].clear();
  sender.advance(milliseconds{260});
  const auto again = of_type(sender.notes[sender.connection], "biz.test");
  ASSERT_EQ(again.size(), 1U);
  //= ENV-5
  EXPECT_EQ(again[0].id, first.id);
  EXPECT_EQ(again[0].ts, first.ts);
  EXPECT_EQ(again[0].seq, first.seq);
}

TEST(Retransmit, WaitsWhileItsOwnTransportHoldsBytes) {
  Sender sender;
  sender.send("m");
  sender.sent();
  sender.endpoint.set_transport_busy(sender.connection, true, sender.now());
  sender.advance(seconds{20});
  //= RTX-2
  EXPECT_TRUE(sender.sent().empty());
  EXPECT_EQ(sender.session()->stream().counters().retransmits, 0U);
  sender.endpoint.set_transport_busy(sender.connection, false, sender.now());
  sender.settle();
  sender.advance(milliseconds{100});
  EXPECT_TRUE(sender.sent().empty()) << "a whole interval begins when the bytes are gone";
  sender.advance(milliseconds{160});
  EXPECT_EQ(sender.sent().size(), 1U);
}

TEST(Retransmit, KnowsOfATransportThatWasBusyBeforeTheAccept) {
  LoneScheduler scheduler;
  const ConnectionId connection = scheduler.open();
  scheduler.greet(connection);
  scheduler.endpoint.set_transport_busy(connection, true, scheduler.now());
  scheduler.say(connection, LoneScheduler::registration());
  scheduler.say(connection, LoneScheduler::ack(0));
  ASSERT_TRUE(scheduler.endpoint.send(scheduler.handle(), message("m"), scheduler.now()));
  scheduler.advance(seconds{1});
  //= RTX-2
  EXPECT_EQ(scheduler.session()->stream().counters().retransmits, 0U);
  EXPECT_TRUE(of_type(scheduler.notes[connection], "biz.test").empty());
}

TEST(Retransmit, EndsTheSessionAfterSixAttemptsInVain) {
  SessionConfig config;
  config.heartbeat_interval = seconds{600};  // liveness must not end it first
  Sender sender{config};
  sender.send("m");
  sender.sent();
  sender.advance(seconds{60});
  EXPECT_EQ(of_type(sender.notes[sender.connection], "biz.test").size(), 6U);
  //= RTX-4
  EXPECT_EQ(sender.refusal(sender.connection), "E.TIMEOUT");
  //= RTX-5
  ASSERT_EQ(sender.seen<Ended>().size(), 1U);
  ASSERT_EQ(sender.seen<Ended>()[0].returned.size(), 1U);
  EXPECT_EQ(sender.seen<Ended>()[0].returned[0].id(), "m");
}

// On a slow link its ack lies behind what the peer sends itself.
TEST(Retransmit, WaitsForAnAckBehindFramesOfThePeersOwn) {
  SessionConfig config;
  config.heartbeat_interval = seconds{600};
  Sender sender{config};
  sender.send("m");
  Seq theirs = 0;
  for (int second = 0; second < 60; ++second) {
    sender.say_data(sender.connection, theirs++);
    sender.advance(seconds{1});
  }
  //= RTX-4
  ASSERT_NE(sender.session(), nullptr) << "new frames keep coming";
  EXPECT_EQ(sender.session()->stream().counters().retransmits, 6U) << "more would only fill the link";
  sender.say(sender.connection, LoneScheduler::ack(1));
  sender.advance(seconds{60});
  EXPECT_NE(sender.session(), nullptr);
  EXPECT_TRUE(sender.session()->stream().send_window().empty());
}

TEST(Retransmit, GivesUpAPeerThatSendsForEverAndAcknowledgesNothing) {
  SessionConfig config;
  config.heartbeat_interval = seconds{600};
  Sender sender{config};
  sender.send("m");
  Seq theirs = 0;
  int given_up = 0;
  for (; sender.session() != nullptr && given_up < 600; ++given_up) {
    sender.say_data(sender.connection, theirs++);
    sender.advance(seconds{1});
  }
  //= RTX-4
  EXPECT_EQ(sender.refusal(sender.connection), "E.TIMEOUT");
  EXPECT_GE(given_up, 300);
  EXPECT_LE(given_up, 340);
}

TEST(Retransmit, GivesUpOnceThePeerHasNothingMoreToSend) {
  SessionConfig config;
  config.heartbeat_interval = seconds{600};
  Sender sender{config};
  sender.send("m");
  for (Seq theirs = 0; theirs < 40; ++theirs) {
    sender.say_data(sender.connection, theirs);
    sender.advance(seconds{1});
  }
  ASSERT_NE(sender.session(), nullptr);
  sender.advance(seconds{14});  // two of its longest intervals
  //= RTX-4
  EXPECT_EQ(sender.refusal(sender.connection), "E.TIMEOUT");
}

TEST(Retransmit, CountsAttemptsAnewAfterProgress) {
  SessionConfig config;
  config.heartbeat_interval = seconds{600};
  Sender sender{config};
  sender.send("a");
  sender.send("b");
  sender.advance(seconds{10});
  EXPECT_GE(sender.sent().size(), 2U + 4U);
  sender.say(sender.connection, LoneScheduler::ack(1));
  sender.advance(seconds{60});
  //= RTX-4
  EXPECT_EQ(sender.sent(), std::vector<std::string>(6, "b"));
  EXPECT_EQ(sender.session(), nullptr);
}

TEST(Retransmit, LearnsARoundTripThatIsLongerThanItsFirstInterval) {
  Sender sender;
  for (int i = 0; i < 20; ++i) {
    sender.send(numbered("m", i));
    sender.advance(milliseconds{300});
    sender.say(sender.connection, LoneScheduler::ack(static_cast<Seq>(i) + 1));
  }
  //= RTX-1
  EXPECT_EQ(sender.session()->stream().counters().retransmits, 1U)
      << "the first one, which nothing was known of";
}

TEST(Retransmit, IsNotPutOffForEverByATransportThatIsBusyNowAndThen) {
  Sender sender;
  sender.send("m");
  sender.sent();
  for (int i = 0; i < 10; ++i) {
    sender.endpoint.set_transport_busy(sender.connection, true, sender.now());
    sender.advance(milliseconds{75});
    sender.endpoint.set_transport_busy(sender.connection, false, sender.now());
    sender.settle();
    sender.advance(milliseconds{75});
  }
  //= RTX-2
  //= RTX-3
  EXPECT_GE(sender.sent().size(), 1U);
}

TEST(Retransmit, ThatIsDueWaitsForATransportThatIsBusyAgain) {
  Sender sender;
  sender.settle_at_once = false;
  sender.send("m");
  sender.sent();
  const auto busy = [&](bool is) { sender.endpoint.set_transport_busy(sender.connection, is, sender.now()); };
  for (int i = 0; i < 20; ++i) {
    busy(true);
    sender.advance(seconds{1});
    EXPECT_TRUE(sender.sent().empty()) << i;
    busy(false);
    busy(true);
  }
  //= RTX-2
  //= RTX-4
  EXPECT_EQ(sender.session()->stream().counters().retransmits, 0U);
  EXPECT_NE(sender.session(), nullptr) << "what was not sent again was not in vain";
}

TEST(Retransmit, ReturnsEverythingUnacknowledgedInOrderWhenTheSessionEnds) {
  Sender sender;
  for (int i = 0; i < 5; ++i) sender.send(numbered("m", i));
  sender.say(sender.connection, LoneScheduler::ack(2));
  sender.endpoint.handle_closed(sender.connection, sender.now());
  ASSERT_TRUE(sender.endpoint.send(sender.handle(), message("between"), sender.now()));
  sender.advance(seconds{301});
  //= RTX-5
  ASSERT_EQ(sender.seen<Ended>().size(), 1U);
  EXPECT_EQ(ids_of(sender.seen<Ended>()[0].returned),
            (std::vector<std::string>{"m2", "m3", "m4", "between"}));
}

}  // namespace
}  // namespace windlass
