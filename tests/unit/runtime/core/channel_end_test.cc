// Every way in which a channel ends, with and without work under way.
#include "tests/unit/runtime/core/core_bench.h"

namespace windlass::runtime {
namespace {

constexpr std::array kAllEnds = {
    ChannelEnd::Closed,           ChannelEnd::Cancelled,         ChannelEnd::Unavailable,
    ChannelEnd::DeadlineExceeded, ChannelEnd::ResourceExhausted, ChannelEnd::Internal,
    ChannelEnd::ProtocolError};

TEST(ChannelEnds, AllFailWhatWasInFlightAndAskForAReplacement) {
  for (const ChannelEnd how : kAllEnds) {
    SCOPED_TRACE(static_cast<int>(how));
    CoreBench bench;
    const ChannelId channel = bench.ready("a");
    ASSERT_TRUE(bench.submit("i1"));
    bench.end(channel, how);
    EXPECT_EQ(bench.state("a"), WorkerState::Disconnected);
    ASSERT_NE(bench.outcome("i1"), nullptr);
    EXPECT_EQ(bench.outcome("i1")->cause, Cause::WorkerLost);
    EXPECT_EQ(bench.outcome("i1")->settlement, Settlement::Abandon);
    EXPECT_EQ(bench.count(Note::Kind::WorkerDisconnected), 1U);
    ASSERT_EQ(bench.count(Signal::Kind::Replace), 1U);
    EXPECT_TRUE(bench.signals.back().is_urgent());
    EXPECT_EQ(bench.signals.back().worker, WorkerId{"a"});
    EXPECT_TRUE(bench.closed.empty()) << "it is closed already";
  }
}

TEST(ChannelEnds, OnlyAnIdleWorkerThatLeftIsNotReplaced) {
  for (const ChannelEnd how : kAllEnds) {
    SCOPED_TRACE(static_cast<int>(how));
    CoreBench bench;
    bench.end(bench.ready("a"), how);
    EXPECT_EQ(bench.count(Signal::Kind::Replace), how == ChannelEnd::Closed ? 0U : 1U);
  }
}

TEST(ChannelEnds, AReplacementIsUrgentOnlyForTheLastWorker) {
  CoreBench bench;
  const ChannelId first = bench.ready("a");
  const ChannelId second = bench.ready("b");
  bench.end(first, ChannelEnd::Unavailable);
  ASSERT_EQ(bench.count(Signal::Kind::Replace), 1U);
  EXPECT_FALSE(bench.signals.back().is_urgent());
  bench.end(second, ChannelEnd::Unavailable);
  ASSERT_EQ(bench.count(Signal::Kind::Replace), 2U);
  EXPECT_TRUE(bench.signals.back().is_urgent());
}

TEST(ChannelEnds, OfAPlaceholderLosesNothing) {
  CoreBench bench;
  bench.end(bench.placeholder("a"), ChannelEnd::Unavailable);
  EXPECT_EQ(bench.state("a"), WorkerState::Disconnected);
  EXPECT_EQ(bench.count(Signal::Kind::Replace), 0U);
}

TEST(ChannelEnds, IdempotentWorkIsTriedElsewhereThreeTimes) {
  CoreBench bench;
  for (const char* id : {"a", "b", "c", "d"}) bench.ready(id);
  Invocation again = bench.invocation("i1");
  again.is_idempotent = true;
  ASSERT_TRUE(bench.submit(again));
  for (int tries = 0; tries < 3; ++tries) {
    EXPECT_EQ(bench.outcome("i1"), nullptr);
    bench.end(*bench.channel_of("i1"), ChannelEnd::Unavailable);
  }
  ASSERT_NE(bench.outcome("i1"), nullptr);
  EXPECT_EQ(bench.outcome("i1")->cause, Cause::WorkerLost);
  EXPECT_EQ(bench.outcome("i1")->tries, 3U);
}

TEST(ChannelEnds, WhatNeverLeftTheRuntimeIsTriedElsewhere) {
  CoreBench bench;
  const ChannelId first = bench.ready("a");
  ASSERT_TRUE(bench.core.submit(bench.invocation("i1"), bench.now));
  bench.end(first, ChannelEnd::Unavailable);
  EXPECT_TRUE(bench.outcomes.empty());
  const ChannelId second = bench.ready("b");
  EXPECT_EQ(bench.channel_of("i1"), second);
}

TEST(ChannelEnds, AWorkerWhoseChannelTimedOutMoreThanFiveTimesIsSentAwayOnce) {
  CoreBench bench;
  for (int i = 0; i < 6; ++i) {
    const ChannelId channel = bench.ready("a");
    EXPECT_EQ(bench.state("a"), WorkerState::Ready) << "after " << i;
    bench.end(channel, ChannelEnd::DeadlineExceeded);
  }
  const ChannelId channel = bench.placeholder("a");
  EXPECT_EQ(bench.state("a"), WorkerState::Draining);
  EXPECT_EQ(bench.sent_to<Terminate>(channel).size(), 1U);
  bench.advance(seconds{5});
  ASSERT_TRUE(bench.is_closed(channel));
  bench.ready("a");
  EXPECT_EQ(bench.state("a"), WorkerState::Ready) << "it is another process";
}

TEST(ChannelEnds, WhatWaitsOutlivesTheLastWorkerUntilAnotherComes) {
  CoreBench bench;
  const ChannelId first = bench.ready("a");
  bench.end(first, ChannelEnd::Unavailable);
  ASSERT_TRUE(bench.submit("i1")) << "a replacement is on its way";
  bench.advance(seconds{30});
  const ChannelId second = bench.ready("b");
  EXPECT_EQ(bench.channel_of("i1"), second);
  EXPECT_EQ(bench.count(Note::Kind::JobHostCreated, bench.app), 1U) << "the JobHost was kept";
}

TEST(ChannelEnds, WithoutAnotherWorkerWhatWaitsEndsAndTheJobHostStops) {
  CoreBench bench;
  bench.end(bench.ready("a"), ChannelEnd::Unavailable);
  ASSERT_TRUE(bench.submit("i1"));
  bench.advance(seconds{61});
  EXPECT_EQ(bench.outcome("i1")->cause, Cause::NoWorker);
  EXPECT_FALSE(bench.job_host(bench.app));
  EXPECT_EQ(bench.count(Note::Kind::JobHostStopped), 2U) << "the placeholders' too";
}

}  // namespace
}  // namespace windlass::runtime
