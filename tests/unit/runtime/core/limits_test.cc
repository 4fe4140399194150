// Every bound of the core: what is over it is refused with a reason, and what is under way goes on.
#include "tests/unit/runtime/core/core_bench.h"

namespace windlass::runtime {
namespace {

TEST(Limits, InvocationsUnderWayAreBounded) {
  RuntimeOptions options;
  options.tracked_max = 2;
  CoreBench bench{options};
  const ChannelId channel = bench.ready("a");
  ASSERT_TRUE(bench.submit("i1"));
  ASSERT_TRUE(bench.submit("i2"));
  EXPECT_EQ(bench.submit("i3").error().code, ErrorCode::LimitCapacity);
  bench.respond(channel, "i1");
  EXPECT_TRUE(bench.submit("i3"));
  EXPECT_EQ(bench.core.in_flight(), 2U);
}

TEST(Limits, TheQueueOfAJobHostIsBounded) {
  RuntimeOptions options;
  options.slots_per_worker = 1;
  options.pending_max = 2;
  CoreBench bench{options};
  const ChannelId channel = bench.ready("a");
  for (const char* id : {"i1", "i2", "i3"}) ASSERT_TRUE(bench.submit(id));
  EXPECT_EQ(bench.submit("i4").error().code, ErrorCode::LimitCapacity);
  EXPECT_EQ(bench.job_host(bench.app)->pending, 2U);
  bench.respond(channel, "i1");
  EXPECT_TRUE(bench.submit("i4"));
  EXPECT_EQ(bench.outcomes.size(), 1U) << "what was refused has no outcome";
}

TEST(Limits, WhatWaitsByItsKeyCountsToo) {
  RuntimeOptions options;
  options.slots_per_worker = 1;
  options.pending_max = 1;
  CoreBench bench{options};
  bench.ready("a");
  Invocation keyed = bench.invocation("k1");
  keyed.sticky_key = "customer";
  ASSERT_TRUE(bench.submit(keyed));
  keyed.id = InvocationId{"k2"};
  ASSERT_TRUE(bench.submit(keyed));
  keyed.id = InvocationId{"k3"};
  EXPECT_FALSE(bench.submit(keyed));
}

TEST(Limits, WithoutAQueueAFreeSlotIsAllThereIs) {
  RuntimeOptions options;
  options.slots_per_worker = 1;
  options.pending_max = 0;
  CoreBench bench{options};
  const ChannelId channel = bench.ready("a");
  ASSERT_TRUE(bench.submit("i1"));
  EXPECT_FALSE(bench.submit("i2"));
  EXPECT_EQ(bench.count(Signal::Kind::NoFreeSlot), 1U);
  bench.respond(channel, "i1");
  EXPECT_TRUE(bench.submit("i2"));
}

TEST(Limits, WorkersAreBounded) {
  RuntimeOptions options;
  options.workers_max = 2;
  CoreBench bench{options};
  const ChannelId first = bench.placeholder("a");
  bench.placeholder("b");
  const ChannelId third = bench.open();
  bench.say(third, StartStream{WorkerId{"c"}});
  EXPECT_TRUE(bench.is_closed(third));
  EXPECT_FALSE(bench.worker("c"));
  bench.end(first, ChannelEnd::Closed);
  bench.placeholder("c");
  EXPECT_EQ(bench.state("c"), WorkerState::Placeholder);
}

TEST(Limits, ChannelsThatHaveNotSaidWhoTheyAreAreBounded) {
  RuntimeOptions options;
  options.channels_waiting_max = 2;
  CoreBench bench{options};
  const ChannelId first = bench.open();
  bench.open();
  EXPECT_TRUE(bench.is_closed(bench.open()));
  bench.say(first, StartStream{WorkerId{"a"}});
  EXPECT_FALSE(bench.is_closed(bench.open()));
}

TEST(Limits, JobHostsAreBounded) {
  RuntimeOptions options;
  options.job_hosts_max = 2;  // the placeholders' is one
  CoreBench bench{options};
  bench.ready("a");
  const ChannelId channel = bench.placeholder("b");
  bench.app = {"other", "m1"};
  bench.say(channel, bench.specialized("b"));
  ASSERT_EQ(bench.sent_to<SpecializedResponse>(channel).size(), 1U);
  EXPECT_FALSE(bench.sent_to<SpecializedResponse>(channel)[0]->result.is_ok());
  EXPECT_NE(bench.sent_to<SpecializedResponse>(channel)[0]->result.reason.find("job_hosts_max"),
            std::string::npos);
  EXPECT_EQ(bench.state("a"), WorkerState::Ready);
}

TEST(Limits, FunctionsOfAnApplicationAreBounded) {
  RuntimeOptions options;
  options.functions_max = 1;
  CoreBench bench{options};
  const ChannelId channel = bench.ready("a");
  ASSERT_EQ(bench.sent_to<SpecializedResponse>(channel).size(), 1U);
  EXPECT_NE(bench.sent_to<SpecializedResponse>(channel)[0]->result.reason.find("functions_max is 1"),
            std::string::npos);
}

TEST(Limits, NoWorkerEverHasMoreThanItsSlots) {
  RuntimeOptions options;
  options.slots_per_worker = 3;
  CoreBench bench{options};
  bench.ready("a");
  bench.ready("b");
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(bench.submit("i" + std::to_string(i)));
  EXPECT_EQ(bench.worker("a")->in_flight, 3U);
  EXPECT_EQ(bench.worker("b")->in_flight, 3U);
  EXPECT_EQ(bench.job_host(bench.app)->pending, 14U);
  EXPECT_EQ(bench.job_host(bench.app)->in_flight, 6U);
}

}  // namespace
}  // namespace windlass::runtime
