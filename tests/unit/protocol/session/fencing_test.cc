// Generations: only the newest connection of a session counts, and two machines with one identity are told
// apart.
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
using testing::SessionPair;

// A worker whose second connection resumed the session while the first was still believed in.
struct Superseded : LoneScheduler {
  Superseded() {
    shell_closes = false;  // the old connection lingers, as real ones do
    first = open();
    accept = make_ready(first);
    second = open();
    greet(second);
    notes[second].clear();
    say(second, resume_of(accept));
    resumed = last_accept(second);
  }
  ConnectionId first{0};
  ConnectionId second{0};
  Note accept{Frame{}};
  Note resumed{Frame{}};
};

TEST(Fencing, ClosesTheConnectionBeforeWithAReset) {
  Superseded scheduler;
  //= FEN-2
  ASSERT_EQ(scheduler.resets(scheduler.first).size(), 1U);
  EXPECT_EQ(scheduler.resets(scheduler.first)[0].code, "E.SESSION.SUPERSEDED");
  EXPECT_EQ(scheduler.closes[scheduler.first].code, 1011);
  EXPECT_EQ(scheduler.closes[scheduler.first].reason, "superseded session");
  EXPECT_EQ(scheduler.endpoint.counters().superseded, 1U);
  EXPECT_TRUE(scheduler.seen<Ended>().empty()) << "the session lives on";
}

TEST(Fencing, HearsNothingFromAnOlderConnection) {
  Superseded scheduler;
  scheduler.say_data(scheduler.first, 0);
  scheduler.say(scheduler.first, Reset{"E.INTERNAL", "late", {}});
  scheduler.endpoint.handle_bad_frame(scheduler.first, {}, scheduler.now());
  scheduler.settle();
  //= FEN-1
  EXPECT_TRUE(scheduler.seen<Delivered>().empty());
  EXPECT_TRUE(scheduler.seen<Ended>().empty());
  EXPECT_EQ(scheduler.session()->state(), SessionState::Ready);
}

TEST(Fencing, HeedsNoCloseOfAnOlderConnection) {
  Superseded scheduler;
  const std::size_t detached = scheduler.seen<Detached>().size();
  scheduler.endpoint.handle_closed(scheduler.first, scheduler.now());
  scheduler.settle();
  //= FEN-1
  EXPECT_EQ(scheduler.session()->state(), SessionState::Ready);
  EXPECT_EQ(scheduler.seen<Detached>().size(), detached);
  scheduler.say_data(scheduler.second, 0);
  EXPECT_EQ(scheduler.seen<Delivered>().size(), 1U);
}

// Its worker gave it up, and went on with the session since.
TEST(Fencing, TakesNoLateResumeOfAnOlderConnection) {
  LoneScheduler scheduler;
  const Note accept = scheduler.make_ready(scheduler.open());
  const ConnectionId late = scheduler.open();
  const ConnectionId newer = scheduler.open();
  scheduler.greet(late);
  scheduler.greet(newer);
  scheduler.say(newer, scheduler.resume_of(accept));
  scheduler.say(late, scheduler.resume_of(accept));
  //= FEN-1
  EXPECT_EQ(scheduler.refusal(late), "E.SESSION.INVALID_TOKEN");
  EXPECT_TRUE(scheduler.seen<Ended>().empty());
  EXPECT_EQ(scheduler.session()->state(), SessionState::Ready);
  scheduler.say_data(newer, 0);
  EXPECT_EQ(scheduler.seen<Delivered>().size(), 1U);
}

TEST(Fencing, HoldsOnTheWorkersSideToo) {
  LoneWorker worker;
  worker.make_ready();
  const ConnectionId old = worker.endpoint.connection();
  worker.lose_connection();
  worker.advance(seconds{1});
  ASSERT_NE(worker.endpoint.connection(), old);
  Frame frame;
  frame.id = "late";
  frame.tenant = "acme";
  frame.sender_role = Role::Scheduler;
  frame.sender_id = "sched";
  frame.body = Reset{"E.INTERNAL", "late", {}};
  worker.endpoint.handle_frame(old, frame, worker.now());
  worker.endpoint.handle_bad_frame(old, {}, worker.now());
  worker.endpoint.handle_closed(old, 1006, "", worker.now());
  worker.settle();
  //= FEN-1
  EXPECT_EQ(worker.endpoint.state(), SessionState::Handshaking);
  EXPECT_NE(worker.endpoint.session(), nullptr);
  EXPECT_TRUE(worker.closes.empty());
}

TEST(Fencing, LetsANewRegistrationEndTheSessionBefore) {
  LoneScheduler scheduler;
  const ConnectionId first = scheduler.open();
  scheduler.make_ready(first);
  const SessionHandle old = scheduler.handle();
  ASSERT_TRUE(scheduler.endpoint.send(old, message("work"), scheduler.now()));
  scheduler.settle();
  const ConnectionId second = scheduler.open();
  scheduler.make_ready(second);
  //= FEN-2
  EXPECT_EQ(scheduler.refusal(first), "E.SESSION.SUPERSEDED");
  //= FEN-3
  ASSERT_EQ(scheduler.seen<Ended>().size(), 1U);
  EXPECT_EQ(scheduler.seen<Ended>()[0].code, "E.SESSION.SUPERSEDED");
  EXPECT_EQ(ids_of(scheduler.seen<Ended>()[0].returned), std::vector<std::string>{"work"});
  EXPECT_NE(scheduler.handle(), old);
  EXPECT_EQ(scheduler.endpoint.sessions(), 1U);
  EXPECT_FALSE(scheduler.endpoint.send(old, message("more"), scheduler.now()));
}

