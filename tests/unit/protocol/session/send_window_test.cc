// The sending half alone: numbering, credit, what an ack frees, what a resume sends again.
#include <gtest/gtest.h>

#include "protocol/session/send_window.h"
#include "tests/support/session_pair.h"

namespace windlass {
namespace {

using testing::message;
using testing::numbered;

Now at(int milliseconds_since_start) {
  return {Instant{milliseconds{milliseconds_since_start}}, WallTime{milliseconds{milliseconds_since_start}}};
}

AckState ack(Seq owned_next, Credit credit = {16, 1000}) {
  AckState state;
  state.owned_next = owned_next;
  state.credit = credit;
  return state;
}

// A window with credit for 16 frames and 1000 bytes, and `count` frames of 2 bytes, sent.
SendWindow sent_window(std::size_t count) {
  SendWindow window;
  window.grant({16, 1000});
  for (std::size_t i = 0; i < count; ++i) {
    const Seq seq = window.push(message(numbered("m", i)), at(0));
    window.mark_sent(seq, at(static_cast<int>(i)).steady);
  }
  return window;
}

std::vector<Seq> to_send(SendWindow& window) {
  std::vector<Seq> order;
  while (const auto seq = window.next_unsent()) {
    order.push_back(*seq);
    window.mark_sent(*seq, at(100).steady);
  }
  return order;
}

TEST(SendWindow, NumbersFramesFromZeroWithoutGaps) {
  SendWindow window;
  window.grant({16, 1000});
  //= WIN-1
  for (Seq expected = 0; expected < 5; ++expected) EXPECT_EQ(window.push(message("m"), at(0)), expected);
  window.mark_sent(0, at(0).steady);
  ASSERT_TRUE(window.handle_ack(ack(1), at(1).steady));
  EXPECT_EQ(window.push(message("m"), at(0)), 5U);
}

TEST(SendWindow, HasNoCreditBeforeThePeerGaveAny) {
  const SendWindow window;
  //= WIN-2
  EXPECT_FALSE(window.has_credit(0));
}

TEST(SendWindow, RefusesTheFrameAtTheRightEdge) {
  SendWindow window = sent_window(15);
  EXPECT_TRUE(window.has_credit(2));
  window.mark_sent(window.push(message("m15"), at(0)), at(0).steady);
  //= WIN-2
  EXPECT_FALSE(window.has_credit(2));
  EXPECT_EQ(window.frames_credit(), 0U);
  ASSERT_TRUE(window.handle_ack(ack(1), at(1).steady));
  EXPECT_EQ(window.frames_credit(), 1U);
  EXPECT_TRUE(window.has_credit(2));
}

TEST(SendWindow, RefusesBytesBeyondTheOffer) {
  SendWindow window;
  window.grant({16, 10});
  window.push(message("a", "{123456}"), at(0));  // 8 bytes
  //= WIN-3
  EXPECT_TRUE(window.has_credit(2));
  EXPECT_FALSE(window.has_credit(3));
}

TEST(SendWindow, TakesOneFrameOfAnySizeWhenNothingIsOutstanding) {
  SendWindow window;
  window.grant({16, 10});
  //= WIN-3
  EXPECT_TRUE(window.has_credit(5000));
  window.mark_sent(window.push(message("big", std::string(5000, ' ')), at(0)), at(0).steady);
  EXPECT_FALSE(window.has_credit(2));
  ASSERT_TRUE(window.handle_ack(ack(1, {16, 10}), at(1).steady));
  EXPECT_TRUE(window.has_credit(5000));
}

TEST(SendWindow, TakesNothingOfAnySizeThroughAClosedFrameWindow) {
  SendWindow window;
  window.grant({0, 1000});
  //= WIN-3
  EXPECT_FALSE(window.has_credit(2));
}

TEST(SendWindow, KeepsWhatIsOnlyHeldAndFreesWhatIsOwned) {
  SendWindow window = sent_window(4);
  AckState held = ack(0);
  held.held.set_first(4);
  ASSERT_TRUE(window.handle_ack(held, at(5).steady));
  //= ACK-3
  //= WIN-8
  EXPECT_EQ(window.in_flight(), 4U);
  EXPECT_EQ(window.oldest_outstanding(), std::nullopt) << "a bit stops the resending";
  ASSERT_TRUE(window.handle_ack(ack(3), at(6).steady));
  EXPECT_EQ(window.in_flight(), 1U);
  EXPECT_EQ(window.earliest_retained(), 3U);
}

TEST(SendWindow, TakesAnAckOfAFrameNeverMadeForALie) {
  SendWindow window = sent_window(2);
  //= ACK-4
  const auto outcome = window.handle_ack(ack(3), at(1).steady);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, ErrorCode::SessionAckInvalid);
  EXPECT_EQ(window.in_flight(), 2U);
}

TEST(SendWindow, TakesAnAckOfAFrameStillWaitingToBeSentForALie) {
  SendWindow window = sent_window(2);
  window.push(message("waiting"), at(0));
  //= ACK-4
  EXPECT_FALSE(window.handle_ack(ack(3), at(1).steady));
  EXPECT_EQ(window.in_flight(), 3U);
}

TEST(SendWindow, TakesABitOfAFrameNeverSentForALie) {
  SendWindow window = sent_window(2);
  window.push(message("waiting"), at(0));
  AckState lie = ack(1);
  lie.held.set(1);  // frame 2, which waits
  //= ACK-4
  const auto outcome = window.handle_ack(lie, at(1).steady);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, ErrorCode::SessionAckInvalid);
  EXPECT_EQ(window.earliest_retained(), 0U) << "a lie changes nothing";
}

