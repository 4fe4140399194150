// Functions that could not be indexed or loaded: remembered, and not tried on workers.
#include "tests/unit/runtime/core/core_bench.h"

namespace windlass::runtime {
namespace {

// A worker that loads all functions but "two".
ChannelId ready_without_two(CoreBench& bench, const std::string& worker, const std::string& code = "v1") {
  const ChannelId channel = bench.placeholder(worker);
  bench.say(channel, bench.specialized(worker, code));
  if (!bench.sent_to<MetadataRequest>(channel).empty()) {
    bench.say(channel, MetadataResponse{success(), false, bench.functions});
  }
  bench.say(channel, LoadResponse{FunctionId{"one-id"}, success()});
  bench.say(channel, LoadResponse{FunctionId{"two-id"}, failure("no module 'two'")});
  return channel;
}

TEST(LoadFailure, EndsInvocationsWithoutReachingAWorker) {
  CoreBench bench;
  const ChannelId channel = ready_without_two(bench, "a");
  EXPECT_EQ(bench.state("a"), WorkerState::Ready);
  EXPECT_EQ(bench.worker("a")->functions_loaded, 1U);
  EXPECT_TRUE(bench.sent_to<SpecializedResponse>(channel).at(0)->result.is_ok());
  EXPECT_EQ(bench.count(Note::Kind::FunctionLoadFailed), 1U);
  ASSERT_TRUE(bench.submit("i1", "two"));
  ASSERT_NE(bench.outcome("i1"), nullptr);
  EXPECT_EQ(bench.outcome("i1")->cause, Cause::LoadFailed);
  EXPECT_NE(bench.outcome("i1")->reason.find("no module 'two'"), std::string::npos);
  EXPECT_EQ(bench.outcome("i1")->tries, 0U);
  EXPECT_TRUE(bench.sent_to<InvocationRequest>(channel).empty());
  ASSERT_TRUE(bench.submit("i2", "one"));
  EXPECT_EQ(bench.sent_to<InvocationRequest>(channel).size(), 1U);
}

TEST(LoadFailure, IsShownToOperators) {
  CoreBench bench;
  ready_without_two(bench, "a");
  const auto view = bench.job_host(bench.app);
  ASSERT_TRUE(view);
  for (const FunctionView& function : view->functions) {
    EXPECT_EQ(function.load_failure, function.function->name == "two" ? "no module 'two'" : "");
  }
}

TEST(LoadFailure, LeavesTheFunctionToCodeThatHasIt) {
  CoreBench bench;
  const ChannelId broken = ready_without_two(bench, "a", "v1");
  const ChannelId whole = bench.ready("b", "v2");
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(bench.submit("i" + std::to_string(i), "two"));
  EXPECT_EQ(bench.sent_to<InvocationRequest>(whole).size(), 8U);
  EXPECT_TRUE(bench.sent_to<InvocationRequest>(broken).empty());
}

TEST(LoadFailure, IsForgottenWithTheLastWorkerOfThatCode) {
  CoreBench bench;
  const ChannelId channel = ready_without_two(bench, "a");
  bench.end(channel, ChannelEnd::Closed);
  const ChannelId next = bench.ready("b");
  ASSERT_TRUE(bench.submit("i1", "two"));
  EXPECT_EQ(bench.sent_to<InvocationRequest>(next).size(), 1U);
}

TEST(LoadFailure, OfEveryFunctionIsTheAgentsAnswer) {
  CoreBench bench;
  bench.functions = {make_function("two")};
  const ChannelId channel = bench.placeholder("a");
  bench.say(channel, bench.specialized("a"));
  bench.say(channel, MetadataResponse{success(), false, bench.functions});
  bench.say(channel, LoadResponse{FunctionId{"two-id"}, failure("syntax error")});
  ASSERT_EQ(bench.sent_to<SpecializedResponse>(channel).size(), 1U);
  const RpcResult& result = bench.sent_to<SpecializedResponse>(channel)[0]->result;
  EXPECT_FALSE(result.is_ok());
  EXPECT_NE(result.reason.find("syntax error"), std::string::npos);
}

TEST(LoadFailure, OfIndexingIsRememberedAndTheFunctionNotLoaded) {
  CoreBench bench;
  auto unreadable = std::make_shared<Function>(*make_function("two"));
  unreadable->status = failure("two triggers");
  bench.functions = {make_function("one"), unreadable};
  const ChannelId channel = bench.ready("a");
  EXPECT_EQ(bench.sent_to<LoadRequest>(channel).size(), 1U);
  ASSERT_TRUE(bench.submit("i1", "two"));
  EXPECT_EQ(bench.outcome("i1")->cause, Cause::LoadFailed);
  EXPECT_EQ(bench.outcome("i1")->reason, "function 'two' could not be loaded: two triggers");
}

// The first worker's word once counted for all: what it did not report was gone on every worker.
TEST(LoadFailure, OfIndexingIsTheWorkersOwn) {
  CoreBench bench;
  const std::vector<FunctionRef> whole = bench.functions;
  auto unreadable = std::make_shared<Function>(*make_function("two"));
  unreadable->status = failure("two triggers");
  bench.functions = {make_function("one"), unreadable};
  const ChannelId broken = bench.ready("a.1", "v1", {});
  bench.functions = whole;
  const ChannelId good = bench.ready("b.1", "v1", {});
  EXPECT_EQ(bench.sent_to<LoadRequest>(good).size(), 2U);
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(bench.submit("i" + std::to_string(i), "two"));
  EXPECT_EQ(bench.sent_to<InvocationRequest>(good).size(), 8U);
  EXPECT_TRUE(bench.sent_to<InvocationRequest>(broken).empty());
  bench.advance(seconds{10});
  EXPECT_EQ(bench.state("a.1"), WorkerState::Draining) << "another process may do better";
  EXPECT_EQ(bench.state("b.1"), WorkerState::Ready);
}

TEST(LoadFailure, AFunctionThatTheFirstWorkerDoesNotReportIsServedByTheNext) {
  CoreBench bench;
  const std::vector<FunctionRef> whole = bench.functions;
  bench.functions = {make_function("one")};
  const ChannelId broken = bench.ready("a.1", "v1", {});
  EXPECT_FALSE(bench.submit("early", "two"));
  bench.functions = whole;
  const ChannelId good = bench.ready("b.1", "v1", {});
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(bench.submit("i" + std::to_string(i), "two"));
  EXPECT_EQ(bench.sent_to<InvocationRequest>(good).size(), 8U);
  ASSERT_TRUE(bench.submit("one", "one"));
  EXPECT_EQ(bench.channel_of("one"), broken) << "what it has it runs";
  EXPECT_EQ(bench.worker("a.1")->load_failures.size(), 1U);
  EXPECT_EQ(bench.job_host(bench.app)->functions.at(1).lacking, 1U);
  bench.end(good, ChannelEnd::Unavailable);
  ASSERT_TRUE(bench.submit("late", "two")) << "it is known, and nobody has it";
  EXPECT_EQ(bench.outcome("late")->cause, Cause::LoadFailed);
  EXPECT_NE(bench.outcome("late")->reason.find("does not register"), std::string::npos);
}

TEST(LoadFailure, AFunctionThatNobodyHasAnyMoreIsDropped) {
  CoreBench bench;
  const std::vector<FunctionRef> whole = bench.functions;
  const ChannelId last = bench.ready("a.1", "v1", {});
  bench.functions = {make_function("one")};
  bench.ready("b.1", "v2", {});
  EXPECT_EQ(bench.job_host(bench.app)->functions.size(), 2U);
  bench.end(last, ChannelEnd::Closed);
  EXPECT_EQ(bench.job_host(bench.app)->functions.size(), 1U);
  EXPECT_EQ(bench.count(Note::Kind::FunctionsDropped), 1U);
  EXPECT_TRUE(bench.worker("b.1")->load_failures.empty());
  const auto refused = bench.submit("late", "two");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::CmdUnknown);
  bench.functions = whole;
  const ChannelId next = bench.ready("c.1", "v1", {});
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(bench.submit("i" + std::to_string(i), "two"));
  EXPECT_EQ(bench.sent_to<InvocationRequest>(next).size(), 4U);
}

TEST(LoadFailure, AFunctionOfALostWorkerIsKeptUntilNoOtherIsAwaited) {
  CoreBench bench;
  const ChannelId last = bench.ready("a.1", "v1", {});
  bench.functions = {make_function("one")};
  bench.ready("b.1", "v2", {});
  bench.end(last, ChannelEnd::Unavailable);
  EXPECT_EQ(bench.job_host(bench.app)->functions.size(), 2U) << "its next worker may have it";
  bench.ready("a.2", "v2", {});
  EXPECT_EQ(bench.job_host(bench.app)->functions.size(), 1U) << "it has not";
}

TEST(LoadFailure, FunctionsThatNobodyHasAnyMoreKeepNobodyOut) {
  RuntimeOptions options;
  options.functions_max = 2;
  CoreBench bench{options};
  const ChannelId first = bench.ready("a.1", "v1", {});
  bench.end(first, ChannelEnd::Unavailable);
  bench.functions = {make_function("three"), make_function("four")};
  bench.ready("b.1", "v2", {});
  EXPECT_EQ(bench.state("b.1"), WorkerState::Ready);
  EXPECT_EQ(bench.job_host(bench.app)->functions.size(), 2U);
}

TEST(LoadFailure, WhatALaterWorkerDoesNotReportStaysWithTheOthers) {
  CoreBench bench;
  const ChannelId good = bench.ready("a.1", "v1", {});
  bench.functions = {make_function("one")};
  const ChannelId broken = bench.ready("b.1", "v1", {});
  EXPECT_EQ(bench.sent_to<LoadRequest>(broken).size(), 1U);
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(bench.submit("i" + std::to_string(i), "two"));
  EXPECT_EQ(bench.sent_to<InvocationRequest>(good).size(), 8U);
  bench.advance(seconds{10});
  EXPECT_EQ(bench.state("b.1"), WorkerState::Draining);
}

TEST(LoadFailure, AnIndexThatFailsIsTheWorkersOwn) {
  CoreBench bench;
  bench.ready("a.1", "v1", {});
  const ChannelId broken = bench.placeholder("b.1", {});
  bench.say(broken, bench.specialized("b.1"));
  bench.say(broken, MetadataResponse{failure("no disk"), false, {}});
  EXPECT_EQ(bench.state("b.1"), WorkerState::Unhealthy);
  EXPECT_FALSE(bench.sent_to<SpecializedResponse>(broken).at(0)->result.is_ok());
  EXPECT_EQ(bench.job_host(bench.app)->state, JobHostState::Running);
  ASSERT_TRUE(bench.submit("i1"));
  EXPECT_EQ(bench.outcome("i1"), nullptr);
}

TEST(LoadFailure, WorkersCannotFillTheHouseWithFunctionsTogether) {
  RuntimeOptions options;
  options.functions_max = 3;
  CoreBench bench{options};
  bench.ready("a.1", "v1", {});
  bench.functions = {make_function("three"), make_function("four")};
  bench.ready("b.1", "v1", {});
  EXPECT_EQ(bench.state("b.1"), WorkerState::Unhealthy);
  EXPECT_EQ(bench.job_host(bench.app)->functions.size(), 2U);
  EXPECT_TRUE(bench.worker("a.1")->load_failures.empty());
}

TEST(LoadFailure, ADisabledFunctionIsLoadedLastAndNotRun) {
  CoreBench bench;
  auto disabled = std::make_shared<Function>(*make_function("two"));
  disabled->is_disabled = true;
  bench.functions = {disabled, make_function("one")};
  const ChannelId channel = bench.ready("a");
  ASSERT_EQ(bench.sent_to<LoadRequest>(channel).size(), 2U);
  EXPECT_EQ(bench.sent_to<LoadRequest>(channel)[1]->function->name, "two");
  ASSERT_TRUE(bench.submit("i1", "two"));
  EXPECT_EQ(bench.outcome("i1")->cause, Cause::UnknownFunction);
  EXPECT_TRUE(bench.sent_to<InvocationRequest>(channel).empty());
}

TEST(LoadFailure, SettingsSwitchOffAFunctionThatItsWorkerRegisters) {
  CoreBench bench;
  const ChannelId channel = bench.placeholder("a");
  WorkerSpecialized told = bench.specialized("a");
  told.settings = {{"AzureWebJobs.two.Disabled", "True"}, {"AzureWebJobs.one.Disabled", "0"}};
  const std::size_t before = bench.sent.size();
  bench.say(channel, told);
  bench.answer(channel, before);
  ASSERT_TRUE(bench.submit("i1", "two"));
  EXPECT_EQ(bench.outcome("i1")->cause, Cause::UnknownFunction);
  ASSERT_TRUE(bench.submit("i2", "one"));
  EXPECT_EQ(bench.channel_of("i2"), channel);
}

TEST(LoadFailure, SettingsOfTheLastWorkerSayWhatIsSwitchedOff) {
  CoreBench bench;
  bench.ready("a");
  const ChannelId channel = bench.placeholder("b");
  WorkerSpecialized told = bench.specialized("b");
  told.settings = {{"AzureWebJobs.two.Disabled", "1"}};
  std::size_t before = bench.sent.size();
  bench.say(channel, told);
  bench.answer(channel, before);
  ASSERT_TRUE(bench.submit("off", "two"));
  EXPECT_EQ(bench.outcome("off")->cause, Cause::UnknownFunction);
  bench.specialize(channel, "b");
  ASSERT_TRUE(bench.submit("on", "two"));
  EXPECT_EQ(bench.outcome("on"), nullptr);
}

TEST(LoadFailure, SettingsOfAConfiguredApplicationSwitchOffToo) {
  CoreBench bench;
  bench.core.add_application({{bench.app, "v1"}, "/srv", {{"AzureWebJobs.one.Disabled", "1"}}, {}});
  const ChannelId channel = bench.dial_in("shop");
  bench.say(channel, StartStream{WorkerId{"w"}});
  const std::size_t before = bench.sent.size();
  bench.say(channel, InitResponse{success(), {}, "node", "22", "1"});
  bench.answer(channel, before);
  ASSERT_TRUE(bench.submit("i1", "one"));
  EXPECT_EQ(bench.outcome("i1")->cause, Cause::UnknownFunction);
}

TEST(LoadFailure, JobHostsThatNeverRanAndNobodyAskedForDoNotFillTheHouse) {
  RuntimeOptions options;
  options.job_hosts_max = 3;
  CoreBench bench{options};
  const ChannelId channel = bench.placeholder("a", {});
  for (int i = 0; i < 10; ++i) {
    WorkerSpecialized wrong = bench.specialized("a");
    wrong.application.job_host.application_id = "wrong" + std::to_string(i);
    bench.say(channel, wrong);
    bench.say(channel, MetadataResponse{success(), false, {}});
    bench.advance(Duration{});
  }
  EXPECT_EQ(bench.core.job_hosts().size(), 1U) << "the placeholders'";
  bench.ready("b");
  EXPECT_EQ(bench.state("b"), WorkerState::Ready);
}

TEST(LoadFailure, AnApplicationWithoutFunctionsFailsItsJobHost) {
  CoreBench bench;
  const ChannelId channel = bench.placeholder("a");
  bench.say(channel, bench.specialized("a"));
  ASSERT_TRUE(bench.submit("early"));
  bench.say(channel, MetadataResponse{success(), false, {}});
  EXPECT_FALSE(bench.sent_to<SpecializedResponse>(channel).at(0)->result.is_ok());
  EXPECT_EQ(bench.job_host(bench.app)->state, JobHostState::Failed);
  EXPECT_EQ(bench.outcome("early")->cause, Cause::JobHostFailed);
  EXPECT_EQ(bench.state("a"), WorkerState::Unhealthy);
  bench.app.metadata_version = "m2";
  bench.specialize(channel, "a");
  EXPECT_EQ(bench.state("a"), WorkerState::Ready) << "another application helps";
}

}  // namespace
}  // namespace windlass::runtime
