// What operators and the scheduler read of the core, and the gauges, by value.
#include "runtime/adapters/status_text.h"

#include "runtime/adapters/runtime_metrics.h"
#include "tests/unit/runtime/core/core_bench.h"

namespace windlass::runtime {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// One worker with a function that it could not load, one invocation of each end, and a worker that is gone.
void live(CoreBench& bench) {
  const ChannelId channel = bench.placeholder("a.1", {{"WorkerStatus", "true"}});
  bench.say(channel, bench.specialized("a.1"));
  bench.advance(milliseconds{40});
  bench.say(channel, MetadataResponse{success(), false, bench.functions});
  bench.say(channel, LoadResponse{FunctionId{"one-id"}, success()});
  bench.say(channel, LoadResponse{FunctionId{"two-id"}, failure("no module \"two\"")});
  for (const char* id : {"good", "bad", "slow"}) {
    Invocation invocation = bench.invocation(id);
    invocation.patience = seconds{1};
    ASSERT_TRUE(bench.submit(invocation));
  }
  bench.respond(channel, "good");
  bench.respond(channel, "bad", failure("boom"));
  bench.advance(seconds{1});
  bench.end(bench.ready("b.1", "v1", {}), ChannelEnd::Unavailable);
  bench.advance(seconds{14});
  ASSERT_EQ(bench.sent_to<StatusRequest>(channel).size(), 1U);
  bench.advance(milliseconds{5});
  bench.say(channel, StatusResponse{bench.sent_to<StatusRequest>(channel)[0]->request_id});
}

TEST(StatusText, TellsWhatTheCoreKnowsOfWorkersAndApplications) {
  CoreBench bench;
  live(bench);
  const std::string text = status_text(bench.core, {}, 1'000'000);
  for (const char* part : {R"("workers_ready":1)", R"("placeholders":0)", R"("worker":"a.1","state":"Ready")",
                           R"("done":1,"failed":1,"abandoned":1)", R"("functions_loaded":1)",
                           R"("load_failures":[{"function":"two","reason":"no module \"two\""}])",
                           R"("load_failures":[{"function":"two","workers":1,"everywhere":true,"reason":)",
                           R"("status_latency_ms":45)", R"("specialization_ms":40)", R"("in_flight":1)",
                           R"("lost_workers":[{"worker":"b.1","state":"Disconnected")"}) {
    EXPECT_TRUE(has(text, part)) << part << " in " << text;
  }
}

TEST(StatusText, WarnsOfOutputsThatGoNowhere) {
  CoreBench bench;
  Function function = *bench.functions[0];
  function.bindings.push_back({"answer", "http", "out", "{}"});
  function.bindings.push_back({"jobs", "queue", "out", "{}"});
  bench.functions[0] = std::make_shared<const Function>(std::move(function));
  live(bench);
  const std::string text = status_text(bench.core, {}, 1'000'000);
  EXPECT_TRUE(has(text,
                  R"("warnings":["function 'one' has the output 'jobs' (queue), which goes nowhere: output )"
                  R"(bindings do not exist yet"])"))
      << text;
  EXPECT_TRUE(has(text, R"("memory_pressure":"normal")"));
}

TEST(StatusText, TheShortOneStillSaysWhoIsCutOff) {
  CoreBench bench;
  const ChannelId cut = bench.ready("a.1", "v1", {});
  bench.ready("b.1", "v1", {});
  bench.core.handle_detached(cut, bench.now);
  const std::string text = status_text(bench.core, {}, 10);
  EXPECT_TRUE(has(text, R"("workers":[{"worker":"a.1","state":"Ready","detached":true}])")) << text;
  EXPECT_TRUE(has(text, R"("workers_detached":1)")) << text;
}

TEST(StatusText, TheShortOneStillSaysWhoDrains) {
  CoreBench bench;
  bench.ready("a.1", "v1", {});
  bench.ready("b.1", "v1", {});
  ASSERT_TRUE(bench.submit("i1"));
  ASSERT_TRUE(bench.submit("i2"));
  ASSERT_TRUE(bench.core.drain(WorkerId{"a.1"}, "an order", bench.now));
  const std::string text = status_text(bench.core, {}, 10);
  EXPECT_TRUE(has(text, R"("workers":[{"worker":"a.1","state":"Draining","detached":false}])")) << text;
}

