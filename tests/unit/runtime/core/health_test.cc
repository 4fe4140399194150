// Silence, and what it means: probes, lost workers, sessions without their connection, and answers that do
// not come in time.
#include <array>

#include "tests/unit/runtime/core/core_bench.h"

namespace windlass::runtime {
namespace {

TEST(Health, ProbesEveryFifteenSeconds) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a");
  bench.advance(milliseconds{14'999});
  EXPECT_TRUE(bench.sent_to<StatusRequest>(channel).empty());
  bench.advance(milliseconds{1});
  ASSERT_EQ(bench.sent_to<StatusRequest>(channel).size(), 1U);
  bench.advance(milliseconds{20});
  bench.say(channel, StatusResponse{bench.sent_to<StatusRequest>(channel)[0]->request_id});
  EXPECT_EQ(bench.worker("a")->status_latency, milliseconds{20});
  bench.advance(milliseconds{14'980});
  EXPECT_EQ(bench.sent_to<StatusRequest>(channel).size(), 2U);
  EXPECT_NE(bench.sent_to<StatusRequest>(channel)[0]->request_id,
            bench.sent_to<StatusRequest>(channel)[1]->request_id);
}

TEST(Health, LosesASilentWorkerAfterFortyFiveSeconds) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a");
  ASSERT_TRUE(bench.submit("i1"));
  bench.advance(milliseconds{44'999});
  EXPECT_EQ(bench.state("a"), WorkerState::Ready);
  bench.advance(milliseconds{1});
  EXPECT_EQ(bench.state("a"), WorkerState::Abandoned);
  EXPECT_TRUE(bench.is_closed(channel));
  EXPECT_EQ(bench.outcome("i1")->cause, Cause::WorkerLost);
  ASSERT_EQ(bench.count(Signal::Kind::Replace), 1U);
  EXPECT_TRUE(bench.signals.back().is_urgent());
}

TEST(Health, AnyMessageIsLife) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a");
  bench.advance(seconds{44});
  bench.say(channel, Ignorable{"heartbeat"});
  bench.advance(milliseconds{44'999});
  EXPECT_EQ(bench.state("a"), WorkerState::Ready);
  bench.advance(milliseconds{1});
  EXPECT_EQ(bench.state("a"), WorkerState::Abandoned);
}

TEST(Health, AWorkerWithoutTheCapabilityIsNeitherProbedNorLost) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a", "v1", {});
  bench.advance(seconds{3600});
  EXPECT_TRUE(bench.sent_to<StatusRequest>(channel).empty());
  EXPECT_EQ(bench.state("a"), WorkerState::Ready);
}

TEST(Health, AReloadMayBringTheCapability) {
  CoreBench bench;
  const ChannelId channel = bench.placeholder("a", {});
  WorkerSpecialized news = bench.specialized("a");
  news.reload.capabilities = {{"WorkerStatus", "true"}};
  const std::size_t before = bench.sent.size();
  bench.say(channel, news);
  bench.answer(channel, before);
  bench.advance(seconds{15});
  EXPECT_EQ(bench.sent_to<StatusRequest>(channel).size(), 1U);
}

TEST(Health, ADetachedSessionIsLostWithItsWorkAfterItsTime) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a");
  ASSERT_TRUE(bench.submit("before"));
  bench.core.handle_detached(channel, bench.now);
  bench.advance(milliseconds{44'999});
  EXPECT_EQ(bench.state("a"), WorkerState::Ready);
  EXPECT_TRUE(bench.outcomes.empty());
  bench.advance(milliseconds{1});
  EXPECT_EQ(bench.state("a"), WorkerState::Abandoned);
  EXPECT_EQ(bench.outcome("before")->cause, Cause::WorkerLost);
  EXPECT_EQ(bench.signals.back().kind, Signal::Kind::Replace);
}

TEST(Health, ARuntimeThatWasSuspendedGivesDetachedSessionsTheirTimeAgain) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a", "v1", {});
  bench.core.handle_detached(channel, bench.now);
  bench.now += seconds{600};
  bench.core.handle_timeout(bench.now);
  EXPECT_EQ(bench.state("a"), WorkerState::Ready);
  bench.advance(seconds{45});
  EXPECT_EQ(bench.state("a"), WorkerState::Abandoned);
}

TEST(Health, AnAgentThatDrainsIsGivenNothingNewAndIsNotLost) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a", "v1", {});
  bench.core.handle_leaving(channel, bench.now);
  ASSERT_TRUE(bench.submit("meanwhile"));
  EXPECT_TRUE(bench.sent_to<InvocationRequest>(channel).empty());
  bench.advance(seconds{50});
  EXPECT_EQ(bench.state("a"), WorkerState::Ready);
  EXPECT_FALSE(bench.worker("a")->is_detached);
}

TEST(Health, ADetachedSessionIsNeitherProbedNorLostWithinItsTime) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a");
  bench.advance(seconds{10});
  bench.core.handle_detached(channel, bench.now);
  bench.advance(seconds{44});
  EXPECT_EQ(bench.state("a"), WorkerState::Ready);
  EXPECT_TRUE(bench.worker("a")->is_detached);
  EXPECT_TRUE(bench.sent_to<StatusRequest>(channel).empty());
  bench.core.handle_attached(channel, bench.now);
  bench.advance(milliseconds{14'999});
  EXPECT_TRUE(bench.sent_to<StatusRequest>(channel).empty());
  bench.advance(milliseconds{1});
  EXPECT_EQ(bench.sent_to<StatusRequest>(channel).size(), 1U);
  bench.advance(seconds{29});
  EXPECT_EQ(bench.state("a"), WorkerState::Ready);
  bench.advance(seconds{1});
  EXPECT_EQ(bench.state("a"), WorkerState::Abandoned);
}

TEST(Health, ADetachedWorkerIsGivenNoNewWorkAndKeepsWhatItHas) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a");
  ASSERT_TRUE(bench.submit("before"));
  bench.core.handle_detached(channel, bench.now);
  ASSERT_TRUE(bench.submit("meanwhile"));
  bench.advance(seconds{20});
  EXPECT_EQ(bench.sent_to<InvocationRequest>(channel).size(), 1U);
  EXPECT_TRUE(bench.outcomes.empty());
  bench.core.handle_attached(channel, bench.now);
  bench.poll();
  EXPECT_EQ(bench.sent_to<InvocationRequest>(channel).size(), 2U);
  bench.respond(channel, "before");
  bench.respond(channel, "meanwhile");
  EXPECT_EQ(bench.outcome("before")->settlement, Settlement::Complete);
  EXPECT_EQ(bench.outcome("meanwhile")->settlement, Settlement::Complete);
}

TEST(Health, ADetachedWorkerIsCountedApartFromThoseThatCanBeSentSomething) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a");
  bench.ready("b");
  const auto counts = [&] {
    for (const JobHostView& view : bench.core.job_hosts()) {
      if (view.key == bench.app) return std::array{view.ready, view.detached, view.workers};
    }
    return std::array<std::size_t, 3>{};
  };
  EXPECT_EQ(counts(), (std::array<std::size_t, 3>{2, 0, 2}));
  bench.core.handle_detached(channel, bench.now);
  EXPECT_EQ(counts(), (std::array<std::size_t, 3>{1, 1, 2}));
  bench.core.handle_attached(channel, bench.now);
  EXPECT_EQ(counts(), (std::array<std::size_t, 3>{2, 0, 2}));
  bench.core.handle_detached(channel, bench.now);
  bench.core.handle_closed(channel, ChannelEnd::Unavailable, "", bench.now);
  EXPECT_EQ(counts(), (std::array<std::size_t, 3>{1, 0, 1}));
}

TEST(Health, AChannelWithoutStartStreamIsClosedAfterAMinute) {
  CoreBench bench;
  const ChannelId channel = bench.open();
  bench.advance(milliseconds{59'999});
  EXPECT_FALSE(bench.is_closed(channel));
  bench.advance(milliseconds{1});
  EXPECT_TRUE(bench.is_closed(channel));
}

TEST(Health, AWorkerThatDoesNotAnswerInitIsGivenUp) {
  CoreBench bench;
  const ChannelId channel = bench.open();
  bench.say(channel, StartStream{WorkerId{"a"}});
  bench.advance(milliseconds{9'999});
  EXPECT_EQ(bench.state("a"), WorkerState::Connecting);
  bench.advance(milliseconds{1});
  EXPECT_EQ(bench.state("a"), WorkerState::Abandoned);
  EXPECT_TRUE(bench.is_closed(channel));
}

TEST(Health, AWorkerThatFailsToInitializeIsGivenUp) {
  CoreBench bench;
  const ChannelId channel = bench.open();
  bench.say(channel, StartStream{WorkerId{"a"}});
  bench.say(channel, InitResponse{failure("wrong version"), {}, {}, {}, {}});
  EXPECT_EQ(bench.state("a"), WorkerState::Abandoned);
  EXPECT_TRUE(bench.is_closed(channel));
}

TEST(Health, SilenceAndAnswersNotInTimeCountAgainstAWorkerThatComesBack) {
  CoreBench bench;
  for (int i = 0; i < 3; ++i) {
    bench.ready("a");
    bench.advance(seconds{45});
    ASSERT_EQ(bench.state("a"), WorkerState::Abandoned) << "silent";
    bench.say(bench.open(), StartStream{WorkerId{"a"}});
    bench.advance(seconds{10});
    ASSERT_EQ(bench.state("a"), WorkerState::Abandoned) << "no answer to init";
  }
  bench.placeholder("a");
  EXPECT_EQ(bench.state("a"), WorkerState::Draining);
}

TEST(Health, AnAnsweredProbeForgivesEarlierTimeouts) {
  CoreBench bench;
  for (int i = 0; i < 11; ++i) {
    const ChannelId channel = bench.ready("a");
    ASSERT_EQ(bench.state("a"), WorkerState::Ready) << "after " << i;
    if (i == 5) {
      bench.advance(seconds{15});
      bench.say(channel, StatusResponse{bench.sent_to<StatusRequest>(channel).back()->request_id});
    }
    bench.advance(seconds{45});
    ASSERT_EQ(bench.state("a"), WorkerState::Abandoned);
  }
  bench.placeholder("a");
  EXPECT_EQ(bench.state("a"), WorkerState::Draining) << "six since then";
}

TEST(Health, AWorkerThatDoesNotSayItsFunctionsHoldsUpNobody) {
  CoreBench bench;
  const ChannelId first = bench.placeholder("a", {});
  const ChannelId second = bench.placeholder("b", {});
  bench.say(first, bench.specialized("a"));
  bench.say(second, bench.specialized("b"));
  bench.answer(second, 0);
  EXPECT_EQ(bench.state("b"), WorkerState::Ready);
  bench.advance(seconds{60});
  EXPECT_EQ(bench.state("a"), WorkerState::Abandoned);
  EXPECT_EQ(bench.state("b"), WorkerState::Ready);
}

TEST(Health, AWorkerThatDoesNotAnswerItsLoadsIsGivenUp) {
  CoreBench bench;
  const ChannelId channel = bench.placeholder("a", {});
  bench.say(channel, bench.specialized("a"));
  bench.say(channel, MetadataResponse{success(), false, bench.functions});
  bench.say(channel, LoadResponse{FunctionId{"one-id"}, success()});
  bench.advance(seconds{60});
  EXPECT_EQ(bench.state("a"), WorkerState::Abandoned);
  EXPECT_EQ(bench.count(Signal::Kind::Replace), 1U);
}

}  // namespace
}  // namespace windlass::runtime
