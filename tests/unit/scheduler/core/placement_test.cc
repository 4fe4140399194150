// Which worker gets which command: those sent to an application or a language, what a worker takes, and what
// becomes of commands whose worker is lost.
#include "tests/unit/scheduler/core/placement_fixture.h"

namespace windlass {
namespace {

TEST_F(Placement, GivesACommandOfAnApplicationToTheLeastBusyOfItsWorkers) {
  start_app();
  submit(kWorker, "busy");
  settle();
  const RequestId request = send_to_app("a");
  const Effects effects = settle();
  EXPECT_TRUE(is_accepted(effects, request));
  EXPECT_EQ(sent_ids(effects), Ids{"a"});
  EXPECT_EQ(worker_of("a"), "w2");
  deliver_result(sessions_[kSecond], "a");
  settle();
  EXPECT_EQ(state("a"), CommandState::Done);
}

TEST_F(Placement, StoresTheChoiceBeforeTheCommandIsSent) {
  start_app();
  send_to_app("a");
  const auto effects = core_->poll_effects();
  ASSERT_TRUE(effects.has_value());
  ASSERT_EQ(effects->writes.size(), 1U);
  EXPECT_NE(effects->writes[0].value->find(R"("worker":"w1")"), std::string::npos);
  EXPECT_NE(effects->writes[0].value->find(R"("application":"hello")"), std::string::npos);
  core_->effects_failed({ErrorCode::StoreFull, Blame::Local, "full"}, now_);
  EXPECT_TRUE(sent_ids(settle()).empty()) << "neither it nor the choice is in the store";
}

TEST_F(Placement, ChoosesNoWorkerThatIsNotFit) {
  start_app();
  const SessionRef first = sessions_[kWorker];
  send_to_app("a");
  settle();
  EXPECT_EQ(worker_of("a"), "w1");
  deliver_result(first, "a");
  const std::vector<std::pair<std::string, std::function<void()>>> cases{
      {"degraded", [&] { say(first, LivenessChanged{Liveness::Degraded}); }},
      {"unhealthy", [&] { report(first, false, false); }},
      {"short", [&] { report(first, true, true); }},
      {"detached", [&] { say(first, Detached{}); }},
  };
  for (const auto& [name, begin] : cases) {
    say(first, Established{true, 0, {}});
    say(first, LivenessChanged{Liveness::Healthy});
    report(first, true, false);
    settle();
    begin();
    send_to_app(name);
    EXPECT_EQ(sent_ids(settle()), Ids{name});
    EXPECT_EQ(worker_of(name), "w2");
    deliver_result(sessions_[kSecond], name);
    settle();
  }
}

TEST_F(Placement, WaitsUntilAWorkerIsFit) {
  start_app();
  for (const WorkerKey& each : {kWorker, kSecond}) report(sessions_[each], false, false);
  settle();
  send_to_app("a");
  EXPECT_TRUE(sent_ids(settle()).empty());
  EXPECT_EQ(state("a"), CommandState::Waiting);
  EXPECT_EQ(worker_of("a"), "");
  report(sessions_[kSecond], true, false);
  EXPECT_EQ(sent_ids(settle()), Ids{"a"});
  EXPECT_EQ(worker_of("a"), "w2");
}

TEST_F(Placement, SaysWhyACommandThatNobodyCouldTakeFailed) {
  start_app();
  for (const WorkerKey& each : {kWorker, kSecond}) report(sessions_[each], false, false);
  send_to_app("a");
  settle();
  pass(options_.command_timeout);
  settle();
  ASSERT_NE(failure_of("a"), nullptr);
  EXPECT_EQ(failure_of("a")->code, ErrorCode::Timeout);
  EXPECT_EQ(failure_of("a")->reason, "no worker could take it within 600000 ms");
  EXPECT_FALSE(failure_of("a")->may_have_run);
}

TEST_F(Placement, AssignsNoApplicationToAWorkerThatIsNotFit) {
  open_runtime();
  deploy(app());
  const SessionRef session = open_placeholder();
  report(session, false, false);
  settle();
  const RequestId refused = assign(1, "a");
  const Effects effects = settle();
  EXPECT_EQ(refusal(effects, refused), ErrorCode::SessionUnknown);
  EXPECT_NE(std::get<Error>(reply_to(effects, refused)->outcome).reason.find("1 not fit for new work"),
            std::string::npos);
  report(session, true, false);
  assign(1, "b");
  settle();
  EXPECT_EQ(assigned(), AssignmentState::Pending);
}

TEST_F(Placement, GivesACommandOfALanguageToAWorkerThatRunsIt) {
  const SessionRef python = open(worker_key("p"));
  register_as(python, 4, {}, {"exec", "python"});
  settle();
  const RequestId unknown = send_to({CommandTarget::Kind::Language, "cobol"}, "x");
  const RequestId request = send_to({CommandTarget::Kind::Language, "python"}, "a");
  const Effects effects = settle();
  EXPECT_EQ(refusal(effects, unknown), ErrorCode::SessionUnknown);
  EXPECT_TRUE(is_accepted(effects, request));
  EXPECT_EQ(sent_ids(effects), Ids{"a"});
  EXPECT_EQ(worker_of("a"), "p");
}

TEST_F(Placement, RefusesAnApplicationThatIsNotDeployedAndATypeThatNoneTakes) {
  const RequestId unknown = send_to_app("a");
  EXPECT_EQ(refusal(settle(), unknown), ErrorCode::CmdUnknown);
  start_app();
  for (const WorkerKey& each : {kWorker, kSecond}) register_as(sessions_[each], 4, {"biz.echo"});
  const RequestId strange = send_to_app("b", false, "biz.strange");
  EXPECT_EQ(refusal(settle(), strange), ErrorCode::SessionUnknown);
}

TEST_F(Placement, AnswersARepetitionWithTheFirstWhicheverWorkerHasIt) {
  start_app();
  send_to_app("a");
  settle();
  const RequestId again = send_to_app("a");
  const RequestId other = submit(kWorker, "a");
  const Effects effects = settle();
  EXPECT_TRUE(std::get<CommandAccepted>(reply_to(effects, again)->outcome).is_repeated);
  EXPECT_EQ(refusal(effects, other), ErrorCode::ResultDuplicate);
}

// ---- what a worker takes

TEST_F(Placement, KeepsNoMoreCommandsUnderWayThanAWorkerTakes) {
  const SessionRef session = open(kWorker);
  register_as(session, 2);
  for (const char* id : {"a", "b", "c", "d"}) submit(kWorker, id);
  EXPECT_EQ(sent_ids(settle()), (Ids{"a", "b"}));
  deliver_result(session, "b");
  EXPECT_EQ(sent_ids(settle()), Ids{"c"});
}

TEST_F(Placement, LetsOrdersPassAWorkerThatIsBusyOrShort) {
  start_app();
  const SessionRef session = sessions_[kWorker];
  register_as(session, 1);
  submit(kWorker, "long");
  settle();
  report(session, true, true);
  unassign("u");
  const Ids sent = sent_ids(settle());
  EXPECT_NE(std::ranges::find(sent, "u.1"), sent.end()) << "a release is not work";
}

TEST_F(Placement, RefusesATypeThatTheWorkerDoesNotList) {
  const SessionRef session = open(kWorker);
  register_as(session, 4, {"biz.exec", "biz.other"});
  settle();
  const RequestId refused = submit(kWorker, "a");
  const Effects effects = settle();
  EXPECT_EQ(refusal(effects, refused), ErrorCode::CmdUnknown);
  EXPECT_EQ(std::get<Error>(reply_to(effects, refused)->outcome).reason,
            "worker 'w1' does not take commands of type 'biz.echo'; it takes biz.exec, biz.other");
}

TEST_F(Placement, FailsWhatWaitedForAWorkerThatTurnsOutNotToTakeIt) {
  submit(kWorker, "a");
  settle();
  const SessionRef session = open(kWorker);
  register_as(session, 4, {"biz.exec"});
  EXPECT_TRUE(sent_ids(settle()).empty());
  ASSERT_NE(failure_of("a"), nullptr);
  EXPECT_EQ(failure_of("a")->code, ErrorCode::CmdUnknown);
  EXPECT_FALSE(failure_of("a")->may_have_run);
}

TEST_F(Placement, TakesEncodingsThatAWorkerListsForNoTypes) {
  const SessionRef session = open(kWorker, Revision::One);
  register_as(session, 4, {"json"});
  const RequestId request = submit(kWorker, "a");
  EXPECT_TRUE(is_accepted(settle(), request));
}

// ---- loss

TEST_F(Placement, EndsACommandOfAWorkerThatIsGoneForTooLong) {
  const SessionRef session = open(kWorker);
  register_as(session, 1);
  submit(kWorker, "given");
  submit(kWorker, "waiting");
  settle();
  say(session, Detached{});
  pass(options_.lost_after - milliseconds{1});
  settle();
  EXPECT_EQ(state("given"), CommandState::Sent);
  pass(milliseconds{1});
  const Effects effects = settle();
  EXPECT_EQ(events<Finished>(effects).size(), 2U);
  ASSERT_NE(failure_of("given"), nullptr);
  EXPECT_EQ(failure_of("given")->code, ErrorCode::WorkerLost);
  EXPECT_TRUE(failure_of("given")->may_have_run);
  EXPECT_EQ(failure_of("given")->reason,
            "worker 'w1' is lost: it was gone for 45 s; the command was given to it and may have run");
  EXPECT_FALSE(failure_of("waiting")->may_have_run);
  say(session, Established{true, 0, {}});
  deliver_result(session, "given");
  const Effects late = settle();
  ASSERT_EQ(events<FrameIgnored>(late).size(), 1U);
  EXPECT_EQ(events<FrameIgnored>(late)[0].why, Ignored::LateResult);
  EXPECT_EQ(state("given"), CommandState::Failed) << "one outcome for ever";
}

TEST_F(Placement, CommandsOfATenantWithTermsOfItsOwnWaitAsLongAsThoseSay) {
  core_->set_tenant_lost_after({{kWorker.tenant, seconds{120}}});
  const SessionRef session = open(kWorker);
  submit(kWorker, "a");
  settle();
  say(session, Detached{});
  pass(options_.lost_after);
  settle();
  EXPECT_EQ(state("a"), CommandState::Sent);
  pass(seconds{75});
  settle();
  ASSERT_NE(failure_of("a"), nullptr);
  EXPECT_EQ(failure_of("a")->code, ErrorCode::WorkerLost);
  EXPECT_EQ(failure_of("a")->reason,
            "worker 'w1' is lost: it was gone for 120 s; the command was given to it and may have run");
}

TEST_F(Placement, WaitsForAWorkerThatComesBackInTime) {
  const SessionRef session = open(kWorker);
  submit(kWorker, "a");
  settle();
  end(session);
  pass(options_.lost_after - milliseconds{1});
  settle();
  const SessionRef next = open(kWorker);
  EXPECT_EQ(sent_ids(settle()), Ids{"a"});
  pass(options_.lost_after);
  settle();
  EXPECT_EQ(state("a"), CommandState::Sent);
  deliver_result(next, "a");
  settle();
  EXPECT_EQ(state("a"), CommandState::Done);
}

TEST_F(Placement, CountsSilenceFromTheLastWord) {
  const SessionRef session = open(kWorker);
  submit(kWorker, "a");
  settle();
  pass(seconds{30});
  say(session, LivenessChanged{Liveness::Warn, seconds{30}, seconds{30}});
  pass(seconds{15} - milliseconds{1});
  settle();
  EXPECT_EQ(state("a"), CommandState::Sent);
  pass(milliseconds{1});
  settle();
  EXPECT_EQ(state("a"), CommandState::Failed);
}

TEST_F(Placement, DoesNotBlameWorkersForItsOwnStandstill) {
  const SessionRef session = open(kWorker);
  submit(kWorker, "a");
  settle();
  say(session, Detached{});
  pass(options_.lost_after + seconds{60});
  settle();
  EXPECT_EQ(state("a"), CommandState::Sent) << "nobody could come back while this process was suspended";
  pass(options_.lost_after);
  settle();
  EXPECT_EQ(state("a"), CommandState::Failed);
}

TEST_F(Placement, EndsCommandsOfAWorkerThatNeverCame) {
  submit(kWorker, "a");
  settle();
  pass(options_.lost_after);
  settle();
  ASSERT_NE(failure_of("a"), nullptr);
  EXPECT_EQ(failure_of("a")->code, ErrorCode::WorkerLost);
  EXPECT_FALSE(failure_of("a")->may_have_run);
}

TEST_F(Placement, AfterARestartGivesWorkersTheirTimeAgainAndKnowsThatACommandMayHaveRun) {
  open(kWorker);
  submit(kWorker, "a");
  settle();
  pass(seconds{40});
  restart();
  pass(options_.lost_after - milliseconds{1});
  settle();
  EXPECT_EQ(state("a"), CommandState::Waiting);
  pass(milliseconds{1});
  settle();
  ASSERT_NE(failure_of("a"), nullptr);
  EXPECT_TRUE(failure_of("a")->may_have_run);
}

TEST_F(Placement, GivesWhatWasNeverGivenToALostWorkerToAnother) {
  start_app();
  for (const WorkerKey& each : {kWorker, kSecond}) register_as(sessions_[each], 1);
  send_to_app("a");
  send_to_app("b");
  send_to_app("c");
  settle();
  ASSERT_EQ(worker_of("a"), "w1");
  ASSERT_EQ(worker_of("b"), "w2");
  ASSERT_EQ(worker_of("c"), "") << "both are busy";
  say(sessions_[kWorker], Detached{});
  deliver_result(sessions_[kSecond], "b");
  EXPECT_EQ(sent_ids(settle()), Ids{"c"});
  EXPECT_EQ(worker_of("c"), "w2");
}

TEST_F(Placement, FailsWhatALostWorkerMayHaveBegun) {
  start_app();
  send_to_app("a");
  settle();
  ASSERT_EQ(worker_of("a"), "w1");
  say(sessions_[kWorker], Detached{});
  pass(options_.lost_after);
  EXPECT_TRUE(sent_ids(settle()).empty());
  ASSERT_NE(failure_of("a"), nullptr);
  EXPECT_EQ(failure_of("a")->code, ErrorCode::WorkerLost);
  EXPECT_TRUE(failure_of("a")->may_have_run);
}

TEST_F(Placement, GivesAnIdempotentCommandOfALostWorkerToAnother) {
  start_app();
  send_to_app("a", true);
  settle();
  ASSERT_EQ(worker_of("a"), "w1");
  const SessionRef first = sessions_[kWorker];
  say(first, Detached{});
  pass(seconds{30});
  report(sessions_[kSecond], true, false);
  pass(options_.lost_after - seconds{30});
  const Effects effects = settle();
  EXPECT_EQ(sent_ids(effects), Ids{"a"});
  ASSERT_EQ(events<Dispatched>(effects).size(), 1U);
  EXPECT_EQ(events<Dispatched>(effects)[0].cause, DispatchCause::WorkerLost);
  EXPECT_EQ(worker_of("a"), "w2");
  EXPECT_EQ(core_->outbox().view(command_key("a"))->record.moves, 1U);
  // The first comes back with an answer that nobody waits for any more.
  say(first, Established{true, 0, {}});
  deliver_result(first, "a");
  ASSERT_EQ(events<FrameIgnored>(settle()).size(), 1U);
  EXPECT_EQ(state("a"), CommandState::Sent);
  deliver_result(sessions_[kSecond], "a");
  settle();
  EXPECT_EQ(state("a"), CommandState::Done);
}

TEST_F(Placement, GivesBackWhatTheSecondWorkerNeverGotThoughTheFirstDid) {
  start_app();
  send_to_app("a", true);
  settle();
  ASSERT_EQ(worker_of("a"), "w1");
  say(sessions_[kWorker], Detached{});
  pass(seconds{30});
  report(sessions_[kSecond], true, false);
  pass(options_.lost_after - seconds{30});
  fill_store();
  settle();
  ASSERT_EQ(worker_of("a"), "w2") << "chosen, and the store did not take it";
  report(sessions_[kSecond], true, true);
  EXPECT_EQ(worker_of("a"), "");
  make_room();
  report(sessions_[kSecond], true, false);
  pass(options_.store_retry_first);
  EXPECT_EQ(sent_ids(settle()), Ids{"a"});
}

TEST_F(Placement, LooksForAWorkerOnlyAfterSomethingChanged) {
  start_app();
  for (const WorkerKey& each : {kWorker, kSecond}) report(sessions_[each], false, false);
  send_to_app("a");
  settle();
  const std::uint64_t before = core_->searches().placements;
  for (int i = 0; i < 100; ++i) {
    report(sessions_[kWorker], false, false);
    settle();
  }
  EXPECT_EQ(core_->searches().placements, before) << "nobody became fit";
  report(sessions_[kWorker], true, false);
  EXPECT_EQ(sent_ids(settle()), Ids{"a"});
}

TEST_F(Placement, SurvivesARestartWithItsTarget) {
  start_app();
  for (const WorkerKey& each : {kWorker, kSecond}) report(sessions_[each], false, false);
  send_to_app("a", true);
  settle();
  restart();
  const auto view = core_->outbox().view(command_key("a"));
  ASSERT_TRUE(view.has_value());
  EXPECT_EQ(view->record.target, (CommandTarget{CommandTarget::Kind::Application, "hello"}));
  EXPECT_TRUE(view->record.is_idempotent);
  const SessionRef session = open(kSecond);
  status(session, kHolds);
  EXPECT_EQ(sent_ids(settle()), Ids{"a"});
}

}  // namespace
}  // namespace windlass
