// A session across connections: positions, replay, refusal, and the windows of time in which all this holds.
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
using testing::SessionPair;

TEST(Resume, KeepsTheSessionForItsWindowOnBothSides) {
  SessionPair pair;
  pair.start();
  ASSERT_TRUE(pair.worker.send(message("mine"), pair.now()));
  pair.filter = [](const Frame& frame, bool) { return !frame.is_data(); };
  pair.settle();
  pair.dials_succeed = false;
  pair.cut();
  EXPECT_EQ(pair.seen_by_worker<Detached>().size(), 1U);
  EXPECT_EQ(pair.seen_by_scheduler<Detached>().size(), 1U);
  pair.advance(milliseconds{299'999});
  //= RES-1
  EXPECT_TRUE(pair.seen_by_worker<Ended>().empty());
  EXPECT_EQ(pair.scheduler.sessions(), 1U);
  EXPECT_EQ(pair.scheduler_session().state(), SessionState::Backoff);
  pair.advance(milliseconds{1});
  //= RES-1
  ASSERT_EQ(pair.seen_by_worker<Ended>().size(), 1U);
  EXPECT_EQ(pair.seen_by_worker<Ended>()[0].code, "E.SESSION.STALE_BINDING");
  EXPECT_EQ(ids_of(pair.seen_by_worker<Ended>()[0].returned), std::vector<std::string>{"mine"});
  EXPECT_EQ(pair.seen_by_scheduler<Ended>().size(), 1U);
  EXPECT_EQ(pair.scheduler.sessions(), 0U);
}

TEST(Resume, StatesWhatWasSeenAndWhatIsKept) {
  LoneWorker worker;
  worker.own_at_once = false;
  worker.make_ready();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(worker.endpoint.send(message(numbered("m", i)), worker.now()));
  worker.settle();
  worker.say(LoneWorker::ack(2));
  worker.say_data(0);
  worker.say_data(1);
  worker.say_data(3);
  worker.endpoint.own(worker.endpoint.handle(), 1, worker.now());
  worker.lose_connection();
  worker.advance(seconds{1});
  worker.say(LoneWorker::ack_for(worker.notes.back().id));
  const Note resume = worker.notes.back();
  //= RES-2
  ASSERT_EQ(resume.type, "control.resume");
  EXPECT_EQ(resume.session_id, "s-1");
  EXPECT_EQ(resume.token, "token-1");
  EXPECT_EQ(resume.position.received_next, 2U) << "contiguous, owned or only held";
  EXPECT_EQ(resume.position.earliest_retained, 2U) << "the lowest that is kept";
  EXPECT_EQ(resume.position.credit.frames, 256U);
}

TEST(Resume, StatesTheNextFrameWhereNothingIsKept) {
  LoneWorker worker;
  worker.make_ready();
  ASSERT_TRUE(worker.endpoint.send(message("m"), worker.now()));
  worker.settle();
  worker.say(LoneWorker::ack(1));
  worker.lose_connection();
  worker.advance(seconds{1});
  worker.say(LoneWorker::ack_for(worker.notes.back().id));
  //= RES-2
  EXPECT_EQ(worker.notes.back().position.received_next, 0U) << "nothing was seen";
  EXPECT_EQ(worker.notes.back().position.earliest_retained, 1U);
}

TEST(Resume, IsAnsweredWithTheSchedulersOwnPositions) {
  LoneScheduler scheduler;
  scheduler.own_at_once = false;
  const ConnectionId first = scheduler.open();
  const Note accept = scheduler.make_ready(first);
  for (Seq seq = 0; seq < 3; ++seq) scheduler.say_data(first, seq);
  for (int i = 0; i < 4; ++i)
    ASSERT_TRUE(scheduler.endpoint.send(scheduler.handle(), message(numbered("m", i)), scheduler.now()));
  scheduler.settle();
  scheduler.say(first, LoneScheduler::ack(1));
  scheduler.endpoint.handle_closed(first, scheduler.now());
  const ConnectionId second = scheduler.open();
  scheduler.greet(second);
  scheduler.notes[second].clear();
  scheduler.say(second, scheduler.resume_of(accept, 3, 3));
  //= RES-3
  const auto& notes = scheduler.notes[second];
  ASSERT_EQ(notes.at(0).type, "control.session.accept");
  EXPECT_TRUE(notes[0].resumed);
  EXPECT_EQ(notes[0].session_id, accept.session_id);
  EXPECT_EQ(notes[0].position.received_next, 3U);
  EXPECT_EQ(notes[0].position.earliest_retained, 1U);
  //= RES-4
  std::vector<std::string> again;
  for (const Note& note : of_type(notes, "biz.test")) again.push_back(note.id);
  EXPECT_EQ(again, std::vector<std::string>{"m3"}) << "at once, in order, and nothing the other holds";
}

TEST(Resume, TellsTheOwnersWhatItMeant) {
  SessionPair pair;
  pair.start();
  pair.filter = [](const Frame& frame, bool) { return !frame.is_data(); };
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(pair.scheduler.send(pair.handle(), message(numbered("m", i)), pair.now()));
  pair.settle();
  pair.cut();
  ASSERT_TRUE(pair.scheduler.send(pair.handle(), message("between"), pair.now()));
  pair.filter = [](const Frame&, bool) { return true; };
  pair.advance(seconds{1});
  const auto established = pair.seen_by_scheduler<Established>();
  //= RES-10
  ASSERT_EQ(established.size(), 2U);
  EXPECT_FALSE(established[0].resumed);
  EXPECT_TRUE(established[1].resumed);
  EXPECT_EQ(established[1].replayed, 3U) << "frames that went out before";
  EXPECT_EQ(pair.delivered_to_worker(), (std::vector<std::string>{"m0", "m1", "m2", "between"}));
}

TEST(Resume, WorksWithZeroTrafficAnyNumberOfTimes) {
  SessionPair pair;
  pair.start();
  for (int i = 0; i < 20; ++i) {
    pair.cut();
    pair.advance(seconds{31});
    //= RES-5
    ASSERT_EQ(pair.worker.state(), SessionState::Ready) << i;
  }
  EXPECT_TRUE(pair.seen_by_worker<Ended>().empty());
  EXPECT_EQ(pair.scheduler.counters().resumes_accepted, 20U);
  EXPECT_EQ(pair.scheduler.counters().sessions_opened, 1U);
}

TEST(Resume, WorksBeforeTheSchedulerHasNoticedTheDrop) {
  SessionPair pair;
  pair.start();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(pair.worker.send(message(numbered("m", i)), pair.now()));
    pair.cut_unnoticed();
    pair.advance(seconds{31});
    //= RES-5
    ASSERT_EQ(pair.worker.state(), SessionState::Ready) << i;
  }
  EXPECT_EQ(pair.delivered_to_scheduler().size(), 5U);
  EXPECT_TRUE(pair.seen_by_scheduler<Ended>().empty());
  EXPECT_EQ(pair.scheduler.connections(), 1U) << "the connections before are gone";
}

TEST(Resume, KeepsFramesThatCameEarly) {
  SessionPair pair;
  pair.start();
  pair.filter = [](const Frame& frame, bool) { return frame.id != "m0"; };
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(pair.worker.send(message(numbered("m", i)), pair.now()));
  pair.settle();
  std::vector<std::string> again;
  pair.filter = [&](const Frame& frame, bool) {
    if (frame.is_data()) again.emplace_back(frame.id);
    return true;
  };
  pair.cut();
  pair.advance(seconds{1});
  EXPECT_EQ(pair.delivered_to_scheduler(), (std::vector<std::string>{"m0", "m1", "m2"}));
  //= RES-4
  EXPECT_EQ(again, std::vector<std::string>{"m0"}) << "the bitmap said that the others were held";
}

// A resume of a session that sent two frames and received one.
struct Refused {
  LoneScheduler scheduler;
  ConnectionId second{0};
  Note accept{Frame{}};
  Refused() {
    const ConnectionId first = scheduler.open();
    accept = scheduler.make_ready(first);
    for (int i = 0; i < 2; ++i)
      EXPECT_TRUE(scheduler.endpoint.send(scheduler.handle(), message(numbered("m", i)), scheduler.now()));
    scheduler.settle();
    scheduler.say(first, LoneScheduler::ack(1));
    scheduler.say_data(first, 0);
    scheduler.endpoint.handle_closed(first, scheduler.now());
    second = scheduler.open();
    scheduler.greet(second);
  }
};

TEST(Resume, AsksForNoAckBecauseTheAcceptIsTheAnswer) {
  for (const Revision revision : {Revision::One, Revision::Two}) {
    LoneWorker worker{testing::worker_options(revision)};
    worker.start();
    worker.greet();
    worker.say(LoneWorker::accept());
    worker.lose_connection();
    worker.advance(seconds{1});
    worker.greet();
    ASSERT_EQ(worker.notes.back().type, "control.resume");
    //= RES-3
    //= REV-6
    EXPECT_EQ(worker.notes.back().ack_request, revision == Revision::One);
    worker.say(LoneWorker::accept(true));
    EXPECT_EQ(worker.endpoint.state(), SessionState::Ready);
  }
}

TEST(Resume, IsNotAcknowledgedEvenIfItAsks) {
  LoneScheduler scheduler;
  const Note accept = scheduler.make_ready(scheduler.open());
  const ConnectionId second = scheduler.open();
  scheduler.greet(second);
  scheduler.notes[second].clear();
  scheduler.say(second, scheduler.resume_of(accept), {.id = "r1", .ack_request = true});
  //= RES-3
  ASSERT_FALSE(scheduler.notes[second].empty());
  EXPECT_EQ(scheduler.notes[second][0].type, "control.session.accept");
  for (const Note& ack : scheduler.acks(second)) EXPECT_EQ(ack.for_id, "");
}

TEST(Resume, OfAFrameNeverSentIsALie) {
  Refused refused;
  refused.scheduler.say(refused.second, refused.scheduler.resume_of(refused.accept, 3, 1));
  //= RES-6
  EXPECT_EQ(refused.scheduler.refusal(refused.second), "E.SESSION.ACK_INVALID");
  //= RES-3
  EXPECT_EQ(refused.scheduler.endpoint.sessions(), 0U) << "never less than all: the session is over";
  ASSERT_EQ(refused.scheduler.seen<Ended>().size(), 1U);
  EXPECT_EQ(ids_of(refused.scheduler.seen<Ended>()[0].returned), std::vector<std::string>{"m1"});
}

TEST(Resume, BelowWhatWasFreedIsAHole) {
  Refused refused;
  refused.scheduler.say(refused.second, refused.scheduler.resume_of(refused.accept, 0, 1));
  //= RES-6
  EXPECT_EQ(refused.scheduler.refusal(refused.second), "E.RESULT.SEQ_GAP");
}

TEST(Resume, ThatTakesBackWhatWasHeldIsAHole) {
  LoneScheduler scheduler;
  const ConnectionId connection = scheduler.open();
  const Note accept = scheduler.make_ready(connection);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(scheduler.endpoint.send(scheduler.handle(), message(numbered("m", i)), scheduler.now()));
  }
  scheduler.settle();
  Ack ack = LoneScheduler::ack(0);
  for (std::size_t i = 0; i < 3; ++i) ack.state->held.set(i);
  scheduler.say(connection, ack);
  scheduler.endpoint.handle_closed(connection, scheduler.now());
  const ConnectionId second = scheduler.open();
  scheduler.greet(second);
  scheduler.say(second, scheduler.resume_of(accept, 1));
  //= RES-6
  EXPECT_EQ(scheduler.refusal(second), "E.RESULT.SEQ_GAP") << "nothing would ever send the other two again";
  ASSERT_EQ(scheduler.seen<Ended>().size(), 1U);
  EXPECT_EQ(scheduler.seen<Ended>()[0].returned.size(), 3U);
}

