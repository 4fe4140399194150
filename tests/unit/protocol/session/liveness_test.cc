// Heartbeats, the ladder from healthy to lost, and a side that was itself asleep.
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "tests/support/lone_scheduler.h"
#include "tests/support/lone_worker.h"

namespace windlass {
namespace {

using testing::LoneScheduler;
using testing::LoneWorker;
using testing::message;
using testing::Note;
using testing::SessionPair;

std::vector<Liveness> levels(const std::vector<LivenessChanged>& changes) {
  std::vector<Liveness> found;
  found.reserve(changes.size());
  for (const auto& change : changes) found.push_back(change.level);
  return found;
}

TEST(Heartbeat, ComesEveryIntervalShortenedByARandomPart) {
  std::set<Duration> gaps;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    LoneWorker worker{testing::worker_options(), {}, seed};
    worker.make_ready();
    Duration last = worker.elapsed;
    for (int i = 0; i < 5; ++i) {
      const std::size_t before = worker.sent("control.heartbeat").size();
      while (worker.sent("control.heartbeat").size() == before) {
        worker.advance(milliseconds{100});
        worker.say(LoneWorker::ack(0));
      }
      //= LIV-1
      const Duration gap = worker.elapsed - last;
      EXPECT_GE(gap, seconds{25});
      EXPECT_LE(gap, seconds{30} + milliseconds{100});
      gaps.insert(gap);
      last = worker.elapsed;
    }
  }
  //= LIV-1
  EXPECT_GT(gaps.size(), 20U) << "workers that started together do not beat together";
}

TEST(Heartbeat, GoesOnWhileDraining) {
  SessionPair pair;
  pair.start();
  ASSERT_TRUE(pair.scheduler.drain(pair.handle(), "scale in", seconds{600}, pair.now()));
  pair.settle();
  LoadFacts load;
  load.inflight = 3;
  pair.worker.set_load(load);
  pair.advance(seconds{65});
  //= LIV-1
  //= DRN-3
  ASSERT_GE(pair.seen_by_scheduler<LoadReported>().size(), 2U);
  EXPECT_EQ(pair.seen_by_scheduler<LoadReported>()[0].inflight, 3U);
  EXPECT_EQ(pair.worker.state(), SessionState::Draining);
}

TEST(Heartbeat, AsksForAnAckSoThatThereIsSomethingToHear) {
  LoneWorker worker;
  worker.make_ready();
  worker.advance(seconds{30});
  //= LIV-5
  ASSERT_EQ(worker.sent("control.heartbeat").size(), 1U);
  EXPECT_TRUE(worker.sent("control.heartbeat")[0].ack_request);
  SessionPair pair;
  pair.start();
  pair.advance(seconds{600});
  EXPECT_EQ(pair.dials, 1U) << "an idle session stays connected";
  EXPECT_TRUE(pair.seen_by_worker<LivenessChanged>().empty());
  EXPECT_TRUE(pair.seen_by_scheduler<LivenessChanged>().empty());
}

TEST(Liveness, WarnsThenDegradesThenLosesASilentWorker) {
  LoneScheduler scheduler;
  const ConnectionId connection = scheduler.open();
  scheduler.make_ready(connection);
  scheduler.advance(milliseconds{29'999});
  EXPECT_TRUE(scheduler.seen<LivenessChanged>().empty());
  scheduler.advance(milliseconds{1});
  //= LIV-3
  EXPECT_EQ(levels(scheduler.seen<LivenessChanged>()), std::vector<Liveness>{Liveness::Warn});
  scheduler.advance(seconds{30});
  EXPECT_EQ(scheduler.session()->liveness(), Liveness::Degraded);
  EXPECT_FALSE(scheduler.closes.contains(connection));
  scheduler.advance(seconds{30});
  EXPECT_EQ(levels(scheduler.seen<LivenessChanged>()),
            (std::vector<Liveness>{Liveness::Warn, Liveness::Degraded, Liveness::Lost}));
}

TEST(Liveness, LostIsNotFailed) {
  LoneScheduler scheduler;
  const ConnectionId connection = scheduler.open();
  const Note accept = scheduler.make_ready(connection);
  scheduler.advance(seconds{90});
  //= LIV-4
  EXPECT_EQ(scheduler.closes.at(connection).code, kCloseInternal);
  EXPECT_TRUE(scheduler.resets(connection).empty()) << "no reset: the session may resume";
  EXPECT_EQ(scheduler.session()->state(), SessionState::Backoff);
  EXPECT_TRUE(scheduler.seen<Ended>().empty());
  scheduler.advance(seconds{200});
  const ConnectionId second = scheduler.open();
  scheduler.greet(second);
  scheduler.say(second, scheduler.resume_of(accept));
  //= LIV-4
  EXPECT_EQ(scheduler.session()->state(), SessionState::Ready);
  EXPECT_EQ(scheduler.session()->liveness(), Liveness::Healthy);
  EXPECT_EQ(levels(scheduler.seen<LivenessChanged>()).back(), Liveness::Healthy);
}

TEST(Liveness, LostIsClosedEvenIfItsTransportIsStuck) {
  LoneScheduler scheduler;
  const ConnectionId connection = scheduler.open();
  scheduler.make_ready(connection);
  scheduler.endpoint.set_transport_busy(connection, true, scheduler.now());
  scheduler.advance(seconds{90});
  //= LIV-4
  EXPECT_TRUE(scheduler.closes.contains(connection));
  EXPECT_EQ(scheduler.session()->state(), SessionState::Backoff);
}

TEST(Liveness, TakesAnyFrameForLife) {
  const std::vector<FrameBody> bodies = {LoneScheduler::ack(0), UnknownControl{"control.new"}, Heartbeat{}};
  for (const FrameBody& body : bodies) {
    LoneScheduler scheduler;
    const ConnectionId connection = scheduler.open();
    scheduler.make_ready(connection);
    for (int i = 0; i < 10; ++i) {
      scheduler.advance(seconds{29});
      scheduler.say(connection, body);
    }
    //= LIV-2
    EXPECT_TRUE(scheduler.seen<LivenessChanged>().empty());
    scheduler.advance(seconds{35});
    scheduler.say(connection, body);
    //= LIV-2
    EXPECT_EQ(levels(scheduler.seen<LivenessChanged>()),
              (std::vector<Liveness>{Liveness::Warn, Liveness::Healthy}));
  }
}

TEST(Liveness, MakesAWorkerThatHearsNothingDropTheConnectionAndResume) {
  LoneWorker worker;
  worker.make_ready();
  worker.advance(milliseconds{89'999});
  EXPECT_TRUE(worker.closes.empty());
  worker.advance(milliseconds{1});
  //= LIV-5
  ASSERT_EQ(worker.closes.size(), 1U);
  EXPECT_TRUE(worker.sent("control.reset").empty());
  worker.advance(seconds{1});
  worker.greet();
  EXPECT_EQ(worker.notes.back().type, "control.resume");
}

TEST(Liveness, DoesNotJudgeThePeerByTimersThatCameTooLate) {
  LoneScheduler scheduler;
  const ConnectionId connection = scheduler.open();
  scheduler.make_ready(connection);
  scheduler.elapsed += seconds{600};  // this machine was stopped: no timer ran
  scheduler.endpoint.handle_timeout(scheduler.now());
  scheduler.settle();
  //= LIV-6
  EXPECT_TRUE(scheduler.seen<LivenessChanged>().empty());
  EXPECT_FALSE(scheduler.closes.contains(connection));
  scheduler.advance(seconds{31});
  EXPECT_EQ(levels(scheduler.seen<LivenessChanged>()), std::vector<Liveness>{Liveness::Warn})
      << "it counts anew";
}

TEST(Liveness, DoesNotClimbTheWholeLadderInAShortSleepWhereHeartbeatsAreFast) {
  SessionConfig config;
  config.heartbeat_interval = seconds{1};
  LoneScheduler scheduler{config};
  const ConnectionId connection = scheduler.open();
  scheduler.make_ready(connection);
  scheduler.elapsed += seconds{5};  // less than a clock jump, more than three intervals
  scheduler.endpoint.handle_timeout(scheduler.now());
  scheduler.settle();
  //= LIV-6
  EXPECT_TRUE(scheduler.seen<LivenessChanged>().empty());
  EXPECT_FALSE(scheduler.closes.contains(connection));
}

TEST(Liveness, DoesNotJudgeThePeerByTimeTheMachineSlept) {
  LoneScheduler scheduler;
  const ConnectionId connection = scheduler.open();
  scheduler.make_ready(connection);
  scheduler.advance(seconds{85});
  scheduler.wall_offset = seconds{3000};  // suspended: the wall clock moved on, the steady one did not
  scheduler.advance(seconds{6});
  //= LIV-6
  EXPECT_FALSE(scheduler.closes.contains(connection));
  ASSERT_EQ(scheduler.seen<ClockJumped>().size(), 1U);
  EXPECT_GE(scheduler.seen<ClockJumped>()[0].by, seconds{2999});
  scheduler.advance(seconds{95});
  EXPECT_TRUE(scheduler.closes.contains(connection)) << "after three more intervals of silence";
}

TEST(Liveness, MakesAWorkerThatWokeUpAskForAnAckAtOnce) {
  for (const bool steady_moved : {false, true}) {
    LoneWorker worker;
    worker.make_ready();
    worker.advance(seconds{3});
    (steady_moved ? worker.elapsed : worker.wall_offset) += seconds{500};
    worker.endpoint.handle_timeout(worker.now());
    worker.settle();
    //= LIV-6
    ASSERT_EQ(worker.sent("control.heartbeat").size(), 1U) << steady_moved;
    EXPECT_TRUE(worker.sent("control.heartbeat")[0].ack_request);
    EXPECT_TRUE(worker.closes.empty());
  }
}

TEST(Liveness, ForgivesSmallStepsOfTheWallClock) {
  LoneWorker worker;
  worker.make_ready();
  for (int i = 0; i < 20; ++i) {
    worker.wall_offset += (i % 2 == 0 ? seconds{9} : seconds{-9});
    worker.endpoint.handle_timeout(worker.now());
    worker.settle();
  }
  //= LIV-6
  EXPECT_TRUE(worker.seen<ClockJumped>().empty());
}

TEST(Liveness, DoesNotEndASessionByAttemptsThatASleepTookAway) {
  SessionConfig config;
  config.attempts_max = 1;
  LoneScheduler scheduler{config};
  const ConnectionId connection = scheduler.open();
  scheduler.make_ready(connection);
  ASSERT_TRUE(scheduler.endpoint.send(scheduler.handle(), message("m"), scheduler.now()));
  scheduler.settle();
  scheduler.advance(milliseconds{260});  // the one attempt
  scheduler.elapsed += seconds{60};
  scheduler.endpoint.handle_timeout(scheduler.now());
  scheduler.settle();
  //= LIV-6
  EXPECT_TRUE(scheduler.resets(connection).empty());
  EXPECT_NE(scheduler.session(), nullptr);
}

Heartbeat heartbeat_with(std::optional<double> memory, std::optional<double> disk) {
  Heartbeat body;
  body.mem_pct = memory;
  body.disk_pct = disk;
  return body;
}

TEST(Liveness, SaysThatAWorkerIsShortOfMemoryOrDiskUntilItHasEnoughAgain) {
  LoneScheduler scheduler;
  const ConnectionId connection = scheduler.open();
  scheduler.make_ready(connection);
  struct Step {
    double memory;
    double disk;
    bool is_short_of_memory;
    bool is_short_of_disk;
  };
  for (const Step& each : {Step{89.9, 94.9, false, false}, Step{90, 0, true, false}, Step{85, 95, true, true},
                           Step{84.9, 90, false, true}, Step{89.9, 89.9, false, false}}) {
    scheduler.say(connection, heartbeat_with(each.memory, each.disk));
    const LoadReported load = scheduler.seen<LoadReported>().back();
    //= LIV-7
    EXPECT_EQ(load.is_short_of_memory, each.is_short_of_memory) << each.memory;
    EXPECT_EQ(load.is_short_of_disk, each.is_short_of_disk) << each.disk;
  }
  scheduler.say(connection, heartbeat_with(99, 99));
  scheduler.say(connection, heartbeat_with(std::nullopt, std::nullopt));
  EXPECT_FALSE(scheduler.seen<LoadReported>().back().is_short()) << "what is not measured is not short";
}

TEST(Liveness, KeepsTheSessionOfAWorkerThatIsShort) {
  LoneScheduler scheduler;
  const ConnectionId connection = scheduler.open();
  scheduler.make_ready(connection);
  for (int i = 0; i < 3; ++i) scheduler.say(connection, heartbeat_with(100, 100));
  //= LIV-7
  EXPECT_EQ(scheduler.session()->state(), SessionState::Ready);
  EXPECT_TRUE(of_type(scheduler.notes[connection], "control.drain").empty());
  EXPECT_TRUE(scheduler.seen<DrainRequested>().empty());
}

TEST(Liveness, TakesNoWorkerForShortWhereThatIsOff) {
  SessionConfig config;
  config.mem_pct_max = 0;
  config.disk_pct_max = 50;
  config.load_hysteresis_pct = 10;
  LoneScheduler scheduler{config};
  const ConnectionId connection = scheduler.open();
  scheduler.make_ready(connection);
  scheduler.say(connection, heartbeat_with(100, 50));
  //= LIV-7
  EXPECT_FALSE(scheduler.seen<LoadReported>().back().is_short_of_memory);
  EXPECT_TRUE(scheduler.seen<LoadReported>().back().is_short_of_disk);
  scheduler.say(connection, heartbeat_with(100, 40));
  EXPECT_TRUE(scheduler.seen<LoadReported>().back().is_short_of_disk);
  scheduler.say(connection, heartbeat_with(100, 39));
  EXPECT_FALSE(scheduler.seen<LoadReported>().back().is_short_of_disk);
}

TEST(Liveness, ReportsALoadThatTheWireForbidsAsTheNearestItAllows) {
  SessionPair pair;
  pair.start();
  LoadFacts load;
  load.cpu_pct = 250;
  load.mem_pct = std::numeric_limits<double>::quiet_NaN();
  load.disk_pct = -1;
  load.latency_ms = std::numeric_limits<double>::infinity();
  pair.worker.set_load(load);
  pair.advance(seconds{31});
  const auto reports = pair.seen_by_scheduler<LoadReported>();
  ASSERT_FALSE(reports.empty());
  //= LIV-1
  EXPECT_EQ(reports.back().cpu_pct, 100);
  EXPECT_EQ(reports.back().mem_pct, std::nullopt);
  EXPECT_EQ(reports.back().disk_pct, 0);
  EXPECT_EQ(reports.back().latency_ms, std::nullopt);
}

TEST(Liveness, AfterAStandstillGivesDetachedSessionsTheirWholeResumeWindow) {
  LoneScheduler scheduler;
  const ConnectionId connection = scheduler.open();
  const Note accept = scheduler.make_ready(connection);
  scheduler.endpoint.handle_closed(connection, scheduler.now());
  scheduler.settle();
  // The process stood still for longer than the resume window.
  scheduler.elapsed += limits::kResumeTtl + seconds{30};
  scheduler.endpoint.handle_timeout(scheduler.now());
  scheduler.settle();
  //= LIV-6
  ASSERT_TRUE(scheduler.seen<Ended>().empty());
  scheduler.advance(limits::kResumeTtl + seconds{1});
  //= RES-1
  EXPECT_EQ(scheduler.seen<Ended>().size(), 1U);
}

}  // namespace
}  // namespace windlass
