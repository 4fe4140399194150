// What a peer may do wrong, how often, and what it costs: the error budget, rates, queues.
#include <gtest/gtest.h>

#include "tests/support/lone_scheduler.h"
#include "tests/support/lone_worker.h"

namespace windlass {
namespace {

using testing::ids_of;
using testing::LoneScheduler;
using testing::LoneWorker;
using testing::message;
using testing::Note;
using testing::numbered;

struct Ready : LoneScheduler {
  explicit Ready(SessionConfig c = {}) : LoneScheduler(c) {
    connection = open();
    accept = make_ready(connection);
  }
  void violate(std::string_view type = "biz.test") {
    endpoint.handle_bad_frame(
        connection, {ErrorCode::ProtoSchema, "bad-1", type, "/payload/x: must be an integer"}, now());
    settle();
  }
  ConnectionId connection{0};
  Note accept{Frame{}};
};

TEST(ErrorBudget, AnswersAViolationWithCodePointerAndReason) {
  Ready scheduler;
  scheduler.violate();
  //= LIM-2
  const auto acks = scheduler.acks(scheduler.connection);
  ASSERT_EQ(acks.size(), 1U);
  EXPECT_FALSE(acks[0].ok);
  EXPECT_EQ(acks[0].for_id, "bad-1");
  EXPECT_EQ(acks[0].info, "E.PROTO.SCHEMA /payload/x: must be an integer");
  ASSERT_EQ(scheduler.seen<Refused>().size(), 1U);
  EXPECT_EQ(scheduler.seen<Refused>()[0].code, ErrorCode::ProtoSchema);
  EXPECT_EQ(scheduler.session()->state(), SessionState::Ready);
}

TEST(ErrorBudget, ResetsAtTheViolationThatFindsNoUnitLeft) {
  Ready scheduler;
  for (int i = 0; i < 16; ++i) scheduler.violate();
  EXPECT_EQ(scheduler.session()->state(), SessionState::Ready);
  scheduler.violate();
  //= LIM-2
  EXPECT_EQ(scheduler.refusal(scheduler.connection), "E.LIMIT.ERRORS");
  EXPECT_EQ(scheduler.acks(scheduler.connection).size(), 16U);
  EXPECT_EQ(scheduler.endpoint.sessions(), 0U);
}

TEST(ErrorBudget, GivesOneUnitBackEveryMinute) {
  Ready scheduler;
  for (int i = 0; i < 16; ++i) scheduler.violate();
  const auto wait = [&](Duration by) {
    for (Duration left = by; left > Duration{}; left -= seconds{10}) {
      scheduler.advance(seconds{10});
      scheduler.say(scheduler.connection, LoneScheduler::ack(0));
    }
  };
  wait(seconds{120});
  //= LIM-2
  scheduler.violate();
  scheduler.violate();
  ASSERT_NE(scheduler.session(), nullptr);
  scheduler.violate();
  EXPECT_EQ(scheduler.session(), nullptr);
}

TEST(ErrorBudget, IsTheSessionsAndSurvivesAResume) {
  Ready scheduler;
  for (int i = 0; i < 16; ++i) scheduler.violate();
  scheduler.endpoint.handle_closed(scheduler.connection, scheduler.now());
  scheduler.connection = scheduler.open();
  scheduler.greet(scheduler.connection);
  scheduler.say(scheduler.connection, scheduler.resume_of(scheduler.accept));
  scheduler.violate();
  //= LIM-2
  EXPECT_EQ(scheduler.session(), nullptr);
}

TEST(ErrorBudget, NeverAnswersAnAckOrAReset) {
  for (const std::string_view type : {"control.ack", "control.reset"}) {
    Ready scheduler;
    scheduler.violate(type);
    //= ACK-8
    EXPECT_TRUE(scheduler.notes[scheduler.connection].empty())
        << "two peers must not answer each other for ever";
    EXPECT_EQ(scheduler.seen<Refused>().size(), 1U);
    for (int i = 0; i < 16; ++i) scheduler.violate(type);
    //= LIM-2
    EXPECT_EQ(scheduler.refusal(scheduler.connection), "E.LIMIT.ERRORS") << "but it is charged";
  }
}

TEST(ErrorBudget, KeepsItsAnswersWithinTheirBounds) {
  Ready scheduler;
  std::string info(2'000, 'x');
  for (int i = 0; i < 17; ++i) {
    scheduler.endpoint.handle_bad_frame(scheduler.connection, {ErrorCode::ProtoSchema, "b", "biz.x", info},
                                        scheduler.now());
    scheduler.settle();
  }
  //= LIM-2
  for (const Note& ack : scheduler.acks(scheduler.connection))
    EXPECT_LE(ack.info.size(), limits::kReasonBytesMax);
  ASSERT_EQ(scheduler.resets(scheduler.connection).size(), 1U);
  EXPECT_LE(scheduler.resets(scheduler.connection)[0].reason.size(), limits::kReasonBytesMax);
}

TEST(ErrorBudget, IsNotForTimeBeforeTheAccept) {
  for (const bool greeted : {false, true}) {
    LoneScheduler scheduler;
    const ConnectionId connection = scheduler.open();
    if (greeted) scheduler.greet(connection);
    scheduler.endpoint.handle_bad_frame(connection, {ErrorCode::ProtoJson, {}, {}, "not JSON"},
                                        scheduler.now());
    scheduler.settle();
    //= LIM-3
    EXPECT_EQ(scheduler.refusal(connection), "E.PROTO.JSON");
    EXPECT_EQ(scheduler.endpoint.counters().violations_before_accept, 1U);
    EXPECT_EQ(scheduler.endpoint.connections(), 0U);
    LoneWorker worker;
    worker.start();
    if (greeted) worker.greet();
    worker.endpoint.handle_bad_frame(worker.endpoint.connection(), {ErrorCode::ProtoJson, {}, {}, "not JSON"},
                                     worker.now());
    worker.settle();
    //= LIM-3
    ASSERT_EQ(worker.sent("control.reset").size(), 1U);
    EXPECT_EQ(worker.sent("control.reset")[0].code, "E.PROTO.JSON");
    EXPECT_EQ(worker.closes.size(), 1U);
    EXPECT_EQ(worker.endpoint.state(), SessionState::Backoff);
  }
}

TEST(Refusal, OfAFrameThatIsKeptEndsTheSessionWithItsCode) {
  Ready scheduler;
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(scheduler.endpoint.send(scheduler.handle(), message(numbered("m", i)), scheduler.now()));
  scheduler.settle();
  Ack nack;
  nack.ok = false;
  nack.for_id = "m1";
  nack.info = "E.PROTO.SCHEMA /payload: must be an object";
  scheduler.say(scheduler.connection, nack);
  //= LIM-4
  EXPECT_EQ(scheduler.refusal(scheduler.connection), "E.PROTO.SCHEMA");
  ASSERT_EQ(scheduler.seen<Ended>().size(), 1U);
  EXPECT_EQ(ids_of(scheduler.seen<Ended>()[0].returned), (std::vector<std::string>{"m0", "m1", "m2"}));
}

TEST(Refusal, OfAFrameThatIsNotKeptIsNewsForTheOwner) {
  Ready scheduler;
  Ack nack;
  nack.ok = false;
  nack.for_id = "~s7";
  nack.info = "E.FUTURE.THING whatever";
  scheduler.say(scheduler.connection, nack);
  //= LIM-4
  EXPECT_EQ(scheduler.session()->state(), SessionState::Ready);
  //= LIM-8
  ASSERT_EQ(scheduler.seen<Refused>().size(), 1U);
  EXPECT_EQ(scheduler.seen<Refused>()[0].code, ErrorCode::Internal);
  EXPECT_TRUE(scheduler.acks(scheduler.connection).empty()) << "and is not answered";
}

TEST(Refusal, OfAnUnknownControlTypeCostsNothing) {
  Ready scheduler;
  for (int i = 0; i < 100; ++i)
    scheduler.say(scheduler.connection, UnknownControl{"control.future"}, {.id = numbered("u", i)});
  //= ENV-11
  const auto acks = scheduler.acks(scheduler.connection);
  ASSERT_EQ(acks.size(), 100U);
  EXPECT_FALSE(acks[0].ok);
  EXPECT_EQ(acks[0].for_id, "u0");
  EXPECT_EQ(acks[0].info, "E.CMD.UNKNOWN");
  EXPECT_EQ(scheduler.session()->state(), SessionState::Ready);
  LoneScheduler early;
  const ConnectionId connection = early.open();
  early.greet(connection);
  early.notes[connection].clear();
  early.say(connection, UnknownControl{"control.future"});
  //= ENV-11
  EXPECT_TRUE(early.notes[connection].empty());
  EXPECT_TRUE(early.closes.empty());
  LoneWorker worker;
  worker.start();
  worker.greet();
  worker.say(UnknownControl{"control.future"});
  //= ENV-11
  EXPECT_EQ(worker.endpoint.state(), SessionState::Registered);
}

TEST(Rate, OfASessionIsBounded) {
  SessionConfig config;
  config.frames_per_second_max = 100;
  Ready scheduler{config};
  for (int i = 0; i < 90; ++i) scheduler.say(scheduler.connection, LoneScheduler::ack(0));
  scheduler.advance(milliseconds{500});
  for (int i = 0; i < 50; ++i) scheduler.say(scheduler.connection, LoneScheduler::ack(0));
  EXPECT_NE(scheduler.session(), nullptr) << "half a second gives half of them back";
  for (int i = 0; i < 20; ++i) scheduler.say(scheduler.connection, LoneScheduler::ack(0));
  //= LIM-6
  EXPECT_EQ(scheduler.refusal(scheduler.connection), "E.LIMIT.RATE");
  EXPECT_EQ(SessionConfig{}.frames_per_second_max, 1'000'000U);
  LoneWorker worker{testing::worker_options(), config};
  worker.make_ready();
  for (int i = 0; i < 500; ++i) worker.say(LoneWorker::ack(0));
  EXPECT_EQ(worker.endpoint.state(), SessionState::Ready) << "a worker does not judge its scheduler so";
}

TEST(ControlQueue, OfAPeerThatDoesNotReadIsBounded) {
  Ready scheduler;
  scheduler.endpoint.set_transport_busy(scheduler.connection, true, scheduler.now());
  for (std::size_t i = 0; i < limits::kControlQueueMax; ++i) {
    scheduler.say(scheduler.connection, UnknownControl{"control.future"}, {.id = testing::numbered("u", i)});
  }
  EXPECT_TRUE(scheduler.closes.empty());
  scheduler.say(scheduler.connection, UnknownControl{"control.future"});
  //= LIM-7
  EXPECT_EQ(limits::kControlQueueMax, 64U);
  ASSERT_TRUE(scheduler.closes.contains(scheduler.connection));
  EXPECT_EQ(scheduler.closes[scheduler.connection].code, 1008);
  EXPECT_EQ(scheduler.session()->state(), SessionState::Backoff) << "the session stays resumable";
  EXPECT_TRUE(scheduler.seen<Ended>().empty());
  EXPECT_TRUE(scheduler.notes[scheduler.connection].empty());
  const ConnectionId second = scheduler.open();
  scheduler.greet(second);
  scheduler.say(second, scheduler.resume_of(scheduler.accept));
  EXPECT_EQ(scheduler.session()->state(), SessionState::Ready);
}

TEST(ControlQueue, OfASlowLinkKeepsOneAnswerForAllHeartbeats) {
  Ready scheduler;
  scheduler.notes[scheduler.connection].clear();
  scheduler.endpoint.set_transport_busy(scheduler.connection, true, scheduler.now());
  for (std::size_t i = 0; i < 3 * limits::kControlQueueMax; ++i) {
    scheduler.say(scheduler.connection, Heartbeat{}, {.id = testing::numbered("b", i), .ack_request = true});
  }
  EXPECT_TRUE(scheduler.closes.empty()) << "the link is slow; its peer reads";
  scheduler.endpoint.set_transport_busy(scheduler.connection, false, scheduler.now());
  scheduler.settle();
  //= LIV-5
  const auto& sent = scheduler.notes[scheduler.connection];
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].for_id, testing::numbered("b", 3 * limits::kControlQueueMax - 1)) << "the last one";
}

TEST(ControlQueue, OfAPeerThatReadsTakesWhatATurnBrings) {
  Ready scheduler;
  scheduler.settle_at_once = false;
  constexpr std::size_t kFrames = 400;
  for (std::size_t i = 0; i < kFrames; ++i) {
    scheduler.say(scheduler.connection, UnknownControl{"control.future"}, {.id = testing::numbered("u", i)});
  }
  scheduler.notes[scheduler.connection].clear();
  scheduler.settle();
  //= ENV-11
  EXPECT_EQ(testing::of_type(scheduler.notes[scheduler.connection], "control.ack").size(), kFrames);
  EXPECT_TRUE(scheduler.closes.empty());
  for (std::size_t i = 0; i <= limits::kControlTurnMax; ++i) {
    scheduler.say(scheduler.connection, UnknownControl{"control.future"}, {.id = testing::numbered("v", i)});
  }
  scheduler.settle();
  //= LIM-7
  EXPECT_TRUE(scheduler.closes.contains(scheduler.connection)) << "there is an end to it all the same";
}

TEST(ControlQueue, OfAcksOwedToAPeerThatDoesNotReadIsBounded) {
  SessionConfig config;
  config.receive_credit = {limits::kWindowFramesMax, 1 << 30};
  Ready scheduler{config};
  scheduler.endpoint.set_transport_busy(scheduler.connection, true, scheduler.now());
  for (Seq seq = 0; seq <= limits::kWindowFramesMax; ++seq)
    scheduler.say_data(scheduler.connection, seq, "{}", true);
  //= LIM-7
  EXPECT_TRUE(scheduler.closes.contains(scheduler.connection));
  EXPECT_EQ(scheduler.session()->state(), SessionState::Backoff);
}

TEST(Tenant, OfAFrameMustBeTheSessions) {
  Ready scheduler;
  scheduler.say(scheduler.connection, Heartbeat{}, {.tenant = "globex"});
  //= ENV-12
  EXPECT_EQ(scheduler.refusal(scheduler.connection), "E.SESSION.TENANT_MISMATCH");
  EXPECT_TRUE(scheduler.seen<LoadReported>().empty());
  LoneWorker worker;
  worker.make_ready();
  worker.say(Data{"biz.test", "{}", {}}, {.tenant = "globex", .seq = 0});
  //= ENV-12
  ASSERT_EQ(worker.sent("control.reset").size(), 1U);
  EXPECT_EQ(worker.sent("control.reset")[0].code, "E.SESSION.TENANT_MISMATCH");
  EXPECT_TRUE(worker.seen<Delivered>().empty());
}

TEST(Flags, AreIgnored) {
  Ready scheduler;
  Frame frame;
  frame.id = "d";
  frame.tenant = "acme";
  frame.sender_id = "i-1";
  frame.seq = 0;
  frame.flags = {"urgent", "compressed"};
  frame.body = Data{"biz.test", "{}", {}};
  scheduler.endpoint.handle_frame(scheduler.connection, frame, scheduler.now());
  scheduler.settle();
  //= ENV-13
  EXPECT_EQ(scheduler.seen<Delivered>().size(), 1U);
  EXPECT_TRUE(scheduler.seen<Refused>().empty());
}

TEST(Sender, OfAFrameMustBeThePeer) {
  Ready scheduler;
  scheduler.say(scheduler.connection, Heartbeat{}, {.sender_id = "i-2"});
  //= ENV-12
  EXPECT_EQ(scheduler.refusal(scheduler.connection), "E.SESSION.MISMATCH");
  Ready other;
  other.say(other.connection, Heartbeat{}, {.role = Role::Runtime});
  //= ENV-12
  EXPECT_EQ(other.refusal(other.connection), "E.SESSION.MISMATCH");
}

TEST(Tenant, ShareNoIdentityWhateverTheirNames) {
  LoneScheduler scheduler;
  using namespace std::string_literals;
  scheduler.make_ready(scheduler.open(), 2, {.tenant = "a"s, .sender_id = "b\0c"s});
  scheduler.make_ready(scheduler.open(), 2, {.tenant = "a\0b"s, .sender_id = "c"s});
  scheduler.make_ready(scheduler.open(), 2, {.tenant = "a"s, .sender_id = "c"s});
  //= HSK-5
  EXPECT_EQ(scheduler.endpoint.sessions(), 3U);
  EXPECT_TRUE(scheduler.seen<Ended>().empty());
  EXPECT_TRUE(scheduler.closes.empty());
}

}  // namespace
}  // namespace windlass
