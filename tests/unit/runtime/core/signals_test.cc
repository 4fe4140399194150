// What the scheduler is told: full houses once, relief once it lasts, utilization, and drains that were asked
// for.
#include "tests/unit/runtime/core/core_bench.h"

namespace windlass::runtime {
namespace {

RuntimeOptions single_slot() {
  RuntimeOptions options;
  options.slots_per_worker = 1;
  return options;
}

TEST(Signals, AFullHouseIsSaidOnceUntilItIsRelieved) {
  CoreBench bench{single_slot()};
  const ChannelId channel = bench.ready("a");
  for (const char* id : {"i1", "i2", "i3"}) ASSERT_TRUE(bench.submit(id));
  EXPECT_EQ(bench.count(Signal::Kind::NoFreeSlot), 1U);
  EXPECT_FALSE(bench.signals.back().is_urgent()) << "there is a worker";
  for (const char* id : {"i1", "i2", "i3"}) bench.respond(channel, id);
  bench.advance(milliseconds{999});
  EXPECT_EQ(bench.count(Signal::Kind::SlotFree), 0U);
  bench.advance(milliseconds{1});
  EXPECT_EQ(bench.count(Signal::Kind::SlotFree), 1U);
  ASSERT_TRUE(bench.submit("i4"));
  ASSERT_TRUE(bench.submit("i5"));
  EXPECT_EQ(bench.count(Signal::Kind::NoFreeSlot), 2U);
}

TEST(Signals, AFullVersionIsAFullHouseWhateverAnotherWithoutWeightHasFree) {
  CoreBench bench{single_slot()};
  const ChannelId old = bench.ready("a", "v1");
  bench.ready("b", "v2");
  ASSERT_TRUE(bench.core.set_split(bench.app, {{"v1", 0}, {"v2", 100}}));
  ASSERT_TRUE(bench.submit("i1"));
  EXPECT_EQ(bench.core.free_slots(bench.app), 0U);
  ASSERT_TRUE(bench.submit("i2"));
  EXPECT_EQ(bench.count(Signal::Kind::NoFreeSlot), 1U);
  bench.advance(seconds{5});
  EXPECT_EQ(bench.count(Signal::Kind::ScaleUp), 1U) << "all of what counts is taken";
  EXPECT_TRUE(bench.sent_to<InvocationRequest>(old).empty());
}

TEST(Signals, WhatWaitsGoesToAStandInWhenTheNamedVersionIsOutOfReach) {
  CoreBench bench{single_slot()};
  const ChannelId stand_in = bench.ready("a", "v1");
  const ChannelId named = bench.ready("b", "v2");
  ASSERT_TRUE(bench.core.set_split(bench.app, {{"v2", 100}}));
  ASSERT_TRUE(bench.submit("i1"));
  ASSERT_TRUE(bench.submit("i2"));
  EXPECT_EQ(bench.channel_of("i1"), named);
  bench.core.handle_detached(named, bench.now);
  bench.poll();
  EXPECT_EQ(bench.channel_of("i2"), stand_in);
}

TEST(Signals, AFullHouseStandsUntilItsReliefWasSaid) {
  CoreBench bench{single_slot()};
  const ChannelId channel = bench.ready("a");
  EXPECT_TRUE(bench.core.standing_signals().empty());
  for (const char* id : {"i1", "i2"}) ASSERT_TRUE(bench.submit(id));
  ASSERT_EQ(bench.core.standing_signals().size(), 1U);
  EXPECT_EQ(bench.core.standing_signals()[0].kind, Signal::Kind::NoFreeSlot);
  EXPECT_EQ(bench.core.standing_signals()[0].job_host, bench.app);
  for (const char* id : {"i1", "i2"}) bench.respond(channel, id);
  EXPECT_EQ(bench.core.standing_signals().size(), 1U);
  bench.advance(seconds{1});
  EXPECT_TRUE(bench.core.standing_signals().empty());
}

TEST(Signals, ReliefThatDoesNotLastIsNotSaid) {
  CoreBench bench{single_slot()};
  const ChannelId channel = bench.ready("a");
  ASSERT_TRUE(bench.submit("i1"));
  ASSERT_TRUE(bench.submit("i2"));
  bench.respond(channel, "i1");
  bench.respond(channel, "i2");
  bench.advance(milliseconds{500});
  ASSERT_TRUE(bench.submit("i3"));
  ASSERT_TRUE(bench.submit("i4"));
  bench.advance(seconds{5});
  EXPECT_EQ(bench.count(Signal::Kind::SlotFree), 0U);
  EXPECT_EQ(bench.count(Signal::Kind::NoFreeSlot), 1U);
}

TEST(Signals, HighUtilizationAsksForMoreOnce) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a", "v1", {});
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(bench.submit("i" + std::to_string(i)));
  bench.advance(seconds{15});
  EXPECT_EQ(bench.count(Signal::Kind::ScaleUp), 1U);
  for (int i = 0; i < 8; ++i) bench.respond(channel, "i" + std::to_string(i));
  bench.advance(seconds{5});
  for (int i = 10; i < 18; ++i) ASSERT_TRUE(bench.submit("i" + std::to_string(i)));
  bench.advance(seconds{5});
  EXPECT_EQ(bench.count(Signal::Kind::ScaleUp), 2U);
}

TEST(Signals, LowUtilizationIsSaidAfterFiveMinutes) {
  CoreBench bench;
  bench.ready("a", "v1", {});
  bench.advance(seconds{304});
  EXPECT_EQ(bench.count(Signal::Kind::ScaleDown), 0U);
  bench.advance(seconds{1});
  EXPECT_EQ(bench.count(Signal::Kind::ScaleDown), 1U);
  bench.advance(seconds{3600});
  EXPECT_EQ(bench.count(Signal::Kind::ScaleDown), 1U);
}

TEST(Signals, ADrainedWorkerFinishesIsToldToEndAndIsNotReplaced) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a", "v1", {});
  ASSERT_TRUE(bench.submit("i1"));
  ASSERT_TRUE(bench.core.drain(WorkerId{"a"}, "scale down", bench.now));
  bench.poll();
  EXPECT_EQ(bench.state("a"), WorkerState::Draining);
  EXPECT_EQ(bench.core.free_slots(bench.app), 0U);
  bench.respond(channel, "i1");
  EXPECT_EQ(bench.outcome("i1")->settlement, Settlement::Complete);
  EXPECT_EQ(bench.sent_to<Terminate>(channel).size(), 1U);
  ASSERT_EQ(bench.sent_to<StayDown>(channel).size(), 1U);
  EXPECT_FALSE(bench.sent_to<StayDown>(channel)[0]->is_for_memory);
  bench.advance(seconds{5});
  ASSERT_TRUE(bench.is_closed(channel));
  EXPECT_TRUE(bench.closed.back().is_clean);
  EXPECT_EQ(bench.count(Signal::Kind::Replace), 0U);
  EXPECT_FALSE(bench.core.drain(WorkerId{"a"}, "again", bench.now));
}

