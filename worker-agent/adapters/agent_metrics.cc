#include "worker-agent/adapters/agent_metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <optional>

#include "protocol/base/error_code.h"
#include "worker-agent/core/command.h"
#include "worker-agent/core/worker_command.h"

namespace windlass::agent {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;

// Those of RFC 6455 that end a connection here; an application's own appears with its first.
constexpr std::array<std::uint16_t, 12> kCloseCodes{1000, 1001, 1002, 1003, 1005, 1006,
                                                    1007, 1008, 1009, 1011, 1012, 1013};

const prometheus::Histogram::BucketBoundaries& boundaries() {
  static const prometheus::Histogram::BucketBoundaries kBoundaries{1,    5,    10,    50,    100,    500,
                                                                   1000, 5000, 10000, 60000, 300000, 3600000};
  return kBoundaries;
}

}  // namespace

struct AgentMetrics::Inside {
  prometheus::Registry registry;
  prometheus::Family<prometheus::Gauge>& certificates =
      prometheus::BuildGauge()
          .Name("windlass_certificate_expiry_timestamp_seconds")
          .Help("When a certificate of this process expires, in seconds since 1970.")
          .Register(registry);
  prometheus::Gauge& inflight = BuildGauge()
                                    .Name("inflight_tasks")
                                    .Help("Commands and invocations accepted and not finished")
                                    .Register(registry)
                                    .Add({});
  prometheus::Family<prometheus::Histogram>& durations = BuildHistogram()
                                                             .Name("task_duration_ms")
                                                             .Help("How long commands ran, in milliseconds")
                                                             .Register(registry);
  prometheus::Histogram& task(std::string_view type) {
    return durations.Add({{"node_type", std::string{type}}}, boundaries());
  }
  prometheus::Counter& heartbeats =
      BuildCounter().Name("heartbeat_sent_total").Help("Heartbeats sent").Register(registry).Add({});
  prometheus::Counter& degraded = BuildCounter()
                                      .Name("heartbeat_degraded_total")
                                      .Help("Heartbeats sent that said the worker is not healthy")
                                      .Register(registry)
                                      .Add({});
  prometheus::Gauge& waiting = BuildGauge()
                                   .Name("results_waiting")
                                   .Help("Results that no session has taken yet")
                                   .Register(registry)
                                   .Add({});
  prometheus::Gauge& ready = BuildGauge()
                                 .Name("session_ready")
                                 .Help("1 while a session to the scheduler is established")
                                 .Register(registry)
                                 .Add({});
  prometheus::Counter& journal_answers =
      BuildCounter()
          .Name("journal_answers_total")
          .Help("Commands that came again and were answered from the journal")
          .Register(registry)
          .Add({});
  prometheus::Family<prometheus::Counter>& counters(const char* name, const char* help) {
    return BuildCounter().Name(name).Help(help).Register(registry);
  }
  prometheus::Family<prometheus::Counter>& sessions =
      counters("windlass_sessions_total", "Sessions opened and resumed");
  prometheus::Family<prometheus::Counter>& ends =
      counters("windlass_session_ends_total", "Sessions that ended, by code; none is a finished drain");
  prometheus::Family<prometheus::Counter>& closes =
      counters("windlass_closes_total", "Connections closed, by code and by who began");
  prometheus::Counter& duplicates =
      counters("windlass_duplicate_frames_total", "Sequenced frames that came twice").Add({});
  prometheus::Counter& retransmits =
      counters("windlass_retransmits_total", "Frames sent again by a timer").Add({});
  prometheus::Counter& spurious =
      counters("windlass_spurious_retransmits_total", "Of those, what the peer had already").Add({});
  prometheus::Counter& outside_window =
      counters("windlass_outside_window_frames_total", "Sequenced frames beyond the credit, dropped").Add({});
  FrameCounts counted;
  prometheus::Family<prometheus::Counter>& refusals =
      BuildCounter().Name("cmd_refused_total").Help("Commands refused, by error code").Register(registry);

  // Of the language worker; without one they are not told.
  struct Relayed {
    explicit Relayed(Inside& inside)
        : messages(inside.counters("relay_messages_total", "FunctionRpc messages passed on, by where to")),
          bytes(inside.counters("relay_bytes_total", "Bytes of those")),
          dropped(
              inside.counters("relay_dropped_total", "FunctionRpc messages that were not passed on").Add({})),
          refused(
              inside.counters("relay_refused_total", "Messages that no language worker may send").Add({})),
          restarts(
              inside.counters("worker_restarts_total", "Language workers started after the first").Add({})),
          waiting(BuildGauge()
                      .Name("relay_waiting")
                      .Help("FunctionRpc messages that wait, by where to")
                      .Register(inside.registry)),
          invocations(BuildGauge()
                          .Name("relay_invocations")
                          .Help("Invocations of the runtime that the worker has not answered")
                          .Register(inside.registry)
                          .Add({})) {}
    prometheus::Family<prometheus::Counter>& messages;
    prometheus::Family<prometheus::Counter>& bytes;
    prometheus::Counter& dropped;
    prometheus::Counter& refused;
    prometheus::Counter& restarts;
    prometheus::Family<prometheus::Gauge>& waiting;
    prometheus::Gauge& invocations;
    prometheus::Counter& to_worker = messages.Add({{"to", "worker"}});
    prometheus::Counter& to_runtime = messages.Add({{"to", "runtime"}});
    prometheus::Counter& to_worker_bytes = bytes.Add({{"to", "worker"}});
    prometheus::Counter& to_runtime_bytes = bytes.Add({{"to", "runtime"}});
    prometheus::Gauge& waiting_for_worker = waiting.Add({{"to", "worker"}});
    prometheus::Gauge& waiting_for_runtime = waiting.Add({{"to", "runtime"}});
  };
  std::optional<Relayed> relayed;
  RelayCounts relay_counts;
};

