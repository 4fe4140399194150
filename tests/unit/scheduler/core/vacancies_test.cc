// Workers that are there and cannot work: what is shown of them, and who gets their places.
#include "tests/unit/scheduler/core/apps_fixture.h"

namespace windlass {
namespace {

std::string holding(std::string_view state, std::string_view worker_id = "w1.1") {
  return R"({"worker_id":")" + std::string{worker_id} + R"(","language":"node","runtime":"r1","state":")" +
         std::string{state} +
         R"(","application":{"application_id":"hello","metadata_version":"m","code_version":"v1"}})";
}

class VacanciesTest : public AppsTest {
 protected:
  static std::string drained_for_memory() {
    std::string text = holding("drained");
    return text.insert(1, R"("drained_for":"memory",)");
  }
  static std::string runtime_text(std::string_view name, std::string_view pressure,
                                  std::string_view workers = "") {
    return R"({"url":"wss://)" + std::string{name} + R"(","health":"Healthy","memory_pressure":")" +
           std::string{pressure} + R"(","applications":[],"workers":[)" + std::string{workers} + "]}";
  }
  void say_pressure(std::string_view pressure) { runtime_status(*runtime_, runtime_text("r1", pressure)); }
  void look() {
    pass(options_.assignment_retry);
    settle();
  }

  const AssignmentRecord& of(const WorkerKey& worker) const { return *core_->apps().assignment_of(worker); }
  PlaceState shown(const WorkerKey& worker = kWorker) const { return core_->state_of(of(worker)); }

  void signal(std::string_view worker, bool agent_brings_next = false) {
    const std::string text = R"({"kind":"Replace","application_id":"hello","worker":")" +
                             std::string{worker} + R"(","agent_brings_next":)" +
                             (agent_brings_next ? "true" : "false") + "}";
    deliver(*runtime_,
            {.type = "biz.runtime.signal", .id = "s" + std::to_string(++statuses_), .payload = text});
  }

  std::size_t places() const {
    std::size_t count = 0;
    core_->apps().for_each_assignment(
        [&](const AssignmentRecord& each) { count += each.holds_place() ? 1U : 0U; });
    return count;
  }
};

TEST_F(VacanciesTest, OnlyAWorkerThatCanTakeAnInvocationIsReady) {
  const SessionRef session = begin_ready();
  EXPECT_EQ(shown(), PlaceState::Ready);
  const std::vector<std::pair<std::string, PlaceState>> cases{{"starting", PlaceState::Starting},
                                                              {"specializing", PlaceState::Starting},
                                                              {"failed", PlaceState::Failed},
                                                              {"drained", PlaceState::Drained}};
  for (const auto& [said, state] : cases) {
    status(session, holding(said));
    EXPECT_EQ(shown(), state) << said;
    EXPECT_EQ(assigned(), AssignmentState::Ready) << "nobody else could";
  }
  status(session, holding("ready"));
  EXPECT_EQ(shown(), PlaceState::Ready);
  say(session, DrainRequested{"own will", seconds{5}});
  EXPECT_EQ(shown(), PlaceState::Draining);
  say(session, Detached{});
  EXPECT_EQ(shown(), PlaceState::Detached);
}

TEST_F(VacanciesTest, AWorkerIsReadyOnlyIfItsRuntimeSaysSoToo) {
  const SessionRef session = begin_ready();
  const auto at_runtime = [&](std::string_view worker, std::string_view state) {
    const std::string text =
        R"({"worker":")" + std::string{worker} + R"(","state":")" + std::string{state} + R"("})";
    runtime_status(*runtime_, runtime_text("r1", "normal", text));
    return shown();
  };
  EXPECT_EQ(at_runtime("w1.1", "Ready"), PlaceState::Ready);
  EXPECT_EQ(at_runtime("w1.1", "Draining"), PlaceState::Draining);
  EXPECT_EQ(at_runtime("w1.1", "Unhealthy"), PlaceState::Unhealthy);
  EXPECT_EQ(at_runtime("w1.1", "Specialized"), PlaceState::Starting);
  EXPECT_EQ(at_runtime("w1.0", "Draining"), PlaceState::Ready) << "that is the process before this one";
  say_pressure("critical");
  EXPECT_EQ(shown(), PlaceState::Paused) << "its runtime takes no invocations";
  status(session, holding("failed"));
  EXPECT_EQ(shown(), PlaceState::Failed);
  status(session, holding("ready"));
  say_pressure("elevated");
  EXPECT_EQ(shown(), PlaceState::Ready);
}

TEST_F(VacanciesTest, ThePlaceOfOneDrainedForWantOfMemoryGoesToARuntimeThatHasSome) {
  const SessionRef session = begin_ready();
  const std::vector<WorkerKey> spares{kOther, worker_key("w3"), worker_key("w4")};
  for (const WorkerKey& each : spares) open_placeholder(each);
  open_runtime(runtime_text("r2", "normal"), "r2");
  say_pressure("critical");
  status(session, drained_for_memory());
  for (int i = 0; i < 3; ++i) look();
  EXPECT_EQ(assigned(kOther), AssignmentState::Pending);
  EXPECT_EQ(of(kOther).runtime, "r2");
  EXPECT_FALSE(assigned(spares[1]).has_value());
  EXPECT_EQ(places(), 1U);
}

