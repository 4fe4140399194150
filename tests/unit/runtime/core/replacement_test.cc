// Lost workers and who comes instead: urgency, what is said again, ends that agents report, and workers that
// could not load what others can.
#include "tests/unit/runtime/core/core_bench.h"

namespace windlass::runtime {
namespace {

Invocation with_timeout(const CoreBench& bench, const std::string& id, Duration timeout) {
  Invocation invocation = bench.invocation(id);
  invocation.timeout = timeout;
  return invocation;
}

const Signal* replace_of(const CoreBench& bench, const std::string& worker) {
  for (const Signal& each : bench.signals) {
    if (each.kind == Signal::Kind::Replace && each.worker.value() == worker) return &each;
  }
  return nullptr;
}

// A worker that answers its loads, but for these functions.
ChannelId ready_without(CoreBench& bench, const std::string& worker, const std::string& function,
                        const std::string& code = "v1") {
  const ChannelId channel = bench.placeholder(worker, {});
  const std::size_t before = bench.sent.size();
  bench.say(channel, bench.specialized(worker, code));
  if (!bench.sent_to<MetadataRequest>(channel).empty()) {
    bench.say(channel, MetadataResponse{success(), false, bench.functions});
  }
  for (std::size_t i = before; i < bench.sent.size(); ++i) {
    const auto* const load = std::get_if<LoadRequest>(&bench.sent[i].message);
    if (load == nullptr || bench.sent[i].channel != channel) continue;
    const FunctionRef loaded = load->function;
    bench.say(channel,
              LoadResponse{loaded->id, loaded->name == function ? failure("disk error") : success()});
  }
  return channel;
}

WorkerEnded ended(const std::string& worker, std::vector<InvocationId> running = {},
                  std::uint32_t failures = 1) {
  return {WorkerId{worker}, "killed by signal 9", std::move(running), failures};
}

// ---- urgency

TEST(Replacement, IsLowAfterATimeoutWhereOthersWork) {
  CoreBench bench;
  const ChannelId hung = bench.ready("a");
  ASSERT_TRUE(bench.submit(with_timeout(bench, "i1", seconds{1})));
  ASSERT_EQ(bench.channel_of("i1"), hung);
  bench.ready("b");
  bench.advance(seconds{1});
  ASSERT_NE(replace_of(bench, "a"), nullptr);
  EXPECT_EQ(replace_of(bench, "a")->urgency, Urgency::Low);
  EXPECT_TRUE(replace_of(bench, "a")->is_agents) << "its agent was told to end it and brings another";
}

TEST(Replacement, IsMediumAfterASilenceOrACrashWhereOthersWork) {
  CoreBench bench;
  const ChannelId crashed = bench.ready("a", "v1", {});
  bench.ready("silent");
  bench.ready("b", "v1", {});
  bench.end(crashed, ChannelEnd::Unavailable);
  ASSERT_NE(replace_of(bench, "a"), nullptr);
  EXPECT_EQ(replace_of(bench, "a")->urgency, Urgency::Medium);
  EXPECT_FALSE(replace_of(bench, "a")->is_agents) << "its agent is gone with it";
  bench.advance(seconds{60});
  ASSERT_NE(replace_of(bench, "silent"), nullptr);
  EXPECT_EQ(replace_of(bench, "silent")->urgency, Urgency::Medium);
}

TEST(Replacement, IsHighWhereTheOthersOnlyDrain) {
  CoreBench bench;
  const ChannelId lost = bench.ready("a", "v1", {});
  const ChannelId leaving = bench.ready("b", "v1", {});
  ASSERT_TRUE(bench.submit("i1"));
  ASSERT_TRUE(bench.submit("i2"));
  ASSERT_TRUE(bench.core.drain(WorkerId{"b"}, "scale down", bench.now));
  ASSERT_EQ(bench.state("b"), WorkerState::Draining);
  bench.end(lost, ChannelEnd::Unavailable);
  ASSERT_NE(replace_of(bench, "a"), nullptr);
  EXPECT_EQ(replace_of(bench, "a")->urgency, Urgency::High);
  EXPECT_TRUE(bench.core.job_hosts().size() >= 1 && !bench.is_closed(leaving));
}

TEST(Replacement, IsHighWhereTheOthersAreDetached) {
  CoreBench bench;
  const ChannelId lost = bench.ready("a", "v1", {});
  const ChannelId cut = bench.ready("b", "v1", {});
  bench.core.handle_detached(cut, bench.now);
  bench.end(lost, ChannelEnd::Unavailable);
  ASSERT_NE(replace_of(bench, "a"), nullptr);
  EXPECT_EQ(replace_of(bench, "a")->urgency, Urgency::High);
}

// ---- said again

TEST(Replacement, StandsUntilAnotherWorkerIsReady) {
  CoreBench bench;
  bench.end(bench.ready("a.1", "v1", {}), ChannelEnd::Unavailable);
  ASSERT_EQ(bench.core.standing_signals().size(), 1U);
  EXPECT_EQ(bench.core.standing_signals()[0].kind, Signal::Kind::Replace);
  EXPECT_EQ(bench.core.standing_signals()[0].worker.value(), "a.1");
  bench.placeholder("b.1", {});
  EXPECT_EQ(bench.core.standing_signals().size(), 1U);
  bench.ready("c.1", "v1", {});
  EXPECT_TRUE(bench.core.standing_signals().empty());
}

TEST(Replacement, StandsEvenWhenItsJobHostIsGone) {
  CoreBench bench;
  bench.end(bench.ready("a.1", "v1", {}), ChannelEnd::Unavailable);
  bench.advance(seconds{100});
  EXPECT_FALSE(bench.job_host(bench.app));
  ASSERT_EQ(bench.core.standing_signals().size(), 1U);
  EXPECT_EQ(bench.core.standing_signals()[0].urgency, Urgency::High);
  bench.advance(seconds{300});
  EXPECT_TRUE(bench.core.standing_signals().empty()) << "forgotten with the worker";
}

TEST(Replacement, TheOneOfTheSameAgentCountsForIt) {
  CoreBench bench;
  bench.end(bench.ready("a.1", "v1", {}), ChannelEnd::Unavailable);
  bench.end(bench.ready("b.1", "v1", {}), ChannelEnd::Unavailable);
  ASSERT_EQ(bench.core.standing_signals().size(), 1U) << "b came for a, and is lost itself";
  bench.end(bench.ready("c.1", "v1", {}), ChannelEnd::Unavailable);
  bench.ready("d.1", "v1", {});
  EXPECT_TRUE(bench.core.standing_signals().empty());
}

TEST(Replacement, HighAndLowUtilizationStandAsLongAsTheyLast) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a", "v1", {});
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(bench.submit("i" + std::to_string(i)));
  bench.advance(seconds{5});
  ASSERT_EQ(bench.core.standing_signals().size(), 1U);
  EXPECT_EQ(bench.core.standing_signals()[0].kind, Signal::Kind::ScaleUp);
  for (int i = 0; i < 8; ++i) bench.respond(channel, "i" + std::to_string(i));
  bench.advance(seconds{400});
  ASSERT_EQ(bench.core.standing_signals().size(), 1U);
  EXPECT_EQ(bench.core.standing_signals()[0].kind, Signal::Kind::ScaleDown);
}

// ---- ends that an agent reports

TEST(Replacement, WhatCanBeReadOnceIsLostWithTheWorkerThatItWasSentTo) {
  CoreBench bench;
  const ChannelId dead = bench.ready("a.1", "v1", {});
  Invocation sent = bench.invocation("sent");
  sent.is_once = true;
  ASSERT_TRUE(bench.submit(std::move(sent)));
  const ChannelId other = bench.ready("b.1", "v1", {});
  bench.say(dead, ended("a.1"));
  ASSERT_NE(bench.outcome("sent"), nullptr);
  EXPECT_EQ(bench.outcome("sent")->cause, Cause::WorkerLost);
  Invocation next = bench.invocation("next");
  next.is_once = true;
  ASSERT_TRUE(bench.submit(std::move(next)));
  EXPECT_EQ(bench.channel_of("next"), other);
}

TEST(Replacement, WhatNeverReachedTheProcessGoesToAnotherWorker) {
  CoreBench bench;
  const ChannelId dead = bench.ready("a.1", "v1", {});
  ASSERT_TRUE(bench.submit("ran"));
  ASSERT_TRUE(bench.submit("lost on its way"));
  const ChannelId other = bench.ready("b.1", "v1", {});
  bench.say(dead, ended("a.1", {InvocationId{"ran"}}));
  EXPECT_EQ(bench.outcome("ran")->cause, Cause::WorkerLost);
  EXPECT_EQ(bench.outcome("lost on its way"), nullptr);
  EXPECT_EQ(bench.channel_of("lost on its way"), other);
  EXPECT_EQ(bench.state("a.1"), WorkerState::Disconnected);
  EXPECT_FALSE(bench.is_closed(dead)) << "the agent brings the next one here";
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(bench.submit("i" + std::to_string(i)));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(bench.channel_of("i" + std::to_string(i)), other);
  ASSERT_NE(replace_of(bench, "a.1"), nullptr);
  EXPECT_TRUE(replace_of(bench, "a.1")->is_agents);
  bench.say(dead, StartStream{WorkerId{"a.2"}});
  EXPECT_EQ(bench.sent_to<InitRequest>(dead).size(), 2U);
}

TEST(Replacement, CallersWaitForTheNextProcessOfTheOnlyWorker) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a.1", "v1", {});
  bench.say(channel, ended("a.1"));
  ASSERT_TRUE(bench.submit("i1"));
  EXPECT_EQ(bench.outcome("i1"), nullptr);
  bench.say(channel, StartStream{WorkerId{"a.2"}});
  bench.say(channel, InitResponse{success(), {}, "node", "22", "1"});
  bench.specialize(channel, "a.2");
  EXPECT_EQ(bench.channel_of("i1"), channel);
}