AgentMetrics::AgentMetrics() : inside_(std::make_unique<Inside>()) {
  // Known names are there from the start: a rate over a series that appears with its first event misses it.
  for (const char* result : {"new", "resumed"}) inside_->sessions.Add({{"result", result}});
  for (const char* code : {"none", "other"}) inside_->ends.Add({{"code", code}});
  for (std::size_t i = 0; i < kErrorCodes; ++i) {
    const std::string code{to_string(static_cast<ErrorCode>(i))};
    inside_->ends.Add({{"code", code}});
    inside_->refusals.Add({{"code", code}});
  }
  for (const std::uint16_t code : kCloseCodes) {
    for (const char* initiator : {"local", "peer", "network"})
      inside_->closes.Add({{"code", std::to_string(code)}, {"initiator", initiator}});
  }
  for (const std::string_view type : {kEcho, kExec}) inside_->task(type);
}
AgentMetrics::~AgentMetrics() = default;

void AgentMetrics::set_inflight(std::uint64_t count) {
  inside_->inflight.Set(static_cast<double>(count));
}

void AgentMetrics::set_heartbeats(std::uint64_t sent, std::uint64_t degraded) {
  inside_->heartbeats.Increment(static_cast<double>(sent) - inside_->heartbeats.Value());
  inside_->degraded.Increment(static_cast<double>(degraded) - inside_->degraded.Value());
}

void AgentMetrics::add_task(std::string_view node_type, Duration took) {
  const double count = std::chrono::duration<double, std::milli>(took).count();
  inside_->task(node_type).Observe(count);
}

void AgentMetrics::set_results_waiting(std::uint64_t count) {
  inside_->waiting.Set(static_cast<double>(count));
}

void AgentMetrics::set_session_ready(bool is_ready) {
  inside_->ready.Set(is_ready ? 1 : 0);
}

void AgentMetrics::add_journal_answer() {
  inside_->journal_answers.Increment();
}

void AgentMetrics::add_refusal(std::string_view code) {
  inside_->refusals.Add({{"code", std::string{code}}}).Increment();
}

void AgentMetrics::add_session(std::string_view result) {
  inside_->sessions.Add({{"result", std::string{result}}}).Increment();
}

void AgentMetrics::add_session_end(std::string_view code) {
  inside_->ends.Add({{"code", code.empty() ? "none" : std::string{code}}}).Increment();
}

void AgentMetrics::add_close(std::uint16_t code, std::string_view initiator) {
  inside_->closes.Add({{"code", std::to_string(code)}, {"initiator", std::string{initiator}}}).Increment();
}

void AgentMetrics::set_frames(const FrameCounts& counts) {
  FrameCounts& counted = inside_->counted;
  if (counted.session != counts.session) counted = {.session = counts.session};
  const auto add = [](prometheus::Counter& counter, std::uint64_t now, std::uint64_t before) {
    if (now > before) counter.Increment(static_cast<double>(now - before));
  };
  add(inside_->duplicates, counts.duplicates, counted.duplicates);
  add(inside_->retransmits, counts.retransmits, counted.retransmits);
  add(inside_->spurious, counts.spurious_retransmits, counted.spurious_retransmits);
  add(inside_->outside_window, counts.outside_window, counted.outside_window);
  counted = counts;
}

void AgentMetrics::set_relay(const RelayCounts& counts) {
  if (!inside_->relayed) {
    inside_->relayed.emplace(*inside_);
    for (const std::string_view type : {kSpecialize, kReassign, kRelease, kResume}) inside_->task(type);
  }
  Inside::Relayed& relayed = *inside_->relayed;
  RelayCounts& before = inside_->relay_counts;
  const auto add = [](prometheus::Counter& counter, std::uint64_t now, std::uint64_t then) {
    if (now > then) counter.Increment(static_cast<double>(now - then));
  };
  add(relayed.to_worker, counts.to_worker, before.to_worker);
  add(relayed.to_worker_bytes, counts.to_worker_bytes, before.to_worker_bytes);
  add(relayed.to_runtime, counts.to_runtime, before.to_runtime);
  add(relayed.to_runtime_bytes, counts.to_runtime_bytes, before.to_runtime_bytes);
  add(relayed.dropped, counts.dropped, before.dropped);
  add(relayed.refused, counts.refused, before.refused);
  add(relayed.restarts, counts.restarts, before.restarts);
  relayed.waiting_for_worker.Set(static_cast<double>(counts.waiting_for_worker));
  relayed.waiting_for_runtime.Set(static_cast<double>(counts.waiting_for_runtime));
  relayed.invocations.Set(static_cast<double>(counts.invocations));
  before = counts;
}

void AgentMetrics::set_certificate_expiry(const std::string& certificate, double expires) {
  inside_->certificates.Add({{"certificate", certificate}}).Set(expires);
}

void AgentMetrics::set_confinement(std::string_view kind) {
  auto& family = BuildGauge()
                     .Name("worker_confinement")
                     .Help("How user code is kept apart from the agent; none: not at all")
                     .Register(inside_->registry);
  for (const char* const each : {"user", "namespace", "none"}) {
    family.Add({{"kind", each}}).Set(kind == each ? 1 : 0);
  }
}

std::string AgentMetrics::text() const {
  return prometheus::TextSerializer{}.Serialize(inside_->registry.Collect());
}

}  // namespace windlass::agent