TEST_F(VacanciesTest, WithoutSuchARuntimeItWaitsUntilThePressureIsOver) {
  const SessionRef session = begin_ready();
  open_placeholder(kOther);
  for (const char* const pressure : {"critical", "elevated", "critical"}) {
    say_pressure(pressure);
    status(session, drained_for_memory());
    for (int i = 0; i < 3; ++i) look();
    EXPECT_FALSE(assigned(kOther).has_value()) << pressure;
  }
  say_pressure("normal");
  look();
  EXPECT_EQ(assigned(kOther), AssignmentState::Pending);
  EXPECT_EQ(of(kOther).runtime, "r1");
  EXPECT_EQ(places(), 1U);
}

TEST_F(VacanciesTest, NobodyIsAssignedToARuntimeWhoseMemoryIsCritical) {
  begin();
  say_pressure("critical");
  const RequestId refused = assign(1, "a");
  const Effects effects = settle();
  EXPECT_EQ(refusal(effects, refused), ErrorCode::SessionUnknown);
  EXPECT_NE(std::get<Error>(reply_to(effects, refused)->outcome).reason.find("short of memory"),
            std::string::npos);
  say_pressure("elevated");
  assign(1, "b");
  settle();
  EXPECT_EQ(assigned(), AssignmentState::Pending) << "there is no other";
}

TEST_F(VacanciesTest, WhoComesBackToItsPlaceIsNotSentToWhereTheMemoryIsCritical) {
  end(begin_ready());
  pass_heard(options_.lost_after);
  settle();
  ASSERT_TRUE(of(kWorker).is_owed);
  say_pressure("critical");
  open_placeholder();
  look();
  EXPECT_EQ(assigned(), AssignmentState::Lost) << "it waits";
  open_runtime(runtime_text("r2", "normal"), "r2");
  look();
  EXPECT_EQ(assigned(), AssignmentState::Pending);
  EXPECT_EQ(of(kWorker).runtime, "r2");
}

TEST_F(VacanciesTest, ThePlaceOfADrainedWorkerIsAnothersAndItStaysDrained) {
  const SessionRef session = begin_ready();
  status(session, holding("drained"));
  settle();
  EXPECT_EQ(assigned(), AssignmentState::Ready);
  const SessionRef other = open_placeholder(kOther);
  pass(options_.assignment_retry);
  settle();
  EXPECT_EQ(assigned(kOther), AssignmentState::Pending);
  EXPECT_EQ(places(), 1U);
  EXPECT_EQ(shown(), PlaceState::Drained);
  status(session, holding("drained"));
  deliver_result(other, of(kOther).command);
  EXPECT_TRUE(settle().sends.empty()) << "an order would start it again";
  EXPECT_EQ(assigned(kOther), AssignmentState::Ready);
  status(session, holding("ready", "w1.2"));
  const Effects effects = settle();
  ASSERT_EQ(effects.sends.size(), 1U) << "somebody resumed it";
  EXPECT_EQ(effects.sends[0].message.type(), kReleaseType);
}

TEST_F(VacanciesTest, AWorkerThatStaysUnableGivesUpItsPlace) {
  const SessionRef session = begin_ready();
  const SessionRef other = open_placeholder(kOther);
  settle();
  status(session, holding("failed"));
  pass_heard(options_.lost_after * 2 / 3, {session, other});
  settle();
  EXPECT_EQ(assigned(), AssignmentState::Ready);
  EXPECT_FALSE(assigned(kOther).has_value());
  pass_heard(options_.lost_after * 2 / 3, {session, other});
  settle();
  EXPECT_EQ(assigned(kOther), AssignmentState::Pending);
  EXPECT_EQ(assigned(), AssignmentState::Releasing) << "it is a placeholder again if it can";
  EXPECT_EQ(places(), 1U);
}

TEST_F(VacanciesTest, AWorkerThatRecoversInTimeKeepsItsPlace) {
  const SessionRef session = begin_ready();
  const SessionRef other = open_placeholder(kOther);
  for (int i = 0; i < 4; ++i) {
    status(session, holding("failed"));
    pass_heard(options_.lost_after * 2 / 3, {session, other});
    status(session, holding("ready"));
    pass_heard(options_.lost_after / 3, {session, other});
  }
  settle();
  EXPECT_EQ(assigned(), AssignmentState::Ready);
  EXPECT_FALSE(assigned(kOther).has_value());
}

TEST_F(VacanciesTest, ARuntimeThatAsksForAnotherWorkerGetsOneOnce) {
  begin_ready();
  open_placeholder(kOther);
  open_placeholder(worker_key("w3"));
  settle();
  signal("w1.1");
  EXPECT_EQ(shown(), PlaceState::Detached);
  for (int i = 0; i < 3; ++i) {
    pass(options_.assignment_retry);
    settle();
    signal("w1.1");
  }
  EXPECT_EQ(assigned(kOther), AssignmentState::Pending);
  EXPECT_FALSE(assigned(worker_key("w3")).has_value());
  EXPECT_EQ(places(), 1U);
}

