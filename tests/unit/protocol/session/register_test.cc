// Registration and the accept that answers it.
#include <gtest/gtest.h>

#include "tests/support/lone_scheduler.h"
#include "tests/support/lone_worker.h"

namespace windlass {
namespace {

using testing::LoneScheduler;
using testing::LoneWorker;
using testing::message;
using testing::Note;

TEST(Register, IsAcknowledgedAndThenAccepted) {
  LoneScheduler scheduler;
  const ConnectionId connection = scheduler.open();
  scheduler.greet(connection);
  scheduler.notes[connection].clear();
  scheduler.say(connection, LoneScheduler::registration(), {.id = "r1", .ack_request = true});
  const auto& notes = scheduler.notes[connection];
  //= HSK-7
  ASSERT_GE(notes.size(), 2U);
  EXPECT_EQ(notes[0].type, "control.ack");
  EXPECT_EQ(notes[0].for_id, "r1");
  EXPECT_EQ(notes[1].type, "control.session.accept");
  EXPECT_FALSE(notes[1].resumed);
  EXPECT_EQ(scheduler.session()->state(), SessionState::Ready);
  ASSERT_EQ(scheduler.seen<Registered>().size(), 1U);
  EXPECT_EQ(scheduler.seen<Registered>()[0].profile->worker_name, "w1");
  EXPECT_EQ(scheduler.seen<Registered>()[0].profile->hostname, "host");
}

TEST(Register, IsAcceptedWithEverythingThatTheWorkerNeeds) {
  SessionConfig config;
  config.receive_credit = {32, 4096};
  config.heartbeat_interval = seconds{7};
  config.resume_ttl = seconds{77};
  config.frame_bytes_max = 70'000;
  LoneScheduler scheduler{config};
  const ConnectionId connection = scheduler.open();
  const Note accept = scheduler.make_ready(connection);
  //= HSK-11
  EXPECT_EQ(accept.position.credit, (Credit{32, 4096}));
  EXPECT_EQ(accept.heartbeat_interval, seconds{7});
  EXPECT_EQ(accept.resume_ttl, seconds{77});
  EXPECT_EQ(accept.frame_bytes_max, 70'000U);
  EXPECT_TRUE(accept.ack_request);
  EXPECT_FALSE(accept.token.empty());
}

TEST(Register, IsAcceptedWithTheDefaultsThatNobodyChanged) {
  LoneScheduler scheduler;
  const Note accept = scheduler.make_ready(scheduler.open());
  //= HSK-15
  EXPECT_EQ(accept.position.credit, (Credit{256, 8'388'608}));
  EXPECT_EQ(accept.heartbeat_interval, milliseconds{30'000});
  EXPECT_EQ(accept.resume_ttl, milliseconds{300'000});
  EXPECT_EQ(accept.frame_bytes_max, 1'048'576U);
}

TEST(Register, TheAckOfTheAcceptAnnouncesTheWorkersCredit) {
  SessionConfig config;
  config.receive_credit = {5, 500};
  LoneWorker worker{testing::worker_options(), config};
  worker.start();
  worker.greet();
  worker.notes.clear();
  worker.say(LoneWorker::accept(), {.id = "a1", .ack_request = true});
  //= HSK-11
  ASSERT_EQ(worker.notes.at(0).type, "control.ack");
  EXPECT_TRUE(worker.notes[0].ok);
  EXPECT_EQ(worker.notes[0].for_id, "a1");
  EXPECT_EQ(worker.notes[0].state->credit, (Credit{5, 500}));
  LoneScheduler scheduler;
  const ConnectionId connection = scheduler.open();
  scheduler.greet(connection);
  scheduler.say(connection, LoneScheduler::registration());
  EXPECT_FALSE(scheduler.endpoint.send(scheduler.handle(), message("m"), scheduler.now())) << "no credit yet";
  scheduler.say(connection, LoneScheduler::ack(0, {5, 500}));
  //= HSK-11
  EXPECT_EQ(scheduler.seen<Writable>().size(), 1U);
  EXPECT_TRUE(scheduler.endpoint.send(scheduler.handle(), message("m"), scheduler.now()));
}

TEST(Register, TheWorkerTakesOverWhatTheAcceptSays) {
  LoneWorker worker;
  worker.start();
  worker.greet();
  SessionAccept accept = LoneWorker::accept();
  accept.heartbeat_interval = seconds{6};
  accept.resume_ttl = seconds{2};
  accept.frame_bytes_max = limits::kFrameBytesLeast;
  worker.say(accept, {.ack_request = true});
  worker.notes.clear();
  worker.advance(seconds{6});
  EXPECT_EQ(worker.sent("control.heartbeat").size(), 1U);
  //= LIM-1
  EXPECT_EQ(worker.endpoint.send(message("m", testing::object(9'000)), worker.now()).error().code,
            ErrorCode::LimitFrame);
  EXPECT_TRUE(worker.endpoint.send(message("s", testing::object(8'000)), worker.now()))
      << "the least of limits leaves room for something";
  worker.dials_succeed = false;
  worker.lose_connection();
  worker.advance(seconds{3});
  //= HSK-11
  EXPECT_EQ(worker.seen<Ended>().size(), 1U) << "the resume window of the accept has passed";
  worker.dials_succeed = true;
  worker.advance(seconds{60});
  worker.greet();
  worker.say(LoneWorker::accept(), {.ack_request = true});
  EXPECT_TRUE(worker.endpoint.send(message("m", testing::object(9'000)), worker.now()))
      << "another accept, another limit";
}

TEST(Register, OfALiveSessionReplacesWhatWasSaid) {
  for (const bool draining : {false, true}) {
    LoneScheduler scheduler;
    const ConnectionId connection = scheduler.open();
    scheduler.make_ready(connection);
    if (draining) {
      scheduler.endpoint.drain(scheduler.handle(), "scale in", seconds{60}, scheduler.now());
      scheduler.settle();
      scheduler.notes[connection].clear();
    }
    Register body = LoneScheduler::registration();
    body.runtimes = {"native", "node"};
    scheduler.say(connection, body, {.id = "again"});
    //= HSK-8
    ASSERT_EQ(scheduler.notes[connection].size(), 1U) << "no second accept";
    EXPECT_EQ(scheduler.acks(connection).at(0).for_id, "again");
    ASSERT_EQ(scheduler.seen<Registered>().size(), 2U);
    EXPECT_EQ(scheduler.seen<Registered>()[1].profile->runtimes.size(), 2U);
    EXPECT_EQ(scheduler.seen<Registered>()[1].profile->worker_name, "w1") << "the handshake's names stay";
    EXPECT_EQ(scheduler.seen<Registered>()[1].profile->hostname, "host");
    EXPECT_EQ(scheduler.session()->state(), draining ? SessionState::Draining : SessionState::Ready);
    EXPECT_EQ(scheduler.endpoint.sessions(), 1U);
  }
}

TEST(Register, ComesBeforeAnyBusiness) {
  LoneScheduler scheduler;
  const ConnectionId connection = scheduler.open();
  scheduler.greet(connection);
  scheduler.say_data(connection, 0);
  //= HSK-9
  EXPECT_EQ(scheduler.refusal(connection), "E.SESSION.NOT_REGISTERED");
}

TEST(Register, ComesBeforeEveryOtherControlFrame) {
  const std::vector<FrameBody> bodies = {Heartbeat{}, Drain{}, SessionAccept{}, Ack{}};
  for (const FrameBody& body : bodies) {
    LoneScheduler scheduler;
    const ConnectionId connection = scheduler.open();
    scheduler.greet(connection);
    scheduler.say(connection, body);
    //= HSK-13
    EXPECT_EQ(scheduler.refusal(connection), "E.PROTO.STATE");
  }
}

TEST(Register, IsRefusedWhenNoMoreSessionsFit) {
  SessionConfig config;
  config.sessions_max = 1;
  LoneScheduler scheduler{config};
  scheduler.make_ready(scheduler.open());
  const ConnectionId second = scheduler.open();
  scheduler.greet(second, 2, {.sender_id = "i-2"});
  scheduler.say(second, LoneScheduler::registration(), {.sender_id = "i-2"});
  //= LIM-5
  EXPECT_EQ(scheduler.refusal(second), "E.LIMIT.CAPACITY");
  EXPECT_TRUE(scheduler.resets(second)[0].retry_after.has_value());
  const ConnectionId again = scheduler.open();
  scheduler.greet(again);
  scheduler.say(again, LoneScheduler::registration());
  EXPECT_EQ(scheduler.refusal(again), "") << "who has a session may replace it";
}

TEST(Register, LetsAControlFrameOfTheWrongSidePassNowhere) {
  LoneScheduler scheduler;
  const ConnectionId connection = scheduler.open();
  scheduler.make_ready(connection);
  const std::vector<FrameBody> bodies = {LoneScheduler::handshake(), SessionAccept{}, Resume{}};
  for (const FrameBody& body : bodies) {
    scheduler.notes[connection].clear();
    scheduler.say(connection, body, {.id = "odd"});
    //= HSK-13
    const auto acks = scheduler.acks(connection);
    ASSERT_EQ(acks.size(), 1U);
    EXPECT_FALSE(acks[0].ok);
    EXPECT_EQ(acks[0].for_id, "odd");
    EXPECT_TRUE(acks[0].info.starts_with("E.PROTO.STATE"));
  }
  EXPECT_EQ(scheduler.session()->state(), SessionState::Ready);
  LoneWorker worker;
  worker.make_ready();
  worker.say(Heartbeat{}, {.id = "odd"});
  //= HSK-13
  ASSERT_EQ(worker.sent("control.ack").size(), 1U);
  EXPECT_TRUE(worker.sent("control.ack")[0].info.starts_with("E.PROTO.STATE"));
}

TEST(Register, AWorkerResetsAnAcceptThatDoesNotAnswerIt) {
  SessionAccept other_worker = LoneWorker::accept();
  other_worker.worker_instance_id = "i-2";
  for (const SessionAccept& wrong : {other_worker, LoneWorker::accept(true)}) {
    LoneWorker worker;
    worker.start();
    worker.greet();
    worker.say(wrong);
    //= RES-3
    ASSERT_EQ(worker.sent("control.reset").size(), 1U);
    EXPECT_EQ(worker.sent("control.reset")[0].code, "E.SESSION.MISMATCH");
    EXPECT_EQ(worker.closes.at(0).code, kCloseInternal);
    EXPECT_EQ(worker.endpoint.state(), SessionState::Backoff);
    EXPECT_EQ(worker.endpoint.session(), nullptr);
  }
}

TEST(Register, AWorkerResetsWhatComesOutOfTurn) {
  LoneWorker worker;
  worker.start();
  worker.say(LoneWorker::accept());
  //= HSK-13
  ASSERT_EQ(worker.sent("control.reset").size(), 1U);
  EXPECT_EQ(worker.sent("control.reset")[0].code, "E.PROTO.STATE");
  LoneWorker other;
  other.start();
  other.greet();
  other.say_data(0);
  //= HSK-9
  ASSERT_EQ(other.sent("control.reset").size(), 1U);
  EXPECT_EQ(other.sent("control.reset")[0].code, "E.PROTO.STATE");
  EXPECT_TRUE(other.seen<Delivered>().empty());
  LoneWorker third;
  third.start();
  third.say(LoneWorker::ack_for(third.notes[0].id), {.tenant = "globex"});
  //= ENV-12
  ASSERT_EQ(third.sent("control.reset").size(), 1U);
  EXPECT_EQ(third.sent("control.reset")[0].code, "E.SESSION.TENANT_MISMATCH");
}

}  // namespace
}  // namespace windlass
