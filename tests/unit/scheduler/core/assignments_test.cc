// Assignments that outlive what they were made with: runtimes that move, workers that come back.
#include "tests/unit/scheduler/core/apps_fixture.h"

namespace windlass {
namespace {

constexpr std::string_view kMoved =
    R"({"url":"wss://r1:2","health":"Healthy","applications":[],"workers":[]})";
constexpr std::string_view kHoldsOther =
    R"({"worker_id":"w1.1","language":"node","runtime":"r1","state":"ready",)"
    R"("application":{"application_id":"hello","metadata_version":"m","code_version":"v0"}})";

using AssignmentsTest = AppsTest;

std::vector<std::string> sent_types(const Effects& effects) {
  std::vector<std::string> types;
  for (const Send& send : effects.sends) types.emplace_back(send.message.type());
  return types;
}

TEST_F(AssignmentsTest, SendsWorkersAfterARuntimeThatCameBackElsewhere) {
  const SessionRef session = begin_ready();
  open_runtime();
  EXPECT_TRUE(settle().sends.empty()) << "it is where it was";
  const SessionRef moved = open_runtime(kMoved);
  const Effects effects = settle();
  ASSERT_EQ(sent_types(effects), (std::vector{std::string{kSpecializeType}}));
  EXPECT_NE(effects.sends[0].message.payload().find("wss://r1:2"), std::string_view::npos);
  deliver_result(session, effects.sends[0].message.id());
  settle();
  EXPECT_EQ(assigned(), AssignmentState::Ready);
  runtime_status(moved, kMoved);
  EXPECT_TRUE(settle().sends.empty()) << "once";
}

TEST_F(AssignmentsTest, SendsAWorkerAfterTheRuntimeWhenItIsBackItself) {
  end(begin_ready());
  open_runtime(kMoved);
  EXPECT_TRUE(settle().sends.empty()) << "nobody is there";
  status(open(kWorker), kHolds);
  const Effects effects = settle();
  ASSERT_EQ(sent_types(effects), (std::vector{std::string{kSpecializeType}}));
  EXPECT_NE(effects.sends[0].message.payload().find("wss://r1:2"), std::string_view::npos);
}

TEST_F(AssignmentsTest, TriesAgainToTellOfAMoveForWhichThereWasNoRoom) {
  begin_ready();
  for (std::size_t i = 0; i < options_.pending_per_tenant_max; ++i) {
    submit(worker_key("away"), "c" + std::to_string(i), "{}", seconds{10});
  }
  settle();
  const SessionRef moved = open_runtime(kMoved);
  EXPECT_TRUE(settle().sends.empty());
  EXPECT_EQ(assigned(), AssignmentState::Ready);
  pass(seconds{10});
  settle();
  runtime_status(moved, kMoved);
  EXPECT_EQ(sent_types(settle()), (std::vector{std::string{kSpecializeType}}));
}

TEST_F(AssignmentsTest, TellsAWorkerThatForgotWhereTheRuntimeIsNow) {
  end(begin_ready());
  open_runtime(kMoved);
  open_placeholder();
  settle();
  pass(options_.assignment_settle_time);
  const Effects effects = settle();
  ASSERT_EQ(effects.sends.size(), 1U);
  EXPECT_NE(effects.sends[0].message.payload().find("wss://r1:2"), std::string_view::npos);
}

TEST_F(AssignmentsTest, ReleasesAWorkerThatHoldsWhatNobodyAssigned) {
  begin();
  const SessionRef session = open(worker_key("w2"));
  status(session, kHolds);
  const Effects effects = settle();
  ASSERT_EQ(sent_types(effects), (std::vector{std::string{kReleaseType}}));
  EXPECT_EQ(assigned(worker_key("w2")), AssignmentState::Releasing);
  status(session, kHolds);
  EXPECT_TRUE(settle().sends.empty()) << "once";
  status(session, kPlaceholder);
  deliver_result(session, effects.sends[0].message.id());
  settle();
  EXPECT_EQ(assigned(worker_key("w2")), std::nullopt);
}

TEST_F(AssignmentsTest, LeavesAWorkerAloneThatARequestReleases) {
  end(begin_ready());
  pass_heard(options_.lost_after);
  settle();
  unassign();
  settle();
  EXPECT_EQ(assigned(), std::nullopt);
  const SessionRef session = open(kWorker);
  status(session, kHolds);
  EXPECT_EQ(sent_ids(settle()), (std::vector<std::string>{"u.1"}));
}

TEST_F(AssignmentsTest, TellsAWorkerAnewThatComesBackWithAnotherVersionToAnOpenPlace) {
  end(begin_ready());
  pass_heard(options_.lost_after);
  settle();
  ASSERT_EQ(assigned(), AssignmentState::Lost);
  status(open(kWorker), kHoldsOther);
  pass(options_.assignment_retry);
  EXPECT_EQ(sent_types(settle()), (std::vector{std::string{kSpecializeType}}));
}

TEST_F(AssignmentsTest, BelievesAWorkerThatBecameReadyTooLate) {
  const SessionRef session = begin();
  assign();
  settle();
  pass(options_.command_timeout);
  settle();
  ASSERT_EQ(assigned(), AssignmentState::Failed);
  status(session, kHolds);
  settle();
  EXPECT_EQ(assigned(), AssignmentState::Ready);
  EXPECT_EQ(core_->apps().assignment_of(kWorker)->reason, "");
}

}  // namespace
}  // namespace windlass
