// When a receiver acknowledges, what an ack says, and what a sender makes of it.
#include <gtest/gtest.h>

#include "tests/support/lone_scheduler.h"
#include "tests/support/session_pair.h"

namespace windlass {
namespace {

using testing::LoneScheduler;
using testing::message;
using testing::Note;
using testing::numbered;
using testing::SessionPair;

SessionConfig window_of(std::uint32_t frames) {
  SessionConfig config;
  config.receive_credit = {frames, 1 << 20};
  return config;
}

// A scheduler with one ready worker, whose frames are delivered but owned by hand.
struct Receiver : LoneScheduler {
  explicit Receiver(std::uint32_t window) : LoneScheduler(window_of(window)) {
    own_at_once = false;
    connection = open();
    accept = make_ready(connection);
  }
  std::vector<Note> take_acks() {
    auto found = acks(connection);
    notes[connection].clear();
    return found;
  }
  void own(Seq next) {
    endpoint.own(handle(), next, now());
    settle();
  }
  ConnectionId connection{0};
  Note accept{Frame{}};
};

TEST(Ack, WaitsUntilTheOwnerHasTakenResponsibility) {
  SessionPair pair;
  pair.start();
  pair.own_at_once = false;
  ASSERT_TRUE(pair.worker.send(message("m"), pair.now()));
  pair.advance(seconds{1});
  ASSERT_EQ(pair.delivered_to_scheduler().size(), 1U);
  //= ACK-1
  EXPECT_TRUE(pair.seen_by_worker<Acknowledged>().empty());
  EXPECT_EQ(pair.worker.session()->stream().send_window().in_flight(), 1U);
  pair.scheduler.own(pair.handle(), 1, pair.now());
  pair.advance(milliseconds{10});
  ASSERT_EQ(pair.seen_by_worker<Acknowledged>().size(), 1U);
  EXPECT_EQ(pair.seen_by_worker<Acknowledged>()[0].next, 1U);
}

TEST(Ack, ComesAtOnceAfterAQuarterOfTheWindow) {
  Receiver receiver{16};
  for (Seq seq = 0; seq < 3; ++seq) receiver.say_data(receiver.connection, seq);
  EXPECT_TRUE(receiver.take_acks().empty());
  receiver.say_data(receiver.connection, 3);
  //= ACK-6
  const auto acks = receiver.take_acks();
  ASSERT_EQ(acks.size(), 1U);
  EXPECT_EQ(acks[0].state->owned_next, 0U);
  EXPECT_EQ(acks[0].state->held.bit_length(), 4U);
}

TEST(Ack, ComesFiveMillisecondsAfterASingleFrame) {
  Receiver receiver{256};
  receiver.say_data(receiver.connection, 0);
  receiver.advance(milliseconds{4});
  EXPECT_TRUE(receiver.take_acks().empty());
  receiver.advance(milliseconds{1});
  //= ACK-6
  EXPECT_EQ(receiver.take_acks().size(), 1U);
  receiver.advance(seconds{1});
  EXPECT_TRUE(receiver.take_acks().empty()) << "once";
}

TEST(Ack, ComesAtOnceOnAGap) {
  Receiver receiver{256};
  receiver.say_data(receiver.connection, 1);
  //= ACK-6
  const auto acks = receiver.take_acks();
  ASSERT_EQ(acks.size(), 1U);
  EXPECT_TRUE(acks[0].state->held.test(1));
  EXPECT_FALSE(acks[0].state->held.test(0));
  receiver.say_data(receiver.connection, 0);
  EXPECT_EQ(receiver.take_acks().size(), 1U) << "and when it is filled";
}

TEST(Ack, ComesAtOnceOnADuplicateAndCountsIt) {
  Receiver receiver{256};
  receiver.say_data(receiver.connection, 0);
  receiver.say_data(receiver.connection, 0);
  //= ACK-6
  //= WIN-6
  //= ACK-9
  auto acks = receiver.take_acks();
  ASSERT_EQ(acks.size(), 1U);
  EXPECT_EQ(acks[0].state->dup, 1U);
  EXPECT_EQ(receiver.seen<Delivered>().size(), 1U);
  receiver.say_data(receiver.connection, 1, "{}", true);
  EXPECT_EQ(receiver.take_acks().at(0).state->dup, 0U) << "since the last ack";
}

TEST(Ack, AnswersAControlFrameThatAsksAtOnce) {
  Receiver receiver{256};
  receiver.say(receiver.connection, Heartbeat{}, {.id = "hb", .ack_request = true});
  //= ACK-7
  const auto acks = receiver.take_acks();
  ASSERT_EQ(acks.size(), 1U);
  EXPECT_TRUE(acks[0].ok);
  EXPECT_EQ(acks[0].for_id, "hb");
  EXPECT_EQ(acks[0].ack_for, "hb");
  receiver.say(receiver.connection, Heartbeat{});
  EXPECT_TRUE(receiver.take_acks().empty()) << "nobody asked";
}

TEST(Ack, AnswersAFrameThatAsksWhenItIsOwned) {
  Receiver receiver{256};
  receiver.say_data(receiver.connection, 0, "{}", true);
  auto acks = receiver.take_acks();
  ASSERT_EQ(acks.size(), 1U) << "the state comes at once";
  EXPECT_EQ(acks[0].for_id, "");
  receiver.own(1);
  //= ACK-7
  acks = receiver.take_acks();
  ASSERT_EQ(acks.size(), 1U);
  EXPECT_EQ(acks[0].for_id, "d0");
  EXPECT_EQ(acks[0].ack_for, "d0");
  EXPECT_EQ(acks[0].state->owned_next, 1U);
  receiver.say_data(receiver.connection, 0, "{}", true);
  EXPECT_EQ(receiver.take_acks().at(0).for_id, "d0")
      << "a repetition that is owned already is answered at once";
}

TEST(Ack, AnswersFramesThatCameOutOfOrderEachInItsTurn) {
  Receiver receiver{256};
  receiver.say_data(receiver.connection, 1, "{}", true);
  receiver.say_data(receiver.connection, 0, "{}", true);
  receiver.take_acks();
  receiver.own(1);
  //= ACK-7
  EXPECT_EQ(receiver.take_acks().at(0).for_id, "d0");
  receiver.own(2);
  EXPECT_EQ(receiver.take_acks().at(0).for_id, "d1");
}

TEST(Ack, AnswersAWholeWindowOfFramesThatAskAndDropsNobody) {
  Receiver receiver{256};
  for (Seq seq = 0; seq < 256; ++seq) receiver.say_data(receiver.connection, seq, "{}", true);
  receiver.take_acks();
  receiver.own(256);
  //= ACK-7
  EXPECT_EQ(receiver.take_acks().size(), 256U);
  EXPECT_TRUE(receiver.closes.empty());
}

TEST(Ack, StillAnswersAfterAResumeWhatWasOwnedBetweenConnections) {
  Receiver receiver{256};
  receiver.say_data(receiver.connection, 0, "{}", true);
  receiver.endpoint.handle_closed(receiver.connection, receiver.now());
  receiver.own(1);
  receiver.advance(seconds{1});
  const ConnectionId second = receiver.open();
  receiver.greet(second);
  receiver.say(second, receiver.resume_of(receiver.accept, 0, 1));
  std::vector<std::string> answered;
  for (const Note& ack : receiver.acks(second)) answered.push_back(ack.for_id);
  //= ACK-7
  EXPECT_NE(std::find(answered.begin(), answered.end(), "d0"), answered.end());
}

TEST(Ack, IsNotAcknowledgedUnlessItAsks) {
  Receiver receiver{256};
  Ack plain = LoneScheduler::ack(0);
  receiver.say(receiver.connection, plain);
  receiver.advance(seconds{1});
  //= ACK-8
  EXPECT_TRUE(receiver.take_acks().empty());
  receiver.say(receiver.connection, plain, {.id = "probe", .ack_request = true});
  const auto acks = receiver.take_acks();
  ASSERT_EQ(acks.size(), 1U);
  EXPECT_EQ(acks[0].for_id, "") << "with the state alone";
  EXPECT_TRUE(acks[0].state.has_value());
  EXPECT_FALSE(acks[0].ack_request);
}

TEST(Ack, OfAFrameNeverSentEndsTheSession) {
  Receiver receiver{256};
  const SessionHandle handle = receiver.handle();
  ASSERT_TRUE(receiver.endpoint.send(handle, message("a"), receiver.now()));
  receiver.settle();
  receiver.say(receiver.connection, LoneScheduler::ack(2));
  //= ACK-4
  EXPECT_EQ(receiver.refusal(receiver.connection), "E.SESSION.ACK_INVALID");
  EXPECT_EQ(receiver.closes[receiver.connection].code, kCloseInternal);
  ASSERT_EQ(receiver.seen<Ended>().size(), 1U);
  ASSERT_EQ(receiver.seen<Ended>()[0].returned.size(), 1U);
  EXPECT_EQ(receiver.seen<Ended>()[0].returned[0].id(), "a");
  EXPECT_EQ(receiver.endpoint.sessions(), 0U);
}

TEST(Ack, LetsTheSenderCountItsSpuriousResends) {
  Receiver receiver{256};
  ASSERT_TRUE(receiver.endpoint.send(receiver.handle(), message("a"), receiver.now()));
  receiver.settle();
  receiver.advance(milliseconds{600});
  ASSERT_GE(receiver.session()->stream().counters().retransmits, 1U);
  Ack ack = LoneScheduler::ack(1);
  ack.state->dup = 99;
  receiver.say(receiver.connection, ack);
  //= ACK-9
  EXPECT_EQ(receiver.session()->stream().counters().spurious_retransmits,
            receiver.session()->stream().counters().retransmits)
      << "never more than were sent";
}

TEST(Ack, LeavesBeforeWaitingData) {
  Receiver receiver{256};
  receiver.endpoint.set_transport_busy(receiver.connection, true, receiver.now());
  ASSERT_TRUE(receiver.endpoint.send(receiver.handle(), message("data"), receiver.now()));
  receiver.say(receiver.connection, Heartbeat{}, {.id = "hb", .ack_request = true});
  ASSERT_TRUE(receiver.notes[receiver.connection].empty());
  receiver.endpoint.set_transport_busy(receiver.connection, false, receiver.now());
  receiver.settle();
  //= ACK-10
  EXPECT_EQ(testing::types(receiver.notes[receiver.connection]),
            (std::vector<std::string>{"control.ack", "biz.test"}));
}

TEST(Ack, OfAControlFrameIsNeverTakenForAnAckOfAMessage) {
  //= ENV-5
  SessionPair pair;
  pair.start();
  std::vector<std::string> ids;
  pair.filter = [&](const Frame& frame, bool) {
    ids.emplace_back(frame.id);
    return true;
  };
  const auto refused = pair.worker.send(message("~w0"), pair.now());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::ProtoSchema);
  ASSERT_TRUE(pair.worker.send(message("w0"), pair.now()));
  pair.advance(seconds{31});
  for (const std::string& id : ids) EXPECT_TRUE(id == "w0" || id.starts_with("~")) << id;
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end()) << "no id serves two frames";
}

TEST(Ack, OfASessionThatIsOverDoesNotTouchTheNext) {
  SessionPair pair;
  pair.own_at_once = false;
  pair.start();
  for (int i = 0; i < 4; ++i)
    ASSERT_TRUE(pair.scheduler.send(pair.handle(), message(numbered("a", i)), pair.now()));
  pair.settle();
  const SessionHandle first = pair.worker.handle();
  ASSERT_TRUE(pair.scheduler.reset(pair.handle(), ErrorCode::Internal, "start over", pair.now()));
  pair.advance(seconds{60});
  ASSERT_NE(pair.worker.handle(), first);
  ASSERT_TRUE(pair.scheduler.send(pair.handle(), message("b"), pair.now()));
  pair.settle();
  // A commit that was under way when the session ended.
  pair.worker.own(first, 4, pair.now());
  pair.advance(milliseconds{100});
  //= ACK-1
  EXPECT_EQ(pair.worker.session()->stream().receive_window().owned_next(), 0U);
  EXPECT_EQ(pair.scheduler_session().stream().send_window().in_flight(), 1U);
}

}  // namespace
}  // namespace windlass
