#include "runtime/adapters/runtime_metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

namespace windlass::runtime {
namespace {

using CounterFamily = prometheus::Family<prometheus::Counter>;
using Buckets = prometheus::Histogram::BucketBoundaries;

const Buckets kInvocationSeconds = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                    0.5,    1,     2.5,    5,     10,   30,    60,   300};
const Buckets kSpecializationSeconds = {0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.5, 3, 6, 12, 30};
const Buckets kStatusSeconds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 15};
const Buckets kInFlight = {0, 1, 2, 5, 10, 20, 50, 100, 200};
constexpr std::size_t kApplicationsMax = 1'000;

double in_seconds(Duration time) {
  return std::chrono::duration<double>(time).count();
}

constexpr std::size_t kCauses = static_cast<std::size_t>(Cause::Stopping) + 1;
constexpr std::size_t kStates = static_cast<std::size_t>(WorkerState::Disconnected) + 1;

// In the order of Note::Kind.
constexpr std::array<const char*, static_cast<std::size_t>(Note::Kind::StatusAnswered) + 1> kNoteKinds = {
    "worker_connected",     "worker_initialized", "worker_specializing", "worker_ready",
    "worker_unhealthy",     "worker_recovered",   "worker_draining",     "worker_abandoned",
    "worker_disconnected",  "job_host_created",   "job_host_stopped",    "job_host_failed",
    "function_load_failed", "functions_dropped",  "invocation_retried",  "unknown_response",
    "bad_message",          "message_unreadable", "backpressure",        "memory_pressure",
    "message_held",         "switched",           "status_answered"};

class Meter final : public ApplicationMeter {
 public:
  Meter(prometheus::Counter& routed, prometheus::Counter& completed, CounterFamily& failed,
        prometheus::Histogram& duration, const std::string& application)
      : routed_(routed), completed_(completed), duration_(duration) {
    // All from the start: a rate over a series that appears with its first event misses that event.
    for (std::size_t i = 1; i < failed_.size(); ++i) {
      failed_[i] = &failed.Add(
          {{"application", application}, {"cause", std::string{to_string(static_cast<Cause>(i))}}});
    }
  }
  void count_routed() override { routed_.Increment(); }
  void count_outcome(const Outcome& outcome) override {
    duration_.Observe(in_seconds(outcome.took));
    if (outcome.settlement == Settlement::Complete) return completed_.Increment();
    if (outcome.cause != Cause::None) failed_[static_cast<std::size_t>(outcome.cause)]->Increment();
  }
  void count_refused(Cause cause) override { failed_[static_cast<std::size_t>(cause)]->Increment(); }

 private:
  prometheus::Counter& routed_;
  prometheus::Counter& completed_;
  prometheus::Histogram& duration_;
  std::array<prometheus::Counter*, kCauses> failed_{};  // in Cause's order; the first is no failure
};

class EventMeter final : public SourceMeter {
 public:
  EventMeter(std::string name, prometheus::Counter& received, std::array<prometheus::Counter*, 3> settled)
      : name_(std::move(name)), received_(received), settled_(settled) {}
  std::string_view name() const override { return name_; }
  void count_received() override { received_.Increment(); }
  void count_settled(Settlement settlement) override {
    settled_[static_cast<std::size_t>(settlement)]->Increment();
  }

 private:
  std::string name_;
  prometheus::Counter& received_;
  std::array<prometheus::Counter*, 3> settled_;  // in Settlement's order
};

}  // namespace

std::string_view to_string(Cause cause) {
  constexpr std::string_view kNames[] = {"none",        "function_failed", "cancelled",   "timed_out",
                                         "caller_left", "worker_lost",     "load_failed", "unknown_function",
                                         "no_worker",   "overloaded",      "too_large",   "job_host_failed",
                                         "orphaned",    "stopping"};
  return kNames[static_cast<std::size_t>(cause)];
}

std::string_view to_string(Settlement settlement) {
  constexpr std::string_view kNames[] = {"complete", "abandon", "dead_letter"};
  return kNames[static_cast<std::size_t>(settlement)];
}

struct RuntimeMetrics::Inside {
  CounterFamily& counters(const char* name, const char* help) {
    return prometheus::BuildCounter()
        .Name(std::string{"windlass_runtime_"} + name)
        .Help(help)
        .Register(registry);
  }
  prometheus::Counter& counter(const char* name, const char* help) { return counters(name, help).Add({}); }
  prometheus::Family<prometheus::Gauge>& gauges(const char* name, const char* help) {
    return prometheus::BuildGauge()
        .Name(std::string{"windlass_runtime_"} + name)
        .Help(help)
        .Register(registry);
  }
  prometheus::Family<prometheus::Histogram>& histograms(const char* name, const char* help) {
    return prometheus::BuildHistogram()
        .Name(std::string{"windlass_runtime_"} + name)
        .Help(help)
        .Register(registry);
  }

