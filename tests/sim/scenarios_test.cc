// What the simulator found, kept as small stories. Each names the seed that showed it first; seeds change
// their worlds as the simulator grows, stories do not.
#include <gtest/gtest.h>

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

TEST(Simulator, ReplaysASeedByteForByte) {
  for (const std::uint64_t seed : {1U, 2U, 7U, 29U, 4711U}) {
    const std::string first = log_of(seed);
    EXPECT_GT(first.size(), 1000U);
    EXPECT_EQ(first, log_of(seed)) << "seed " << seed;
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

}  // namespace
}  // namespace windlass
