// A worker that goes from one JobHost to another: what it says meanwhile waits, in order, within bounds.
#include "tests/unit/runtime/core/core_bench.h"

namespace windlass::runtime {
namespace {

Log user_log(const std::string& invocation, const std::string& text) {
  return Log{InvocationId{invocation}, LogSource::User, LogLevel::Information, "", text, ""};
}

// Works for shop:m1 and was just given shop:m2, whose index is not there yet.
ChannelId switching(CoreBench& bench, const std::vector<std::string>& running) {
  const ChannelId channel = bench.ready("a");
  for (const std::string& id : running) EXPECT_TRUE(bench.submit(id));
  bench.app.metadata_version = "m2";
  bench.say(channel, bench.specialized("a", "v2"));
  EXPECT_EQ(bench.state("a"), WorkerState::Specializing);
  return channel;
}

void finish_switch(CoreBench& bench, ChannelId channel) {
  const std::size_t before = bench.sent.size();
  bench.say(channel, MetadataResponse{success(), false, bench.functions});
  bench.answer(channel, before);
}

TEST(Switch, HoldsWhatTheWorkerSaysAndReleasesItInOrder) {
  CoreBench bench;
  const ChannelId channel = switching(bench, {"i1", "i2"});
  bench.say(channel, user_log("i1", "one"));
  bench.respond(channel, "i1");
  bench.say(channel, user_log("i1", "after the answer"));
  bench.say(channel, user_log("i2", "two"));
  bench.respond(channel, "i2");
  EXPECT_TRUE(bench.logs.empty());
  EXPECT_TRUE(bench.outcomes.empty());
  EXPECT_EQ(bench.count(Note::Kind::MessageHeld), 5U);
  finish_switch(bench, channel);
  EXPECT_EQ(bench.state("a"), WorkerState::Ready);
  ASSERT_EQ(bench.logs.size(), 2U);
  EXPECT_EQ(bench.logs[0].log.message, "one");
  EXPECT_EQ(bench.logs[1].log.message, "two");
  ASSERT_EQ(bench.outcomes.size(), 2U);
  EXPECT_EQ(bench.outcomes[0].id.value(), "i1");
  EXPECT_EQ(bench.outcomes[1].id.value(), "i2");
}

// The first answer is held; a second one once passed it by, and its result was taken.
TEST(Switch, ASecondAnswerDoesNotOvertakeTheFirstWhichIsHeld) {
  CoreBench bench;
  const ChannelId channel = switching(bench, {"i1"});
  bench.respond(channel, "i1");
  bench.respond(channel, "i1", failure("no, it failed"));
  EXPECT_TRUE(bench.outcomes.empty());
  EXPECT_EQ(bench.count(Note::Kind::UnknownResponse), 1U);
  finish_switch(bench, channel);
  ASSERT_EQ(bench.outcomes.size(), 1U);
  EXPECT_EQ(bench.outcomes[0].settlement, Settlement::Complete);
}

TEST(Switch, HoldsABoundedNumberOfLogsAndEveryAnswer) {
  RuntimeOptions options;
  options.held_max = 3;
  CoreBench bench{options};
  const ChannelId channel = switching(bench, {"i1"});
  for (int i = 0; i < 10; ++i) bench.say(channel, user_log("i1", std::to_string(i)));
  bench.respond(channel, "i1");
  finish_switch(bench, channel);
  ASSERT_EQ(bench.logs.size(), 3U);
  EXPECT_EQ(bench.logs[2].log.message, "2");
  EXPECT_EQ(bench.outcome("i1")->settlement, Settlement::Complete);
}

TEST(Switch, AnAnswerThatIsHeldDoesNotTimeOut) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a", "v1", {});
  Invocation quick = bench.invocation("i1");
  quick.timeout = seconds{5};
  ASSERT_TRUE(bench.submit(quick));
  bench.app.metadata_version = "m2";
  bench.say(channel, bench.specialized("a", "v2"));
  bench.respond(channel, "i1");
  bench.advance(seconds{20});
  EXPECT_TRUE(bench.outcomes.empty());
  finish_switch(bench, channel);
  EXPECT_EQ(bench.outcome("i1")->settlement, Settlement::Complete);
}

TEST(Switch, AFailedOneReleasesWhatWasHeld) {
  CoreBench bench;
  const ChannelId channel = switching(bench, {"i1"});
  bench.respond(channel, "i1");
  bench.say(channel, MetadataResponse{failure("entry point threw"), false, {}});
  EXPECT_EQ(bench.outcome("i1")->settlement, Settlement::Complete);
  EXPECT_EQ(bench.state("a"), WorkerState::Unhealthy);
  ASSERT_EQ(bench.sent_to<SpecializedResponse>(channel).size(), 2U);
  EXPECT_FALSE(bench.sent_to<SpecializedResponse>(channel)[1]->result.is_ok());
}

TEST(Switch, OfAWorkerThatDiesCountsItsLastWords) {
  CoreBench bench;
  const ChannelId channel = switching(bench, {"i1", "i2"});
  bench.respond(channel, "i1");
  bench.end(channel, ChannelEnd::Unavailable);
  EXPECT_EQ(bench.outcome("i1")->settlement, Settlement::Complete);
  EXPECT_EQ(bench.outcome("i2")->cause, Cause::WorkerLost);
}

TEST(Switch, TheOldJobHostStopsWithItsLastWorkerAndWork) {
  CoreBench bench;
  const JobHostKey old = bench.app;
  const ChannelId channel = switching(bench, {"i1"});
  finish_switch(bench, channel);
  EXPECT_TRUE(bench.job_host(old)) << "its invocation is not answered yet";
  EXPECT_EQ(bench.core.free_slots(bench.app), 9U) << "and holds its slot";
  bench.respond(channel, "i1");
  bench.advance(Duration{});
  EXPECT_FALSE(bench.job_host(old));
  EXPECT_EQ(bench.core.free_slots(bench.app), 10U);
}

TEST(Switch, ToOtherCodeKeepsTheJobHost) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a", "v1");
  bench.specialize(channel, "a", "v2");
  EXPECT_EQ(bench.sent_to<MetadataRequest>(channel).size(), 2U);
  EXPECT_EQ(bench.sent_to<LoadRequest>(channel).size(), 4U) << "the functions are loaded again";
  EXPECT_EQ(bench.count(Note::Kind::JobHostCreated, bench.app), 1U);
  EXPECT_EQ(bench.state("a"), WorkerState::Ready);
  EXPECT_EQ(bench.worker("a")->application->code_version, "v2");
  EXPECT_EQ(bench.count(Note::Kind::JobHostStopped), 0U);
}