TEST(Resume, WithAHoleInTheWorkersFramesIsAHole) {
  Refused refused;
  refused.scheduler.say(refused.second, refused.scheduler.resume_of(refused.accept, 2, 2));
  //= RES-6
  EXPECT_EQ(refused.scheduler.refusal(refused.second), "E.RESULT.SEQ_GAP");
  EXPECT_EQ(refused.scheduler.endpoint.counters().resumes_refused, 1U);
}

TEST(Resume, IsJudgedByTheWorkerTheSameWay) {
  SessionAccept lie = LoneWorker::accept(true);
  lie.received_next = 1;
  SessionAccept hole = LoneWorker::accept(true);
  hole.earliest_retained = 1;
  const std::vector<std::pair<SessionAccept, std::string>> cases = {{lie, "E.SESSION.ACK_INVALID"},
                                                                    {hole, "E.RESULT.SEQ_GAP"}};
  for (const auto& [accept, code] : cases) {
    LoneWorker worker;
    worker.make_ready();
    worker.lose_connection();
    worker.advance(seconds{1});
    worker.greet();
    worker.say(accept);
    //= RES-6
    ASSERT_EQ(worker.sent("control.reset").size(), 1U);
    EXPECT_EQ(worker.sent("control.reset")[0].code, code);
    ASSERT_EQ(worker.seen<Ended>().size(), 1U);
    EXPECT_EQ(worker.seen<Ended>()[0].code, code);
    EXPECT_EQ(worker.endpoint.state(), SessionState::Backoff);
    worker.advance(2 * limits::kBackoffFirst);
    worker.say(LoneWorker::ack_for(worker.notes.back().id));
    EXPECT_EQ(worker.notes.back().type, "control.register") << "and starts afresh";
  }
}