TEST(Signals, ADrainThatTakesTooLongEndsTheWork) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a", "v1", {});
  ASSERT_TRUE(bench.submit("i1"));
  ASSERT_TRUE(bench.core.drain(WorkerId{"a"}, "scale down", bench.now));
  bench.advance(seconds{30});
  EXPECT_EQ(bench.outcome("i1")->cause, Cause::WorkerLost);
  EXPECT_EQ(bench.state("a"), WorkerState::Abandoned);
  EXPECT_TRUE(bench.is_closed(channel));
}

// What the worker has to say waits with its session: a cut fails no invocation.
TEST(Signals, ADrainWaitsForAWorkerWhoseSessionIsCut) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a", "v1", {});
  ASSERT_TRUE(bench.submit("i1"));
  ASSERT_TRUE(bench.core.drain(WorkerId{"a"}, "scale down", bench.now));
  bench.advance(seconds{10});
  bench.core.handle_detached(channel, bench.now);
  bench.advance(seconds{30});
  EXPECT_EQ(bench.outcome("i1"), nullptr) << "the time for draining is over, but it could not speak";
  bench.core.handle_attached(channel, bench.now);
  bench.advance(seconds{20});
  bench.respond(channel, "i1");
  ASSERT_NE(bench.outcome("i1"), nullptr);
  EXPECT_EQ(bench.outcome("i1")->settlement, Settlement::Complete);
}

TEST(Signals, ADrainIsBoundedAgainOnceTheSessionIsBack) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a", "v1", {});
  ASSERT_TRUE(bench.submit("i1"));
  ASSERT_TRUE(bench.core.drain(WorkerId{"a"}, "scale down", bench.now));
  bench.core.handle_detached(channel, bench.now);
  bench.advance(seconds{40});
  bench.core.handle_attached(channel, bench.now);
  bench.advance(seconds{30});
  EXPECT_EQ(bench.outcome("i1")->cause, Cause::WorkerLost);
}