TEST(Switch, AKeyWaitsForItsWorkerWhileOthersAreFree) {
  RuntimeOptions options;
  options.slots_per_worker = 1;
  CoreBench bench{options};
  const ChannelId first = bench.ready("a");
  Invocation keyed = bench.invocation("k1");
  keyed.sticky_key = "customer";
  ASSERT_TRUE(bench.submit(keyed));
  const ChannelId other = bench.ready("b");
  keyed.id = InvocationId{"k2"};
  ASSERT_TRUE(bench.submit(keyed));
  EXPECT_TRUE(bench.sent_to<InvocationRequest>(other).empty());
  bench.respond(first, "k1");
  EXPECT_EQ(bench.channel_of("k2"), first);
}

// A split once left keys, and what waited by them, with a version that was to get nothing any more.
TEST(Switch, ASplitFreesWhatWaitsForAVersionOfWeightZero) {
  RuntimeOptions options;
  options.slots_per_worker = 1;
  CoreBench bench{options};
  const ChannelId old = bench.ready("a", "v1");
  Invocation keyed = bench.invocation("k1");
  keyed.sticky_key = "customer";
  ASSERT_TRUE(bench.submit(keyed));
  keyed.id = InvocationId{"k2"};
  ASSERT_TRUE(bench.submit(keyed));
  const ChannelId fresh = bench.ready("b", "v2");
  EXPECT_TRUE(bench.sent_to<InvocationRequest>(fresh).empty());
  ASSERT_TRUE(bench.core.set_split(bench.app, {{"v1", 0}, {"v2", 100}}));
  bench.poll();
  EXPECT_EQ(bench.channel_of("k2"), fresh);
  bench.respond(old, "k1");
  keyed.id = InvocationId{"k3"};
  ASSERT_TRUE(bench.submit(keyed));
  bench.respond(fresh, "k2");
  EXPECT_EQ(bench.channel_of("k3"), fresh);
  EXPECT_EQ(bench.sent_to<InvocationRequest>(old).size(), 1U);
}

TEST(Switch, ASplitMustMakeSense) {
  CoreBench bench;
  bench.ready("a");
  const auto code = [&](std::vector<std::pair<std::string, std::uint32_t>> weights) {
    return bench.core.set_split(bench.app, std::move(weights)).error().code;
  };
  EXPECT_EQ(code({{"v1", 0}}), ErrorCode::ProtoSchema);
  EXPECT_EQ(code({{"v1", 1}, {"v1", 2}}), ErrorCode::ProtoSchema);
  EXPECT_EQ(code({{"v1", 1'000'001}}), ErrorCode::ProtoSchema);
  EXPECT_EQ(bench.core.set_split({"none", "m1"}, {{"v1", 1}}).error().code, ErrorCode::CmdUnknown);
  EXPECT_TRUE(bench.core.set_split(bench.app, {}));
}

}  // namespace
}  // namespace windlass::runtime