TEST(Resume, OfASessionThatIsGoneIsToldSoAndTheWorkerRegistersAfresh) {
  SessionPair pair;
  pair.start();
  ASSERT_TRUE(pair.worker.send(message("m"), pair.now()));
  pair.filter = [](const Frame& frame, bool) { return !frame.is_data(); };
  pair.settle();
  pair.cut();
  std::vector<std::string> codes;
  pair.filter = [&](const Frame& frame, bool) {
    if (const auto* reset = std::get_if<Reset>(&frame.body)) codes.emplace_back(reset->code);
    return true;
  };
  ASSERT_TRUE(pair.scheduler.reset(pair.handle(), ErrorCode::Internal, "lost my memory", pair.now()));
  pair.advance(seconds{5});
  //= RES-7
  EXPECT_EQ(codes, std::vector<std::string>{"E.SESSION.STALE_BINDING"});
  EXPECT_EQ(pair.worker.state(), SessionState::Ready);
  EXPECT_EQ(pair.scheduler.counters().sessions_opened, 2U);
  ASSERT_EQ(pair.seen_by_worker<Ended>().size(), 1U);
  EXPECT_EQ(ids_of(pair.seen_by_worker<Ended>()[0].returned), std::vector<std::string>{"m"});
  EXPECT_FALSE(pair.seen_by_worker<Established>()[1].resumed);
}

