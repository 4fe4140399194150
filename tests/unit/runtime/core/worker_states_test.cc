// The states of a worker: the whole table, and what becomes of one that gets on while it is unhealthy.
#include "runtime/core/worker_registry.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>

namespace windlass::runtime {
namespace {

constexpr std::array kAllStates = {
    WorkerState::Connecting,  WorkerState::Placeholder, WorkerState::Specializing,
    WorkerState::Specialized, WorkerState::Ready,       WorkerState::Unhealthy,
    WorkerState::Draining,    WorkerState::Abandoned,   WorkerState::Disconnected};

const std::map<WorkerState, std::set<WorkerState>>& states_after() {
  using enum WorkerState;
  static const std::map<WorkerState, std::set<WorkerState>> kAfter = {
      {Connecting, {Placeholder, Unhealthy, Abandoned, Disconnected}},
      {Placeholder, {Specializing, Unhealthy, Draining, Abandoned, Disconnected}},
      {Specializing, {Specialized, Unhealthy, Draining, Abandoned, Disconnected}},
      {Specialized, {Ready, Specializing, Unhealthy, Draining, Abandoned, Disconnected}},
      {Ready, {Specializing, Unhealthy, Draining, Abandoned, Disconnected}},
      {Unhealthy,
       {Connecting, Placeholder, Specializing, Specialized, Ready, Draining, Abandoned, Disconnected}},
      {Draining, {Abandoned, Disconnected}},
      {Abandoned, {Connecting}},
      {Disconnected, {Connecting}},
  };
  return kAfter;
}

TEST(WorkerStates, GoWhereTheTableSaysAndNowhereElse) {
  for (const WorkerState from : kAllStates) {
    for (const WorkerState to : kAllStates) {
      EXPECT_EQ(may_become(from, to), states_after().at(from).contains(to))
          << to_string(from) << " to " << to_string(to);
    }
  }
}

TEST(WorkerStates, AreNamedAsInTheDesign) {
  std::set<std::string_view> names;
  for (const WorkerState state : kAllStates) names.insert(to_string(state));
  EXPECT_EQ(names,
            (std::set<std::string_view>{"Connecting", "Placeholder", "Specializing", "Specialized", "Ready",
                                        "Unhealthy", "Draining", "Abandoned", "Disconnected"}));
}

TEST(WorkerStates, OneThatGetsOnWhileUnhealthyRecoversToWhereItGot) {
  const RuntimeOptions options;
  WorkerRegistry registry{options};
  Worker& worker = registry.connect(WorkerId{"a"}, registry.open(ChannelId{1}, {}), Instant{});
  registry.transition(worker, WorkerState::Unhealthy);
  EXPECT_EQ(worker.recovers_to, WorkerState::Connecting);
  registry.advance(worker, WorkerState::Placeholder);
  registry.advance(worker, WorkerState::Specializing);
  EXPECT_EQ(worker.state(), WorkerState::Unhealthy);
  EXPECT_EQ(worker.recovers_to, WorkerState::Specializing);
}

TEST(WorkerStates, TheSameIdStartsAnewAndKeepsItsCountOfChannelTimeouts) {
  const RuntimeOptions options;
  WorkerRegistry registry{options};
  Worker& first = registry.connect(WorkerId{"a"}, registry.open(ChannelId{1}, {}), Instant{});
  first.deadlines_exceeded = 3;
  first.done = 7;
  registry.transition(first, WorkerState::Disconnected);
  registry.disconnect(first);
  Worker& second = registry.connect(WorkerId{"a"}, registry.open(ChannelId{2}, {}), Instant{seconds{9}});
  EXPECT_EQ(second.state(), WorkerState::Connecting);
  EXPECT_EQ(second.deadlines_exceeded, 3U);
  EXPECT_EQ(second.done, 0U);
  EXPECT_EQ(second.connected_at, Instant{seconds{9}});
  EXPECT_EQ(registry.workers().size(), 1U);
}

}  // namespace
}  // namespace windlass::runtime
