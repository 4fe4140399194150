// Draining: asked for by either side, across resumes, to its completion or its deadline.
#include <gtest/gtest.h>

#include <algorithm>

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

TEST(Drain, AskedForByTheSchedulerPutsBothIntoDraining) {
  SessionPair pair;
  pair.start();
  ASSERT_TRUE(pair.scheduler.drain(pair.handle(), "scale in", seconds{30}, pair.now()));
  pair.settle();
  //= DRN-1
  EXPECT_EQ(pair.worker.state(), SessionState::Draining);
  EXPECT_EQ(pair.scheduler_session().state(), SessionState::Draining);
  ASSERT_EQ(pair.seen_by_worker<DrainRequested>().size(), 1U);
  EXPECT_EQ(pair.seen_by_worker<DrainRequested>()[0].reason, "scale in");
  EXPECT_EQ(pair.seen_by_worker<DrainRequested>()[0].deadline, seconds{30});
}

TEST(Drain, AskedForByTheWorkerPutsBothIntoDraining) {
  SessionPair pair;
  pair.start();
  pair.worker.drain("maintenance", seconds{30}, pair.now());
  pair.settle();
  //= DRN-1
  EXPECT_EQ(pair.worker.state(), SessionState::Draining);
  EXPECT_EQ(pair.scheduler_session().state(), SessionState::Draining);
  ASSERT_EQ(pair.seen_by_scheduler<DrainRequested>().size(), 1U);
  EXPECT_EQ(pair.seen_by_scheduler<DrainRequested>()[0].reason, "maintenance");
}

TEST(Drain, IsRepeatedAfterAResumeUntilItIsAcknowledged) {
  SessionPair pair;
  pair.start();
  int starts = 0;
  bool lose = true;
  pair.filter = [&](const Frame& frame, bool from_worker) {
    if (std::holds_alternative<Drain>(frame.body)) ++starts;
    return !(lose && (std::holds_alternative<Drain>(frame.body) || from_worker));
  };
  ASSERT_TRUE(pair.scheduler.drain(pair.handle(), "scale in", seconds{200}, pair.now()));
  pair.settle();
  EXPECT_EQ(starts, 1);
  lose = false;
  pair.cut();
  pair.advance(seconds{1});
  //= DRN-1
  EXPECT_EQ(starts, 2);
  EXPECT_EQ(pair.worker.state(), SessionState::Draining);
  pair.cut();
  pair.advance(seconds{1});
  EXPECT_EQ(starts, 2) << "it was acknowledged";
  EXPECT_EQ(pair.seen_by_worker<DrainRequested>().size(), 1U);
}

TEST(Drain, AskedForBetweenConnectionsIsSaidOnTheNextOne) {
  SessionPair pair;
  pair.start();
  pair.cut();
  pair.worker.drain("maintenance", seconds{200}, pair.now());
  EXPECT_EQ(pair.worker.state(), SessionState::Backoff);
  pair.advance(seconds{1});
  //= DRN-1
  EXPECT_EQ(pair.worker.state(), SessionState::Draining);
  EXPECT_EQ(pair.scheduler_session().state(), SessionState::Draining);
}

TEST(Drain, AskedForBeforeThereIsASessionIsSaidOnceThereIsOne) {
  SessionPair pair;
  pair.worker.drain("maintenance", seconds{200}, pair.now());
  pair.start();
  //= DRN-1
  EXPECT_EQ(pair.scheduler_session().state(), SessionState::Draining);
  pair.worker.complete_drain(pair.now());
  pair.settle();
  EXPECT_EQ(pair.worker.state(), SessionState::Closed);
}

TEST(Drain, LetsTheSchedulerSendOnlyWhatBelongsToWorkUnderWay) {
  SessionPair pair;
  pair.start();
  ASSERT_TRUE(pair.scheduler.drain(pair.handle(), "scale in", seconds{200}, pair.now()));
  pair.settle();
  //= DRN-2
  const auto refused = pair.scheduler.send(pair.handle(), message("new work"), pair.now());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::SessionDraining);
  EXPECT_TRUE(pair.scheduler.send(pair.handle(), message("cancel", "{}", "work-1"), pair.now()));
  //= DRN-3
  EXPECT_TRUE(pair.worker.send(message("result", "{}", "work-1"), pair.now()));
  pair.advance(milliseconds{20});
  EXPECT_EQ(pair.delivered_to_worker(), std::vector<std::string>{"cancel"});
  EXPECT_EQ(pair.delivered_to_scheduler(), std::vector<std::string>{"result"});
  EXPECT_TRUE(pair.worker.session()->stream().send_window().empty()) << "acks go on";
}