TEST(Replacement, CallersDoNotWaitForAWorkerThatCannotBeStarted) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a.1", "v1", {});
  bench.say(channel, ended("a.1"));
  ASSERT_TRUE(bench.submit("waiting"));
  bench.say(channel, ended("a.2", {}, 2));
  ASSERT_NE(bench.outcome("waiting"), nullptr);
  EXPECT_EQ(bench.outcome("waiting")->cause, Cause::NoWorker);
  EXPECT_NE(bench.outcome("waiting")->reason.find("killed by signal 9"), std::string::npos);
  ASSERT_TRUE(bench.submit("later"));
  EXPECT_EQ(bench.outcome("later")->cause, Cause::NoWorker);
  ASSERT_NE(replace_of(bench, "a.2"), nullptr);
  EXPECT_FALSE(replace_of(bench, "a.2")->is_agents) << "another has to come";
  EXPECT_EQ(replace_of(bench, "a.2")->urgency, Urgency::High);
  bench.say(channel, ended("a.3", {}, 3));
  EXPECT_EQ(replace_of(bench, "a.3"), nullptr) << "said once";
  bench.say(channel, StartStream{WorkerId{"a.4"}});
  bench.say(channel, InitResponse{success(), {}, "node", "22", "1"});
  bench.specialize(channel, "a.4");
  ASSERT_TRUE(bench.submit("served"));
  EXPECT_EQ(bench.channel_of("served"), channel);
}

