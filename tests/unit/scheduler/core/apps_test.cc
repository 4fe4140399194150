#include "tests/unit/scheduler/core/apps_fixture.h"

namespace windlass {
namespace {

TEST_F(AppsTest, StoresTheAssignmentAndItsCommandInOneBatchAndThenSends) {
  const SessionRef session = begin();
  const RequestId request = assign();
  const auto effects = step();
  ASSERT_TRUE(effects.has_value());
  EXPECT_EQ(rows("assignment/"), 1U);
  EXPECT_EQ(rows("command/"), 1U);
  ASSERT_EQ(effects->sends.size(), 1U);
  EXPECT_EQ(effects->sends[0].session, session);
  EXPECT_EQ(effects->sends[0].message.type(), kSpecializeType);
  EXPECT_NE(effects->sends[0].message.payload().find(R"("settings":{"KEY":"hush"})"), std::string_view::npos);
  ASSERT_NE(made(*effects, request), nullptr);
  EXPECT_EQ(made(*effects, request)->assignments[0].command, "a.1");
  EXPECT_EQ(assigned(), AssignmentState::Pending);
}

TEST_F(AppsTest, LearnsFromTheResultWhatBecameOfIt) {
  begin_ready();
  EXPECT_EQ(assigned(), AssignmentState::Ready);
  restart();
  EXPECT_EQ(assigned(), AssignmentState::Ready);
}

TEST_F(AppsTest, FreesAWorkerThatSaidNo) {
  const SessionRef session = begin();
  assign();
  settle();
  deliver_result(session, "a.1", R"({"ok":false,"code":"E.PKG.INVALID","reason":"no room"})");
  settle();
  EXPECT_EQ(assigned(), AssignmentState::Failed);
  EXPECT_EQ(core_->apps().assignment_of(kWorker)->reason, "no room");
  const RequestId again = assign(1, "x");
  const Effects effects = settle();
  EXPECT_NE(made(effects, again), nullptr);
}

TEST_F(AppsTest, FailsWhenNoResultComesInTime) {
  begin();
  assign();
  settle();
  pass(options_.command_timeout);
  settle();
  EXPECT_EQ(assigned(), AssignmentState::Failed);
}

TEST_F(AppsTest, WaitsLongerForAWorkerThatFetchesALargePackage) {
  const SessionRef session = begin();
  AppRecord large = app("v2");
  large.bytes = std::uint64_t{1} << 30U;
  deploy(large);
  settle();
  assign();
  settle();
  pass_heard(options_.command_timeout + seconds{60}, {session});
  settle();
  EXPECT_EQ(assigned(), AssignmentState::Pending);
  pass_heard(limits::fetch_time(large.bytes), {session});
  settle();
  EXPECT_EQ(assigned(), AssignmentState::Failed);
}

TEST_F(AppsTest, SendsTheSameOrderAgainAfterARestart) {
  begin();
  assign();
  settle();
  restart();
  EXPECT_EQ(assigned(), AssignmentState::Pending);
  const SessionRef session = open_placeholder();
  EXPECT_EQ(sent_ids(settle()), (std::vector<std::string>{"a.1"}));
  deliver_result(session, "a.1");
  settle();
  EXPECT_EQ(assigned(), AssignmentState::Ready);
}

TEST_F(AppsTest, AnswersARepeatedRequestWithWhatTheFirstDid) {
  begin();
  open_placeholder(worker_key("w2"));
  settle();
  assign();
  settle();
  const RequestId again = assign();
  const Effects effects = settle();
  ASSERT_NE(made(effects, again), nullptr);
  EXPECT_TRUE(made(effects, again)->is_repeated);
  EXPECT_EQ(rows("assignment/"), 1U);
}

TEST_F(AppsTest, RefusesAnIdOfWhichOneCommandIsKnown) {
  begin();
  open_placeholder(worker_key("w2"));
  submit(kWorker, "x.2");
  settle();
  const RequestId request = assign(2, "x");
  EXPECT_EQ(refusal(settle(), request), ErrorCode::ResultDuplicate);
  EXPECT_EQ(rows("assignment/"), 0U);
  const RequestId other = assign(1, "x");
  EXPECT_NE(made(settle(), other), nullptr) << "x.1 is free";
  const RequestId again = assign(1, "x");
  const Effects effects = settle();
  ASSERT_NE(made(effects, again), nullptr);
  EXPECT_EQ(made(effects, again)->assignments.size(), 1U) << "x.2 is not of it";
}

TEST_F(AppsTest, TakesNoIdThatNoCommandMayHave) {
  begin();
  for (const char* id : {"~a", "a\nb", "\xc3\xa4"}) {
    const RequestId request = assign(1, id);
    EXPECT_EQ(refusal(settle(), request), ErrorCode::ProtoSchema) << id;
  }
}

TEST_F(AppsTest, TellsAnAssignmentsIdFromAReleases) {
  const SessionRef session = begin();
  assign(1, "x");
  settle();
  deliver_result(session, "x.1");
  settle();
  const RequestId request = unassign("x");
  EXPECT_EQ(refusal(settle(), request), ErrorCode::ResultDuplicate);
  EXPECT_EQ(assigned(), AssignmentState::Ready);
  unassign("u");
  settle();
  const RequestId again = unassign("u");
  const Effects effects = settle();
  ASSERT_NE(made(effects, again), nullptr);
  EXPECT_TRUE(made(effects, again)->is_repeated);
}

TEST_F(AppsTest, PromisesNothingThatTheStoreRefused) {
  begin();
  fill_store();
  const RequestId request = assign();
  EXPECT_EQ(refusal(settle(), request), ErrorCode::StoreFull);
  EXPECT_EQ(assigned(), std::nullopt);
  make_room();
  pass(options_.store_retry_cap);
  settle();
  EXPECT_EQ(rows("assignment/"), 0U);
  EXPECT_NE(core_->apps().find(kAcme, "hello", ""), nullptr) << "what was durable stays";
}

TEST_F(AppsTest, KeepsAnApplicationWhoseUndeploymentWasRefused) {
  begin();
  fill_store();
  image_->bytes_max = 0;
  const RequestId request{++next_request_};
  core_->handle(UndeployApp{request, kAcme, "hello", ""}, now_);
  deploy(app("v2", std::string(64, 'b')));  // makes the batch larger than what is there
  deploy(app("v3", std::string(64, 'c')));
  EXPECT_EQ(refusal(settle(), request), ErrorCode::StoreFull);
  EXPECT_NE(core_->apps().find(kAcme, "hello", "v1"), nullptr);
  EXPECT_TRUE(core_->apps().is_package_used(std::string(64, 'a')));
}

TEST_F(AppsTest, FreesTheAssignmentOfAWorkerThatDoesNotComeBack) {
  const SessionRef session = begin_ready();
  end(session);
  pass_heard(options_.lost_after * 2 / 3);
  EXPECT_EQ(assigned(), AssignmentState::Ready) << "it may come back";
  pass_heard(options_.lost_after / 3);
  EXPECT_EQ(events<AssignmentChanged>(settle()).back().assignment.state, AssignmentState::Lost);
}

TEST_F(AppsTest, KeepsTheAssignmentOfAWorkerThatComesBackInTime) {
  begin_ready();
  restart();
  pass(options_.lost_after / 2);
  const SessionRef session = open(kWorker);
  status(session, kHolds);
  for (int i = 0; i < 8; ++i) {
    pass(options_.lost_after / 2);
    say(session, LoadReported{});
  }
  settle();
  EXPECT_EQ(assigned(), AssignmentState::Ready);
}

TEST_F(AppsTest, ForgetsALostAssignmentInTheEnd) {
  end(begin());
  open_placeholder();
  settle();
  assign();
  settle();
  end(sessions_[kWorker]);
  pass_heard(options_.lost_after);
  settle();
  pass(options_.assignment_forget_after);
  settle();
  EXPECT_EQ(rows("assignment/"), 1U) << "its place is open";
  const SessionRef other = open_placeholder(worker_key("w2"));
  const Effects filled = settle();
  ASSERT_EQ(filled.sends.size(), 1U);
  deliver_result(other, filled.sends[0].message.id());
  settle();
  pass(options_.assignment_forget_after);
  settle();
  EXPECT_EQ(core_->apps().assignment_of(kWorker), nullptr);
}

TEST_F(AppsTest, TellsAWorkerAgainThatForgotItsApplication) {
  const SessionRef session = begin_ready();
  end(session);
  open_placeholder();
  settle();
  EXPECT_TRUE(settle().sends.empty()) << "it may be on its way by itself";
  pass(options_.assignment_settle_time);
  const Effects effects = settle();
  ASSERT_EQ(effects.sends.size(), 1U);
  EXPECT_EQ(effects.sends[0].message.type(), kSpecializeType);
  EXPECT_EQ(assigned(), AssignmentState::Pending);
}

TEST_F(AppsTest, ReleasesWorkersAndThenForgetsTheAssignment) {
  const SessionRef session = begin_ready();
  unassign();
  EXPECT_EQ(settle().sends[0].message.type(), kReleaseType);
  EXPECT_EQ(assigned(), AssignmentState::Releasing);
  deliver_result(session, "u.1");
  settle();
  EXPECT_EQ(assigned(), std::nullopt);
  EXPECT_EQ(rows("assignment/"), 0U);
}

TEST_F(AppsTest, UndeploysOnlyWhatNobodyRuns) {
  const SessionRef session = begin();
  assign();
  settle();
  const RequestId refused{++next_request_};
  core_->handle(UndeployApp{refused, kAcme, "hello", ""}, now_);
  EXPECT_EQ(refusal(settle(), refused), ErrorCode::ResultDuplicate);
  deliver_result(session, "a.1", R"({"ok":false,"reason":"x"})");
  settle();
  core_->handle(UndeployApp{RequestId{++next_request_}, kAcme, "hello", ""}, now_);
  EXPECT_EQ(events<PackageUnused>(settle()).size(), 1U);
  EXPECT_FALSE(core_->apps().is_package_used(std::string(64, 'a')));
  EXPECT_EQ(rows("app/"), 0U);
}

TEST_F(AppsTest, RefusesOtherContentUnderADeployedVersion) {
  begin();
  const RequestId same = deploy(app());
  EXPECT_EQ(refusal(settle(), same), std::nullopt);
  const RequestId other = deploy(app("v1", std::string(64, 'b')));
  EXPECT_EQ(refusal(settle(), other), ErrorCode::ResultDuplicate);
  for (const char* name : {"", "a/b", "-x", "ä"}) {
    AppRecord bad = app();
    bad.key.application_id = name;
    const RequestId request = deploy(bad);
    EXPECT_EQ(refusal(settle(), request), ErrorCode::ProtoSchema) << name;
  }
}

TEST_F(AppsTest, AssignsTheNewestVersionUnlessAnotherIsNamed) {
  begin();
  deploy(app("v2", std::string(64, 'b')));
  settle();
  restart();
  EXPECT_EQ(core_->apps().find(kAcme, "hello", "")->key.code_version, "v2");
  EXPECT_EQ(core_->apps().find(kAcme, "hello", "v1")->settings.at("KEY"), "hush");
}

TEST_F(AppsTest, OwnsTransientMessagesAtOnceAndStoresNothing) {
  const SessionRef runtime = open_runtime();
  const SessionRef session = open_placeholder();
  deliver(runtime,
          {.type = "biz.runtime.signal", .id = "g", .payload = R"({"kind":"NeedWorkers","urgent":true})"});
  const Effects effects = settle();
  EXPECT_EQ(effects.owns.size(), 2U);
  EXPECT_EQ(rows("message/"), 0U);
  EXPECT_EQ(core_->fleet().find(worker_key("r1"))->runtime->health, "Healthy");
  EXPECT_EQ(core_->fleet().find(worker_key("r1"))->signals.back().kind, "NeedWorkers");
  EXPECT_EQ(core_->fleet().find(kWorker)->language_worker->language, "node");
  // A worker that plays the runtime is taken for what it is.
  deliver(session, {.type = "biz.runtime.status", .id = "x", .payload = kRuntimeStatus});
  settle();
  EXPECT_EQ(rows("message/"), 1U);
  EXPECT_EQ(core_->fleet().find(kWorker)->runtime, nullptr);
}

TEST_F(AppsTest, ServesPackagesToWorkersOfTheirApplicationOnly) {
  const SessionRef session = begin();
  assign();
  settle();
  const std::string known = R"({"digest":")" + std::string(64, 'a') + R"(","offset":5})";
  deliver(session, {.type = "biz.package.get", .id = "g1", .payload = known});
  Effects effects = settle();
  ASSERT_EQ(effects.packages_asked.size(), 1U);
  EXPECT_EQ(effects.packages_asked[0].request.offset, 5U);
  EXPECT_EQ(effects.packages_asked[0].corr, "g1");
  const SessionRef stranger = open(worker_key("w1", "other"));
  deliver(stranger, {.type = "biz.package.get", .id = "g2", .payload = known});
  effects = settle();
  EXPECT_TRUE(effects.packages_asked.empty());
  ASSERT_EQ(effects.tells.size(), 1U);
  EXPECT_EQ(effects.tells[0].message.corr(), "g2");
  EXPECT_NE(effects.tells[0].message.payload().find(R"("code":"E.SESSION.DENIED")"), std::string_view::npos);

  const SessionRef idle = open_placeholder(kOther);
  const auto may_fetch = [&](SessionRef who, const std::string& wanted) {
    const std::string id = "g" + std::to_string(++statuses_);
    deliver(who, {.type = "biz.package.get", .id = id, .payload = wanted});
    return settle().packages_asked.size() == 1;
  };
  EXPECT_FALSE(may_fetch(idle, known)) << "of the tenant, and of no application";
  // Nor does it help to say that one holds it, and to refuse to give it up.
  status(idle, kHolds);
  const Effects released = settle();
  ASSERT_EQ(released.sends.size(), 1U);
  EXPECT_FALSE(may_fetch(idle, known));
  deliver_result(idle, released.sends[0].message.id(), R"({"ok":false,"code":"E.INTERNAL","reason":"no"})");
  settle();
  EXPECT_FALSE(may_fetch(idle, known));
  status(idle, kHolds);
  settle();
  EXPECT_FALSE(may_fetch(idle, known));

  deliver_result(session, "a.1");
  settle();
  EXPECT_TRUE(may_fetch(session, known)) << "its cache may be gone";
  AppRecord second = app("v2", std::string(64, 'b'));
  deploy(std::move(second));
  settle();
  EXPECT_FALSE(may_fetch(session, R"({"digest":")" + std::string(64, 'b') + R"(","offset":0})"));
  // It is away for too long, comes back without its cache, and may have its place again.
  end(session);
  say(idle, Detached{});
  pass_heard(options_.lost_after * 2);
  settle();
  ASSERT_EQ(assigned(), AssignmentState::Lost);
  EXPECT_TRUE(may_fetch(open(kWorker), known));
}

TEST(RuntimeText, CountsWorkersThatAStatusDoesNotList) {
  RuntimeReader reader;
  EXPECT_EQ(reader.runtime_status(R"({"workers_total":7,"workers":[]})").workers, 7U);
  EXPECT_EQ(reader.runtime_status(R"({"workers":[{},{}]})").workers, 2U) << "one that says no total";
  const RuntimeStatus status = reader.runtime_status(
      R"({"workers":[{"worker":"a.1","state":"Ready","detached":true},{"worker":"b.1","slots":4}],)"
      R"("detached_left_out":3})");
  EXPECT_FALSE(status.known_workers.at(0).has_counts) << "it is only named";
  EXPECT_TRUE(status.known_workers.at(1).has_counts);
  EXPECT_EQ(status.detached, std::set<std::string>{"a"});
  EXPECT_EQ(status.detached_left_out, 3U);
  const std::string gap = std::string(511, 'a') + "\xC3\xA9";
  EXPECT_EQ(reader.worker_status(R"({"confinement_gaps":[")" + gap + R"("]})").confinement_gaps.at(0),
            std::string(511, 'a'));
}

TEST(RuntimeText, ShowsSettingsAsNamesOnly) {
  EXPECT_EQ(shown_payload(kSpecializeType, R"({"a":1,"settings":{"K":"hush","L":"x"}})"),
            R"({"a":1,"settings":["K","L"]})");
  EXPECT_EQ(shown_payload("biz.echo", R"({"settings":{"K":"v"}})"), R"({"settings":{"K":"v"}})");
}

}  // namespace
}  // namespace windlass
