// Workers that dial in by themselves: applications come from the runtime's own settings.
#include "tests/unit/runtime/core/core_bench.h"

namespace windlass::runtime {
namespace {

ConfiguredApplication configured_shop(const CoreBench& bench) {
  return {{bench.app, "v1"}, "/srv/shop", {{"MODE", "production"}}, bench.functions};
}

ChannelId dialled_placeholder(CoreBench& bench, const std::string& worker) {
  const ChannelId channel = bench.dial_in();
  bench.say(channel, StartStream{WorkerId{worker}});
  bench.say(channel, InitResponse{success(), {}, "node", "22", "1"});
  return channel;
}

TEST(DialledIn, SpecializeReloadsIndexesLoadsAndIsReady) {
  CoreBench bench;
  bench.core.add_application(configured_shop(bench));
  const ChannelId channel = dialled_placeholder(bench, "w");
  ASSERT_TRUE(bench.core.specialize(WorkerId{"w"}, "shop", bench.now));
  bench.poll();
  EXPECT_EQ(bench.state("w"), WorkerState::Specializing);
  ASSERT_EQ(bench.sent_to<EnvironmentReload>(channel).size(), 1U);
  EXPECT_EQ(bench.sent_to<EnvironmentReload>(channel)[0]->function_app_directory, "/srv/shop");
  EXPECT_EQ(bench.sent_to<EnvironmentReload>(channel)[0]->environment.at("MODE"), "production");
  const std::size_t before = bench.sent.size();
  bench.say(channel, ReloadResponse{success(), {}, false});
  bench.answer(channel, before);
  EXPECT_EQ(bench.state("w"), WorkerState::Ready);
  EXPECT_EQ(bench.worker("w")->application, (ApplicationVersion{bench.app, "v1"}));
  EXPECT_TRUE(bench.sent_to<SpecializedResponse>(channel).empty()) << "there is no agent to answer";
  ASSERT_TRUE(bench.submit("i1"));
  EXPECT_EQ(bench.sent_to<InvocationRequest>(channel).size(), 1U);
}

TEST(DialledIn, AWorkerOfAConfiguredApplicationGetsItsDirectoryAtOnce) {
  CoreBench bench;
  bench.core.add_application(configured_shop(bench));
  const ChannelId channel = bench.dial_in("shop");
  bench.say(channel, StartStream{WorkerId{"w"}});
  ASSERT_EQ(bench.sent_to<InitRequest>(channel).size(), 1U);
  EXPECT_EQ(bench.sent_to<InitRequest>(channel)[0]->function_app_directory, "/srv/shop");
  const std::size_t before = bench.sent.size();
  bench.say(channel, InitResponse{success(), {}, "node", "22", "1"});
  bench.answer(channel, before);
  EXPECT_EQ(bench.state("w"), WorkerState::Ready);
  EXPECT_TRUE(bench.sent_to<EnvironmentReload>(channel).empty());
}

TEST(DialledIn, TheConfiguredFunctionsServeAWorkerThatDoesNotIndex) {
  CoreBench bench;
  bench.core.add_application(configured_shop(bench));
  const ChannelId channel = bench.dial_in("shop");
  bench.say(channel, StartStream{WorkerId{"w"}});
  bench.say(channel, InitResponse{success(), {}, "node", "22", "1"});
  const std::size_t before = bench.sent.size();
  bench.say(channel, MetadataResponse{success(), true, {}});
  bench.answer(channel, before);
  EXPECT_EQ(bench.state("w"), WorkerState::Ready);
  EXPECT_EQ(bench.core.functions(bench.app).size(), 2U);
}

TEST(DialledIn, SpecializeSaysWhyItCannot) {
  CoreBench bench;
  bench.core.add_application(configured_shop(bench));
  dialled_placeholder(bench, "w");
  EXPECT_EQ(bench.core.specialize(WorkerId{"w"}, "none", bench.now).error().code, ErrorCode::CmdUnknown);
  EXPECT_EQ(bench.core.specialize(WorkerId{"x"}, "shop", bench.now).error().code, ErrorCode::CmdUnknown);
  ASSERT_TRUE(bench.core.specialize(WorkerId{"w"}, "shop", bench.now));
  EXPECT_EQ(bench.core.specialize(WorkerId{"w"}, "shop", bench.now).error().code, ErrorCode::ProtoState);
}

TEST(DialledIn, AFailedReloadLeavesTheWorkerUnhealthy) {
  CoreBench bench;
  bench.core.add_application(configured_shop(bench));
  const ChannelId channel = dialled_placeholder(bench, "w");
  ASSERT_TRUE(bench.core.specialize(WorkerId{"w"}, "shop", bench.now));
  bench.say(channel, ReloadResponse{failure("no such directory"), {}, false});
  EXPECT_EQ(bench.state("w"), WorkerState::Unhealthy);
  EXPECT_FALSE(bench.job_host(bench.app));
}

TEST(DialledIn, AReloadThatIsNotAnsweredInTimeGivesTheWorkerUp) {
  CoreBench bench;
  bench.core.add_application(configured_shop(bench));
  const ChannelId channel = dialled_placeholder(bench, "w");
  ASSERT_TRUE(bench.core.specialize(WorkerId{"w"}, "shop", bench.now));
  bench.poll();
  bench.advance(milliseconds{29'999});
  EXPECT_EQ(bench.state("w"), WorkerState::Specializing);
  bench.advance(milliseconds{1});
  EXPECT_EQ(bench.state("w"), WorkerState::Abandoned);
  EXPECT_TRUE(bench.is_closed(channel));
}

}  // namespace
}  // namespace windlass::runtime