TEST(SendWindow, LetsAnOldAckChangeNothing) {
  SendWindow window = sent_window(4);
  AckState good = ack(2, {8, 500});
  good.held.set(0);
  ASSERT_TRUE(window.handle_ack(good, at(1).steady));
  const auto credit = window.frames_credit();
  //= ACK-5
  const auto outcome = window.handle_ack(ack(1, {2, 2}), at(2).steady);
  ASSERT_TRUE(outcome);
  EXPECT_FALSE(outcome->progress);
  EXPECT_EQ(window.earliest_retained(), 2U);
  EXPECT_EQ(window.oldest_outstanding(), std::optional<Seq>{3});
  EXPECT_EQ(window.frames_credit(), credit);
  ASSERT_TRUE(window.handle_ack(ack(2, {1, 1}), at(2).steady)) << "less credit at the same place";
  EXPECT_EQ(window.frames_credit(), credit);
}

TEST(SendWindow, MeasuresTheRoundTripOfAFrameSentOnce) {
  SendWindow window = sent_window(3);  // sent at 0, 1 and 2 ms
  const auto outcome = window.handle_ack(ack(2), at(31).steady);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->round_trip, std::optional<Duration>{milliseconds{30}});
  window.slot(2).resent = true;
  EXPECT_EQ(window.handle_ack(ack(3), at(40).steady)->round_trip, std::nullopt);
}

TEST(SendWindow, SendsAgainInOrderWhatThePeerHasNotSeen) {
  SendWindow window = sent_window(5);
  window.push(message("new"), at(0));
  window.disconnect();
  //= RES-4
  EXPECT_EQ(window.rewind(2).value(), 3U) << "the new one was not sent before";
  EXPECT_EQ(to_send(window), (std::vector<Seq>{2, 3, 4, 5}));
  EXPECT_EQ(window.in_flight(), 6U) << "seen is not owned";
}

TEST(SendWindow, DoesNotSendAgainWhatThePeerHolds) {
  SendWindow window = sent_window(5);
  AckState state = ack(1);
  state.held.set(2);  // frame 3
  ASSERT_TRUE(window.handle_ack(state, at(1).steady));
  window.disconnect();
  //= RES-4
  EXPECT_EQ(window.rewind(2).value(), 2U);
  EXPECT_EQ(to_send(window), (std::vector<Seq>{2, 4}));
}

TEST(SendWindow, RefusesAResumeBeyondWhatWasSent) {
  SendWindow window = sent_window(3);
  window.push(message("waiting"), at(0));
  window.disconnect();
  //= RES-6
  const auto rewound = window.rewind(4);
  ASSERT_FALSE(rewound);
  EXPECT_EQ(rewound.error().code, ErrorCode::SessionAckInvalid);
}

TEST(SendWindow, RefusesAResumeBelowWhatWasFreed) {
  SendWindow window = sent_window(3);
  ASSERT_TRUE(window.handle_ack(ack(2), at(1).steady));
  window.disconnect();
  //= RES-6
  const auto rewound = window.rewind(1);
  ASSERT_FALSE(rewound);
  EXPECT_EQ(rewound.error().code, ErrorCode::ResultSeqGap);
}

TEST(SendWindow, BoundsWhatAPeerMayOffer) {
  SendWindow window;
  window.grant({limits::kWindowFramesMax * 4, limits::kIntegerMax});
  EXPECT_EQ(window.frames_credit(), limits::kWindowFramesMax);
  window.push(message("a"), at(0));
  EXPECT_FALSE(window.has_credit(limits::kSendBytesMax));
}

TEST(SendWindow, GivesEverythingBackInOrder) {
  SendWindow window = sent_window(3);
  ASSERT_TRUE(window.handle_ack(ack(1), at(1).steady));
  window.push(message("waiting"), at(0));
  //= RTX-5
  const auto returned = window.take_all();
  ASSERT_EQ(returned.size(), 3U);
  EXPECT_EQ(returned[0].id(), "m1");
  EXPECT_EQ(returned[2].id(), "waiting");
  EXPECT_TRUE(window.empty());
}

}  // namespace
}  // namespace windlass
