// The metadata version that serves is stored intent, and runtimes are told it.
#include "tests/unit/scheduler/core/apps_fixture.h"

namespace windlass {
namespace {

class VersionsTest : public AppsTest {
 protected:
  static AppRecord second() {
    AppRecord record = app("v2", std::string(64, 'b'));
    record.metadata_version = "m2";
    return record;
  }

  std::string active() const {
    const ActiveVersion* const found = core_->apps().active(kAcme, "hello");
    return found == nullptr ? "" : found->metadata_version;
  }

  // The last list that was told.
  static std::string told(const Effects& effects) {
    std::string last;
    for (const Tell& tell : effects.tells) {
      if (tell.message.type() == kApplicationsType) last = tell.message.payload();
    }
    return last;
  }

  // Workers of both versions, the second active.
  void begin_both() {
    begin_ready();
    const SessionRef other = open_placeholder(kOther);
    deploy(second());
    settle();
    assign(1, "b");
    settle();
    deliver_result(other, "b.1");
    settle();
  }
};

TEST_F(VersionsTest, ServesTheNewestVersionThatAWorkerWasReadyWith) {
  begin_ready();
  EXPECT_EQ(active(), "m");
  const SessionRef other = open_placeholder(kOther);
  deploy(second());
  settle();
  assign(1, "b");
  settle();
  EXPECT_EQ(active(), "m") << "nobody is ready with the new one";
  deliver_result(other, "b.1");
  const Effects effects = settle();
  EXPECT_EQ(active(), "m2");
  EXPECT_NE(told(effects).find(R"("metadata_version":"m2")"), std::string::npos);
}

TEST_F(VersionsTest, DoesNotDependOnWhoComesBackFirst) {
  begin_both();
  restart();
  runtime_.reset();
  open_runtime();
  EXPECT_NE(told(settle()).find(R"("metadata_version":"m2")"), std::string::npos) << "before anybody is back";
  status(open(kWorker), kHolds);
  settle();
  EXPECT_EQ(active(), "m2");
}

TEST_F(VersionsTest, StaysWhileItsWorkersAreLostOrFailed) {
  begin_both();
  end(sessions_[kOther]);
  pass_heard(options_.lost_after, {sessions_[kWorker]});
  settle();
  EXPECT_EQ(assigned(kOther), AssignmentState::Lost);
  EXPECT_EQ(active(), "m2");
}

TEST_F(VersionsTest, GoesBackWhenTheOperatorTakesItsWorkersAway) {
  begin_both();
  const RequestId request{++next_request_};
  core_->handle(UnassignWorkers{request, kAcme, "hello", "v2", std::nullopt, "u"}, now_);
  settle();
  deliver_result(sessions_[kOther], "u.1");
  settle();
  EXPECT_EQ(active(), "m");
}

TEST_F(VersionsTest, TellsARuntimeOnlyWhatItIsToHave) {
  begin_ready();
  const SessionRef session = open_runtime(R"({"url":"wss://r2","health":"Healthy"})", "r2");
  const Effects effects = settle();
  ASSERT_EQ(effects.tells.size(), 1U);
  EXPECT_EQ(effects.tells[0].session, session);
  EXPECT_EQ(effects.tells[0].message.payload(), R"({"applications":[]})");
  EXPECT_TRUE(told(settle()).empty()) << "once";
}

TEST_F(VersionsTest, SaysWhetherAWorkerIsToCome) {
  const SessionRef session = begin();
  assign();
  const std::string pending = told(settle());
  EXPECT_NE(pending.find("hello"), std::string::npos);
  EXPECT_EQ(pending.find("awaited"), std::string::npos) << pending;
  deliver_result(session, "a.1", R"({"ok":false,"error":"it threw"})");
  EXPECT_NE(told(settle()).find(R"("awaited":false)"), std::string::npos);
}

TEST_F(VersionsTest, TellsAgainWhatWentWithABatchThatTheStoreRefused) {
  const SessionRef session = begin();
  fill_store();
  image_->bytes_max = 0;
  assign();
  settle();
  make_room();
  pass(options_.store_retry_cap);
  settle();
  assign(1, "c");
  settle();
  deliver_result(session, "c.1");
  EXPECT_NE(told(settle()).find("hello"), std::string::npos);
}

}  // namespace
}  // namespace windlass
