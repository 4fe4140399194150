// The agent's numbers for Prometheus.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "protocol/base/time.h"

namespace windlass::agent {

// Of the language worker and what passes between it and its runtime. Ever, but for the last three.
struct RelayCounts {
  std::uint64_t to_worker = 0;  // messages
  std::uint64_t to_worker_bytes = 0;
  std::uint64_t to_runtime = 0;
  std::uint64_t to_runtime_bytes = 0;
  std::uint64_t dropped = 0;  // nobody's any more, or answered by the agent
  std::uint64_t refused = 0;  // no language worker may say them
  std::uint64_t restarts = 0;
  std::uint64_t waiting_for_runtime = 0;
  std::uint64_t waiting_for_worker = 0;
  std::uint64_t invocations = 0;
};

class AgentMetrics final {
 public:
  AgentMetrics();
  ~AgentMetrics();
  AgentMetrics(const AgentMetrics&) = delete;
  AgentMetrics& operator=(const AgentMetrics&) = delete;

  void set_inflight(std::uint64_t count);
  void set_heartbeats(std::uint64_t sent, std::uint64_t degraded);  // ever
  void add_task(std::string_view node_type, Duration took);
  void set_results_waiting(std::uint64_t count);
  void set_session_ready(bool is_ready);
  void add_journal_answer();
  void add_refusal(std::string_view code);

  // Of the session, under the scheduler's names.
  void add_session(std::string_view result);    // windlass_sessions_total{result}: new, resumed
  void add_session_end(std::string_view code);  // windlass_session_ends_total{code}
  void add_close(std::uint16_t code, std::string_view initiator);  // windlass_closes_total{code,initiator}
  struct FrameCounts {
    std::uint64_t session = 0;               // whose these are; they begin at zero with each
    std::uint64_t duplicates = 0;            // windlass_duplicate_frames_total
    std::uint64_t retransmits = 0;           // windlass_retransmits_total
    std::uint64_t spurious_retransmits = 0;  // windlass_spurious_retransmits_total
    std::uint64_t outside_window = 0;        // windlass_outside_window_frames_total
  };
  void set_frames(const FrameCounts& counts);

  void set_relay(const RelayCounts& counts);
  // When a certificate of our own expires, in seconds since 1970.
  void set_certificate_expiry(const std::string& certificate, double expires);
  void set_confinement(std::string_view kind);  // worker_confinement{kind}: 1 for the one that holds

  std::string text() const;  // in Prometheus' text format

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace windlass::agent
