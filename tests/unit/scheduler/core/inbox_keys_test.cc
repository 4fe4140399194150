// What comes again is known, also after the message or the command that it repeats made room for others.
#include "tests/unit/scheduler/core/core_fixture.h"

namespace windlass {
namespace {

class InboxKeys : public CoreTest {
 protected:
  InboxKeys() {
    options_.inbox_per_tenant_max = 2;
    restart();
  }
  std::vector<Ignored> note(SessionRef session, std::string_view id, std::string_view payload = "{}") {
    deliver(session, {.type = "biz.note", .id = id, .payload = payload});
    std::vector<Ignored> why;
    for (const FrameIgnored& each : events<FrameIgnored>(settle())) why.push_back(each.why);
    return why;
  }
  std::vector<std::string> kept() const {
    std::vector<std::string> ids;
    core_->inbox().for_each({}, [&](const InboxRecord& record) { ids.push_back(record.message.id); });
    return ids;
  }
};

TEST_F(InboxKeys, OutliveMessagesThatMadeRoom) {
  const SessionRef session = open(kWorker);
  for (const char* id : {"m1", "m2", "m3", "m4"}) EXPECT_TRUE(note(session, id).empty());
  EXPECT_EQ(kept(), (std::vector<std::string>{"m3", "m4"}));
  const SessionRef next = open(kWorker);
  EXPECT_EQ(note(next, "m1"), std::vector{Ignored::DuplicateMessage});
  EXPECT_EQ(note(next, "m2", R"({"other":1})"), std::vector{Ignored::ConflictingMessage});
  EXPECT_EQ(kept(), (std::vector<std::string>{"m3", "m4"}));
}

TEST_F(InboxKeys, SurviveARestart) {
  const SessionRef session = open(kWorker);
  for (const char* id : {"m1", "m2", "m3"}) note(session, id);
  restart();
  const SessionRef next = open(kWorker);
  EXPECT_EQ(note(next, "m1"), std::vector{Ignored::DuplicateMessage});
  EXPECT_EQ(kept(), (std::vector<std::string>{"m2", "m3"}));
}

TEST_F(InboxKeys, AreForgottenOnceNobodySendsThemAgain) {
  const SessionRef session = open(kWorker);
  for (const char* id : {"m1", "m2", "m3"}) note(session, id);
  EXPECT_EQ(rows("message/"), 3U);
  pass(options_.inbox_key_age_max);
  settle();
  EXPECT_EQ(rows("message/"), 2U) << "messages themselves stay until they make room";
  EXPECT_TRUE(note(session, "m1").empty());
}

TEST_F(InboxKeys, AreBoundedTheOldestGoFirst) {
  options_.inbox_keys_per_tenant_max = 2;
  restart();
  const SessionRef session = open(kWorker);
  for (const char* id : {"m1", "m2", "m3", "m4", "m5"}) note(session, id);
  EXPECT_EQ(rows("message/"), 4U);
  const SessionRef next = open(kWorker);
  EXPECT_EQ(note(next, "m2"), std::vector{Ignored::DuplicateMessage});
  EXPECT_TRUE(note(next, "m1").empty());
}

TEST_F(InboxKeys, MakeNoMessageOfAResultWhoseCommandIsForgotten) {
  options_.finished_per_tenant_max = 0;
  restart();
  const SessionRef session = open(kWorker);
  submit(kWorker, "a");
  settle();
  deliver_result(session, "a");
  settle();
  ASSERT_EQ(rows("command/"), 0U);
  const SessionRef next = open(kWorker);
  deliver_result(next, "a");
  const Effects effects = settle();
  EXPECT_EQ(rows("message/"), 0U);
  ASSERT_EQ(events<FrameIgnored>(effects).size(), 1U);
  EXPECT_EQ(events<FrameIgnored>(effects)[0].why, Ignored::ForgottenResult);
  EXPECT_EQ(effects.owns.size(), 1U) << "it is acknowledged, so that it stops coming";
}

}  // namespace
}  // namespace windlass
