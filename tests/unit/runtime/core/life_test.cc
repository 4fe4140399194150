// From a channel to a completed invocation, and the plain ways in which that fails.
#include "tests/unit/runtime/core/core_bench.h"

namespace windlass::runtime {
namespace {

TEST(Warmup, IsAskedOfPlaceholdersThatCan) {
  CoreBench bench;
  EXPECT_TRUE(bench.sent_to<WarmupRequest>(bench.placeholder("a")).empty());
  const ChannelId channel = bench.placeholder("b", {{"HandlesWorkerWarmupMessage", "true"}});
  ASSERT_EQ(bench.sent_to<WarmupRequest>(channel).size(), 1U);
  bench.say(channel, WarmupResponse{failure("too cold")});
  bench.advance(seconds{3600});
  EXPECT_EQ(bench.state("b"), WorkerState::Placeholder) << "it answered";
}

TEST(Warmup, IsLimitedToNinetySeconds) {
  CoreBench bench;
  const ChannelId channel = bench.placeholder("a", {{"HandlesWorkerWarmupMessage", "true"}});
  bench.advance(milliseconds{89'999});
  EXPECT_EQ(bench.state("a"), WorkerState::Placeholder);
  bench.advance(milliseconds{1});
  EXPECT_EQ(bench.state("a"), WorkerState::Abandoned);
  EXPECT_TRUE(bench.is_closed(channel));
}

TEST(Warmup, HoldsNoApplicationUp) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a", "v1", {{"HandlesWorkerWarmupMessage", "true"}});
  EXPECT_EQ(bench.state("a"), WorkerState::Ready);
  bench.say(channel, WarmupResponse{success()});
  bench.advance(seconds{3600});
  EXPECT_EQ(bench.state("a"), WorkerState::Ready);
  bench.core.add_application({{bench.app, "v1"}, "/srv", {}, bench.functions});
  const ChannelId dialled = bench.dial_in();
  bench.say(dialled, StartStream{WorkerId{"w"}});
  bench.say(dialled, InitResponse{success(), {{"HandlesWorkerWarmupMessage", "true"}}, "node", "22", "1"});
  EXPECT_TRUE(bench.core.specialize(WorkerId{"w"}, "shop", bench.now));
}

TEST(Life, InitializesAWorkerAsAPlaceholder) {
  CoreBench bench;
  const ChannelId channel = bench.placeholder("agent.1");
  ASSERT_EQ(bench.sent_to<InitRequest>(channel).size(), 1U);
  EXPECT_EQ(bench.sent_to<InitRequest>(channel)[0]->function_app_directory, "");
  EXPECT_EQ(bench.state("agent.1"), WorkerState::Placeholder);
  EXPECT_EQ(bench.worker("agent.1")->language, "node");
  EXPECT_TRUE(bench.job_host(placeholder_job_host()));
}

TEST(Life, SpecializesIndexesLoadsAndIsReady) {
  CoreBench bench;
  const ChannelId channel = bench.placeholder("agent.1");
  bench.say(channel, bench.specialized("agent.1"));
  EXPECT_EQ(bench.state("agent.1"), WorkerState::Specializing);
  EXPECT_EQ(bench.job_host(bench.app)->state, JobHostState::Starting);
  ASSERT_EQ(bench.sent_to<MetadataRequest>(channel).size(), 1U);
  bench.say(channel, MetadataResponse{success(), false, bench.functions});
  EXPECT_EQ(bench.state("agent.1"), WorkerState::Specialized);
  EXPECT_EQ(bench.job_host(bench.app)->state, JobHostState::Running);
  ASSERT_EQ(bench.sent_to<LoadRequest>(channel).size(), 2U);
  EXPECT_TRUE(bench.sent_to<SpecializedResponse>(channel).empty());
  bench.say(channel, LoadResponse{FunctionId{"one-id"}, success()});
  bench.say(channel, LoadResponse{FunctionId{"two-id"}, success()});
  EXPECT_EQ(bench.state("agent.1"), WorkerState::Ready);
  ASSERT_EQ(bench.sent_to<SpecializedResponse>(channel).size(), 1U);
  EXPECT_TRUE(bench.sent_to<SpecializedResponse>(channel)[0]->result.is_ok());
  EXPECT_EQ(bench.sent_to<SpecializedResponse>(channel)[0]->correlation_id, "c-agent.1");
  EXPECT_EQ(bench.sent_to<SpecializedResponse>(channel)[0]->job_host_id, "shop:m1");
  EXPECT_EQ(bench.core.free_slots(bench.app), 10U);
  EXPECT_EQ(bench.core.find_job_host("shop"), bench.app);
  bench.advance(seconds{1});
  EXPECT_FALSE(bench.job_host(placeholder_job_host())) << "its last worker left";
}

TEST(Life, EveryWorkerOfAJobHostIsAskedForItsFunctions) {
  CoreBench bench;
  bench.ready("a");
  const ChannelId second = bench.ready("b");
  EXPECT_EQ(bench.sent_to<MetadataRequest>(second).size(), 1U);
  EXPECT_EQ(bench.sent_to<LoadRequest>(second).size(), 2U);
  EXPECT_EQ(bench.count(Note::Kind::JobHostCreated, bench.app), 1U);
  EXPECT_EQ(bench.job_host(bench.app)->ready, 2U);
}

TEST(Life, LoadsInOneMessageWhereTheWorkerAnswersSo) {
  CoreBench bench;
  const ChannelId channel = bench.placeholder("a", {{"SupportsLoadResponseCollection", "true"}});
  bench.specialize(channel, "a");
  ASSERT_EQ(bench.sent_to<LoadRequests>(channel).size(), 1U);
  EXPECT_EQ(bench.sent_to<LoadRequests>(channel)[0]->functions.size(), 2U);
  bench.say(channel,
            LoadResponses{{{FunctionId{"one-id"}, success()}, {FunctionId{"two-id"}, failure("no")}}});
  EXPECT_EQ(bench.state("a"), WorkerState::Ready);
}

TEST(Life, CompletesAnInvocation) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a");
  ASSERT_TRUE(bench.submit("i1"));
  ASSERT_EQ(bench.sent_to<InvocationRequest>(channel).size(), 1U);
  EXPECT_EQ(bench.sent_to<InvocationRequest>(channel)[0]->function, FunctionId{"one-id"});
  EXPECT_EQ(bench.core.free_slots(bench.app), 9U);
  bench.advance(milliseconds{5});
  bench.respond(channel, "i1");
  const Outcome* outcome = bench.outcome("i1");
  ASSERT_NE(outcome, nullptr);
  EXPECT_EQ(outcome->settlement, Settlement::Complete);
  EXPECT_EQ(outcome->body, "answer");
  EXPECT_EQ(outcome->worker, WorkerId{"a"});
  EXPECT_EQ(outcome->took, milliseconds{5});
  EXPECT_EQ(bench.core.free_slots(bench.app), 10U);
  EXPECT_EQ(bench.worker("a")->done, 1U);
}

TEST(Life, AFailedFunctionIsAbandonedUntilItsLastDelivery) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a");
  ASSERT_TRUE(bench.submit("i1"));
  bench.respond(channel, "i1", failure("boom"));
  EXPECT_EQ(bench.outcome("i1")->settlement, Settlement::Abandon);
  EXPECT_EQ(bench.outcome("i1")->cause, Cause::FunctionFailed);
  EXPECT_EQ(bench.outcome("i1")->reason, "boom");
  Invocation last = bench.invocation("i2");
  last.delivery_count = 5;
  ASSERT_TRUE(bench.submit(last));
  bench.respond(channel, "i2", failure("boom"));
  EXPECT_EQ(bench.outcome("i2")->settlement, Settlement::DeadLetter);
}

TEST(Life, RefusesUnknownApplicationsFunctionsAndRepeatedIds) {
  CoreBench bench;
  bench.ready("a");
  EXPECT_EQ(bench.submit("i1", "none").error().code, ErrorCode::CmdUnknown);
  Invocation foreign = bench.invocation("i2");
  foreign.job_host = {"other", "m1"};
  EXPECT_EQ(bench.submit(foreign).error().code, ErrorCode::CmdUnknown);
  ASSERT_TRUE(bench.submit("i3"));
  EXPECT_EQ(bench.submit("i3").error().code, ErrorCode::ProtoState);
  EXPECT_TRUE(bench.outcomes.empty());
}

TEST(Life, ACrashFailsWhatWasInFlightAndAsksForAReplacement) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a");
  ASSERT_TRUE(bench.submit("i1"));
  bench.core.handle_closed(channel, ChannelEnd::Unavailable, "reset", bench.now);
  bench.poll();
  EXPECT_EQ(bench.outcome("i1")->cause, Cause::WorkerLost);
  EXPECT_EQ(bench.outcome("i1")->settlement, Settlement::Abandon);
  ASSERT_EQ(bench.count(Signal::Kind::Replace), 1U);
  EXPECT_TRUE(bench.signals.back().is_urgent());
  EXPECT_EQ(bench.signals.back().job_host, bench.app);
  EXPECT_EQ(bench.state("a"), WorkerState::Disconnected);
  bench.advance(seconds{301});
  EXPECT_FALSE(bench.worker("a"));
  EXPECT_FALSE(bench.job_host(bench.app));
}