TEST(Fencing, SendsNoAcceptOfASessionThatEndedInTheSameTurn) {
  LoneScheduler scheduler;
  const Note accept = scheduler.make_ready(scheduler.open());
  for (const bool resume : {false, true}) {
    const ConnectionId first = scheduler.open();
    const ConnectionId second = scheduler.open();
    scheduler.greet(first);
    scheduler.greet(second);
    scheduler.settle_at_once = false;
    if (resume) {
      scheduler.say(first, LoneScheduler::registration());
    } else {
      scheduler.say(first, scheduler.resume_of(accept));
    }
    scheduler.say(second, LoneScheduler::registration());
    scheduler.settle_at_once = true;
    scheduler.settle();
    //= FEN-1
    EXPECT_EQ(scheduler.refusal(first), "E.SESSION.SUPERSEDED");
    EXPECT_TRUE(of_type(scheduler.notes[first], "control.session.accept").empty());
    EXPECT_EQ(of_type(scheduler.notes[second], "control.session.accept").size(), 1U);
    EXPECT_EQ(scheduler.endpoint.sessions(), 1U);
  }
}

TEST(Fencing, ReportsATokenThatItsSessionHasReplaced) {
  Superseded scheduler;
  Ack proof = LoneScheduler::ack(0);
  proof.for_id = scheduler.resumed.id;
  scheduler.say(scheduler.second, proof);
  const ConnectionId twin = scheduler.open();
  scheduler.greet(twin);
  scheduler.say(twin, scheduler.resume_of(scheduler.accept));
  //= FEN-4
  EXPECT_EQ(scheduler.refusal(twin), "E.SESSION.INVALID_TOKEN");
  EXPECT_EQ(scheduler.seen<TwinSuspected>().size(), 1U);
  EXPECT_EQ(scheduler.endpoint.counters().twins_suspected, 1U);
  EXPECT_EQ(scheduler.session()->state(), SessionState::Ready) << "whoever is there stays";
}

TEST(Fencing, ReportsAResumeOfASessionThatARegistrationReplaced) {
  LoneScheduler scheduler;
  ConnectionId present = scheduler.open();
  const Note first = scheduler.make_ready(present);
  for (int registrations = 0; registrations < 2; ++registrations) {
    scheduler.endpoint.handle_closed(present, scheduler.now());
    present = scheduler.open();
    scheduler.make_ready(present);
    const ConnectionId twin = scheduler.open();
    scheduler.greet(twin);
    scheduler.say(twin, scheduler.resume_of(first));
    //= FEN-4
    EXPECT_EQ(scheduler.refusal(twin), "E.SESSION.SUPERSEDED") << "however long ago";
    EXPECT_EQ(scheduler.seen<TwinSuspected>().size(), static_cast<std::size_t>(registrations) + 1);
  }
}

TEST(Fencing, ReportsTwinsThatRegisterInTurns) {
  LoneScheduler scheduler;
  scheduler.make_ready(scheduler.open());
  scheduler.make_ready(scheduler.open());
  //= FEN-6
  EXPECT_TRUE(scheduler.seen<TwinSuspected>().empty()) << "a link may break unheard, once";
  scheduler.advance(limits::kBackoffCap);
  scheduler.make_ready(scheduler.open());
  //= FEN-6
  EXPECT_EQ(scheduler.seen<TwinSuspected>().size(), 1U);
  EXPECT_EQ(scheduler.session()->state(), SessionState::Ready) << "the newest owner still wins";
}

TEST(Fencing, TakesAWorkerThatRestartsOftenForOne) {
  LoneScheduler scheduler;
  for (int starts = 0; starts < 10; ++starts) {
    const ConnectionId connection = scheduler.open();
    scheduler.make_ready(connection);
    scheduler.endpoint.handle_closed(connection, scheduler.now());
    scheduler.settle();
  }
  //= FEN-6
  EXPECT_TRUE(scheduler.seen<TwinSuspected>().empty());
}

TEST(Fencing, DoesNotLetTwinsFlap) {
  SessionPair pair;
  pair.start();
  Frame frame;
  frame.id = "x";
  frame.tenant = "acme";
  frame.sender_role = Role::Scheduler;
  frame.sender_id = "sched";
  frame.body = Reset{"E.SESSION.SUPERSEDED", "superseded session", {}};
  pair.worker.handle_frame(pair.worker.connection(), frame, pair.now());
  pair.settle();
  const std::uint64_t dials = pair.dials;
  pair.advance(pair.config.backoff_cap - milliseconds{1});
  //= FEN-5
  EXPECT_EQ(pair.dials, dials);
  pair.advance(pair.config.backoff_cap + milliseconds{1});
  EXPECT_EQ(pair.dials, dials + 1);
}

TEST(Fencing, EndsEveryCallThatNamesAStrangersConnection) {
  LoneScheduler scheduler;
  scheduler.make_ready(scheduler.open());
  const ConnectionId stranger{99};
  scheduler.say_data(stranger, 0);
  scheduler.endpoint.handle_closed(stranger, scheduler.now());
  scheduler.endpoint.handle_idle(stranger);
  scheduler.endpoint.set_transport_busy(stranger, true, scheduler.now());
  //= FEN-1
  EXPECT_EQ(scheduler.session()->state(), SessionState::Ready);
  EXPECT_TRUE(scheduler.seen<Delivered>().empty());
}

}  // namespace
}  // namespace windlass