TEST(Drain, TakesNothingMoreOnceItWasSaidToBeComplete) {
  SessionPair pair;
  pair.start();
  pair.own_at_once = false;
  pair.worker.drain("maintenance", seconds{200}, pair.now());
  ASSERT_TRUE(pair.worker.send(message("result"), pair.now()));
  pair.worker.complete_drain(pair.now());
  //= DRN-4
  const auto refused = pair.worker.send(message("late"), pair.now());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::SessionDraining);
}

TEST(Drain, IsCompleteOnlyWhenEveryFrameIsAcknowledged) {
  SessionPair pair;
  pair.start();
  pair.own_at_once = false;
  pair.worker.drain("maintenance", seconds{200}, pair.now());
  ASSERT_TRUE(pair.worker.send(message("result"), pair.now()));
  bool complete_said = false;
  pair.filter = [&](const Frame& frame, bool) {
    const auto* drain = std::get_if<Drain>(&frame.body);
    complete_said = complete_said || (drain != nullptr && drain->phase == DrainPhase::Complete);
    return true;
  };
  pair.worker.complete_drain(pair.now());
  pair.advance(milliseconds{100});
  //= DRN-4
  EXPECT_FALSE(complete_said);
  pair.scheduler.own(pair.handle(), 1, pair.now());
  pair.advance(milliseconds{100});
  EXPECT_TRUE(complete_said);
  EXPECT_EQ(pair.worker.state(), SessionState::Closed);
  EXPECT_EQ(pair.seen_by_worker<Ended>().at(0).code, "");
}

TEST(Drain, IsCompleteWhenARefusalAcknowledgesTheLastFrame) {
  LoneWorker worker;
  worker.make_ready();
  ASSERT_TRUE(worker.endpoint.send(message("r"), worker.now()));
  worker.endpoint.drain("update", seconds{60}, worker.now());
  worker.endpoint.complete_drain(worker.now());
  worker.settle();
  const std::size_t said = worker.sent("control.drain").size();
  const std::size_t acks = worker.sent("control.ack").size();
  Ack refusal = LoneWorker::ack(1);
  refusal.ok = false;
  refusal.for_id = "another";
  refusal.info = "E.CMD.UNKNOWN";
  worker.say(refusal, {.ack_request = true});
  //= DRN-4
  EXPECT_EQ(worker.sent("control.drain").size(), said + 1);
  //= ACK-8
  EXPECT_EQ(worker.sent("control.ack").size(), acks + 1);
}

TEST(Drain, IsAcknowledgedByTheSchedulerWhichClosesWith1000) {
  LoneScheduler scheduler;
  const ConnectionId connection = scheduler.open();
  scheduler.make_ready(connection);
  scheduler.say(connection, Drain{DrainPhase::Start, "maintenance", seconds{30}},
                {.id = "d1", .ack_request = true});
  EXPECT_EQ(scheduler.acks(connection).back().for_id, "d1");
  scheduler.say(connection, Drain{DrainPhase::Complete, {}, {}}, {.id = "d2", .ack_request = true});
  //= DRN-4
  EXPECT_EQ(scheduler.acks(connection).back().for_id, "d2");
  EXPECT_TRUE(scheduler.acks(connection).back().ok);
  EXPECT_EQ(scheduler.closes.at(connection).code, kCloseNormal);
  EXPECT_TRUE(scheduler.resets(connection).empty());
  EXPECT_EQ(scheduler.endpoint.sessions(), 0U);
}

TEST(Drain, CompletedWithoutAStartIsOutOfTurn) {
  LoneScheduler scheduler;
  const ConnectionId connection = scheduler.open();
  scheduler.make_ready(connection);
  scheduler.say(connection, Drain{DrainPhase::Complete, {}, {}}, {.id = "d", .ack_request = true});
  //= HSK-13
  EXPECT_TRUE(scheduler.acks(connection).back().info.starts_with("E.PROTO.STATE"));
  EXPECT_EQ(scheduler.session()->state(), SessionState::Ready);
  LoneWorker worker;
  worker.make_ready();
  worker.say(Drain{DrainPhase::Start, "", seconds{30}});
  worker.say(Drain{DrainPhase::Complete, {}, {}}, {.id = "odd"});
  EXPECT_FALSE(worker.sent("control.ack").back().ok) << "a scheduler does not complete";
}