TEST(StatusText, NobodyIsReadyWhileMemoryIsCritical) {
  CoreBench bench;
  bench.ready("a.1", "v1", {});
  bench.core.handle_memory(0.95, bench.now);
  const std::string text = status_text(bench.core, {}, 1'000'000);
  EXPECT_TRUE(has(text, R"("workers_ready":0)")) << text;
  EXPECT_TRUE(has(text, R"("ready":0,"detached":0,"workers":1)")) << text;
  EXPECT_TRUE(has(health_text(bench.core.health(), false), R"("ready_workers":0)"));
  RuntimeMetrics metrics;
  metrics.set_health(bench.core.health());
  metrics.set_applications(bench.core.job_hosts());
  EXPECT_TRUE(has(metrics.text(), "windlass_runtime_ready_workers 0"));
  EXPECT_TRUE(has(metrics.text(), "windlass_runtime_application_ready_workers{application=\"shop\"} 0"));
}

TEST(StatusText, TheShortOneSaysHowManyMoreAreCutOff) {
  CoreBench bench;
  for (int i = 0; i < 2050; ++i) {
    const ChannelId cut = bench.ready("a" + std::to_string(i) + ".1", "v1", {});
    bench.core.handle_detached(cut, bench.now);
  }
  const std::string text = status_text(bench.core, {}, 10);
  EXPECT_TRUE(has(text, R"("detached_left_out":2)"));
}

TEST(StatusText, ASignalSaysHowUrgentItIsAndWhoBringsTheNext) {
  Signal signal{Signal::Kind::Replace, {"shop", "m1"}, WorkerId{"a.1"}, Urgency::Medium, "it fell silent"};
  signal.is_agents = true;
  EXPECT_EQ(signal_text(signal),
            R"({"kind":"Replace","application_id":"shop","metadata_version":"m1","worker":"a.1",)"
            R"("urgent":false,"urgency":"medium","agent_brings_next":true,"reason":"it fell silent"})");
}

TEST(RuntimeMetricsText, SeriesThatAlertsUseAreThereBeforeAnythingHappens) {
  RuntimeMetrics metrics;
  metrics.application("shop");
  const std::string text = metrics.text();
  for (const char* line : {
           "windlass_runtime_events_total{kind=\"worker_abandoned\"} 0",
           "windlass_runtime_events_total{kind=\"function_load_failed\"} 0",
           "windlass_runtime_invocations_failed_total{application=\"shop\",cause=\"worker_lost\"} 0",
           "windlass_runtime_invocations_failed_total{application=\"shop\",cause=\"stopping\"} 0",
           "windlass_runtime_sessions_total{result=\"detached\"} 0",
           "windlass_runtime_signals_total{kind=\"Replace\"} 0",
           "windlass_runtime_http_requests_total{status=\"502\"} 0",
           "windlass_runtime_worker_pool_size{state=\"Ready\"} 0",
           "windlass_runtime_degraded 0",
           "windlass_runtime_detached_workers 0",
           "windlass_runtime_memory_utilization 0",
           "windlass_runtime_pending_invocations 0",
       }) {
    EXPECT_TRUE(has(text, line)) << line << " in\n" << text;
  }
}

TEST(RuntimeMetricsText, GaugesHaveTheCoresValues) {
  CoreBench bench;
  live(bench);
  const ChannelId cut = bench.ready("c.1", "v1", {});
  bench.core.handle_detached(cut, bench.now);
  RuntimeMetrics metrics;
  metrics.set_health(bench.core.health());
  metrics.set_applications(bench.core.job_hosts());
  metrics.set_pending(bench.core.in_flight());
  metrics.set_memory(0.25);
  metrics.set_workers(WorkerState::Ready, 2);
  for (const Note& note : bench.notes) metrics.count(note);
  std::string text = metrics.text();
  for (const char* line : {
           "windlass_runtime_ready_workers 1",
           "windlass_runtime_detached_workers 1",
           "windlass_runtime_degraded 0",
           "windlass_runtime_application_ready_workers{application=\"shop\"} 1",
           "windlass_runtime_functions_not_loaded{application=\"shop\"} 1",
           "windlass_runtime_pending_invocations 1",
           "windlass_runtime_memory_utilization 0.25",
           "windlass_runtime_worker_pool_size{state=\"Ready\"} 2",
           "windlass_runtime_worker_status_latency_seconds_sum 0.045",
           "windlass_runtime_events_total{kind=\"function_load_failed\"} 1",
       }) {
    EXPECT_TRUE(has(text, line)) << line << " in\n" << text;
  }
  bench.core.handle_closed(ChannelId{1}, ChannelEnd::Unavailable, "", bench.now);
  metrics.set_health(bench.core.health());
  metrics.set_applications(bench.core.job_hosts());
  text = metrics.text();
  EXPECT_TRUE(has(text, "windlass_runtime_degraded 1")) << text;
  EXPECT_TRUE(has(text, "windlass_runtime_application_ready_workers{application=\"shop\"} 0")) << text;
}

}  // namespace
}  // namespace windlass::runtime
