// Settings as a version of their own: what is kept, what is removed, and how workers come by new ones.
#include "tests/unit/scheduler/core/apps_fixture.h"

namespace windlass {
namespace {

constexpr std::string_view kNo = R"({"ok":false,"code":"E.INTERNAL","reason":"no"})";

class SettingsTest : public AppsTest {
 protected:
  RequestId set(std::map<std::string, std::string> settings, std::set<std::string> unset = {},
                const std::string& version = "v1") {
    AppRecord record = app(version, std::string(64, version == "v1" ? 'a' : 'b'));
    record.settings = std::move(settings);
    const RequestId request{++next_request_};
    core_->handle(DeployApp{request, std::move(record), std::move(unset)}, now_);
    pass(options_.assignment_retry);
    return request;
  }

  const AppRecord& known(const std::string& version = "v1") const {
    return *core_->apps().find(kAcme, "hello", version);
  }

  // Two workers that are ready.
  std::pair<SessionRef, SessionRef> begin_two() {
    const SessionRef one = begin();
    const SessionRef two = open_placeholder(kOther);
    assign(2);
    settle();
    deliver_result(one, "a.1");
    deliver_result(two, "a.2");
    settle();
    return {one, two};
  }

  // New settings, with which the first worker fails.
  Effects fall(SessionRef first) {
    set({{"CITY", "Paris"}});
    deliver_result(first, settle().sends.at(0).message.id(), kNo);
    return settle();
  }