TEST(Drain, CompletedWhoseAnswerWasLostIsStillTheEnd) {
  SessionPair pair;
  pair.start();
  pair.worker.drain("maintenance", seconds{200}, pair.now());
  pair.settle();
  pair.filter = [](const Frame&, bool from_worker) { return from_worker; };
  pair.worker.complete_drain(pair.now());
  const auto frame_loss = [&] {
    // Everything the worker says arrives, nothing that the scheduler answers does, and then the line is cut.
    while (auto frame = pair.worker.poll_transmit(pair.now()))
      pair.scheduler.handle_frame(pair.current, *frame, pair.now());
    while (pair.scheduler.poll_transmit(pair.now())) {
    }
    while (const auto close = pair.scheduler.poll_close(pair.now()))
      pair.scheduler.handle_closed(close->connection, pair.now());
  };
  frame_loss();
  EXPECT_EQ(pair.scheduler.sessions(), 0U);
  pair.filter = [](const Frame&, bool) { return true; };
  pair.cut_unnoticed();
  pair.advance(seconds{5});
  //= DRN-4
  EXPECT_EQ(pair.worker.state(), SessionState::Closed);
  ASSERT_EQ(pair.seen_by_worker<Ended>().size(), 1U);
  EXPECT_EQ(pair.seen_by_worker<Ended>()[0].code, "");
  EXPECT_EQ(pair.scheduler.counters().sessions_opened, 1U) << "the worker does not register afresh";
}

