#include "scheduler/adapters/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <map>
#include <mutex>
#include <set>

#include "protocol/base/error_code.h"
#include "protocol/base/limits.h"

namespace windlass {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;
using Counters = prometheus::Family<prometheus::Counter>;

const prometheus::Histogram::BucketBoundaries kLatencyMs = {1,   2,   5,    10,   25,   50,    100,
                                                            250, 500, 1000, 2500, 5000, 10000, 60000};
const prometheus::Histogram::BucketBoundaries kCommitSeconds = {0.0001, 0.00025, 0.0005, 0.001, 0.0025,
                                                                0.005,  0.01,    0.025,  0.1,   1};

double seconds_of(Duration time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

void TenantMeter::count_frame(Direction direction, std::size_t bytes) {
  (direction == Direction::In ? in_ : out_).Increment(static_cast<double>(bytes));
}

void TenantMeter::add_active(double change) {
  active_.Increment(change);
}

struct Metrics::Inside {
  Counters& counters(const char* name, const char* help) {
    return BuildCounter().Name(name).Help(help).Register(registry);
  }

  prometheus::Registry registry;
  prometheus::Family<prometheus::Gauge>& active =
      BuildGauge().Name("ws_conn_active").Help("Connections that carry a session.").Register(registry);
  Counters& frame_bytes =
      counters("ws_frame_bytes_total", "Bytes of WebSocket messages of accepted sessions.");
  Counters& heartbeat_misses = counters("ws_heartbeat_miss_total", "Heartbeat intervals without a word.");
  Counters& dispatches = counters("cmd_dispatch_total", "Commands given to a session, repetitions too.");
  Counters& retries = counters("cmd_retry_total", "Commands given to a session again.");
  prometheus::Family<prometheus::Histogram>& latency =
      BuildHistogram()
          .Name("result_latency_ms")
          .Help("From the submission of a command to its stored result, in milliseconds.")
          .Register(registry);
  Counters& package_ops =
      counters("pkg_ops_total", "Packages deployed, undeployed and asked for by workers.");
  Counters& sessions = counters("windlass_sessions_total", "Sessions opened and resumed.");
  Counters& ends =
      counters("windlass_session_ends_total", "Sessions that ended, by code; none is a finished drain.");
  Counters& closes = counters("windlass_closes_total", "Connections closed, by code and by who began.");
  Counters& failed_openings =
      counters("windlass_openings_failed_total", "Connections that never became WebSocket, by cause.");
  Counters& refused_connections =
      counters("windlass_refused_connections_total", "Connections reset before they had a session, by code.");
  Counters& refusals =
      counters("windlass_refused_frames_total", "Frames of peers that were refused, by code.");
  Counters& resumes =
      counters("windlass_resumes_total", "Resumes asked for: resumed, or the code of the refusal.");
  Counters& violations = counters("windlass_schema_violations_total",
                                  "Frames that broke the schema or its limits, before and after the accept.");
  prometheus::Family<prometheus::Gauge>& certificates =
      BuildGauge()
          .Name("windlass_certificate_expiry_timestamp_seconds")
          .Help("When a certificate of this process expires, in seconds since 1970.")
          .Register(registry);
  prometheus::Counter& superseded =
      counters("windlass_superseded_total", "Sessions that a newer connection took over.").Add({});
  prometheus::Counter& frame_duplicates =
      counters("windlass_duplicate_frames_total", "Sequenced frames that came twice.").Add({});
  prometheus::Counter& retransmits =
      counters("windlass_retransmits_total", "Frames sent again by a timer.").Add({});
  prometheus::Counter& spurious =
      counters("windlass_spurious_retransmits_total", "Of those, what the peer had already.").Add({});
  prometheus::Counter& outside_window =
      counters("windlass_outside_window_frames_total", "Sequenced frames beyond the credit, dropped.")
          .Add({});
  prometheus::Counter& dropped =
      counters("windlass_messages_dropped_total", "Messages that made room in a full inbox.").Add({});
  Counters& duplicates = counters("windlass_duplicates_total", "Frames that were taken and changed nothing.");
  prometheus::Counter& replays =
      counters("windlass_replayed_frames_total", "Frames sent again by a resume.").Add({});
  prometheus::Counter& twins =
      counters("windlass_twins_suspected_total", "Two machines with one identity.").Add({});
  prometheus::Counter& blocked =
      counters("windlass_window_blocked_seconds_total", "Time that commands waited for a session's credit.")
          .Add({});
  prometheus::Counter& commit_failures =
      counters("windlass_store_failures_total", "Commits that the store refused.").Add({});
  prometheus::Counter& rows = counters("windlass_store_rows_total", "Rows written.").Add({});
  prometheus::Histogram& commits = BuildHistogram()
                                       .Name("windlass_store_commit_seconds")
                                       .Help("Duration of commits.")
                                       .Register(registry)
                                       .Add({}, kCommitSeconds);
  prometheus::Gauge& pending = BuildGauge()
                                   .Name("windlass_commands_pending")
                                   .Help("Commands without an outcome.")
                                   .Register(registry)
                                   .Add({});
  // The value, or "other" once the name has as many series as a scraper should carry.
  std::string bounded(std::set<std::string>& known, const std::string& tenant, const std::string& value) {
    const std::lock_guard lock{mutex};
    std::string key = tenant + '\n' + value;
    if (known.contains(key)) return value;
    if (known.size() >= limits::kMetricSeriesMax) return "other";
    known.insert(std::move(key));
    return value;
  }

  std::mutex mutex;  // of what follows, which any loop may add to
  std::map<std::string, TenantMeter> tenants;
  std::set<std::string> workers;     // with their tenants
  std::set<std::string> node_types;  // likewise
};

// A series that alerts are made of must be there before it first counts something.
Metrics::Metrics() : inside_(std::make_unique<Inside>()) {
  for (std::size_t i = 0; i < kErrorCodes; ++i) {
    const std::string code{to_string(static_cast<ErrorCode>(i))};
    inside_->ends.Add({{"code", code}});
    inside_->refused_connections.Add({{"code", code}});
  }
  inside_->ends.Add({{"code", "none"}});
  for (const char* each : {"E.PROTO.JSON", "E.PROTO.SCHEMA", "E.LIMIT.FRAME"}) {
    inside_->violations.Add({{"code", each}});
  }
  for (const char* each : {"resumed", "E.SESSION.STALE_BINDING", "E.SESSION.INVALID_TOKEN",
                           "E.SESSION.SUPERSEDED", "E.RESULT.SEQ_GAP", "E.SESSION.ACK_INVALID"}) {
    inside_->resumes.Add({{"result", each}});
  }
  for (const char* each : {"new", "resumed"}) inside_->sessions.Add({{"result", each}});
  for (const char* each : {"session_ended", "restarted", "worker_lost"}) {
    inside_->retries.Add({{"reason", each}});
  }
  for (const char* each : {"result", "late_result", "message", "conflicting_message", "forgotten_result"}) {
    inside_->duplicates.Add({{"kind", each}});
  }
}
Metrics::~Metrics() = default;

TenantMeter& Metrics::tenant(const std::string& name) {
  const std::lock_guard lock{inside_->mutex};
  const auto found = inside_->tenants.find(name);
  if (found != inside_->tenants.end()) return found->second;
  TenantMeter meter{inside_->frame_bytes.Add({{"tenant", name}, {"dir", "in"}}),
                    inside_->frame_bytes.Add({{"tenant", name}, {"dir", "out"}}),
                    inside_->active.Add({{"tenant", name}})};
  for (const char* op : {"deploy", "undeploy", "fetch"}) {
    for (const char* status : {"ok", "refused"}) {
      inside_->package_ops.Add({{"tenant", name}, {"op", op}, {"status", status}});
    }
  }
  return inside_->tenants.emplace(name, meter).first->second;
}

void Metrics::heartbeat_missed(const std::string& tenant, const std::string& worker) {
  inside_->heartbeat_misses
      .Add({{"tenant", tenant}, {"worker", inside_->bounded(inside_->workers, tenant, worker)}})
      .Increment();
}

void Metrics::worker_seen(const std::string& tenant, const std::string& worker) {
  inside_->heartbeat_misses.Add(
      {{"tenant", tenant}, {"worker", inside_->bounded(inside_->workers, tenant, worker)}});
}

void Metrics::command_dispatched(const std::string& tenant, const std::string& node_type) {
  const std::string label = inside_->bounded(inside_->node_types, tenant, node_type);
  inside_->dispatches.Add({{"tenant", tenant}, {"node_type", label}}).Increment();
}

void Metrics::command_retried(const std::string& reason) {
  inside_->retries.Add({{"reason", reason}}).Increment();
}

void Metrics::result_arrived(const std::string& tenant, const std::string& node_type, milliseconds latency) {
  const std::string label = inside_->bounded(inside_->node_types, tenant, node_type);
  inside_->latency.Add({{"tenant", tenant}, {"node_type", label}}, kLatencyMs)
      .Observe(static_cast<double>(latency.count()));
}

void Metrics::package_operation(const std::string& tenant, std::string_view op, bool is_ok) {
  inside_->package_ops
      .Add({{"tenant", tenant}, {"op", std::string{op}}, {"status", is_ok ? "ok" : "refused"}})
      .Increment();
}

void Metrics::session_opened(std::string_view result) {
  inside_->sessions.Add({{"result", std::string{result}}}).Increment();
}

void Metrics::session_ended(const std::string& code) {
  inside_->ends.Add({{"code", code.empty() ? "none" : code}}).Increment();
}

void Metrics::replayed(std::uint64_t frames) {
  inside_->replays.Increment(static_cast<double>(frames));
}

void Metrics::resume_answered(const std::string& result) {
  inside_->resumes.Add({{"result", result}}).Increment();
}

void Metrics::superseded() {
  inside_->superseded.Increment();
}

void Metrics::schema_violated(const std::string& code) {
  inside_->violations.Add({{"code", code}}).Increment();
}

void Metrics::count_frames(const FrameCounts& more) {
  if (more.duplicates > 0) inside_->frame_duplicates.Increment(static_cast<double>(more.duplicates));
  if (more.retransmits > 0) inside_->retransmits.Increment(static_cast<double>(more.retransmits));
  if (more.spurious_retransmits > 0) {
    inside_->spurious.Increment(static_cast<double>(more.spurious_retransmits));
  }
  if (more.outside_window > 0) inside_->outside_window.Increment(static_cast<double>(more.outside_window));
}

void Metrics::message_dropped() {
  inside_->dropped.Increment();
}

void Metrics::refused(const std::string& code) {
  inside_->refusals.Add({{"code", code}}).Increment();
}

void Metrics::closed(std::uint16_t code, std::string_view initiator) {
  inside_->closes.Add({{"code", std::to_string(code)}, {"initiator", std::string{initiator}}}).Increment();
}

void Metrics::openings_failed(std::string_view cause, std::uint64_t count) {
  inside_->failed_openings.Add({{"cause", std::string{cause}}}).Increment(static_cast<double>(count));
}

void Metrics::connections_refused(std::string_view code, std::uint64_t count) {
  inside_->refused_connections.Add({{"code", std::string{code}}}).Increment(static_cast<double>(count));
}

void Metrics::twin_suspected() {
  inside_->twins.Increment();
}

void Metrics::duplicate(std::string_view kind) {
  inside_->duplicates.Add({{"kind", std::string{kind}}}).Increment();
}

void Metrics::blocked(Duration time) {
  inside_->blocked.Increment(seconds_of(time));
}

void Metrics::commit(Duration time, std::size_t rows, bool ok) {
  inside_->commits.Observe(seconds_of(time));
  ok ? inside_->rows.Increment(static_cast<double>(rows)) : inside_->commit_failures.Increment();
}

void Metrics::set_commands_pending(std::size_t count) {
  inside_->pending.Set(static_cast<double>(count));
}

void Metrics::set_certificate_expiry(const std::string& certificate, double expires) {
  inside_->certificates.Add({{"certificate", certificate}}).Set(expires);
}

std::string Metrics::text() const {
  return prometheus::TextSerializer().Serialize(inside_->registry.Collect());
}

}  // namespace windlass