TEST(Resume, NeedsAGoodTokenOfThisSessionWorkerAndTenant) {
  LoneScheduler scheduler;
  const ConnectionId one = scheduler.open();
  const Note accept = scheduler.make_ready(one);
  const ConnectionId two = scheduler.open();
  const Note other = scheduler.make_ready(two, 2, {.sender_id = "i-2"});
  const ConnectionId three = scheduler.open();
  const Note foreign = scheduler.make_ready(three, 2, {.tenant = "globex"});
  const auto refusal = [&](std::string_view session, std::string_view token) {
    const ConnectionId connection = scheduler.open();
    scheduler.greet(connection);
    scheduler.say(connection, Resume{session, token, 0, 0, {}});
    return scheduler.refusal(connection);
  };
  std::string changed = accept.token;
  changed[changed.size() / 3] = changed[changed.size() / 3] == 'A' ? 'B' : 'A';
  //= RES-8
  EXPECT_EQ(refusal(accept.session_id, "not a token"), "E.SESSION.INVALID_TOKEN");
  EXPECT_EQ(refusal(accept.session_id, changed), "E.SESSION.INVALID_TOKEN");
  EXPECT_EQ(refusal(accept.session_id, other.token), "E.SESSION.INVALID_TOKEN") << "of another session";
  EXPECT_EQ(refusal(other.session_id, other.token), "E.SESSION.INVALID_TOKEN") << "of another worker";
  EXPECT_EQ(refusal(foreign.session_id, foreign.token), "E.SESSION.INVALID_TOKEN") << "of another tenant";
  //= RES-3
  EXPECT_EQ(scheduler.session()->state(), SessionState::Ready) << "the session itself is untouched";
  EXPECT_FALSE(scheduler.closes.contains(one)) << "and so is its connection";
  scheduler.wall_offset = seconds{3601};
  EXPECT_EQ(refusal(accept.session_id, accept.token), "E.SESSION.INVALID_TOKEN") << "expired";
}