TEST(Signals, ADrainDuringASpecializationIsTheAgentsAnswer) {
  CoreBench bench;
  const ChannelId channel = bench.placeholder("a", {});
  const ChannelId other = bench.placeholder("b", {});
  bench.say(channel, bench.specialized("a"));
  const std::size_t before = bench.sent.size();
  bench.say(other, bench.specialized("b"));
  ASSERT_TRUE(bench.core.drain(WorkerId{"a"}, "scale down", bench.now));
  bench.poll();
  EXPECT_EQ(bench.state("a"), WorkerState::Draining);
  ASSERT_EQ(bench.sent_to<SpecializedResponse>(channel).size(), 1U);
  EXPECT_FALSE(bench.sent_to<SpecializedResponse>(channel)[0]->result.is_ok());
  bench.answer(other, before);
  EXPECT_EQ(bench.state("b"), WorkerState::Ready) << "it needs nobody else";
}

TEST(Signals, AWorkerThatAsksForARestartIsReplaced) {
  CoreBench bench;
  bench.core.add_application({{bench.app, "v1"}, "/srv/shop", {}, bench.functions});
  const ChannelId channel = bench.dial_in("shop");
  bench.say(channel, StartStream{WorkerId{"w"}});
  const std::size_t before = bench.sent.size();
  bench.say(channel, InitResponse{success(), {}, "node", "22", "1"});
  bench.answer(channel, before);
  ASSERT_TRUE(bench.submit("i1"));
  bench.say(channel, ActionResponse{true, "out of memory soon"});
  EXPECT_EQ(bench.state("w"), WorkerState::Draining);
  bench.respond(channel, "i1");
  bench.advance(seconds{5});
  EXPECT_EQ(bench.count(Signal::Kind::Replace), 1U);
}

TEST(Signals, AnAgentThatWantsAnEndOfItsWorkerIsToldWhenNothingIsUnderWay) {
  CoreBench bench{single_slot()};
  const ChannelId channel = bench.ready("a", "v1", {});
  const ChannelId other = bench.ready("b", "v1", {});
  ASSERT_TRUE(bench.submit("i1"));
  ASSERT_TRUE(bench.submit("i2"));
  bench.say(channel, ActionResponse{true, "other work"});
  EXPECT_EQ(bench.state("a"), WorkerState::Draining);
  EXPECT_TRUE(bench.sent_to<Terminate>(channel).empty());
  bench.respond(other, "i2");
  bench.respond(other, "i1");
  bench.respond(channel, "i1");
  bench.respond(channel, "i2");
  for (const char* id : {"i1", "i2"}) {
    ASSERT_NE(bench.outcome(id), nullptr);
    EXPECT_TRUE(bench.outcome(id)->result.is_ok()) << id;
  }
  EXPECT_EQ(bench.sent_to<Terminate>(channel).size(), 1U);
  EXPECT_TRUE(bench.sent_to<StayDown>(channel).empty());
  bench.say(channel, StartStream{WorkerId{"a.2"}});
  EXPECT_EQ(bench.count(Signal::Kind::Replace), 0U) << "the agent sees to the next one";
}

TEST(Signals, CancellingEndsWhatWaitsAndAsksTheWorkerOfWhatRuns) {
  CoreBench bench{single_slot()};
  const ChannelId channel = bench.ready("a", "v1", {{"HandlesInvocationCancelMessage", "true"}});
  ASSERT_TRUE(bench.submit("running"));
  ASSERT_TRUE(bench.submit("waiting"));
  for (const char* id : {"running", "waiting", "unknown"}) bench.core.cancel(InvocationId{id}, bench.now);
  bench.poll();
  EXPECT_EQ(bench.outcome("waiting")->cause, Cause::Cancelled);
  EXPECT_EQ(bench.outcome("running"), nullptr);
  ASSERT_EQ(bench.sent_to<InvocationCancel>(channel).size(), 1U);
  EXPECT_EQ(bench.sent_to<InvocationCancel>(channel)[0]->invocation.value(), "running");
  bench.respond(channel, "running", RpcResult{RpcStatus::Cancelled, "stopped"});
  EXPECT_EQ(bench.outcome("running")->cause, Cause::Cancelled);
}

TEST(Signals, AWorkerThatCannotBeToldRunsToItsEnd) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a", "v1", {});
  ASSERT_TRUE(bench.submit("i1"));
  bench.core.cancel(InvocationId{"i1"}, bench.now);
  bench.poll();
  EXPECT_TRUE(bench.sent_to<InvocationCancel>(channel).empty());
  bench.respond(channel, "i1");
  EXPECT_EQ(bench.outcome("i1")->settlement, Settlement::Complete);
}

}  // namespace
}  // namespace windlass::runtime
