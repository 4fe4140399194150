// Assignments that outlive what they were made with: runtimes that move, workers that come back.
#include "tests/unit/scheduler/core/apps_fixture.h"

namespace windlass {
namespace {

constexpr std::string_view kMoved =
    R"({"url":"wss://r1:2","health":"Healthy","applications":[],"workers":[]})";
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

}  // namespace
}  // namespace windlass