  std::vector<std::string> pending() const {
    std::vector<std::string> workers;
    core_->apps().for_each_assignment([&](const AssignmentRecord& each) {
      if (each.state == AssignmentState::Pending) workers.push_back(each.worker.instance.value());
    });
    return workers;
  }
};

TEST_F(SettingsTest, OnlyTheApplicationsOwnFailureStopsTheirWay) {
  const auto [one, two] = begin_two();
  set({{"CITY", "Paris"}});
  deliver_result(one, settle().sends.at(0).message.id(),
                 R"({"ok":false,"code":"E.SESSION.DRAINING","reason":"the agent stops"})");
  Effects effects = settle();
  EXPECT_TRUE(events<RolloutStopped>(effects).empty());
  EXPECT_EQ(known().rollout_stopped, "");
  pass(options_.assignment_retry);
  settle();
  EXPECT_TRUE(pending().empty()) << "the next might fail for the same reason";
  end(one, "");
  pass(options_.refill_retry_first);
  effects = settle();
  ASSERT_EQ(effects.sends.size(), 1U);
  EXPECT_EQ(effects.sends[0].session, two) << "it goes on by itself";
  deliver_result(two, effects.sends[0].message.id(), kNo);
  EXPECT_EQ(events<RolloutStopped>(settle()).size(), 1U);
}

TEST_F(SettingsTest, KeepsWhatADeploymentDoesNotName) {
  begin();
  set({{"CITY", "Paris"}});
  settle();
  EXPECT_EQ(known().settings, (std::map<std::string, std::string>{{"CITY", "Paris"}, {"KEY", "hush"}}));
  EXPECT_EQ(known().settings_version, 2U);
  set({{"CITY", "Paris"}});
  settle();
  EXPECT_EQ(known().settings_version, 2U) << "nothing changed";
}

TEST_F(SettingsTest, GivesANewCodeVersionTheSettingsOfTheNewest) {
  begin();
  set({{"CITY", "Rome"}}, {}, "v2");
  settle();
  EXPECT_EQ(known("v2").settings, (std::map<std::string, std::string>{{"CITY", "Rome"}, {"KEY", "hush"}}));
  EXPECT_FALSE(known("v1").settings.contains("CITY"));
}

TEST_F(SettingsTest, RemovesWhatItIsToldToRemoveAndRefusesWhatIsNotThere) {
  begin();
  set({}, {"KEY"});
  settle();
  EXPECT_TRUE(known().settings.empty());
  const RequestId request = set({}, {"KEY"});
  EXPECT_EQ(refusal(settle(), request), ErrorCode::ProtoSchema);
}

TEST_F(SettingsTest, ReloadsWorkersOneAfterAnother) {
  const auto [one, two] = begin_two();
  set({{"CITY", "Paris"}});
  const Effects first = settle();
  ASSERT_EQ(pending(), std::vector<std::string>{"w1"});
  ASSERT_EQ(first.sends.size(), 1U);
  EXPECT_NE(first.sends[0].message.payload().find("Paris"), std::string_view::npos);
  EXPECT_NE(first.sends[0].message.payload().find("hush"), std::string_view::npos);
  pass(options_.assignment_retry);
  EXPECT_TRUE(settle().sends.empty()) << "the other one serves meanwhile";
  deliver_result(one, first.sends[0].message.id());
  settle();
  pass(options_.assignment_retry);
  const Effects second = settle();
  ASSERT_EQ(pending(), std::vector<std::string>{"w2"});
  deliver_result(two, second.sends[0].message.id());
  settle();
  pass(options_.assignment_retry);
  EXPECT_TRUE(settle().sends.empty());
  for (const WorkerKey& each : {kWorker, kOther}) {
    EXPECT_EQ(core_->apps().assignment_of(each)->settings_version, 2U);
    EXPECT_EQ(assigned(each), AssignmentState::Ready);
  }
}

TEST_F(SettingsTest, GoesOnWithAReloadAfterACrash) {
  const auto [one, two] = begin_two();
  set({{"CITY", "Paris"}});
  const Effects first = settle();
  deliver_result(one, first.sends[0].message.id());
  settle();
  restart();
  runtime_.reset();
  open_runtime();
  status(open(kWorker), kHolds);
  const SessionRef again = open(kOther);
  status(again, kHolds);
  pass(options_.assignment_retry);
  const Effects second = settle();
  ASSERT_EQ(second.sends.size(), 1U);
  EXPECT_EQ(second.sends[0].session, again);
  EXPECT_NE(second.sends[0].message.payload().find("Paris"), std::string_view::npos);
}

TEST_F(SettingsTest, StopsWhereAWorkerFailsWithSettingsThatWorkForNobody) {
  const auto [one, two] = begin_two();
  const Effects stopped = fall(one);
  EXPECT_EQ(known().rollout_stopped, "w1 failed with the new settings: no");
  ASSERT_EQ(events<RolloutStopped>(stopped).size(), 1U);
  EXPECT_EQ(events<RolloutStopped>(stopped)[0].reason, known().rollout_stopped);
  pass(options_.assignment_retry);
  EXPECT_TRUE(settle().sends.empty());
  EXPECT_EQ(assigned(kOther), AssignmentState::Ready);
  restart();
  EXPECT_EQ(known().rollout_stopped, "w1 failed with the new settings: no") << "it is stored";
  EXPECT_EQ(known().proven->settings, (std::map<std::string, std::string>{{"KEY", "hush"}}));
}

TEST_F(SettingsTest, FillsThePlaceOfWhoFailedWithSettingsThatWork) {
  const auto [one, two] = begin_two();
  const SessionRef spare = open_placeholder(worker_key("w3"));
  fall(one);
  EXPECT_TRUE(core_->apps().assignment_of(kWorker)->is_open());
  pass(options_.refill_retry_first);
  const Effects filled = settle();
  ASSERT_EQ(filled.sends.size(), 1U);
  EXPECT_EQ(filled.sends[0].session, spare);
  EXPECT_EQ(filled.sends[0].message.payload().find("Paris"), std::string_view::npos);
  deliver_result(spare, filled.sends[0].message.id());
  settle();
  EXPECT_EQ(assigned(worker_key("w3")), AssignmentState::Ready);
  EXPECT_FALSE(known().rollout_stopped.empty()) << "the new ones did not work for it";
  pass(options_.assignment_retry);
  EXPECT_TRUE(settle().sends.empty());
  EXPECT_EQ(core_->apps().assignment_of(worker_key("w3"))->settings_version, 1U);
}

TEST_F(SettingsTest, GivesNewWorkersWhatWorksWhileTheRolloutIsStopped) {
  const auto [one, two] = begin_two();
  fall(one);
  const SessionRef third = open_placeholder(worker_key("w3"));
  assign(1, "b");
  const Effects made = settle();
  ASSERT_EQ(made.sends.size(), 1U);
  ASSERT_EQ(made.sends[0].session, third);
  EXPECT_EQ(made.sends[0].message.payload().find("Paris"), std::string_view::npos);
  EXPECT_EQ(core_->apps().assignment_of(worker_key("w3"))->settings_version, 1U);
}

TEST_F(SettingsTest, GoesOnWithTheNextDeployment) {
  for (const std::string city : {"Rome", "Paris"}) {  // other settings, or the same again
    image_ = std::make_shared<MemoryImage>();
    runtime_.reset();
    restart();
    const auto [one, two] = begin_two();
    fall(one);
    set({{"CITY", city}});
    const Effects again = settle();
    EXPECT_TRUE(known().rollout_stopped.empty());
    ASSERT_EQ(pending(), std::vector<std::string>{"w2"}) << city;
    ASSERT_EQ(again.sends.size(), 1U);
    EXPECT_NE(again.sends[0].message.payload().find(city), std::string_view::npos);
    ASSERT_TRUE(known().proven.has_value());
    EXPECT_EQ(known().proven->version, 1U) << "what never worked proves nothing";
    deliver_result(two, again.sends[0].message.id());
    settle();
    EXPECT_FALSE(known().proven.has_value()) << "there are newer ones that work";
  }
}

TEST_F(SettingsTest, StopAtAWorkerThatFellUntilItsPlaceIsFilled) {
  const auto [one, two] = begin_two();
  const SessionRef third = open_placeholder(worker_key("w3"));
  assign(1, "b");
  settle();
  deliver_result(third, "b.1");
  settle();
  set({{"CITY", "Paris"}});
  deliver_result(one, settle().sends.at(0).message.id());
  settle();
  pass(options_.assignment_retry);
  deliver_result(two, settle().sends.at(0).message.id(), kNo);
  settle();
  EXPECT_FALSE(known().rollout_stopped.empty());
  pass(options_.refill_retry_first - milliseconds{1});
  EXPECT_TRUE(settle().sends.empty()) << "each that falls takes capacity with it";
  pass(milliseconds{1});
  const Effects again = settle();
  ASSERT_EQ(again.sends.size(), 1U) << "it tries again itself: nobody else is free";
  EXPECT_EQ(again.sends[0].session, two);
  EXPECT_NE(again.sends[0].message.payload().find("Paris"), std::string_view::npos) << "they work for one";
  deliver_result(two, again.sends[0].message.id());
  settle();
  EXPECT_TRUE(known().rollout_stopped.empty());
  pass(options_.assignment_retry);
  EXPECT_EQ(settle().sends.at(0).session, third);
}

}  // namespace
}  // namespace windlass
