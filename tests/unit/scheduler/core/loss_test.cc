// Workers and runtimes that are gone for too long: who notices, what becomes of their places.
#include "tests/unit/scheduler/core/apps_fixture.h"

namespace windlass {
namespace {

constexpr std::string_view kOtherRuntime =
    R"({"url":"wss://r2","health":"Healthy","applications":[],"workers":[]})";
class LossTest : public AppsTest {
 protected:
  const AssignmentRecord& of(const WorkerKey& worker) const { return *core_->apps().assignment_of(worker); }

  static std::string specialized(const Effects& effects) {
    std::string who;
    for (const Send& send : effects.sends) {
      if (send.message.type() == kSpecializeType) who += std::to_string(send.session.handle) + " ";
    }
    return who;
  }
};

TEST_F(LossTest, TheAssignmentOfALostWorkerMovesToAnotherPlaceholder) {
  const SessionRef session = begin_ready();
  const SessionRef other = open_placeholder(kOther);
  settle();
  say(session, Detached{});
  EXPECT_EQ(core_->fleet().find(kWorker)->state, WorkerState::Detached);
  pass_heard(options_.lost_after, {other});
  const Effects effects = settle();
  EXPECT_EQ(core_->fleet().find(kWorker)->state, WorkerState::Lost);
  EXPECT_EQ(assigned(), AssignmentState::Lost);
  EXPECT_FALSE(of(kWorker).is_owed);
  EXPECT_EQ(specialized(effects), std::to_string(other.handle) + " ");
  EXPECT_GT(of(kOther).epoch, of(kWorker).epoch);
  deliver_result(other, of(kOther).command);
  settle();
  EXPECT_EQ(assigned(kOther), AssignmentState::Ready);
}

TEST_F(LossTest, AWorkerThatWasDrainedAndLeftGivesUpItsPlaceAtOnce) {
  const SessionRef session = begin_ready();
  const SessionRef other = open_placeholder(kOther);
  settle();
  pass(seconds{1});
  say(session, DrainRequested{"an operator", seconds{5}});
  pass(seconds{1});
  EXPECT_TRUE(settle().sends.empty()) << "it finishes what it has";
  end(session, "");
  pass(options_.assignment_retry);
  EXPECT_EQ(specialized(settle()), std::to_string(other.handle) + " ");
  EXPECT_EQ(assigned(), AssignmentState::Lost);
  EXPECT_FALSE(of(kWorker).is_owed);
  EXPECT_TRUE(of(kWorker).reason.starts_with("the worker was drained and left; w2 has its place"));
  EXPECT_EQ(core_->fleet().find(kWorker)->state, WorkerState::Gone);
  // Its agent is started again, and remembers.
  status(open(kWorker), kHolds);
  const Effects effects = settle();
  ASSERT_EQ(effects.sends.size(), 1U);
  EXPECT_EQ(effects.sends[0].message.type(), kReleaseType);
}

TEST_F(LossTest, AWorkerThatLeftAndComesBackHasItsPlaceIfNobodyTookIt) {
  const SessionRef session = begin_ready();
  end(session, "");
  pass(seconds{1});
  settle();
  EXPECT_TRUE(of(kWorker).is_owed);
  const SessionRef back = open(kWorker);
  status(back, kHolds);
  pass(options_.assignment_retry);
  EXPECT_EQ(specialized(settle()), std::to_string(back.handle) + " ") << "to an agent that holds it, a word";
  deliver_result(back, of(kWorker).command);
  settle();
  EXPECT_EQ(assigned(), AssignmentState::Ready);
}

TEST_F(LossTest, AShorterCutCostsNothing) {
  const SessionRef session = begin_ready();
  open_placeholder(kOther);
  settle();
  say(session, Detached{});
  pass(options_.lost_after - seconds{1});
  say(session, Established{true, 0});
  pass(seconds{2});
  EXPECT_TRUE(settle().sends.empty());
  EXPECT_EQ(assigned(), AssignmentState::Ready);
}

TEST_F(LossTest, SilenceCountsLikeAClosedConnection) {
  const SessionRef session = begin_ready();
  const SessionRef other = open_placeholder(kOther);
  settle();
  pass_heard(options_.lost_after / 3, {other});
  say(session, LivenessChanged{Liveness::Warn});
  pass_heard(options_.lost_after, {other});
  settle();
  EXPECT_EQ(assigned(), AssignmentState::Lost);
  EXPECT_EQ(assigned(kOther), AssignmentState::Pending);
  say(session, LoadReported{});
  EXPECT_EQ(core_->fleet().find(kWorker)->state, WorkerState::Ready) << "lost is not failed";
}

TEST_F(LossTest, AWorkerThatWasReplacedIsReleasedWhenItComesBack) {
  const SessionRef session = begin_ready();
  const SessionRef other = open_placeholder(kOther);
  settle();
  end(session);
  pass_heard(options_.lost_after, {other});
  settle();
  status(open(kWorker), kHolds);
  const Effects effects = settle();
  ASSERT_EQ(effects.sends.size(), 1U);
  EXPECT_EQ(effects.sends[0].message.type(), kReleaseType);
}

TEST_F(LossTest, APlaceStaysOpenUntilSomebodyCanTakeIt) {
  end(begin_ready());
  pass_heard(options_.lost_after);
  settle();
  EXPECT_TRUE(of(kWorker).is_owed);
  restart();
  runtime_.reset();
  open_runtime();
  const SessionRef other = open_placeholder(kOther);
  pass(options_.assignment_retry);
  EXPECT_EQ(specialized(settle()), std::to_string(other.handle) + " ");
  EXPECT_FALSE(of(kWorker).is_owed);
}

TEST_F(LossTest, AWorkerThatComesBackToItsOpenPlaceIsToldWithANewEpoch) {
  end(begin_ready());
  pass_heard(options_.lost_after);
  settle();
  const std::uint64_t epoch = of(kWorker).epoch;
  const SessionRef back = open(kWorker);
  status(back, kHolds);
  pass(options_.assignment_retry);
  EXPECT_EQ(specialized(settle()), std::to_string(back.handle) + " ");
  EXPECT_GT(of(kWorker).epoch, epoch);
  EXPECT_EQ(assigned(), AssignmentState::Pending);
}

TEST_F(LossTest, APlaceThatCouldNotBeStoredStaysOpen) {
  end(begin_ready());
  pass_heard(options_.lost_after);
  settle();
  fill_store();
  image_->bytes_max = 0;
  open_placeholder(kOther);
  settle();
  EXPECT_TRUE(of(kWorker).is_owed);
  EXPECT_EQ(core_->apps().assignment_of(kOther), nullptr);
}

TEST_F(LossTest, WhatALostWorkerWasToldIsVoid) {
  const SessionRef session = begin();
  assign();
  settle();
  say(session, Detached{});
  pass_heard(options_.lost_after);
  settle();
  EXPECT_EQ(core_->outbox().view(command_key("a.1"))->state, CommandState::Failed);
  EXPECT_EQ(assigned(), AssignmentState::Lost);
}

TEST_F(LossTest, WorkersOfALostRuntimeGoToAHealthyOne) {
  const SessionRef session = begin_ready();
  const SessionRef other = open_runtime(kOtherRuntime, "r2");
  settle();
  say(*std::exchange(runtime_, std::nullopt), Detached{});
  pass_heard(options_.lost_after, {session, other});
  const Effects effects = settle();
  EXPECT_EQ(specialized(effects), std::to_string(session.handle) + " ");
  EXPECT_EQ(of(kWorker).runtime, "r2");
  EXPECT_NE(effects.sends[0].message.payload().find("wss://r2"), std::string_view::npos);
}

TEST_F(LossTest, WorkersOfALostRuntimeStayWhileThereIsNoOther) {
  const SessionRef session = begin_ready();
  end(*std::exchange(runtime_, std::nullopt));
  pass_heard(options_.lost_after * 2, {session});
  EXPECT_TRUE(settle().sends.empty());
  EXPECT_EQ(assigned(), AssignmentState::Ready);
  open_runtime(kOtherRuntime, "r2");
  pass(options_.assignment_retry);
  EXPECT_EQ(specialized(settle()), std::to_string(session.handle) + " ") << "as soon as there is one";
}

TEST_F(LossTest, ASchedulerThatWasSuspendedGivesEverybodyTheirTimeAgain) {
  const SessionRef session = begin_ready();
  open_placeholder(kOther);
  settle();
  say(session, Detached{});
  pass(options_.lost_after * 3);
  EXPECT_EQ(assigned(), AssignmentState::Ready);
  say(session, Established{true, 0});
  pass(options_.lost_after / 2);
  settle();
  EXPECT_EQ(assigned(), AssignmentState::Ready);
}

}  // namespace
}  // namespace windlass