  prometheus::Registry registry;
  prometheus::Family<prometheus::Gauge>& certificates =
      prometheus::BuildGauge()
          .Name("windlass_runtime_certificate_expiry_timestamp_seconds")
          .Help("When a certificate of this process expires, in seconds since 1970.")
          .Register(registry);
  CounterFamily& connections =
      counters("worker_connections_total", "Streams that workers opened, by channel.");
  prometheus::Histogram& specialization =
      histograms("worker_specialization_duration_seconds", "From WorkerSpecialized, or the reload, to ready.")
          .Add({}, kSpecializationSeconds);
  prometheus::Family<prometheus::Gauge>& pool = gauges("worker_pool_size", "Workers, by state.");
  CounterFamily& routed = counters("invocations_routed_total", "Invocations given to a worker, retries too.");
  CounterFamily& completed = counters("invocations_completed_total", "Invocations that ended well.");
  CounterFamily& failed = counters("invocations_failed_total", "Invocations that did not, by cause.");
  prometheus::Family<prometheus::Histogram>& duration =
      histograms("invocation_duration_seconds", "From the submission to the outcome.");
  CounterFamily& received = counters("messages_received_total", "Events taken from trigger sources.");
  CounterFamily& messages_completed =
      counters("messages_completed_total", "Events whose invocation ended well.");
  CounterFamily& abandoned = counters("messages_abandoned_total", "Events given back to be tried again.");
  CounterFamily& dead_lettered = counters("messages_dead_lettered_total", "Events given up.");
  prometheus::Histogram& in_flight =
      histograms("worker_in_flight_invocations",
                 "Invocations under way on one worker, looked at every second.")
          .Add({}, kInFlight);
  prometheus::Counter& backpressure = counter("backpressure_events_total", "Workers whose queue was full.");
  CounterFamily& notes =
      counters("events_total", "What happened to workers, JobHosts and messages, by kind.");
  CounterFamily& sessions = counters("sessions_total", "Sessions of agents, new, resumed and ended.");
  CounterFamily& signals = counters("signals_total", "Signals to the scheduler, by kind.");
  CounterFamily& http = counters("http_requests_total", "Answers of the HTTP front, by status.");
  prometheus::Histogram& status_latency =
      histograms("worker_status_latency_seconds", "From a status request to its answer.")
          .Add({}, kStatusSeconds);
  prometheus::Gauge& ready = gauges("ready_workers", "Workers that can take an invocation now.").Add({});
  prometheus::Gauge& detached =
      gauges("detached_workers", "Workers whose session waits for a resume.").Add({});
  prometheus::Gauge& degraded = gauges("degraded", "1 while /health is not Healthy.").Add({});
  prometheus::Family<prometheus::Gauge>& application_ready =
      gauges("application_ready_workers", "Workers of an application that can take an invocation now.");
  prometheus::Family<prometheus::Gauge>& unloaded = gauges(
      "functions_not_loaded", "Pairs of a worker and a function that it could not load, by application.");
  prometheus::Gauge& memory = gauges("memory_utilization", "Memory in use, 0 to 1.").Add({});
  prometheus::Gauge& pending = gauges("pending_invocations", "Invocations without an outcome.").Add({});
  std::unordered_map<std::string, std::unique_ptr<ApplicationMeter>> applications;
  std::vector<std::unique_ptr<SourceMeter>> sources;
  std::set<std::string> shown;  // applications that have gauges
};

RuntimeMetrics::RuntimeMetrics() : inside_(std::make_unique<Inside>()) {
  // Sources that are there from the start, so that a dashboard finds every name.
  for (const char* name : {"http", "invoke"}) source(name);
  for (const char* kind : kNoteKinds) inside_->notes.Add({{"kind", kind}});
  for (const char* channel : {"session", "grpc"}) inside_->connections.Add({{"channel", channel}});
  for (const char* result : {"new", "resumed", "detached", "ended"}) {
    inside_->sessions.Add({{"result", result}});
  }
  for (const char* kind : {"NoFreeSlot", "SlotFree", "Replace", "ScaleUp", "ScaleDown"}) {
    inside_->signals.Add({{"kind", kind}});
  }
  for (const char* status : {"200", "404", "429", "500", "502", "503", "504"}) {
    inside_->http.Add({{"status", status}});
  }
  for (std::size_t i = 0; i < kStates; ++i) set_workers(static_cast<WorkerState>(i), 0);
}