TEST(Life, ATimeoutGivesTheWorkerUp) {
  CoreBench bench;
  const ChannelId slow = bench.ready("a");
  bench.ready("b");
  Invocation hung = bench.invocation("hung");
  hung.timeout = seconds{10};
  ASSERT_TRUE(bench.submit(hung));
  const ChannelId with = *bench.channel_of("hung");
  EXPECT_EQ(with, slow);
  ASSERT_TRUE(bench.submit("i2"));
  ASSERT_TRUE(bench.submit("i3"));
  bench.advance(seconds{10});
  EXPECT_EQ(bench.outcome("hung")->cause, Cause::TimedOut);
  bench.advance(seconds{2});
  EXPECT_TRUE(bench.is_closed(slow));
  EXPECT_EQ(bench.sent_to<Terminate>(slow).size(), 1U);
  EXPECT_EQ(bench.state("a"), WorkerState::Abandoned);
  EXPECT_EQ(bench.outcome("i3")->cause, Cause::WorkerLost) << "it was on the same worker";
  EXPECT_EQ(bench.outcome("i2"), nullptr);
  ASSERT_EQ(bench.count(Signal::Kind::Replace), 1U);
  EXPECT_FALSE(bench.signals.back().is_urgent());
  bench.advance(seconds{300});
  EXPECT_FALSE(bench.worker("a"));
}