TEST_F(VacanciesTest, WhatTheAgentBringsItselfAndWhatIsOverIsNotReplaced) {
  const SessionRef session = begin_ready();
  open_placeholder(kOther);
  settle();
  signal("w1.1", true);
  pass(options_.assignment_retry);
  settle();
  status(session, holding("ready", "w1.2"));
  signal("w1.1");  // said again by a runtime that was away
  pass(options_.assignment_retry);
  settle();
  EXPECT_EQ(assigned(), AssignmentState::Ready);
  EXPECT_FALSE(assigned(kOther).has_value());
}

TEST_F(VacanciesTest, NobodyIsReplacedWhileItsRuntimeIsAway) {
  const SessionRef session = begin_ready();
  const SessionRef other = open_placeholder(kOther);
  settle();
  say(*runtime_, Detached{});
  status(session, holding("specializing"));
  const SessionRef runtime = *std::exchange(runtime_, std::nullopt);
  pass_heard(options_.lost_after * 2 / 3, {session, other});
  say(runtime, Established{true, 0});
  pass_heard(options_.lost_after * 2 / 3, {session, other, runtime});
  settle();
  EXPECT_FALSE(assigned(kOther).has_value());
}

TEST_F(VacanciesTest, APlaceWhoseNewWorkerFailsStaysOpenAndIsTriedLaterAndLater) {
  const SessionRef session = begin_ready();
  const SessionRef other = open_placeholder(kOther);
  settle();
  status(session, holding("drained"));
  pass(options_.assignment_retry);
  settle();
  Duration wait = options_.refill_retry_first;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(assigned(kOther), AssignmentState::Pending) << i;
    deliver_result(other, of(kOther).command, R"({"ok":false,"reason":"no disk"})");
    settle();
    EXPECT_EQ(assigned(kOther), AssignmentState::Failed);
    EXPECT_EQ(places(), 1U);
    pass(wait - milliseconds{1});
    settle();
    EXPECT_EQ(assigned(kOther), AssignmentState::Failed) << i;
    pass(milliseconds{1});
    settle();
    wait *= 2;
  }
  EXPECT_EQ(assigned(kOther), AssignmentState::Pending);
}

TEST_F(VacanciesTest, AWorkerThatFailsWhenItIsToldAgainLeavesItsPlaceToAnother) {
  const SessionRef session = begin_ready();
  const SessionRef other = open_placeholder(kOther);
  settle();
  status(session, kPlaceholder);  // its agent forgot
  pass(options_.assignment_settle_time);
  ASSERT_EQ(settle().sends.size(), 1U);
  deliver_result(session, of(kWorker).command, R"({"ok":false,"reason":"no disk"})");
  settle();
  EXPECT_EQ(assigned(), AssignmentState::Failed);
  EXPECT_EQ(places(), 1U);
  pass(options_.refill_retry_first - milliseconds{1});
  EXPECT_FALSE(assigned(kOther).has_value());
  pass(milliseconds{1});
  settle();
  ASSERT_EQ(assigned(kOther), AssignmentState::Pending);
  EXPECT_EQ(of(kWorker).reason, "no disk; w2 has its place");
  deliver_result(other, of(kOther).command);
  settle();
  EXPECT_EQ(shown(kOther), PlaceState::Starting) << "it says so in a moment";
  EXPECT_EQ(places(), 1U);
}

TEST_F(VacanciesTest, AnOpenPlaceStaysOpenThoughWhoHadItIsLost) {
  const SessionRef session = begin_ready();
  status(session, kPlaceholder);
  pass(options_.assignment_settle_time);
  settle();
  deliver_result(session, of(kWorker).command, R"({"ok":false,"reason":"no disk"})");
  settle();
  ASSERT_EQ(assigned(), AssignmentState::Failed);
  end(session);
  pass_heard(options_.lost_after * 2);
  settle();
  EXPECT_EQ(assigned(), AssignmentState::Lost);
  EXPECT_EQ(places(), 1U);
  open_placeholder(kOther);
  pass(options_.refill_retry_cap);
  settle();
  EXPECT_EQ(assigned(kOther), AssignmentState::Pending);
  EXPECT_EQ(places(), 1U);
}

TEST_F(VacanciesTest, OneLookPerApplicationTellsThatNobodyIsFree) {
  deploy(app());
  open_runtime();
  for (int i = 0; i < 20; ++i) open_placeholder(worker_key("w" + std::to_string(i)));
  settle();
  assign(20);
  settle();
  for (int i = 0; i < 20; ++i) {
    const WorkerKey key = worker_key("w" + std::to_string(i));
    deliver_result(sessions_[key], of(key).command);
    status(sessions_[key], holding("drained"));
  }
  settle();
  pass(options_.assignment_retry);
  const std::uint64_t before = core_->searches().plans;
  status(sessions_[worker_key("w1")], holding("drained"));
  pass(options_.assignment_retry);
  EXPECT_EQ(core_->searches().plans, before + 1);
}

}  // namespace
}  // namespace windlass
