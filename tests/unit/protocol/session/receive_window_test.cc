// The receiving half alone: order, duplicates, gaps, and credit that never moves back.
#include <gtest/gtest.h>

#include "protocol/session/receive_window.h"
#include "tests/support/session_pair.h"

namespace windlass {
namespace {

using testing::numbered;
using Arrival = ReceiveWindow::Arrival;

Arrival receive(ReceiveWindow& window, Seq seq, std::string_view payload = "{}") {
  const std::string id = numbered("m", seq);
  return window.handle(seq, Data{"biz.test", payload, {}},
                       {.type = "biz.test", .id = id, .payload = payload});
}

std::vector<std::string> take_early(ReceiveWindow& window) {
  std::vector<std::string> ids;
  Message message;
  while (window.take_next(message)) ids.emplace_back(message.id());
  return ids;
}

AckState describe(const ReceiveWindow& window) {
  AckState state;
  window.describe(state);
  return state;
}

TEST(ReceiveWindow, DeliversInOrderEachFrameOnce) {
  ReceiveWindow window{{8, 1000}};
  //= WIN-4
  EXPECT_EQ(receive(window, 0), Arrival::InOrder);
  EXPECT_EQ(receive(window, 1), Arrival::InOrder);
  //= WIN-6
  EXPECT_EQ(receive(window, 0), Arrival::Duplicate);
  EXPECT_EQ(receive(window, 1), Arrival::Duplicate);
  window.own(2);
  EXPECT_EQ(receive(window, 1), Arrival::Duplicate) << "owned or not";
}

TEST(ReceiveWindow, HoldsAnEarlyFrameUntilTheGapIsFilled) {
  ReceiveWindow window{{8, 1000}};
  //= WIN-5
  EXPECT_EQ(receive(window, 3), Arrival::Early);
  EXPECT_EQ(receive(window, 1), Arrival::Early);
  EXPECT_TRUE(take_early(window).empty());
  EXPECT_EQ(receive(window, 0), Arrival::InOrder);
  EXPECT_EQ(take_early(window), std::vector<std::string>{"m1"});
  EXPECT_TRUE(window.has_gap());
  EXPECT_EQ(receive(window, 2), Arrival::InOrder);
  EXPECT_EQ(take_early(window), std::vector<std::string>{"m3"});
  EXPECT_FALSE(window.has_gap());
}

TEST(ReceiveWindow, KnowsADuplicateOfAFrameItHoldsEarly) {
  ReceiveWindow window{{8, 1000}};
  EXPECT_EQ(receive(window, 2), Arrival::Early);
  //= WIN-6
  EXPECT_EQ(receive(window, 2), Arrival::Duplicate);
}

TEST(ReceiveWindow, DropsWhatLiesAtOrBeyondTheRightEdge) {
  ReceiveWindow window{{4, 1000}};
  //= WIN-7
  EXPECT_EQ(receive(window, 4), Arrival::Outside);
  EXPECT_EQ(receive(window, 3), Arrival::Early);
  EXPECT_EQ(receive(window, limits::kIntegerMax), Arrival::Outside);
  EXPECT_EQ(window.received_next(), 0U);
}

TEST(ReceiveWindow, DropsWhatExceedsTheBytesOffered) {
  ReceiveWindow window{{8, 10}};
  EXPECT_EQ(receive(window, 0, "{12345}"), Arrival::InOrder);
  //= WIN-7
  EXPECT_EQ(receive(window, 1, "{12}"), Arrival::Outside);
  EXPECT_EQ(receive(window, 1, "{1}"), Arrival::InOrder);
}

TEST(ReceiveWindow, CountsEarlyFramesAgainstTheBytesOffered) {
  ReceiveWindow window{{8, 10}};
  EXPECT_EQ(receive(window, 1, "{12345}"), Arrival::Early);
  //= WIN-7
  EXPECT_EQ(receive(window, 2, "{12}"), Arrival::Outside);
  EXPECT_EQ(receive(window, 0, "{1}"), Arrival::InOrder);
  EXPECT_EQ(take_early(window).size(), 1U);
}

TEST(ReceiveWindow, TakesOneFrameOfAnySizeWhenItHoldsNothing) {
  ReceiveWindow window{{8, 10}};
  //= WIN-3
  EXPECT_EQ(receive(window, 0, std::string(500, ' ')), Arrival::InOrder);
  EXPECT_EQ(receive(window, 1), Arrival::Outside);
  window.own(1);
  EXPECT_EQ(window.credit(), (Credit{8, 10}));
  EXPECT_EQ(receive(window, 1, std::string(500, ' ')), Arrival::InOrder);
}

TEST(ReceiveWindow, TellsOwnedFromHeld) {
  ReceiveWindow window{{8, 1000}};
  for (Seq seq : {0U, 1U, 2U, 4U}) receive(window, seq);
  window.own(1);
  const AckState state = describe(window);
  //= ACK-1
  EXPECT_EQ(state.owned_next, 1U);
  //= ACK-2
  EXPECT_TRUE(state.held.test(0));
  EXPECT_TRUE(state.held.test(1));
  EXPECT_FALSE(state.held.test(2)) << "the gap";
  EXPECT_TRUE(state.held.test(3));
  EXPECT_EQ(state.held.bit_length(), 4U);
}

TEST(ReceiveWindow, NamesNoBitWhenAllIsOwned) {
  ReceiveWindow window{{8, 1000}};
  receive(window, 0);
  window.own(1);
  //= ACK-2
  EXPECT_TRUE(describe(window).held.empty());
}

TEST(ReceiveWindow, NeverMovesItsRightEdgeBack) {
  ReceiveWindow window{{8, 100}};
  window.set_capacity({2, 10});
  //= WIN-10
  EXPECT_EQ(window.credit(), (Credit{8, 100}));
  for (Seq seq = 0; seq < 8; ++seq)
    EXPECT_EQ(receive(window, seq), Arrival::InOrder) << "credit given stays given";
  EXPECT_EQ(receive(window, 8), Arrival::Outside);
  window.own(5);
  EXPECT_EQ(window.credit(), (Credit{3, 90})) << "the edge stands still while ack_seq advances";
  window.own(7);
  EXPECT_EQ(window.credit().frames, 2U);
  window.own(8);
  EXPECT_EQ(window.credit().frames, 2U) << "from here on the new capacity holds";
}

TEST(ReceiveWindow, IsClosedWhenFramesOrBytesAreSpent) {
  ReceiveWindow frames{{2, 1000}};
  EXPECT_FALSE(frames.is_closed());
  receive(frames, 0);
  receive(frames, 1);
  EXPECT_TRUE(frames.is_closed());
  frames.own(1);
  EXPECT_FALSE(frames.is_closed());
  ReceiveWindow bytes{{8, 4}};
  receive(bytes, 0, "{12}");
  EXPECT_TRUE(bytes.is_closed());
}

}  // namespace
}  // namespace windlass
