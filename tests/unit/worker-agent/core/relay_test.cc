#include <gtest/gtest.h>

#include <map>

#include "tests/unit/worker-agent/core/relay_fixture.h"

namespace windlass::agent {
namespace {

using function_rpc::compose;
using function_rpc::Content;
using function_rpc::peek;

TEST_F(RelayTest, AWorkerIsAnnouncedAndInitialisedByTheRuntime) {
  relay.start({}, now);
  EXPECT_EQ(take<DialRuntime>()->target.id, "rt-1");
  relay.handle_session_opened(now);
  worker_says(Content::StartStream, body_of("a.1"));
  EXPECT_EQ(take<ToRuntime>()->message, compose("q", Content::StartStream, body_of("a.1")));
  EXPECT_EQ(runtime_says(Content::WorkerInitRequest, {}, "init"), Route::Forward);
  worker_says(Content::WorkerInitResponse, "body", "init");
  EXPECT_EQ(take<ToRuntime>()->message, compose("init", Content::WorkerInitResponse, "body"));
  EXPECT_EQ(relay.status().state, WorkerState::Placeholder);
  EXPECT_EQ(relay.status().worker_id, "a.1");
}

TEST_F(RelayTest, WithoutARuntimeAWorkerIsAPlaceholderOnceItIsUp) {
  relay.start({}, now);
  EXPECT_EQ(relay.status().state, WorkerState::Starting);
  worker_says(Content::StartStream, body_of("a.1"));
  EXPECT_EQ(relay.status().state, WorkerState::Placeholder);
  EXPECT_FALSE(take<ToRuntime>());
}

TEST_F(RelayTest, ANewSessionIsToldOfTheSameWorkerAndAnsweredFromWhatItSaid) {
  bring_up();
  relay.handle_session_ended(now);
  relay.handle_session_opened(now);
  EXPECT_EQ(take<ToRuntime>()->message, compose("q", Content::StartStream, body_of("a.1")));
  EXPECT_EQ(runtime_says(Content::WorkerInitRequest, {}, "init-2"), Route::Drop)
      << "the worker is asked once";
  EXPECT_EQ(take<ToRuntime>()->message, compose("init-2", Content::WorkerInitResponse, "init body"));
}

TEST_F(RelayTest, AnswersToAnEarlierSessionsInvocationsAreDropped) {
  bring_up();
  EXPECT_EQ(runtime_says(Content::InvocationRequest, body_of("i-1")), Route::Forward);
  EXPECT_EQ(runtime_says(Content::InvocationRequest, body_of("i-2")), Route::Forward);
  EXPECT_EQ(worker_says(Content::InvocationResponse, body_of("i-1")), Route::Forward);
  EXPECT_EQ(worker_says(Content::InvocationResponse, body_of("i-1")), Route::Drop) << "it was answered";
  relay.handle_session_ended(now);
  relay.handle_session_opened(now);
  runtime_says(Content::WorkerInitRequest, {}, "init-2");
  EXPECT_EQ(worker_says(Content::InvocationResponse, body_of("i-2")), Route::Drop);
  EXPECT_EQ(runtime_says(Content::InvocationRequest, body_of("i-3")), Route::Forward);
  EXPECT_EQ(worker_says(Content::InvocationResponse, body_of("i-3")), Route::Forward);
}

TEST_F(RelayTest, OnlyWhatALanguageWorkerMaySayPasses) {
  bring_up();
  for (const Content content :
       {Content::InvocationRequest, Content::FileChangeEventRequest, Content::FunctionLoadRequest,
        Content::WorkerStatusRequest, Content::WorkerTerminate, Content::WorkerInitResponse,
        Content::WorkerInitRequest, Content::StartStream, Content::InvocationCancel,
        Content::FunctionEnvironmentReloadRequest, Content::CloseSharedMemoryResourcesRequest,
        Content::FunctionsMetadataRequest, Content::FunctionLoadRequestCollection,
        Content::WorkerWarmupRequest, Content::WorkerSpecialized, Content::WorkerSpecializedResponse}) {
    EXPECT_EQ(worker_says(content, body_of("a.1")), Route::Refuse) << static_cast<int>(content);
    EXPECT_FALSE(relay.poll_step()) << static_cast<int>(content);
  }
  EXPECT_EQ(relay.from_worker(*peek(""), "", now), Route::Refuse);
  // Two contents in one message are the last one, to everybody.
  std::string both = compose("q", Content::RpcLog, {});
  both += compose("q", Content::WorkerSpecialized, body_of("bank"));
  EXPECT_EQ(relay.from_worker(*peek(both), both, now), Route::Refuse);
  EXPECT_EQ(worker_says(Content::WorkerActionResponse), Route::Forward);
  EXPECT_EQ(worker_says(Content::RpcLog), Route::Forward);
}

TEST_F(RelayTest, AnAnswerPassesOnceForEachQuestion) {
  bring_up();
  const std::map<Content, Content> pairs{
      {Content::FunctionsMetadataRequest, Content::FunctionMetadataResponse},
      {Content::FunctionLoadRequest, Content::FunctionLoadResponse},
      {Content::FunctionLoadRequestCollection, Content::FunctionLoadResponseCollection},
      {Content::WorkerStatusRequest, Content::WorkerStatusResponse},
      {Content::WorkerWarmupRequest, Content::WorkerWarmupResponse},
      {Content::FunctionEnvironmentReloadRequest, Content::FunctionEnvironmentReloadResponse}};
  for (const auto& [question, answer] : pairs) {
    EXPECT_EQ(worker_says(answer), Route::Refuse);
    EXPECT_EQ(runtime_says(question), Route::Forward);
    EXPECT_EQ(worker_says(answer), Route::Forward);
    EXPECT_EQ(worker_says(answer), Route::Refuse);
  }
}

TEST_F(RelayTest, AWorkerThatDiesIsStartedAgainAfterLongerAndLongerTimes) {
  bring_up();
  Duration last{};
  for (int i = 2; i < 6; ++i) {
    relay.handle_worker_ended({.kind = WorkerEnd::Kind::Exited, .code = 1, .errors = {"oh", "no"}}, now);
    const auto reported = take<Reported>();
    ASSERT_TRUE(reported);
    EXPECT_TRUE(reported->is_error);
    EXPECT_NE(reported->how.find("exited with code 1; it said last: oh\nno"), std::string::npos)
        << reported->how;
    EXPECT_GT(reported->restart_in, last);
    last = reported->restart_in;
    EXPECT_FALSE(take<Spawn>());
    pass(reported->restart_in);
    EXPECT_EQ(take<Spawn>()->worker_id, "a." + std::to_string(i));
  }
  EXPECT_EQ(relay.restarts(), 4U);
}

TEST_F(RelayTest, AnExitThatIsNoErrorIsARestartWithoutBlame) {
  bring_up();
  for (const int code : {0, 200}) {
    relay.handle_worker_ended({.kind = WorkerEnd::Kind::Exited, .code = code}, now);
    const auto reported = take<Reported>();
    ASSERT_TRUE(reported);
    EXPECT_FALSE(reported->is_error);
    EXPECT_TRUE(relay.status().last_error.empty());
    pass(reported->restart_in);
    EXPECT_TRUE(take<Spawn>());
  }
}

TEST_F(RelayTest, WhatWasSentToTheWorkerBeforeIsNotForTheNext) {
  bring_up();
  relay.handle_worker_ended({.kind = WorkerEnd::Kind::Signalled, .code = 9}, now);
  EXPECT_EQ(runtime_says(Content::InvocationRequest, body_of("i-1")), Route::Drop);
  pass(seconds{1});
  worker_says(Content::StartStream, body_of("a.2"));
  EXPECT_EQ(runtime_says(Content::InvocationRequest, body_of("i-2")), Route::Drop) << "before its init";
  EXPECT_EQ(runtime_says(Content::WorkerInitRequest), Route::Forward);
}

TEST_F(RelayTest, SpecializeFetchesReloadsTellsTheRuntimeAndIsDone) {
  bring_up();
  specialize();
  EXPECT_EQ(take<FetchPackage>()->digest, "d");
  EXPECT_EQ(relay.status().state, WorkerState::Specializing);
  relay.handle_package("d", "/apps/d", now);
  EXPECT_EQ(take<SendReload>()->folder, "/apps/d");
  EXPECT_EQ(worker_says(Content::FunctionEnvironmentReloadResponse), Route::Take);
  relay.handle_reload_answer(true, {}, "reload", now);
  EXPECT_EQ(take<SendSpecialized>()->reload, "reload");
  relay.handle_function_loaded("hello");
  EXPECT_EQ(runtime_says(Content::WorkerSpecializedResponse), Route::Take);
  pass(milliseconds{250});
  relay.handle_specialized_answer(true, {}, now);
  EXPECT_EQ(take<Remember>()->assignment.application->application_id, "shop");
  EXPECT_EQ(take<CommandDone>()->result,
            R"({"ok":true,"worker_id":"a.1","functions":["hello"],"took_ms":250})");
  EXPECT_EQ(relay.status().state, WorkerState::Ready);
}

TEST_F(RelayTest, AnotherApplicationGetsAFreshProcess) {
  bring_up();
  become_ready();
  specialize("c-2", "e");
  relay.handle_package("e", "/apps/e", now);
  EXPECT_TRUE(is_asked_to_part());
  runtime_says(Content::WorkerTerminate);
  EXPECT_TRUE(take<StopWorker>()->is_polite);
  relay.handle_worker_ended({.kind = WorkerEnd::Kind::Exited, .code = 0}, now);
  EXPECT_EQ(take<Spawn>()->folder, "/apps/e");
  worker_says(Content::StartStream, body_of("a.2"));
  runtime_says(Content::WorkerInitRequest);
  worker_says(Content::WorkerInitResponse);
  EXPECT_EQ(take<SendReload>()->folder, "/apps/e");
}

TEST_F(RelayTest, TheSameSpecializeAgainIsDoneAtOnce) {
  bring_up();
  become_ready();
  specialize("c-2");
  EXPECT_TRUE(take<CommandDone>()->result.starts_with(R"({"ok":true)"));
}

TEST_F(RelayTest, ALanguageThatIsNotSpokenHereIsRefused) {
  bring_up();
  Application application;
  application.language = "cobol";
  relay.handle({RunId{"c-1"}, Specialize{application}}, now);
  EXPECT_NE(take<CommandDone>()->result.find("E.CMD.UNKNOWN"), std::string::npos);
}

TEST_F(RelayTest, ASpecializeThatTakesTooLongSaysWhereItStood) {
  bring_up();
  specialize();
  pass(seconds{181});
  const auto done = take<CommandDone>();
  ASSERT_TRUE(done);
  EXPECT_NE(done->result.find("E.TIMEOUT"), std::string::npos);
  EXPECT_NE(done->result.find("while its package was fetched"), std::string::npos) << done->result;
}

TEST_F(RelayTest, AWorkerThatFailsToLoadIsAPlaceholderAgain) {
  bring_up();
  specialize();
  relay.handle_package("d", "/apps/d", now);
  relay.handle_reload_answer(false, "no such module", {}, now);
  EXPECT_NE(take<CommandDone>()->result.find("no such module"), std::string::npos);
  relay.handle_worker_ended({}, now);
  EXPECT_TRUE(take<Spawn>()->folder.empty());
  EXPECT_FALSE(relay.status().application);
}

// The scheduler tells by the code whether the application was at fault.
TEST_F(RelayTest, AnApplicationThatNeverLoadsIsAtFault) {
  bring_up();
  specialize();
  relay.handle_package("d", "/apps/d", now);
  pass(RelayOptions{}.reload_timeout + seconds{1});
  const auto done = take<CommandDone>();
  ASSERT_TRUE(done);
  EXPECT_NE(done->result.find("E.INTERNAL"), std::string::npos) << done->result;
}

TEST_F(RelayTest, ReassignedItTellsTheNextRuntimeEverything) {
  bring_up();
  become_ready();
  relay.handle({RunId{"c-2"}, Reassign{{"rt-2", "ws://127.0.0.1:2"}}}, now);
  EXPECT_TRUE(is_asked_to_part());
  runtime_says(Content::WorkerTerminate);
  EXPECT_EQ(take<DialRuntime>()->target.id, "rt-2");
  relay.handle_session_opened(now);
  EXPECT_EQ(take<ToRuntime>()->message, compose("q", Content::StartStream, body_of("a.1")));
  runtime_says(Content::WorkerInitRequest, {}, "init-2");
  EXPECT_TRUE(take<SendSpecialized>());
  relay.handle_specialized_answer(true, {}, now);
  EXPECT_EQ(take<Remember>()->assignment.runtime->id, "rt-2");
  EXPECT_TRUE(take<CommandDone>()->result.starts_with(R"({"ok":true)"));
}

TEST_F(RelayTest, StoppedItAnswersWhatIsUnderWayAndStartsNoOther) {
  bring_up();
  specialize();
  relay.stop(now);
  EXPECT_NE(take<CommandDone>()->result.find("E.SESSION.DRAINING"), std::string::npos);
  EXPECT_TRUE(take<StopWorker>());
  relay.handle_worker_ended({}, now);
  EXPECT_TRUE(relay.is_stopped());
  EXPECT_FALSE(relay.poll_step());
}

TEST_F(RelayTest, AWorkerThatDoesNotAnswerItsInitIsEnded) {
  relay.start({}, now);
  relay.handle_session_opened(now);
  worker_says(Content::StartStream, body_of("a.1"));
  runtime_says(Content::WorkerInitRequest, {}, "init");
  pass(seconds{59});
  EXPECT_FALSE(take<StopWorker>());
  pass(seconds{1});
  EXPECT_TRUE(take<StopWorker>());
  relay.handle_worker_ended({.kind = WorkerEnd::Kind::Signalled, .code = 9}, now);
  EXPECT_NE(take<Reported>()->how.find("WorkerInitRequest"), std::string::npos);
}

TEST_F(RelayTest, AnApplicationThatCrashesItsWorkerIsNotRemembered) {
  bring_up();
  specialize();
  relay.handle_package("d", "/apps/d", now);
  skip();
  relay.handle_worker_ended({.kind = WorkerEnd::Kind::Signalled, .code = 11}, now);
  pass(seconds{1});
  announce();
  relay.handle_worker_ended({.kind = WorkerEnd::Kind::Signalled, .code = 11}, now);
  const auto remembered = take<Remember>();
  ASSERT_TRUE(remembered);
  EXPECT_FALSE(remembered->assignment.application);
  EXPECT_TRUE(take<CommandDone>());
}

TEST_F(RelayTest, APackageIsTakenForWhatItIs) {
  Assignment earlier;
  earlier.application.emplace();
  earlier.application->language = "fake";
  earlier.application->package_digest = "old";
  relay.start(earlier, now);
  relay.handle_session_opened(now);
  announce();
  specialize("c-1", "new");
  EXPECT_EQ(take<FetchPackage>()->digest, "new");
  relay.handle_package("old", "/apps/old", now);
  EXPECT_EQ(take<SendReload>()->folder, "/apps/old") << "it is no package of the command";
  relay.handle_package("new", "/apps/new", now);
  EXPECT_TRUE(is_asked_to_part());
}

TEST_F(RelayTest, APackageThatMadeRoomForACommandIsFetchedAfterItFailed) {
  Assignment earlier;
  earlier.application.emplace();
  earlier.application->language = "fake";
  earlier.application->package_digest = "old";
  relay.start(earlier, now);
  skip();
  specialize("c-1", "new");
  skip();
  relay.handle_package_failed("new", ErrorCode::PkgInvalid, "refused", now);
  EXPECT_TRUE(relay.status().application);
  EXPECT_EQ(take<FetchPackage>()->digest, "old");
  relay.handle_package_failed("old", ErrorCode::Timeout, "nor this one", now);
  EXPECT_FALSE(relay.status().application);
}

TEST_F(RelayTest, AReleasedWorkerAnswersWhatTheRuntimeGaveIt) {
  bring_up();
  become_ready();
  runtime_says(Content::InvocationRequest, body_of("i-1"));
  relay.handle({RunId{"c-2"}, Release{}}, now);
  EXPECT_TRUE(is_asked_to_part());
  EXPECT_EQ(runtime_says(Content::InvocationRequest, body_of("i-2")), Route::Forward) << "it was on the wire";
  EXPECT_EQ(worker_says(Content::InvocationResponse, body_of("i-1")), Route::Forward);
  EXPECT_EQ(worker_says(Content::InvocationResponse, body_of("i-2")), Route::Forward);
  EXPECT_FALSE(take<StopWorker>()) << "only the runtime knows whether that was all";
  runtime_says(Content::WorkerTerminate);
  EXPECT_TRUE(take<StopWorker>()->is_polite);
  relay.handle_worker_ended({}, now);
  EXPECT_TRUE(take<Spawn>()->folder.empty());
  worker_says(Content::StartStream, body_of("a.2"));
  EXPECT_TRUE(take<CommandDone>()->result.starts_with(R"({"ok":true)"));
}

TEST_F(RelayTest, ARuntimeThatSaysNothingIsNotWaitedForLong) {
  bring_up();
  become_ready();
  relay.handle({RunId{"c-2"}, Release{}}, now);
  EXPECT_TRUE(is_asked_to_part());
  pass(seconds{4});
  EXPECT_FALSE(take<StopWorker>());
  pass(seconds{1});
  EXPECT_TRUE(take<StopWorker>());
}

TEST_F(RelayTest, ARuntimeThatSaysNothingIsWaitedForWhileItIsOwedAnAnswer) {
  bring_up();
  become_ready();
  runtime_says(Content::InvocationRequest, body_of("i-1"));
  relay.handle({RunId{"c-2"}, Release{}}, now);
  pass(seconds{40});
  EXPECT_FALSE(take<StopWorker>());
  EXPECT_EQ(worker_says(Content::InvocationResponse, body_of("i-1")), Route::Forward);
  pass(seconds{4});
  EXPECT_FALSE(take<StopWorker>());
  pass(seconds{1});
  EXPECT_TRUE(take<StopWorker>());
}

TEST_F(RelayTest, ARuntimeThatIsAwayIsWaitedForOnlyWhileTheWorkerIsAtWork) {
  bring_up();
  become_ready();
  runtime_says(Content::InvocationRequest, body_of("i-1"));
  relay.handle({RunId{"c-2"}, Reassign{{"rt-2", "ws://127.0.0.1:2"}}}, now);
  EXPECT_TRUE(is_asked_to_part());
  relay.handle_connected(false, now);
  EXPECT_FALSE(take<DialRuntime>());
  EXPECT_EQ(worker_says(Content::InvocationResponse, body_of("i-1")), Route::Forward);
  relay.handle_connected(false, now);
  EXPECT_EQ(take<DialRuntime>()->target.id, "rt-2");
}

TEST_F(RelayTest, AWorkerThatDiesOrLosesItsRuntimeIsNotWaitedForEither) {
  bring_up();
  become_ready();
  specialize("c-2", "e");
  relay.handle_package("e", "/apps/e", now);
  EXPECT_TRUE(is_asked_to_part());
  relay.handle_worker_ended({.kind = WorkerEnd::Kind::Signalled, .code = 9}, now);
  EXPECT_EQ(take<Spawn>()->folder, "/apps/e");
  announce();
  relay.handle_reload_answer(true, {}, "reload", now);
  relay.handle_specialized_answer(true, {}, now);
  skip();
  relay.handle({RunId{"c-3"}, Release{}}, now);
  EXPECT_TRUE(is_asked_to_part());
  relay.handle_session_ended(now);
  EXPECT_TRUE(take<StopWorker>());
}

TEST_F(RelayTest, AnotherApplicationAtAnotherRuntimeIsOneParting) {
  bring_up();
  become_ready();
  Application other;
  other.language = "fake";
  other.package_digest = "e";
  relay.handle({RunId{"c-2"}, Specialize{other, RuntimeTarget{"rt-2", "ws://127.0.0.1:2"}}}, now);
  relay.handle_package("e", "/apps/e", now);
  EXPECT_TRUE(is_asked_to_part());
  runtime_says(Content::WorkerTerminate);
  EXPECT_EQ(take<DialRuntime>()->target.id, "rt-2");
  EXPECT_TRUE(take<StopWorker>());
}

TEST_F(RelayTest, DrainedItStopsWhenTheRuntimeWaitsForNothing) {
  bring_up();
  become_ready();
  relay.drain(now);
  EXPECT_TRUE(is_asked_to_part());
  EXPECT_EQ(runtime_says(Content::InvocationRequest, body_of("i-1")), Route::Forward) << "it was on the wire";
  relay.handle({RunId{"c-2"}, Release{}}, now);
  EXPECT_NE(take<CommandDone>()->result.find("E.SESSION.DRAINING"), std::string::npos);
  EXPECT_EQ(worker_says(Content::InvocationResponse, body_of("i-1")), Route::Forward);
  EXPECT_FALSE(relay.is_stopping());
  runtime_says(Content::WorkerTerminate);
  EXPECT_TRUE(relay.is_stopping());
  EXPECT_TRUE(take<StopWorker>());
  relay.handle_worker_ended({}, now);
  EXPECT_TRUE(relay.is_stopped());
}

}  // namespace
}  // namespace windlass::agent