RuntimeMetrics::~RuntimeMetrics() = default;

ApplicationMeter& RuntimeMetrics::application(const std::string& id) {
  auto found = inside_->applications.find(id);
  if (found != inside_->applications.end()) return *found->second;
  if (inside_->applications.size() >= kApplicationsMax && id != "other") return application("other");
  const prometheus::Labels labels{{"application", id}};
  found = inside_->applications
              .emplace(id, std::make_unique<Meter>(inside_->routed.Add(labels),
                                                   inside_->completed.Add(labels), inside_->failed,
                                                   inside_->duration.Add(labels, kInvocationSeconds), id))
              .first;
  return *found->second;
}

SourceMeter& RuntimeMetrics::source(std::string_view name) {
  for (const auto& each : inside_->sources) {
    if (each->name() == name) return *each;
  }
  const prometheus::Labels labels{{"source", std::string{name}}};
  inside_->sources.push_back(std::make_unique<EventMeter>(
      std::string{name}, inside_->received.Add(labels),
      std::array{&inside_->messages_completed.Add(labels), &inside_->abandoned.Add(labels),
                 &inside_->dead_lettered.Add(labels)}));
  return *inside_->sources.back();
}

void RuntimeMetrics::count(const Note& note) {
  if (note.kind == Note::Kind::Backpressure) inside_->backpressure.Increment();
  if (note.kind == Note::Kind::WorkerReady && note.took)
    inside_->specialization.Observe(in_seconds(*note.took));
  if (note.kind == Note::Kind::StatusAnswered && note.took) {
    inside_->status_latency.Observe(in_seconds(*note.took));
  }
  inside_->notes.Add({{"kind", kNoteKinds[static_cast<std::size_t>(note.kind)]}}).Increment();
}

void RuntimeMetrics::count_connection(ChannelKind kind) {
  inside_->connections.Add({{"channel", kind == ChannelKind::Session ? "session" : "grpc"}}).Increment();
}

void RuntimeMetrics::count_session(std::string_view result) {
  inside_->sessions.Add({{"result", std::string{result}}}).Increment();
}

void RuntimeMetrics::count_signal(std::string_view kind) {
  inside_->signals.Add({{"kind", std::string{kind}}}).Increment();
}

void RuntimeMetrics::count_http(std::uint16_t status) {
  inside_->http.Add({{"status", std::to_string(status)}}).Increment();
}

void RuntimeMetrics::set_workers(WorkerState state, std::size_t count) {
  inside_->pool.Add({{"state", std::string{to_string(state)}}}).Set(static_cast<double>(count));
}

void RuntimeMetrics::set_health(const RuntimeHealth& health) {
  inside_->ready.Set(static_cast<double>(health.ready_workers));
  inside_->detached.Set(static_cast<double>(health.detached_workers));
  inside_->degraded.Set(health.level == RuntimeHealth::Level::Healthy ? 0 : 1);
}

void RuntimeMetrics::set_applications(const std::vector<JobHostView>& hosts) {
  // Those that are gone stay, with nothing: an alert on 0 must find them.
  std::map<std::string, std::pair<std::size_t, std::size_t>> now;
  for (const std::string& id : inside_->shown) now[id] = {};
  for (const JobHostView& host : hosts) {
    if (host.key == placeholder_job_host()) continue;
    const std::string& id = host.key.application_id;
    const bool has_room = inside_->shown.contains(id) || inside_->shown.size() < kApplicationsMax;
    auto& [ready, unloaded] = now[has_room ? id : "other"];
    ready += host.ready;
    for (const FunctionView& each : host.functions) unloaded += each.lacking;
    inside_->shown.insert(has_room ? id : "other");
  }
  for (const auto& [id, counts] : now) {
    inside_->application_ready.Add({{"application", id}}).Set(static_cast<double>(counts.first));
    inside_->unloaded.Add({{"application", id}}).Set(static_cast<double>(counts.second));
  }
}

void RuntimeMetrics::observe_in_flight(std::uint32_t invocations) {
  inside_->in_flight.Observe(invocations);
}

void RuntimeMetrics::set_memory(double utilization) {
  inside_->memory.Set(utilization);
}

void RuntimeMetrics::set_pending(std::size_t invocations) {
  inside_->pending.Set(static_cast<double>(invocations));
}

void RuntimeMetrics::set_certificate_expiry(const std::string& certificate, double expires) {
  inside_->certificates.Add({{"certificate", certificate}}).Set(expires);
}

std::string RuntimeMetrics::text() const {
  return prometheus::TextSerializer().Serialize(inside_->registry.Collect());
}

}  // namespace windlass::runtime