TEST(Resume, AcknowledgesAfterwardsWhatWasOwnedBetweenConnections) {
  SessionPair pair;
  pair.own_at_once = false;
  pair.start();
  ASSERT_TRUE(pair.worker.send(message("m"), pair.now()));
  pair.settle();
  pair.dials_succeed = false;
  pair.cut();
  // No timer may be left that nobody takes.
  pair.scheduler.own(pair.handle(), 1, pair.now());
  pair.advance(seconds{20});
  EXPECT_EQ(pair.worker.session()->stream().send_window().in_flight(), 1U);
  pair.dials_succeed = true;
  pair.advance(seconds{40});
  //= RES-9
  EXPECT_TRUE(pair.worker.session()->stream().send_window().empty());
}

TEST(Resume, GoesOnWithADrainThatWasUnderWay) {
  SessionPair pair;
  pair.start();
  ASSERT_TRUE(pair.scheduler.drain(pair.handle(), "scale in", seconds{200}, pair.now()));
  pair.settle();
  pair.cut();
  EXPECT_EQ(pair.scheduler_session().state(), SessionState::Backoff);
  pair.advance(seconds{1});
  //= RES-11
  EXPECT_EQ(pair.worker.state(), SessionState::Draining);
  EXPECT_EQ(pair.scheduler_session().state(), SessionState::Draining);
  pair.worker.complete_drain(pair.now());
  pair.advance(seconds{1});
  EXPECT_EQ(pair.worker.state(), SessionState::Closed);
}

TEST(Resume, GivesUpAResumeUnderWayWhenItsWindowPasses) {
  LoneWorker worker;
  SessionConfig config;
  worker.start();
  worker.greet();
  SessionAccept accept = LoneWorker::accept();
  accept.resume_ttl = seconds{5};
  worker.say(accept, {.ack_request = true});
  worker.lose_connection();
  worker.advance(seconds{1});
  worker.say(LoneWorker::ack_for(worker.notes.back().id));
  ASSERT_EQ(worker.notes.back().type, "control.resume");
  worker.advance(seconds{5} + 2 * limits::kBackoffFirst);
  //= RES-1
  ASSERT_EQ(worker.seen<Ended>().size(), 1U);
  ASSERT_EQ(worker.notes.back().type, "control.handshake") << "on a new connection";
  worker.say(LoneWorker::ack_for(worker.notes.back().id));
  EXPECT_EQ(worker.notes.back().type, "control.register");
}

}  // namespace
}  // namespace windlass
