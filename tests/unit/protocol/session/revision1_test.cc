// What a session does differently for a peer that speaks revision 1. Its spelling on the wire is the codec's.
#include <gtest/gtest.h>

#include "tests/support/lone_scheduler.h"
#include "tests/support/lone_worker.h"

namespace windlass {
namespace {

using testing::LoneScheduler;
using testing::LoneWorker;
using testing::message;
using testing::Note;
using testing::numbered;
using testing::SessionPair;

struct OldWorker : LoneScheduler {
  OldWorker() {
    connection = open();
    accept = make_ready(connection, 1);
  }
  ConnectionId connection{0};
  Note accept{Frame{}};
};

TEST(Revision1, CarriesMessagesBothWaysAndResumes) {
  SessionPair pair{testing::worker_options(Revision::One)};
  pair.start();
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(pair.worker.send(message(numbered("w", i)), pair.now()));
    ASSERT_TRUE(pair.scheduler.send(pair.handle(), message(numbered("s", i)), pair.now()));
    if (i % 10 == 3) {
      pair.cut();
      pair.advance(seconds{31});
    }
    pair.settle();
  }
  pair.advance(seconds{1});
  EXPECT_EQ(pair.delivered_to_worker().size(), 50U);
  EXPECT_EQ(pair.delivered_to_scheduler().size(), 50U);
  EXPECT_EQ(pair.scheduler.counters().sessions_opened, 1U);
}

TEST(Revision1, HasAWindowOf64FramesUntilAnAckSaysOtherwise) {
  OldWorker scheduler;
  //= REV-11
  int taken = 0;
  while (scheduler.endpoint.send(scheduler.handle(), message(numbered("m", taken)), scheduler.now())) ++taken;
  EXPECT_EQ(taken, 64);
  LoneWorker worker{testing::worker_options(Revision::One)};
  worker.start();
  worker.greet();
  worker.notes.clear();
  SessionAccept accept = LoneWorker::accept();
  accept.credit = {};
  worker.say(accept);
  //= REV-11
  for (const Note& ack : worker.sent("control.ack"))
    EXPECT_EQ(ack.for_id, "") << "the accept is not acknowledged";
  EXPECT_TRUE(worker.endpoint.session()->stream().send_window().has_credit(2));
}

TEST(Revision1, OffersBetween1And64Frames) {
  for (const std::uint32_t frames : {0U, 16U, 256U}) {
    SessionConfig config;
    config.receive_credit = {frames, 1000};
    LoneScheduler scheduler{config};
    const ConnectionId connection = scheduler.open();
    scheduler.make_ready(connection, 1);
    const std::string large = testing::object(1'000);
    scheduler.own_at_once = false;
    for (Seq seq = 0; seq < 64; ++seq) scheduler.say_data(connection, seq, large);
    //= REV-2
    //= REV-11
    EXPECT_EQ(scheduler.seen<Delivered>().size(), 64U)
        << "what the peer takes for granted before the first ack";
    scheduler.endpoint.own(scheduler.handle(), 64, scheduler.now());
    scheduler.settle();
    //= REV-2
    EXPECT_EQ(scheduler.acks(connection).back().state->credit.frames, std::clamp(frames, 1U, 64U));
  }
}

TEST(Revision1, CarriesNoAttachment) {
  SessionPair pair{testing::worker_options(Revision::One)};
  pair.start();
  Message with_bytes{{.type = "biz.test",
                      .id = "m",
                      .payload = "{}",
                      .corr = "",
                      .attachment = Attachment{"text/plain", "bytes"}}};
  //= REV-2
  const auto refused = pair.worker.send(std::move(with_bytes), pair.now());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::ProtoVersion);
}

TEST(Revision1, IsAcknowledgedAsSoonAsItIsOwned) {
  OldWorker scheduler;
  scheduler.own_at_once = false;
  scheduler.say_data(scheduler.connection, 0);
  scheduler.notes[scheduler.connection].clear();
  scheduler.endpoint.own(scheduler.handle(), 1, scheduler.now());
  scheduler.settle();
  //= REV-5
  ASSERT_EQ(scheduler.acks(scheduler.connection).size(), 1U) << "no delay, no quarter of a window";
  EXPECT_EQ(scheduler.acks(scheduler.connection)[0].state->owned_next, 1U);
}

TEST(Revision1, MayResumeWithItsFirstFrame) {
  OldWorker scheduler;
  ASSERT_TRUE(scheduler.endpoint.send(scheduler.handle(), message("m"), scheduler.now()));
  scheduler.settle();
  scheduler.endpoint.handle_closed(scheduler.connection, scheduler.now());
  const ConnectionId second = scheduler.open();
  Frame frame;
  frame.revision = Revision::One;
  frame.id = "r1";
  frame.tenant = "acme";
  frame.sender_id = "i-1";
  frame.body = scheduler.resume_of(scheduler.accept);
  scheduler.endpoint.handle_frame(second, frame, scheduler.now());
  scheduler.settle();
  const auto& notes = scheduler.notes[second];
  //= REV-6
  ASSERT_GE(notes.size(), 2U);
  EXPECT_EQ(notes[0].type, "control.ack");
  EXPECT_EQ(notes[0].for_id, "r1") << "an ack answers it before the accept";
  EXPECT_EQ(notes[1].type, "control.session.accept");
  EXPECT_TRUE(notes[1].resumed);
  //= REV-7
  EXPECT_EQ(testing::types(notes),
            (std::vector<std::string>{"control.ack", "control.session.accept", "control.ack", "biz.test"}))
      << "the current state, then the replay";
  EXPECT_EQ(scheduler.session()->state(), SessionState::Ready);
}

TEST(Revision1, SessionIsStaleForAConnectionOfTheOtherRevisionWhichMayRegisterAtOnce) {
  for (const std::uint64_t opened : {1U, 2U}) {
    const std::uint64_t other = 3 - opened;
    LoneScheduler scheduler;
    const ConnectionId first = scheduler.open();
    const Note accept = scheduler.make_ready(first, opened);
    scheduler.endpoint.handle_closed(first, scheduler.now());
    const ConnectionId second = scheduler.open();
    scheduler.greet(second, other);
    scheduler.say(second, scheduler.resume_of(accept));
    //= RES-7
    //= REV-10
    EXPECT_EQ(scheduler.refusal(second), other == 1 ? "E.SESSION.UNKNOWN" : "E.SESSION.STALE_BINDING");
    EXPECT_TRUE(scheduler.seen<Ended>().empty()) << "the session stays until it is replaced";
    const ConnectionId third = scheduler.open();
    scheduler.make_ready(third, other);
    //= FEN-3
    EXPECT_EQ(scheduler.seen<Ended>().size(), 1U);
    EXPECT_EQ(scheduler.endpoint.sessions(), 1U);
  }
}

TEST(Revision1, ResumesWithoutAHandshakeOnlyWithTheCertificateThatPolicyAsksFor) {
  OldWorker scheduler;
  scheduler.admission.asks_for_certificates = true;
  const auto resume_on = [&](ConnectionId connection) {
    Frame frame;
    frame.revision = Revision::One;
    frame.id = "r1";
    frame.tenant = "acme";
    frame.sender_id = "i-1";
    frame.body = scheduler.resume_of(scheduler.accept);
    scheduler.endpoint.handle_frame(connection, frame, scheduler.now());
    scheduler.settle();
  };
  const ConnectionId thief = scheduler.open();
  resume_on(thief);
  //= REV-6
  EXPECT_EQ(scheduler.refusal(thief), "E.AUTH.MTLS_REQUIRED");
  EXPECT_EQ(scheduler.session()->state(), SessionState::Ready) << "the session is untouched";
  PeerFacts peer;
  peer.certificate_fingerprint = "f";
  const ConnectionId owner = scheduler.open(peer);
  resume_on(owner);
  EXPECT_EQ(scheduler.refusal(owner), "");
}

TEST(Revision1, ResumesWithTheCreditThatItHad) {
  OldWorker scheduler;
  scheduler.say(scheduler.connection, LoneScheduler::ack(0, {64, limits::kIntegerMax}));
  for (int i = 0; i < 60; ++i) {
    ASSERT_TRUE(scheduler.endpoint.send(scheduler.handle(), message(numbered("m", i)), scheduler.now()));
  }
  scheduler.settle();
  scheduler.say(scheduler.connection,
                LoneScheduler::ack(50, {14, limits::kIntegerMax}));  // it lowers its window
  scheduler.endpoint.handle_closed(scheduler.connection, scheduler.now());
  const ConnectionId second = scheduler.open();
  scheduler.greet(second, 1);
  scheduler.say(second, scheduler.resume_of(scheduler.accept, 50));
  int taken = 0;
  while (scheduler.endpoint.send(scheduler.handle(), message(numbered("n", taken)), scheduler.now())) ++taken;
  //= WIN-2
  //= REV-11
  EXPECT_EQ(taken, 4) << "64 frames for nothing is for new sessions only";
}

TEST(Revision1, LetsNobodyElseResumeWithTheFirstFrame) {
  LoneScheduler scheduler;
  const Note accept = scheduler.make_ready(scheduler.open());
  const ConnectionId second = scheduler.open();
  Frame frame;
  frame.revision = Revision::One;  // it can be read so
  frame.id = "r1";
  frame.tenant = "acme";
  frame.sender_id = "i-1";
  frame.body = scheduler.resume_of(accept);
  scheduler.endpoint.handle_frame(second, frame, scheduler.now());
  scheduler.settle();
  //= REV-6
  //= HSK-1
  EXPECT_EQ(scheduler.refusal(second), "E.AUTH.HANDSHAKE_REQUIRED");
  EXPECT_EQ(scheduler.session()->state(), SessionState::Ready) << "the session is untouched";
}

TEST(Revision1, ResumesByItsTimerWhatTheAcceptCannotAskFor) {
  LoneWorker worker{testing::worker_options(Revision::One)};
  worker.start();
  worker.greet();
  worker.say(LoneWorker::accept());
  ASSERT_TRUE(worker.endpoint.send(message("m"), worker.now()));
  worker.settle();
  worker.lose_connection();
  worker.advance(seconds{1});
  worker.greet();
  worker.notes.clear();
  worker.say(LoneWorker::accept(true));
  //= REV-7
  EXPECT_EQ(worker.sent("biz.test").size(), 1U);
  EXPECT_EQ(worker.endpoint.state(), SessionState::Ready);
}

TEST(Revision1, DrainsUntilAHeartbeatReportsNothingInFlight) {
  OldWorker scheduler;
  ASSERT_TRUE(scheduler.endpoint.send(scheduler.handle(), message("work"), scheduler.now()));
  ASSERT_TRUE(scheduler.endpoint.drain(scheduler.handle(), "scale in", seconds{600}, scheduler.now()));
  scheduler.settle();
  EXPECT_EQ(of_type(scheduler.notes[scheduler.connection], "control.drain").size(), 1U);
  Heartbeat idle;
  scheduler.say(scheduler.connection, idle);
  //= REV-8
  EXPECT_NE(scheduler.session(), nullptr) << "work is not acknowledged yet";
  scheduler.say(scheduler.connection, LoneScheduler::ack(1, {64, limits::kIntegerMax}));
  EXPECT_NE(scheduler.session(), nullptr) << "the heartbeat before knew nothing of it";
  Heartbeat busy;
  busy.inflight = 1;
  scheduler.say(scheduler.connection, busy);
  EXPECT_NE(scheduler.session(), nullptr);
  scheduler.say(scheduler.connection, idle);
  //= REV-8
  EXPECT_EQ(scheduler.session(), nullptr);
  EXPECT_EQ(scheduler.closes.at(scheduler.connection).code, kCloseNormal);
  EXPECT_EQ(scheduler.seen<Ended>().at(0).code, "");
}

TEST(Revision1, DrainsAtTheDeadlineOtherwise) {
  OldWorker scheduler;
  ASSERT_TRUE(scheduler.endpoint.drain(scheduler.handle(), "scale in", seconds{20}, scheduler.now()));
  scheduler.advance(seconds{20});
  //= REV-8
  EXPECT_EQ(scheduler.refusal(scheduler.connection), "E.TIMEOUT");
}

TEST(Revision1, AWorkerThatIsDoneSaysSoByItsHeartbeat) {
  SessionPair pair{testing::worker_options(Revision::One)};
  pair.start();
  LoadFacts load;
  load.inflight = 2;
  pair.worker.set_load(load);
  ASSERT_TRUE(pair.scheduler.drain(pair.handle(), "scale in", seconds{600}, pair.now()));
  ASSERT_TRUE(pair.worker.send(message("result"), pair.now()));
  bool completion = false;
  pair.filter = [&](const Frame& frame, bool from_worker) {
    completion = completion || (from_worker && std::holds_alternative<Drain>(frame.body));
    return true;
  };
  pair.settle();
  pair.worker.complete_drain(pair.now());
  pair.advance(seconds{1});
  //= REV-8
  EXPECT_FALSE(completion);
  EXPECT_EQ(pair.worker.state(), SessionState::Closed);
  EXPECT_EQ(pair.seen_by_worker<Ended>().at(0).code, "");
  EXPECT_EQ(pair.seen_by_scheduler<Ended>().at(0).code, "");
  EXPECT_EQ(pair.delivered_to_scheduler(), std::vector<std::string>{"result"});
}

TEST(Revision1, AWorkerThatIsDoneDoesNotWaitForEver) {
  LoneWorker worker{testing::worker_options(Revision::One)};
  worker.start();
  worker.greet();
  worker.say(LoneWorker::accept());
  worker.say(Drain{DrainPhase::Start, "scale in", {}});
  worker.endpoint.complete_drain(worker.now());
  worker.advance(seconds{10});
  //= REV-8
  EXPECT_EQ(worker.sent("control.heartbeat").size(), 1U);
  EXPECT_EQ(worker.endpoint.state(), SessionState::Closed);
  EXPECT_EQ(worker.closes.at(0).code, kCloseNormal);
}

TEST(Revision1, IsSupersededWithoutAReset) {
  OldWorker scheduler;
  const ConnectionId second = scheduler.open();
  scheduler.make_ready(second, 1);
  //= REV-9
  EXPECT_TRUE(scheduler.resets(scheduler.connection).empty());
  EXPECT_EQ(scheduler.closes.at(scheduler.connection).code, 1011);
  EXPECT_EQ(scheduler.closes.at(scheduler.connection).reason, "superseded session");
  LoneWorker worker{testing::worker_options(Revision::One)};
  worker.start();
  worker.greet();
  worker.say(LoneWorker::accept());
  worker.lose_connection(1011, "superseded session");
  worker.advance(seconds{29});
  //= REV-9
  //= FEN-5
  EXPECT_EQ(worker.dials, 1U) << "twins do not flap here either";
}

TEST(Revision1, IsToldOfAStaleSessionInItsOwnWords) {
  OldWorker scheduler;
  ASSERT_TRUE(scheduler.endpoint.reset(scheduler.handle(), ErrorCode::Internal, "gone", scheduler.now()));
  scheduler.settle();
  for (const bool registered_anew : {false, true}) {
    if (registered_anew) scheduler.make_ready(scheduler.open(), 1);
    const ConnectionId connection = scheduler.open();
    scheduler.greet(connection, 1);
    scheduler.say(connection, scheduler.resume_of(scheduler.accept));
    //= REV-10
    EXPECT_EQ(scheduler.refusal(connection), "E.SESSION.UNKNOWN");
    EXPECT_EQ(scheduler.resets(connection)[0].reason, "Unknown session");
    EXPECT_EQ(scheduler.closes[connection].reason, "Unknown session");
  }
  EXPECT_EQ(scheduler.seen<TwinSuspected>().size(), 1U);
}

TEST(Revision1, IsToldOfARestartByItsClose) {
  OldWorker scheduler;
  scheduler.endpoint.drain_all(seconds{1}, scheduler.now());
  scheduler.advance(seconds{1});
  //= REV-10
  EXPECT_EQ(scheduler.closes.at(scheduler.connection).code, 1012);
  EXPECT_EQ(scheduler.closes.at(scheduler.connection).reason, "service restart");
  for (const auto& [code, reason] : std::vector<std::pair<std::uint16_t, std::string>>{
           {1012, ""}, {1011, "service restart"}, {1011, "Unknown session"}}) {
    LoneWorker worker{testing::worker_options(Revision::One)};
    worker.start();
    worker.greet();
    worker.say(LoneWorker::accept());
    worker.lose_connection(code, reason);
    //= REV-10
    EXPECT_EQ(worker.seen<Ended>().size(), 1U) << code << reason;
    worker.advance(seconds{1});
    worker.greet();
    EXPECT_EQ(of_type(worker.notes, "control.register").size(), 2U);
  }
}

TEST(Revision1, MayRepeatItsGreetings) {
  LoneScheduler scheduler;
  const ConnectionId connection = scheduler.open();
  const auto last_answer = [&] { return scheduler.acks(connection).back().for_id; };
  scheduler.say(connection, LoneScheduler::handshake(1), {.id = "h1", .ack_request = true});
  scheduler.say(connection, LoneScheduler::handshake(1), {.id = "h1", .ack_request = true});
  //= REV-12
  EXPECT_EQ(scheduler.acks(connection).size(), 2U);
  EXPECT_EQ(last_answer(), "h1");
  scheduler.say(connection, LoneScheduler::registration(), {.id = "r1", .ack_request = true});
  scheduler.say(connection, LoneScheduler::registration(), {.id = "r1", .ack_request = true});
  EXPECT_EQ(last_answer(), "r1");
  scheduler.say(connection, LoneScheduler::handshake(1), {.id = "h1", .ack_request = true});
  EXPECT_EQ(last_answer(), "h1");
  scheduler.say(connection, scheduler.resume_of(scheduler.last_accept(connection)),
                {.id = "q1", .ack_request = true});
  EXPECT_EQ(last_answer(), "q1");
  for (const Note& ack : scheduler.acks(connection)) EXPECT_TRUE(ack.ok);
  EXPECT_EQ(of_type(scheduler.notes[connection], "control.session.accept").size(), 1U);
  EXPECT_EQ(scheduler.endpoint.sessions(), 1U);
  EXPECT_TRUE(scheduler.closes.empty());
}

TEST(Revision1, HasUnknownControlFramesAcknowledgedIfTheyAsk) {
  OldWorker scheduler;
  scheduler.say(scheduler.connection, UnknownControl{"control.future"});
  //= REV-13
  EXPECT_TRUE(scheduler.acks(scheduler.connection).empty());
  scheduler.say(scheduler.connection, UnknownControl{"control.future"}, {.id = "u", .ack_request = true});
  ASSERT_EQ(scheduler.acks(scheduler.connection).size(), 1U);
  EXPECT_TRUE(scheduler.acks(scheduler.connection)[0].ok);
}

TEST(Revision1, IsAllowedASixthMoreTimeBetweenHeartbeats) {
  OldWorker scheduler;
  scheduler.advance(milliseconds{34'999});
  EXPECT_TRUE(scheduler.seen<LivenessChanged>().empty());
  scheduler.advance(milliseconds{1});
  //= REV-14
  EXPECT_EQ(scheduler.session()->liveness(), Liveness::Warn);
}

TEST(Revision1, IsKnownByItsSenderWhereItNamesNoInstance) {
  LoneScheduler scheduler;
  const ConnectionId connection = scheduler.open();
  scheduler.say(connection, LoneScheduler::handshake(1, ""), {.sender_id = "i-9"});
  scheduler.say(connection, LoneScheduler::registration(), {.sender_id = "i-9"});
  //= REV-15
  EXPECT_NE(scheduler.session("i-9"), nullptr);
}

TEST(Revision1, DoesNotTakeASilentSchedulerForDead) {
  LoneWorker worker{testing::worker_options(Revision::One)};
  worker.start();
  worker.greet();
  worker.say(LoneWorker::accept());
  worker.advance(seconds{600});
  //= REV-14
  EXPECT_EQ(worker.endpoint.state(), SessionState::Ready) << "it acknowledges no heartbeats";
  EXPECT_FALSE(worker.sent("control.heartbeat").at(0).ack_request);
}

TEST(Revision1, IsRefusedInItsOwnRevisionEvenByItsFirstFrame) {
  LoneScheduler scheduler;
  const ConnectionId connection = scheduler.open();
  Frame frame;
  frame.revision = Revision::One;
  frame.id = "r1";
  frame.tenant = "acme";
  frame.sender_id = "i-1";
  frame.body = Resume{"s-gone", "bm90.YXRva2Vu", 0, 0, {}};
  scheduler.endpoint.handle_frame(connection, frame, scheduler.now());
  const auto answer = scheduler.endpoint.poll_transmit(scheduler.now());
  ASSERT_TRUE(answer);
  ASSERT_TRUE(std::holds_alternative<Reset>(answer->frame.body));
  //= REV-4
  EXPECT_EQ(answer->revision, Revision::One);
}

}  // namespace
}  // namespace windlass
