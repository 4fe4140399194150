// What is counted, under the names that operators' dashboards know. Any thread may count; reading is the
// admin listener's. Texts that peers choose become label values only where their number is bounded.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "protocol/base/time.h"

namespace prometheus {
class Counter;
class Gauge;
}  // namespace prometheus

namespace windlass {

enum class Direction : std::uint8_t { In, Out };

// The counters of one tenant that change with every frame. Lives as long as the Metrics it came from.
class TenantMeter {
 public:
  TenantMeter(prometheus::Counter& in, prometheus::Counter& out, prometheus::Gauge& active)
      : in_(in), out_(out), active_(active) {}
  void count_frame(Direction direction, std::size_t bytes);
  void add_active(double change);

 private:
  prometheus::Counter& in_;
  prometheus::Counter& out_;
  prometheus::Gauge& active_;
};

class Metrics final {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // Connections and frames: ws_conn_active{tenant}, ws_frame_bytes_total{tenant,dir}.
  TenantMeter& tenant(const std::string& name);
  void heartbeat_missed(const std::string& tenant, const std::string& worker);  // ws_heartbeat_miss_total
  void worker_seen(const std::string& tenant, const std::string& worker);       // that is 0 so far

  // Commands: cmd_dispatch_total{tenant,node_type}, cmd_retry_total{reason},
  // result_latency_ms{tenant,node_type}. A command's type is its node type.
  void command_dispatched(const std::string& tenant, const std::string& node_type);
  void command_retried(const std::string& reason);
  void result_arrived(const std::string& tenant, const std::string& node_type, milliseconds latency);
  // pkg_ops_total{tenant,op,status}: op deploy, undeploy or fetch (of a worker, once for each package that it
  // begins to fetch), status ok or refused.
  void package_operation(const std::string& tenant, std::string_view op, bool is_ok);

  // Sessions.
  void session_opened(std::string_view result);     // windlass_sessions_total{result}: new, resumed
  void session_ended(const std::string& code);      // windlass_session_ends_total{code}
  void replayed(std::uint64_t frames);              // windlass_replayed_frames_total
  void resume_answered(const std::string& result);  // windlass_resumes_total{result}: resumed, or a code
  void superseded();                                // windlass_superseded_total
  void refused(const std::string& code);            // windlass_refused_frames_total{code}
  void schema_violated(const std::string& code);    // windlass_schema_violations_total{code}
  struct FrameCounts {
    std::uint64_t duplicates = 0;            // windlass_duplicate_frames_total
    std::uint64_t retransmits = 0;           // windlass_retransmits_total
    std::uint64_t spurious_retransmits = 0;  // windlass_spurious_retransmits_total
    std::uint64_t outside_window = 0;        // windlass_outside_window_frames_total
  };
  void count_frames(const FrameCounts& more);
  void message_dropped();                                       // windlass_messages_dropped_total
  void closed(std::uint16_t code, std::string_view initiator);  // windlass_closes_total{code,initiator}
  // Those that never got a session: windlass_openings_failed_total{cause} before the upgrade,
  // windlass_refused_connections_total{code} after it.
  void openings_failed(std::string_view cause, std::uint64_t count);
  void connections_refused(std::string_view code, std::uint64_t count);
  void twin_suspected();                  // windlass_twins_suspected_total
  void duplicate(std::string_view kind);  // windlass_duplicates_total{kind}
  void blocked(Duration time);  // windlass_window_blocked_seconds_total: commands that waited for credit
  void commit(Duration time, std::size_t rows, bool ok);  // windlass_store_commit_seconds, ..._failures_total
  void set_commands_pending(std::size_t count);           // windlass_commands_pending
  // windlass_certificate_expiry_timestamp_seconds{certificate}: of our own, as tls and admin
  void set_certificate_expiry(const std::string& certificate, double expires);

  // The exposition format, version 0.0.4.
  std::string text() const;

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace windlass