TEST(Drain, PastItsDeadlineIsReset) {
  SessionPair pair;
  pair.start();
  pair.own_at_once = false;
  ASSERT_TRUE(pair.scheduler.send(pair.handle(), message("work"), pair.now()));
  ASSERT_TRUE(pair.worker.send(message("result"), pair.now()));
  ASSERT_TRUE(pair.scheduler.drain(pair.handle(), "scale in", seconds{20}, pair.now()));
  pair.advance(milliseconds{19'999});
  EXPECT_EQ(pair.worker.state(), SessionState::Draining);
  pair.advance(milliseconds{1});
  //= DRN-5
  ASSERT_EQ(pair.seen_by_scheduler<Ended>().size(), 1U);
  EXPECT_EQ(pair.seen_by_scheduler<Ended>()[0].code, "E.TIMEOUT");
  EXPECT_EQ(ids_of(pair.seen_by_scheduler<Ended>()[0].returned), std::vector<std::string>{"work"});
  ASSERT_EQ(pair.seen_by_worker<Ended>().size(), 1U);
  EXPECT_EQ(pair.seen_by_worker<Ended>()[0].code, "E.TIMEOUT");
  EXPECT_EQ(ids_of(pair.seen_by_worker<Ended>()[0].returned), std::vector<std::string>{"result"});
}

TEST(Drain, PastTheDeadlineThatTheWorkerSetIsItsEnd) {
  SessionPair pair;
  pair.start();
  pair.worker.drain("maintenance", seconds{20}, pair.now());
  pair.settle();
  ASSERT_TRUE(pair.scheduler.reset(pair.handle(), ErrorCode::Internal, "oops", pair.now()));
  pair.advance(seconds{5});
  EXPECT_EQ(pair.worker.state(), SessionState::Draining) << "a new session may still bring the results home";
  EXPECT_LE(pair.seen_by_scheduler<DrainRequested>().back().deadline, seconds{20} - milliseconds{1})
      << "in what time is left";
  pair.advance(seconds{20});
  //= DRN-5
  EXPECT_EQ(pair.worker.state(), SessionState::Closed);
  EXPECT_EQ(pair.seen_by_worker<Ended>().back().code, "E.TIMEOUT");
}

TEST(Drain, PastItsDeadlineBetweenConnectionsEndsToo) {
  SessionPair pair;
  pair.start();
  ASSERT_TRUE(pair.scheduler.drain(pair.handle(), "scale in", seconds{20}, pair.now()));
  pair.settle();
  pair.dials_succeed = false;
  pair.cut();
  pair.advance(seconds{21});
  //= DRN-5
  ASSERT_EQ(pair.seen_by_scheduler<Ended>().size(), 1U);
  EXPECT_EQ(pair.seen_by_scheduler<Ended>()[0].code, "E.TIMEOUT");
  EXPECT_EQ(pair.scheduler.sessions(), 0U);
  pair.dials_succeed = true;
  pair.advance(seconds{60});
  EXPECT_EQ(pair.worker.state(), SessionState::Ready) << "a new session of a worker that was not done";
}

TEST(Drain, OfAFewSessionsTakesNoLongerThanTheirNumberAsksFor) {
  LoneScheduler scheduler;
  for (std::size_t i = 0; i < 4; ++i)
    scheduler.make_ready(scheduler.open(), 2, {.sender_id = numbered("i-", i)});
  scheduler.endpoint.drain_all(seconds{20}, scheduler.now());
  scheduler.advance(milliseconds{80});
  //= DRN-6
  EXPECT_EQ(scheduler.seen<Ended>().size(), 4U);
  EXPECT_EQ(scheduler.endpoint.sessions(), 0U);
}

TEST(Drain, OfAllSpreadsItsResetsOverTheWindow) {
  LoneScheduler scheduler;
  constexpr std::size_t kWorkers = 1000;
  for (std::size_t i = 0; i < kWorkers; ++i)
    scheduler.make_ready(scheduler.open(), 2, {.sender_id = numbered("i-", i)});
  const ConnectionId late = scheduler.open();
  scheduler.endpoint.drain_all(seconds{20}, scheduler.now());
  std::vector<std::size_t> per_second;
  std::size_t before = 0;
  for (int second = 0; second < 20; ++second) {
    scheduler.advance(seconds{1});
    per_second.push_back(scheduler.seen<Ended>().size() - before);
    before = scheduler.seen<Ended>().size();
  }
  //= DRN-6
  EXPECT_EQ(before, kWorkers);
  EXPECT_LE(*std::max_element(per_second.begin(), per_second.end()), 3 * kWorkers / 20);
  for (std::size_t i = 0; i < kWorkers; ++i) {
    const ConnectionId connection{i + 1};
    ASSERT_EQ(scheduler.refusal(connection), "E.SESSION.RESTARTING");
    EXPECT_TRUE(scheduler.resets(connection)[0].retry_after.has_value());
    EXPECT_EQ(scheduler.closes[connection].code, kCloseRestart);
  }
  EXPECT_EQ(scheduler.refusal(late), "E.TIMEOUT");
  const ConnectionId newcomer = scheduler.open();
  scheduler.greet(newcomer);
  //= DRN-6
  EXPECT_EQ(scheduler.refusal(newcomer), "E.SESSION.RESTARTING");
  EXPECT_EQ(scheduler.closes[newcomer].code, kCloseRestart);
}

TEST(Drain, CompletedWithoutASessionClosesTheConnectionUnderWay) {
  for (int answered = 0; answered < 3; ++answered) {
    LoneWorker worker;
    worker.start();
    for (int i = 0; i < answered; ++i) worker.say(LoneWorker::ack_for(worker.notes.back().id));
    worker.endpoint.drain("maintenance", seconds{30}, worker.now());
    worker.endpoint.complete_drain(worker.now());
    worker.settle();
    //= STA-2
    EXPECT_EQ(worker.endpoint.state(), SessionState::Closed);
    EXPECT_EQ(worker.closes.size(), 1U) << "and leaves no connection open";
    worker.say(LoneWorker::accept());
    worker.advance(seconds{60});
    EXPECT_EQ(worker.endpoint.state(), SessionState::Closed);
    EXPECT_EQ(worker.dials, 1U);
  }
}

TEST(Drain, TwoSidesThatAskAtOnceAgree) {
  SessionPair pair;
  pair.start();
  pair.worker.drain("maintenance", seconds{200}, pair.now());
  ASSERT_TRUE(pair.scheduler.drain(pair.handle(), "scale in", seconds{200}, pair.now()));
  pair.settle();
  //= DRN-1
  EXPECT_EQ(pair.worker.state(), SessionState::Draining);
  pair.cut();
  int starts = 0;
  pair.filter = [&](const Frame& frame, bool) {
    if (std::holds_alternative<Drain>(frame.body)) ++starts;
    return true;
  };
  pair.advance(seconds{1});
  EXPECT_EQ(starts, 0) << "each acknowledged the other's";
  pair.worker.complete_drain(pair.now());
  pair.settle();
  EXPECT_EQ(pair.worker.state(), SessionState::Closed);
}

TEST(Drain, OfAllLetsNobodyInWhoHasOnlyShakenHands) {
  LoneScheduler scheduler;
  const ConnectionId half_way = scheduler.open();
  scheduler.greet(half_way);
  scheduler.endpoint.drain_all(seconds{20}, scheduler.now());
  scheduler.say(half_way, LoneScheduler::registration());
  //= DRN-6
  EXPECT_EQ(scheduler.refusal(half_way), "E.SESSION.RESTARTING");
  EXPECT_EQ(scheduler.endpoint.sessions(), 0U);
}

TEST(Drain, TakesADeadlineThatTheWireCannotSayForTheLongestItCan) {
  for (const bool by_worker : {true, false}) {
    SessionPair pair;
    pair.start();
    if (by_worker) {
      pair.worker.drain("some day", Duration::max(), pair.now());
    } else {
      ASSERT_TRUE(pair.scheduler.drain(pair.handle(), "some day", Duration::max(), pair.now()));
    }
    pair.settle();
    //= DRN-1
    const auto asked =
        by_worker ? pair.seen_by_scheduler<DrainRequested>() : pair.seen_by_worker<DrainRequested>();
    ASSERT_EQ(asked.size(), 1U);
    EXPECT_EQ(asked[0].deadline, limits::kIntervalMax);
  }
}

}  // namespace
}  // namespace windlass