TEST(Replacement, AnEndOfAnotherProcessOrOfNobodyChangesNothing) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a.2", "v1", {});
  bench.say(channel, ended("a.1"));
  EXPECT_EQ(bench.state("a.2"), WorkerState::Ready);
  const ChannelId fresh = bench.open();
  bench.say(fresh, ended("b.1", {}, 9));
  EXPECT_FALSE(bench.is_closed(fresh));
}

TEST(Replacement, AFunctionThatMayRunAgainIsTriedElsewhereAfterItsWorkerIsLost) {
  for (const bool is_by_retry : {false, true}) {
    CoreBench bench;
    auto function = std::make_shared<Function>(*make_function("one"));
    function->is_idempotent = !is_by_retry;
    function->has_retry = is_by_retry;
    function->retry.retries_max = is_by_retry ? 1 : 0;
    bench.functions = {function, make_function("two")};
    const ChannelId dead = bench.ready("a.1", "v1", {});
    ASSERT_TRUE(bench.submit("again", "one"));
    ASSERT_TRUE(bench.submit("once", "two"));
    const ChannelId other = bench.ready("b.1", "v1", {});
    bench.say(dead, ended("a.1", {InvocationId{"again"}, InvocationId{"once"}}));
    EXPECT_EQ(bench.channel_of("again"), other);
    EXPECT_EQ(bench.outcome("once")->cause, Cause::WorkerLost);
  }
}

