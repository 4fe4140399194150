// Settings as a version of their own: what is kept, what is removed, and how workers come by new ones.
#include "tests/unit/scheduler/core/apps_fixture.h"

namespace windlass {
namespace {

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

  std::vector<std::string> pending() const {
    std::vector<std::string> workers;
    core_->apps().for_each_assignment([&](const AssignmentRecord& each) {
      if (each.state == AssignmentState::Pending) workers.push_back(each.worker.instance.value());
    });
    return workers;
  }
};

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

TEST_F(SettingsTest, DoesNotBringSettingsThatNobodyCouldStartWithToThoseThatWork) {
  const auto [one, two] = begin_two();
  set({{"CITY", "Paris"}});
  const Effects first = settle();
  deliver_result(one, first.sends[0].message.id(), R"({"ok":false,"code":"E.INTERNAL","reason":"no"})");
  settle();
  pass(options_.assignment_retry);
  EXPECT_TRUE(settle().sends.empty());
  EXPECT_EQ(assigned(kOther), AssignmentState::Ready);
  set({{"CITY", "Rome"}});
  settle();
  pass(options_.assignment_retry);
  settle();
  EXPECT_EQ(pending(), std::vector<std::string>{"w2"}) << "other settings are tried";
}

}  // namespace
}  // namespace windlass
