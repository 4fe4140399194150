// Callers that wait no longer: they are told, the function is asked to stop, and nobody else notices.
#include "tests/unit/runtime/core/core_bench.h"

namespace windlass::runtime {
namespace {

Invocation impatient(const CoreBench& bench, const std::string& id, Duration patience,
                     const std::string& function = "one") {
  Invocation invocation = bench.invocation(id, function);
  invocation.patience = patience;
  return invocation;
}

const TextMap& cancels() {
  static const TextMap kCapabilities = {{"HandlesInvocationCancelMessage", "true"}};
  return kCapabilities;
}

TEST(Patience, EndsTheWaitAndNotTheWorker) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a", "v1", cancels());
  ASSERT_TRUE(bench.submit(impatient(bench, "short", milliseconds{200})));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(bench.submit("other" + std::to_string(i)));
  bench.advance(milliseconds{199});
  EXPECT_EQ(bench.outcome("short"), nullptr);
  bench.advance(milliseconds{1});
  ASSERT_NE(bench.outcome("short"), nullptr);
  EXPECT_EQ(bench.outcome("short")->cause, Cause::CallerLeft);
  ASSERT_EQ(bench.sent_to<InvocationCancel>(channel).size(), 1U);
  EXPECT_EQ(bench.sent_to<InvocationCancel>(channel)[0]->invocation.value(), "short");
  EXPECT_EQ(bench.state("a"), WorkerState::Ready);
  EXPECT_EQ(bench.core.free_slots(bench.app), 4U) << "the function may still run";
  bench.respond(channel, "short", RpcResult{RpcStatus::Cancelled, "stopped"});
  EXPECT_EQ(bench.core.free_slots(bench.app), 5U);
  for (int i = 0; i < 5; ++i) {
    const std::string id = "other" + std::to_string(i);
    bench.respond(channel, id);
    EXPECT_EQ(bench.outcome(id)->settlement, Settlement::Complete);
  }
  EXPECT_EQ(bench.outcomes.size(), 6U) << "one outcome each";
  EXPECT_EQ(bench.core.in_flight(), 0U);
  EXPECT_EQ(bench.count(Note::Kind::UnknownResponse), 0U);
}

TEST(Patience, OfAWorkerThatCannotBeToldLetsTheFunctionRun) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a", "v1", {});
  ASSERT_TRUE(bench.submit(impatient(bench, "i1", seconds{1})));
  bench.advance(seconds{1});
  EXPECT_EQ(bench.outcome("i1")->cause, Cause::CallerLeft);
  EXPECT_TRUE(bench.sent_to<InvocationCancel>(channel).empty());
  bench.respond(channel, "i1");
  EXPECT_EQ(bench.worker("a")->done, 1U);
  EXPECT_EQ(bench.outcomes.size(), 1U);
}

TEST(Patience, DoesNotSpareAFunctionItsOwnTime) {
  CoreBench bench;
  const ChannelId channel = bench.ready("a", "v1", {});
  Invocation hung = impatient(bench, "hung", seconds{1});
  hung.timeout = seconds{10};
  ASSERT_TRUE(bench.submit(hung));
  bench.advance(seconds{9});
  EXPECT_EQ(bench.state("a"), WorkerState::Ready);
  bench.advance(seconds{1});
  EXPECT_EQ(bench.state("a"), WorkerState::Abandoned) << "the function's own time recycles";
  EXPECT_TRUE(bench.is_closed(channel));
  EXPECT_EQ(bench.outcomes.size(), 1U);
}

TEST(Patience, EndsAtOnceWhatHasNotReachedAWorker) {
  RuntimeOptions options;
  options.slots_per_worker = 1;
  CoreBench bench{options};
  const ChannelId channel = bench.ready("a", "v1", cancels());
  ASSERT_TRUE(bench.submit("running"));
  ASSERT_TRUE(bench.submit(impatient(bench, "waiting", seconds{1})));
  bench.advance(seconds{1});
  EXPECT_EQ(bench.outcome("waiting")->cause, Cause::CallerLeft);
  bench.respond(channel, "running");
  EXPECT_EQ(bench.sent_to<InvocationRequest>(channel).size(), 1U);
}

TEST(Patience, IsOverAllRetries) {
  CoreBench bench;
  auto retried = std::make_shared<Function>(*make_function("one"));
  retried->has_retry = true;
  retried->retry.retries_max = -1;
  retried->retry.delay = milliseconds{300};
  bench.functions = {retried};
  const ChannelId channel = bench.ready("a", "v1", {});
  ASSERT_TRUE(bench.submit(impatient(bench, "i1", seconds{1})));
  bench.respond(channel, "i1", failure("boom"));
  bench.advance(milliseconds{999});
  EXPECT_EQ(bench.sent_to<InvocationRequest>(channel).size(), 2U);
  bench.advance(milliseconds{1});
  EXPECT_EQ(bench.outcome("i1")->cause, Cause::CallerLeft);
  bench.respond(channel, "i1", failure("boom"));
  bench.advance(seconds{10});
  EXPECT_EQ(bench.sent_to<InvocationRequest>(channel).size(), 2U) << "nobody wants it any more";
  EXPECT_EQ(bench.outcomes.size(), 1U);
}

TEST(Patience, OfOneThatIsGoneDoesNotMoveItsWorkElsewhere) {
  CoreBench bench;
  const ChannelId lost = bench.ready("a", "v1", {});
  Invocation again = impatient(bench, "i1", seconds{1});
  again.is_idempotent = true;
  ASSERT_TRUE(bench.submit(again));
  const ChannelId other = bench.ready("b", "v1", {});
  bench.advance(seconds{1});
  bench.end(lost, ChannelEnd::Unavailable);
  EXPECT_TRUE(bench.sent_to<InvocationRequest>(other).empty());
  EXPECT_EQ(bench.outcomes.size(), 1U);
}

TEST(Patience, OfAClientThatLeftEndsItsRetriesToo) {
  CoreBench bench;
  auto retried = std::make_shared<Function>(*make_function("one"));
  retried->has_retry = true;
  retried->retry.retries_max = 5;
  bench.functions = {retried};
  const ChannelId channel = bench.ready("a", "v1", {});
  ASSERT_TRUE(bench.submit("i1"));
  bench.core.cancel(InvocationId{"i1"}, bench.now);
  bench.respond(channel, "i1", failure("boom"));
  bench.advance(seconds{10});
  EXPECT_EQ(bench.sent_to<InvocationRequest>(channel).size(), 1U);
  EXPECT_EQ(bench.outcome("i1")->cause, Cause::FunctionFailed);
}

}  // namespace
}  // namespace windlass::runtime
