// Functions that are tried again: how often, after how long, and what they are told about it.
#include "runtime/core/recovery.h"
#include "tests/unit/runtime/core/core_bench.h"

namespace windlass::runtime {
namespace {

RetryOptions fixed_delay(std::int32_t retries_max, Duration delay) {
  RetryOptions options;
  options.strategy = RetryOptions::Strategy::FixedDelay;
  options.retries_max = retries_max;
  options.delay = delay;
  return options;
}

FunctionRef retried_function(const std::string& name, const RetryOptions& options) {
  auto function = std::make_shared<Function>(*make_function(name));
  function->has_retry = true;
  function->retry = options;
  return function;
}

TEST(Retry, FixedDelayTriesAgainAfterTheDelayAndSaysWhy) {
  CoreBench bench;
  bench.functions = {retried_function("one", fixed_delay(2, seconds{2}))};
  const ChannelId channel = bench.ready("a");
  ASSERT_TRUE(bench.submit("i1"));
  bench.respond(channel, "i1", failure("first"));
  EXPECT_EQ(bench.core.free_slots(bench.app), 10U) << "what waits for its retry holds no slot";
  bench.advance(milliseconds{1999});
  EXPECT_EQ(bench.sent_to<InvocationRequest>(channel).size(), 1U);
  bench.advance(milliseconds{1});
  bench.respond(channel, "i1", failure("second"));
  bench.advance(seconds{2});
  const auto requests = bench.sent_to<InvocationRequest>(channel);
  ASSERT_EQ(requests.size(), 3U);
  for (std::int32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(requests[static_cast<std::size_t>(i)]->retry_count, i);
    EXPECT_EQ(requests[static_cast<std::size_t>(i)]->retries_max, 2);
  }
  EXPECT_EQ(requests[0]->last_failure, "");
  EXPECT_EQ(requests[1]->last_failure, "first");
  EXPECT_EQ(requests[2]->last_failure, "second");
  EXPECT_EQ(bench.outcome("i1"), nullptr);
  bench.respond(channel, "i1", failure("third"));
  ASSERT_NE(bench.outcome("i1"), nullptr);
  EXPECT_EQ(bench.outcome("i1")->cause, Cause::FunctionFailed);
  EXPECT_EQ(bench.outcome("i1")->reason, "third");
  EXPECT_EQ(bench.outcome("i1")->tries, 3U);
  EXPECT_EQ(bench.count(Note::Kind::InvocationRetried), 2U);
}

TEST(Retry, ARetryThatSucceedsCompletes) {
  CoreBench bench;
  bench.functions = {retried_function("one", fixed_delay(-1, seconds{1}))};
  const ChannelId channel = bench.ready("a");
  ASSERT_TRUE(bench.submit("i1"));
  for (int i = 0; i < 50; ++i) {
    bench.respond(channel, "i1", failure("again"));
    bench.advance(seconds{1});
    bench.say(channel, Ignorable{"life"});
  }
  bench.respond(channel, "i1");
  EXPECT_EQ(bench.outcome("i1")->settlement, Settlement::Complete);
  EXPECT_EQ(bench.outcome("i1")->tries, 51U);
}

TEST(Retry, WithoutRetryOptionsThereIsNoRetryAndNoContext) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a");
  ASSERT_TRUE(bench.submit("i1"));
  EXPECT_EQ(bench.sent_to<InvocationRequest>(channel)[0]->retries_max, 0);
  bench.respond(channel, "i1", failure("boom"));
  EXPECT_EQ(bench.outcome("i1")->cause, Cause::FunctionFailed);
}

TEST(Retry, WhatWasCancelledIsNotTriedAgain) {
  CoreBench bench;
  bench.functions = {retried_function("one", fixed_delay(5, seconds{1}))};
  const ChannelId channel = bench.ready("a");
  ASSERT_TRUE(bench.submit("i1"));
  bench.respond(channel, "i1", RpcResult{RpcStatus::Cancelled, "stopped"});
  EXPECT_EQ(bench.outcome("i1")->cause, Cause::Cancelled);
  ASSERT_TRUE(bench.submit("i2"));
  bench.respond(channel, "i2", failure("boom"));
  bench.core.cancel(InvocationId{"i2"}, bench.now);
  bench.poll();
  ASSERT_NE(bench.outcome("i2"), nullptr) << "it was waiting for its retry";
  EXPECT_EQ(bench.outcome("i2")->cause, Cause::Cancelled);
  bench.advance(seconds{5});
  EXPECT_EQ(bench.sent_to<InvocationRequest>(channel).size(), 2U);
}

TEST(Retry, MayRunOnAnotherWorker) {
  CoreBench bench;
  bench.functions = {retried_function("one", fixed_delay(1, seconds{1}))};
  const ChannelId first = bench.ready("a");
  const ChannelId second = bench.ready("b");
  ASSERT_TRUE(bench.submit("i1"));
  ASSERT_EQ(bench.channel_of("i1"), first);
  bench.respond(first, "i1", failure("boom"));
  bench.end(first, ChannelEnd::Unavailable);
  bench.advance(seconds{1});
  EXPECT_EQ(bench.channel_of("i1"), second);
  EXPECT_EQ(bench.sent_to<InvocationRequest>(second).back()->retry_count, 1);
}

TEST(Retry, ExponentialBackoffDoublesWithinItsBounds) {
  RetryOptions options;
  options.strategy = RetryOptions::Strategy::ExponentialBackoff;
  options.delay_least = seconds{1};
  options.delay_most = seconds{20};
  Random random{3};
  const std::vector<int> middle = {1, 2, 4, 8, 16, 20, 20, 20};
  for (std::size_t retry = 1; retry <= middle.size(); ++retry) {
    const Duration full = seconds{middle[retry - 1]};
    bool is_below = false;
    bool is_above = false;
    for (int i = 0; i < 200; ++i) {
      const Duration delay = retry_delay(options, static_cast<std::int32_t>(retry), random);
      EXPECT_GE(delay, std::max<Duration>(full - full / 5, seconds{1}));
      EXPECT_LE(delay, std::min<Duration>(full + full / 5, seconds{20}));
      is_below = is_below || delay < full;
      is_above = is_above || delay > full;
    }
    EXPECT_EQ(is_below, retry > 1) << "retry " << retry;
    EXPECT_EQ(is_above, middle[retry - 1] < 20) << "retry " << retry;
  }
  EXPECT_LE(retry_delay(options, 1'000'000, random), seconds{20});
}

TEST(Retry, ExponentialBackoffRunsInTheCore) {
  RetryOptions options;
  options.strategy = RetryOptions::Strategy::ExponentialBackoff;
  options.retries_max = 3;
  options.delay_least = seconds{10};
  options.delay_most = seconds{40};
  CoreBench bench;
  bench.functions = {retried_function("one", options)};
  const ChannelId channel = bench.ready("a", "v1", {});
  ASSERT_TRUE(bench.submit("i1"));
  std::vector<Duration> waits;
  for (std::size_t sent = 1; bench.outcome("i1") == nullptr; ++sent) {
    bench.respond(channel, "i1", failure("boom"));
    const Instant before = bench.now;
    while (bench.outcome("i1") == nullptr && bench.sent_to<InvocationRequest>(channel).size() == sent) {
      bench.advance(milliseconds{100});
    }
    if (bench.outcome("i1") == nullptr) waits.push_back(bench.now - before);
  }
  ASSERT_EQ(waits.size(), 3U);
  EXPECT_GE(waits[0], seconds{10});
  EXPECT_LE(waits[0], milliseconds{12'100});
  EXPECT_GE(waits[1], seconds{16});
  EXPECT_LE(waits[1], milliseconds{24'100});
  EXPECT_GE(waits[2], seconds{32});
  EXPECT_LE(waits[2], milliseconds{40'100});
}

TEST(Retry, AnEndIsSettledByWhoseFaultItWas) {
  for (const Cause cause : {Cause::FunctionFailed, Cause::TimedOut, Cause::WorkerLost, Cause::LoadFailed}) {
    EXPECT_EQ(settlement_of(cause, 4, 5), Settlement::Abandon);
    EXPECT_EQ(settlement_of(cause, 5, 5), Settlement::DeadLetter);
  }
  for (const Cause cause : {Cause::Cancelled, Cause::NoWorker, Cause::Overloaded, Cause::JobHostFailed,
                            Cause::Orphaned, Cause::Stopping}) {
    EXPECT_EQ(settlement_of(cause, 99, 5), Settlement::Abandon);
  }
  EXPECT_EQ(settlement_of(Cause::None, 99, 5), Settlement::Complete);
  EXPECT_EQ(settlement_of(Cause::TooLarge, 1, 5), Settlement::DeadLetter);
  EXPECT_EQ(settlement_of(Cause::UnknownFunction, 1, 5), Settlement::DeadLetter);
}

}  // namespace
}  // namespace windlass::runtime
