// The agent's numbers for Prometheus.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "protocol/base/time.h"

namespace windlass::agent {

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

  std::string text() const;  // in Prometheus' text format

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace windlass::agent