TEST(Life, WaitsInOrderForASlot) {
  RuntimeOptions options;
  options.slots_per_worker = 1;
  CoreBench bench{options};
  const ChannelId channel = bench.ready("a");
  for (const char* id : {"i1", "i2", "i3"}) ASSERT_TRUE(bench.submit(id));
  EXPECT_EQ(bench.sent_to<InvocationRequest>(channel).size(), 1U);
  EXPECT_EQ(bench.count(Signal::Kind::NoFreeSlot), 1U);
  bench.respond(channel, "i1");
  bench.respond(channel, "i2");
  bench.respond(channel, "i3");
  const auto requests = bench.sent_to<InvocationRequest>(channel);
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_EQ(requests[1]->invocation.value(), "i2");
  EXPECT_EQ(requests[2]->invocation.value(), "i3");
  EXPECT_EQ(bench.count(Signal::Kind::SlotFree), 0U);
  bench.advance(seconds{2});
  EXPECT_EQ(bench.count(Signal::Kind::SlotFree), 1U);
}

TEST(Life, WhatComesBackToTheQueueTakesThePlaceItHad) {
  RuntimeOptions options;
  options.slots_per_worker = 1;
  CoreBench bench{options};
  const ChannelId lost = bench.ready("a");
  for (const char* id : {"i1", "i2", "i3"}) {
    Invocation again = bench.invocation(id);
    again.is_idempotent = true;
    ASSERT_TRUE(bench.submit(again));
  }
  bench.end(lost, ChannelEnd::Unavailable);
  const ChannelId channel = bench.ready("b");
  for (const char* id : {"i1", "i2", "i3"}) {
    EXPECT_EQ(bench.sent_to<InvocationRequest>(channel).back()->invocation.value(), id);
    bench.respond(channel, id);
  }
  EXPECT_EQ(bench.outcomes.size(), 3U);
}

TEST(Life, WhatComesBeforeTheIndexWaitsForIt) {
  CoreBench bench;
  const ChannelId channel = bench.placeholder("a");
  bench.say(channel, bench.specialized("a"));
  ASSERT_TRUE(bench.submit("i1"));
  ASSERT_TRUE(bench.submit("i2", "none"));
  const std::size_t before = bench.sent.size();
  bench.say(channel, MetadataResponse{success(), false, bench.functions});
  bench.answer(channel, before);
  EXPECT_EQ(bench.sent_to<InvocationRequest>(channel).size(), 1U);
  EXPECT_EQ(bench.outcome("i2")->cause, Cause::UnknownFunction);
}

}  // namespace
}  // namespace windlass::runtime
