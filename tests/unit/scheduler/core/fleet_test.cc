#include "tests/unit/scheduler/core/core_fixture.h"

namespace windlass {
namespace {

class FleetTest : public CoreTest {
 protected:
  const Worker& worker() const { return *core_->fleet().find(kWorker); }
};

TEST_F(FleetTest, KnowsStateLoadProfileAndSinceWhen) {
  const SessionRef session = open(kWorker);
  EXPECT_EQ(worker().state, WorkerState::Ready);
  EXPECT_EQ(worker().since, now_.wall);
  const auto profile = std::make_shared<WorkerProfile>();
  profile->worker_name = "one";
  say(session, Registered{profile});
  say(session, LoadReported{true, 3, 12.5, 50.0, {}, {}, "{}"});
  EXPECT_EQ(worker().profile->worker_name, "one");
  EXPECT_EQ(worker().load->inflight, 3U);
  EXPECT_EQ(worker().counters.heartbeats, 1U);
  pass(seconds{5});
  say(session, Detached{});
  EXPECT_EQ(worker().state, WorkerState::Detached);
  EXPECT_EQ(worker().since, now_.wall);
  say(session, Established{true, 0});
  EXPECT_EQ(worker().state, WorkerState::Ready);
  EXPECT_EQ(worker().counters.resumes, 1U);
}

TEST_F(FleetTest, ClimbsTheLivenessLadderAndBack) {
  const SessionRef session = open(kWorker);
  for (const Liveness level : {Liveness::Warn, Liveness::Degraded, Liveness::Lost, Liveness::Healthy}) {
    say(session, LivenessChanged{level});
    EXPECT_EQ(worker().liveness, level);
  }
  EXPECT_EQ(worker().counters.times_lost, 1U);
}

TEST_F(FleetTest, StaysDrainingThroughALostConnection) {
  const SessionRef session = open(kWorker);
  say(session, DrainRequested{"own will", seconds{5}});
  EXPECT_EQ(worker().state, WorkerState::Draining);
  say(session, Detached{});
  say(session, Established{true, 0});
  EXPECT_EQ(worker().state, WorkerState::Draining);
}

TEST_F(FleetTest, RemembersWhoIsGoneForATimeAndWhy) {
  const SessionRef session = open(kWorker);
  end(session, "E.TIMEOUT");
  EXPECT_EQ(worker().state, WorkerState::Gone);
  EXPECT_EQ(worker().end_code, "E.TIMEOUT");
  EXPECT_FALSE(worker().session.has_value());
  pass(options_.gone_age_max);
  EXPECT_EQ(core_->fleet().find(kWorker), nullptr);
}

TEST_F(FleetTest, BoundsHowManyGoneOnesItRemembers) {
  options_.gone_workers_max = 3;
  restart();
  for (int i = 0; i < 10; ++i) {
    end(open(worker_key("w" + std::to_string(i))));
    pass(milliseconds{1});
  }
  EXPECT_EQ(core_->fleet().size(), 3U);
  EXPECT_NE(core_->fleet().find(worker_key("w9")), nullptr);
}

TEST_F(FleetTest, TakesANewSessionForTheEndOfTheOldOne) {
  const SessionRef old = open(kWorker);
  submit(kWorker, "a");
  settle();
  const SessionRef session = open(kWorker);
  const Effects effects = settle();
  ASSERT_EQ(effects.sends.size(), 1U);
  EXPECT_EQ(effects.sends[0].session, session);
  say(old, Ended{"E.SESSION.SUPERSEDED", "", Blame::Local, {}, {}});
  EXPECT_EQ(worker().state, WorkerState::Ready) << "what the old session still says changes nothing";
  say(old, Delivered{0, Message{{.type = "biz.x", .id = "m", .payload = "{}"}}});
  EXPECT_TRUE(settle().owns.empty());
  EXPECT_EQ(worker().counters.sessions, 2U);
}

TEST_F(FleetTest, NamesNobodyAsLostWhoCameBeforeItWasNamedAgain) {
  Fleet fleet{options_};
  fleet.expect(kWorker, now_.steady);
  now_.steady += options_.lost_after;
  ASSERT_EQ(fleet.take_lost(now_), std::vector{kWorker});
  fleet.look_again(kWorker, now_.steady + milliseconds{500});  // its assignment waits for the store
  fleet.open({SessionRef{0, 1}, kWorker, "s", Role::Worker, Revision::Two, "peer"}, now_);
  now_.steady += milliseconds{500};
  EXPECT_TRUE(fleet.take_lost(now_).empty());
  EXPECT_FALSE(fleet.is_lost(kWorker));
}

// By the terms its session began with: its heartbeats are as far apart as they said then.
TEST_F(FleetTest, ATenantSaysAfterHowLongItsWorkersAreLost) {
  const WorkerKey slow = worker_key("slow", "patient");
  options_.tenant_lost_after[slow.tenant] = seconds{120};
  Fleet fleet{options_};
  const auto join = [&](const WorkerKey& key, std::uint64_t handle) {
    fleet.open({SessionRef{0, handle}, key, "s", Role::Worker, Revision::Two, "peer"}, now_);
  };
  join(kWorker, 1);
  join(slow, 2);
  const WorkerKey expected = worker_key("expected", "patient");
  fleet.expect(expected, now_.steady);
  options_.tenant_lost_after.clear();
  now_.steady += options_.lost_after;
  EXPECT_EQ(fleet.take_lost(now_), std::vector{kWorker});
  now_.steady += seconds{75} - milliseconds{1};
  EXPECT_TRUE(fleet.take_lost(now_).empty());
  now_.steady += milliseconds{1};
  EXPECT_EQ(fleet.take_lost(now_), (std::vector{expected, slow}));
}

TEST_F(FleetTest, ListsOneTenantOnly) {
  for (const auto& key : {worker_key("b"), worker_key("a"), worker_key("a", "other"), worker_key("z", "aaa")})
    open(key);
  std::vector<std::string> names;
  core_->fleet().for_each(TenantId{"acme"},
                          [&](const Worker& each) { names.push_back(each.key.instance.value()); });
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b"}));
  std::size_t count = 0;
  core_->fleet().for_each(std::nullopt, [&](const Worker&) { ++count; });
  EXPECT_EQ(count, 4U);
}

class InboxTest : public CoreTest {
 protected:
  std::vector<std::string> list(const InboxFilter& filter) const {
    std::vector<std::string> ids;
    core_->inbox().for_each(filter, [&](const InboxRecord& record) { ids.push_back(record.message.id); });
    return ids;
  }
};

TEST_F(InboxTest, KeepsMessagesThatAnswerNoCommandAndShowsThemOnceStored) {
  const SessionRef session = open(kWorker);
  deliver(session, {.type = "biz.event", .id = "e1", .payload = R"({"n":1})"});
  deliver(session, {.type = "ext.acme.note", .id = "e2", .payload = "{}", .corr = "nobody's"});
  EXPECT_TRUE(list({}).empty());
  const Effects effects = settle();
  EXPECT_EQ(effects.owns.back().next, 2U);
  EXPECT_EQ(list({}), (std::vector<std::string>{"e1", "e2"}));
  EXPECT_EQ(events<MessageStored>(effects).size(), 2U);
}

//= REV-16
TEST_F(InboxTest, KeepsWhatAWorkerOfRevisionOneSaysWithTheIdsOfItsLastSession) {
  const auto say_first = [&](const SessionRef& session) {
    deliver(session, {.type = "biz.event", .id = "biz.event-1", .payload = "{}"});
    settle();
  };
  say_first(open(kWorker, Revision::One));
  say_first(open(kWorker, Revision::One));  // its process began anew
  EXPECT_EQ(list({}).size(), 2U);
  restart();
  EXPECT_EQ(list({}).size(), 2U);
}

TEST_F(InboxTest, TakesNoMessageOfRevisionTwoTwice) {
  for (int i = 0; i < 2; ++i) {
    deliver(open(kWorker), {.type = "biz.event", .id = "e1", .payload = "{}"});
    settle();
  }
  EXPECT_EQ(list({}).size(), 1U);
}

TEST_F(InboxTest, DropsTheOldestOfATenantWhenItIsFull) {
  options_.inbox_per_tenant_max = 3;
  restart();
  const SessionRef session = open(kWorker);
  const SessionRef other = open(worker_key("w1", "other"));
  deliver(other, {.type = "biz.event", .id = "theirs", .payload = "{}"});
  std::size_t dropped = 0;
  for (int i = 0; i < 10; ++i) {
    const std::string id = "e" + std::to_string(i);
    deliver(session, {.type = "biz.event", .id = id, .payload = "{}"});
    if (i % 3 == 0) dropped += events<MessageDropped>(settle()).size();
  }
  dropped += events<MessageDropped>(settle()).size();
  EXPECT_EQ(dropped, 7U);
  EXPECT_EQ(rows("message/acme/"), 10U) << "of the others only what they were called";
  EXPECT_EQ(rows("message/other/"), 1U);
  InboxFilter filter;
  filter.tenant = TenantId{"acme"};
  EXPECT_EQ(list(filter), (std::vector<std::string>{"e7", "e8", "e9"}));
}

TEST_F(InboxTest, IsBoundedByBytesToo) {
  options_.inbox_bytes_per_tenant_max = 10'000;
  restart();
  const SessionRef session = open(kWorker);
  for (int i = 0; i < 10; ++i) {
    const std::string id = "e" + std::to_string(i);
    deliver(session,
            {.type = "biz.event", .id = id, .payload = R"({"x":")" + std::string(4000, 'x') + R"("})"});
  }
  settle();
  EXPECT_EQ(list({}).size(), 2U);
}

}  // namespace
}  // namespace windlass
