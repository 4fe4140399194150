// What the simulator found, kept as small stories. Each names the seed that showed it first; seeds change
// their worlds as the simulator grows, stories do not.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "protocol/base/random.h"
#include "tests/sim/world.h"
#include "tests/support/lone_scheduler.h"
#include "tests/support/session_pair.h"

namespace windlass {
namespace {

using testing::LoneScheduler;
using testing::message;
using testing::SessionPair;
using testing::worker_options;

std::string log_of(std::uint64_t seed) {
  sim::World world{sim::WorldOptions::from_seed(seed), true};
  world.run();
  return world.context().log.text();
}

// Holes in the heap that fit a connection and lie in no order, so that a world's connections do not either.
class TornHeap final {
 public:
  explicit TornHeap(std::uint64_t seed) {
    Random random{seed};
    std::vector<std::unique_ptr<char[]>> holes;
    for (int i = 0; i < 200; ++i) {
      holes.push_back(std::make_unique<char[]>(sizeof(sim::Wire)));
      kept_.push_back(std::make_unique<char[]>(16));  // so that the holes do not become one
    }
    while (!holes.empty()) {
      std::swap(holes[random.below(holes.size())], holes.back());
      holes.pop_back();
    }
  }

 private:
  std::vector<std::unique_ptr<char[]>> kept_;
};

// A course that depends on an address, or on what ran before, could not be replayed.
TEST(Simulator, ReplaysASeedByteForByte) {
  constexpr std::uint64_t kSeeds = 120;
  std::vector<std::string> logs;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) logs.push_back(log_of(seed));
  for (std::uint64_t seed = kSeeds; seed > 0; --seed) {
    const TornHeap heap{seed};
    EXPECT_GT(logs[seed - 1].size(), 1000U);
    EXPECT_TRUE(logs[seed - 1] == log_of(seed)) << "seed " << seed;
  }
}

// Seed 19: the token was rotated while the transport was busy, then the worker registered anew. The old
// connection, writable again, was to send an accept of a session that no longer existed: a null dereference.
TEST(Scenario, AnAcceptThatWaitedIsNotSentBySupersededConnection) {
  LoneScheduler scheduler;
  const ConnectionId old = scheduler.open();
  scheduler.make_ready(old);
  scheduler.endpoint.set_transport_busy(old, true, scheduler.now());
  ASSERT_TRUE(scheduler.endpoint.rotate_token(scheduler.handle(), scheduler.now()));
  scheduler.settle();

  scheduler.make_ready(scheduler.open());
  EXPECT_EQ(types(scheduler.notes[old]), std::vector<std::string>{"control.reset"});
}

// Seed 38: revision 1 tells its credit late, so both sides start with 64 frames. A side configured for less
// dropped what it had to take, charged it as violations and ended the session.
//= REV-11
TEST(Scenario, RevisionOneTakes64FramesBeforeItsFirstAckWhateverIsConfigured) {
  SessionConfig config;
  config.receive_credit = {2, 10};
  SessionPair pair{worker_options(Revision::One), config};
  pair.own_at_once = false;
  pair.start();
  for (int i = 0; i < 64; ++i) {
    ASSERT_TRUE(pair.worker.send(message(std::to_string(i), R"({"long":"0123456789"})"), pair.now()));
    ASSERT_TRUE(pair.scheduler.send(pair.handle(), message(std::to_string(i), R"({"long":"0123456789"})"),
                                    pair.now()));
  }
  pair.settle();
  EXPECT_EQ(pair.delivered_to_scheduler().size(), 64U);
  EXPECT_EQ(pair.delivered_to_worker().size(), 64U);
}

// One worker on a calm link, and nothing that goes wrong.
sim::WorldOptions calm_world(std::uint64_t seed) {
  sim::WorldOptions options;
  options.seed = seed;
  options.safety_time = seconds{1};
  options.comes_in_bursts = true;
  options.workers.emplace_back();
  return options;
}

std::string broken_promise(const sim::WorldOptions& options) {
  sim::World world{options, false};
  return world.run() ? "" : world.context().violation->oracle + ": " + world.context().violation->what;
}

// Seeds 7009062 and 7010416: hundreds of commands filled a slow link, and the acks of the worker's own frames
// lay behind them for longer than all its attempts took. It reset the session, everything was sent again, and
// so on for ever.
//= RTX-4
TEST(Scenario, ABurstOnASlowLinkDoesNotEndTheSessionForWantOfAnAck) {
  sim::WorldOptions options = calm_world(7'009'062);
  sim::WorkerPlan& worker = options.workers.front();
  worker.link = {.latency = milliseconds{40}, .bytes_per_second = 50'000, .buffer_bytes = 4'000'000};
  worker.config.receive_credit = {limits::kWindowFramesMax, limits::kWindowBytes};
  options.commands = 600;
  options.events = 20;
  options.payload_bytes_max = 6'000;
  options.liveness_time_max = seconds{300};
  sim::World world{options, false};
  EXPECT_TRUE(world.run()) << world.context().violation->what;
  EXPECT_EQ(world.context().stats.ends, 0U) << "the link is slow, but nothing is wrong with it";
}

// Seeds 990908640773 and 996631616247: the queue of control frames was full of answers to heartbeats before a
// slow link had carried the commands ahead of them, so the scheduler hung up, and did so again on every
// connection, until the worker's journal forgot a command and ran it once more.
//= LIV-5
TEST(Scenario, AnswersToHeartbeatsThatWaitBehindABurstDoNotEndTheConnection) {
  EXPECT_EQ(broken_promise(sim::WorldOptions::from_seed(990'908'640'773)), "");
  EXPECT_EQ(broken_promise(sim::WorldOptions::from_seed(996'631'616'247)), "");
}

// Seed 994074687810: the world lost the ack that owned a frame while the ack that said it was held was still
// on its way, which no live TCP connection does. The sender then waited for ever.
TEST(Scenario, AnAckThatOwnsAFrameIsNotLostBehindOneThatSaysItIsHeld) {
  EXPECT_EQ(broken_promise(sim::WorldOptions::from_seed(994'074'687'810)), "");
}

// Seeds 7016758 and 7027746: a window of one frame has two thousand commands of a second each done one after
// the other. They were on their way all the time; the world had not given them as long as they take.
TEST(Scenario, CommandsThatAWindowOfOneHasDoneInTurnGetTheTimeTheyTake) {
  sim::WorldOptions options = calm_world(7'016'758);
  sim::WorkerPlan& worker = options.workers.front();
  worker.config.receive_credit = {1, 1};
  worker.work_time_max = seconds{2};
  options.own_delay_max = milliseconds{500};
  options.commands = 2000;
  EXPECT_EQ(broken_promise(options), "");
}

}  // namespace
}  // namespace windlass
