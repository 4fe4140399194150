// Channels whose queue is full: no new work at once, unhealthy after five seconds, and the way back.
#include "tests/unit/runtime/core/core_bench.h"

namespace windlass::runtime {
namespace {

// Submitted while the channel has just filled up: the request is held back, not sent.
void submit_unsent(CoreBench& bench, const std::string& id, ChannelId channel) {
  ASSERT_TRUE(bench.core.submit(bench.invocation(id), bench.now));
  bench.block(channel);
}

TEST(Backpressure, ABlockedWorkerIsGivenNoNewWork) {
  CoreBench bench;
  const ChannelId full = bench.ready("a");
  const ChannelId other = bench.ready("b");
  bench.block(full);
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(bench.submit("i" + std::to_string(i)));
  EXPECT_TRUE(bench.sent_to<InvocationRequest>(full).empty());
  EXPECT_EQ(bench.sent_to<InvocationRequest>(other).size(), 6U);
  EXPECT_EQ(bench.state("a"), WorkerState::Ready);
}

TEST(Backpressure, WhatWasHeldBackGoesOutInOrderWhenTheChannelIsWritableInTime) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a");
  ASSERT_TRUE(bench.core.submit(bench.invocation("i1"), bench.now));
  submit_unsent(bench, "i2", channel);
  ASSERT_TRUE(bench.submit("i3"));
  EXPECT_TRUE(bench.sent_to<InvocationRequest>(channel).empty());
  bench.advance(milliseconds{4'999});
  bench.unblock(channel);
  const auto requests = bench.sent_to<InvocationRequest>(channel);
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_EQ(requests[0]->invocation.value(), "i1");
  EXPECT_EQ(requests[1]->invocation.value(), "i2");
  EXPECT_EQ(requests[2]->invocation.value(), "i3");
  bench.advance(seconds{10});
  EXPECT_EQ(bench.count(Note::Kind::WorkerUnhealthy), 0U);
}

TEST(Backpressure, AfterFiveSecondsUnsentWorkGoesToAnotherWorker) {
  CoreBench bench;
  const ChannelId full = bench.ready("a");
  submit_unsent(bench, "i1", full);
  const ChannelId other = bench.ready("b");
  bench.advance(milliseconds{4'999});
  EXPECT_EQ(bench.state("a"), WorkerState::Ready);
  EXPECT_TRUE(bench.sent_to<InvocationRequest>(other).empty());
  bench.advance(milliseconds{1});
  EXPECT_EQ(bench.state("a"), WorkerState::Unhealthy);
  EXPECT_EQ(bench.count(Note::Kind::WorkerUnhealthy), 1U);
  EXPECT_EQ(bench.channel_of("i1"), other);
  bench.unblock(full);
  EXPECT_TRUE(bench.sent_to<InvocationRequest>(full).empty()) << "it went elsewhere";
  bench.respond(other, "i1");
  EXPECT_EQ(bench.outcome("i1")->tries, 1U);
}

TEST(Backpressure, WhatWasSentBeforeStaysWithItsWorker) {
  CoreBench bench;
  const ChannelId full = bench.ready("a");
  ASSERT_TRUE(bench.submit("i1"));
  const ChannelId other = bench.ready("b");
  bench.block(full);
  bench.advance(seconds{6});
  EXPECT_EQ(bench.state("a"), WorkerState::Unhealthy);
  EXPECT_TRUE(bench.sent_to<InvocationRequest>(other).empty());
  bench.respond(full, "i1");
  EXPECT_EQ(bench.outcome("i1")->settlement, Settlement::Complete);
}

TEST(Backpressure, AWritableChannelMakesTheWorkerReadyAgain) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a");
  submit_unsent(bench, "i1", channel);
  bench.advance(seconds{6});
  EXPECT_EQ(bench.state("a"), WorkerState::Unhealthy);
  EXPECT_TRUE(bench.outcomes.empty()) << "it waits for a slot anywhere";
  bench.unblock(channel);
  EXPECT_EQ(bench.state("a"), WorkerState::Ready);
  EXPECT_EQ(bench.count(Note::Kind::WorkerRecovered), 1U);
  EXPECT_EQ(bench.sent_to<InvocationRequest>(channel).size(), 1U) << "once";
  bench.respond(channel, "i1");
  EXPECT_EQ(bench.outcome("i1")->settlement, Settlement::Complete);
  EXPECT_EQ(bench.core.free_slots(bench.app), 10U);
}

TEST(Backpressure, APlaceholderMayBeUnhealthyAndRecoverToo) {
  CoreBench bench;
  const ChannelId channel = bench.placeholder("a", {});
  bench.block(channel);
  bench.advance(seconds{5});
  EXPECT_EQ(bench.state("a"), WorkerState::Unhealthy);
  bench.unblock(channel);
  EXPECT_EQ(bench.state("a"), WorkerState::Placeholder);
}

TEST(Backpressure, ABlockedChannelIsNotProbed) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a");
  bench.block(channel);
  bench.advance(seconds{40});
  EXPECT_TRUE(bench.sent_to<StatusRequest>(channel).empty());
}

TEST(Backpressure, WhatNeverReachedAWorkerIsNotSentRoundForEver) {
  CoreBench bench;
  std::vector<ChannelId> channels;
  for (const char* id : {"a", "b", "c"}) channels.push_back(bench.ready(id, "v1", {}));
  ASSERT_TRUE(bench.core.submit(bench.invocation("i1"), bench.now));
  for (const ChannelId channel : channels) bench.core.handle_blocked(channel, bench.now);
  bench.poll();
  for (int round = 0; round < 3 && bench.outcome("i1") == nullptr; ++round) {
    bench.advance(seconds{5});
    // Each is writable just long enough to be given it.
    for (const ChannelId channel : channels) {
      bench.core.handle_writable(channel, bench.now);
      bench.core.handle_blocked(channel, bench.now);
    }
    bench.poll();
  }
  ASSERT_NE(bench.outcome("i1"), nullptr);
  EXPECT_EQ(bench.outcome("i1")->cause, Cause::WorkerLost);
  EXPECT_EQ(bench.outcome("i1")->tries, 0U);
}

}  // namespace
}  // namespace windlass::runtime