// ---- loads

TEST(Replacement, OneWorkersFailedLoadTakesNothingFromTheOthers) {
  CoreBench bench;
  const ChannelId whole = bench.ready("a.1", "v1", {});
  const ChannelId broken = ready_without(bench, "b.1", "two");
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(bench.submit("i" + std::to_string(i), "two"));
  EXPECT_EQ(bench.sent_to<InvocationRequest>(whole).size(), 8U);
  EXPECT_TRUE(bench.sent_to<InvocationRequest>(broken).empty());
  ASSERT_TRUE(bench.submit("one", "one"));
  EXPECT_EQ(bench.channel_of("one"), broken) << "what it has loaded it runs";
  EXPECT_EQ(bench.worker("b.1")->load_failures.size(), 1U);
  EXPECT_EQ(bench.job_host(bench.app)->functions[1].load_failure, "");
  EXPECT_EQ(bench.job_host(bench.app)->functions[1].lacking, 1U);
}

TEST(Replacement, WhatOnlyADetachedWorkerHasLoadedWaitsForIt) {
  CoreBench bench;
  const ChannelId whole = bench.ready("a.1", "v1", {});
  ready_without(bench, "b.1", "two");
  bench.core.handle_detached(whole, bench.now);
  ASSERT_TRUE(bench.submit("i1", "two"));
  EXPECT_EQ(bench.outcome("i1"), nullptr);
  bench.core.handle_attached(whole, bench.now);
  bench.poll();
  EXPECT_EQ(bench.channel_of("i1"), whole);
}

TEST(Replacement, TheVersionHasFailedWhenAllItsWorkersHave) {
  CoreBench bench;
  const ChannelId first = ready_without(bench, "a.1", "two");
  ready_without(bench, "b.1", "two");
  ASSERT_TRUE(bench.submit("i1", "two"));
  EXPECT_EQ(bench.outcome("i1")->cause, Cause::LoadFailed);
  EXPECT_EQ(bench.job_host(bench.app)->functions[1].load_failure, "disk error");
  bench.advance(seconds{3600});
  EXPECT_FALSE(bench.is_closed(first)) << "the code is at fault, and another worker would not help";
}

TEST(Replacement, AWorkerThatCouldNotLoadWhatOthersCanIsReplacedWithBackOff) {
  CoreBench bench;
  bench.ready("a.1", "v1", {});
  Duration wait = seconds{10};
  ChannelId broken{0};
  for (int spawn = 1; spawn <= 4; ++spawn) {
    const std::string worker = "b." + std::to_string(spawn);
    broken = ready_without(bench, worker, "two");
    bench.advance(wait - milliseconds{1});
    EXPECT_EQ(bench.state(worker), WorkerState::Ready) << spawn;
    bench.advance(milliseconds{1});
    EXPECT_EQ(bench.state(worker), WorkerState::Draining) << spawn;
    EXPECT_TRUE(bench.sent_to<StayDown>(broken).empty()) << "its agent brings the next one";
    bench.say(broken, ended(worker));
    bench.end(broken, ChannelEnd::Closed);
    wait *= 2;
  }
  bench.ready("b.5", "v1", {});
  broken = ready_without(bench, "b.6", "two");
  bench.advance(seconds{10});
  EXPECT_EQ(bench.state("b.6"), WorkerState::Draining) << "a good load begins the count anew";
}

TEST(Replacement, AWorkerThatFailedFirstIsJudgedByTheOneThatComesAfter) {
  CoreBench bench;
  ready_without(bench, "a.1", "two");
  bench.advance(seconds{100});
  EXPECT_EQ(bench.state("a.1"), WorkerState::Ready);
  bench.ready("b.1", "v1", {});
  bench.advance(seconds{10});
  EXPECT_EQ(bench.state("a.1"), WorkerState::Draining);
}

}  // namespace
}  // namespace windlass::runtime
