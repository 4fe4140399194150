// Turns, clocks, timers and posted work of the event loop.
#include "protocol/adapters/event_loop.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/support/loop_world.h"

namespace windlass::testing {
namespace {

TEST(EventLoop, RunsPostedWorkInOrderOnItsThread) {
  EventLoop loop;
  std::vector<int> order;
  std::thread::id ran_on;
  std::thread runner{[&] { loop.run(); }};
  const std::thread::id expected = runner.get_id();
  for (int i = 0; i < 1000; ++i) {
    loop.post([&order, i, owned = std::make_unique<int>(i)] { order.push_back(*owned == i ? i : -1); });
  }
  loop.post([&] {
    ran_on = std::this_thread::get_id();
    loop.stop();
  });
  runner.join();
  ASSERT_EQ(order.size(), 1000U);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
  EXPECT_EQ(ran_on, expected);
}

TEST(EventLoop, TakesWorkFromManyThreadsAtOnce) {
  EventLoop loop;
  std::size_t count = 0;
  std::thread runner{[&] { loop.run(); }};
  std::vector<std::thread> posters;
  for (int i = 0; i < 4; ++i) {
    posters.emplace_back([&] {
      for (int k = 0; k < 500; ++k) loop.post([&] { ++count; });
    });
  }
  for (auto& poster : posters) poster.join();
  loop.post([&] { loop.stop(); });
  runner.join();
  EXPECT_EQ(count, 2000U);
}

TEST(EventLoop, WorkPostedByWorkWaitsForTheNextTurn) {
  EventLoop loop;
  struct Turns final : TurnEnd {
    void on_turn_end(TurnPhase /*phase*/) override { ++count; }
    int count = 0;
  } turns;
  loop.add_turn_end(TurnPhase::Decide, turns);
  int first = -1;
  int second = -1;
  loop.post([&] {
    first = turns.count;
    loop.post([&] {
      second = turns.count;
      loop.stop();
    });
  });
  loop.run();
  loop.remove_turn_end(TurnPhase::Decide, turns);
  EXPECT_EQ(second, first + 1);
}

TEST(EventLoop, EndsEveryTurnInThreePhases) {
  EventLoop loop;
  struct Phases final : TurnEnd {
    void on_turn_end(TurnPhase phase) override { seen += "dwr"[static_cast<int>(phase)]; }
    std::string seen;
  } phases;
  for (const auto phase : {TurnPhase::Reap, TurnPhase::Decide, TurnPhase::Write})
    loop.add_turn_end(phase, phases);
  loop.post([&] { loop.stop(); });
  loop.run();
  EXPECT_EQ(phases.seen, "dwr");
  for (const auto phase : {TurnPhase::Reap, TurnPhase::Decide, TurnPhase::Write}) {
    loop.remove_turn_end(phase, phases);
  }
}

TEST(EventLoop, FreezesBothClocksWithinATurnAndMovesThemBetween) {
  EventLoop loop;
  Now first{};
  Now later{};
  Now next{};
  loop.post([&] {
    first = loop.now();
    // Real time passes: the frozen clock must not show it.
    for (const auto start = std::chrono::steady_clock::now();
         std::chrono::steady_clock::now() - start < std::chrono::milliseconds{2};) {
    }
    later = loop.clock().now();
    loop.post([&] {
      next = loop.now();
      loop.stop();
    });
  });
  loop.run();
  EXPECT_EQ(first.steady, later.steady);
  EXPECT_EQ(first.wall, later.wall);
  EXPECT_GE(next.steady - first.steady, milliseconds{2});
}

TEST(EventLoop, RingsAlarmsInOrderOfTheirDeadlinesAndNeverEarly) {
  EventLoop loop;
  std::string rung;
  const Instant start = loop.now().steady;
  Instant late_at{};
  LoopAlarm late{loop, [&] {
                   rung += 'l';
                   late_at = loop.now().steady;
                   loop.stop();
                 }};
  LoopAlarm early{loop, [&] { rung += 'e'; }};
  LoopAlarm cancelled{loop, [&] { rung += 'c'; }};
  LoopAlarm replaced{loop, [&] { rung += 'r'; }};
  late.set(start + milliseconds{20});
  early.set(start + milliseconds{5});
  cancelled.set(start + milliseconds{1});
  cancelled.set(std::nullopt);
  replaced.set(start + milliseconds{1});
  replaced.set(start + milliseconds{10});
  loop.run();
  EXPECT_EQ(rung, "erl");
  EXPECT_GE(late_at - start, milliseconds{20});
}

TEST(EventLoop, AnAlarmInThePastRingsInTheNextTurn) {
  EventLoop loop;
  LoopAlarm alarm{loop, [&] { loop.stop(); }};
  alarm.set(loop.now().steady - seconds{1});
  loop.run();
}

TEST(EventLoop, AStopBeforeRunEndsTheFirstTurn) {
  EventLoop loop;
  loop.stop();
  loop.run();
  bool ran = false;
  loop.post([&] {
    ran = true;
    loop.stop();
  });
  loop.run();
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace windlass::testing
