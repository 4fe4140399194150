// What the runtime's core shows: plain values for operators, metrics and health.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/base/time.h"
#include "runtime/core/messages.h"

namespace windlass::runtime {

enum class WorkerState : std::uint8_t {
  Connecting,  // its stream is open; it has not said who it is, or is not initialized
  Placeholder,
  Specializing,
  Specialized,  // code is there, functions are loading
  Ready,
  Unhealthy,
  Draining,
  Abandoned,  // its channel was closed from here
  Disconnected,
};
std::string_view to_string(WorkerState state);

struct WorkerView {
  WorkerId worker;
  WorkerState state = WorkerState::Connecting;
  std::optional<ApplicationVersion> application;
  std::string language;
  std::string language_version;
  std::uint32_t in_flight = 0;
  std::uint32_t slots = 0;
  std::uint64_t done = 0;
  std::uint64_t failed = 0;
  std::size_t functions_loaded = 0;
  std::optional<Duration> status_latency;
  Instant connected_at{};
  std::optional<Duration> specialization_took;
  bool is_detached = false;  // its session waits for a resume
  std::string peer;
};

enum class JobHostState : std::uint8_t { Starting, Running, Failed, Stopping };
std::string_view to_string(JobHostState state);

struct FunctionView {
  FunctionRef function;
  std::string load_failure;  // empty: loaded, or not tried
};

struct JobHostView {
  JobHostKey key;
  JobHostState state = JobHostState::Starting;
  std::string failure;
  std::vector<FunctionView> functions;
  std::vector<std::pair<std::string, std::uint32_t>> split;  // code version, weight
  std::size_t workers = 0;
  std::size_t ready = 0;     // that can be sent something now
  std::size_t detached = 0;  // that could, were their connection not gone for the moment
  std::uint32_t free_slots = 0;
  std::size_t pending = 0;
  std::size_t in_flight = 0;
};

struct RuntimeHealth {
  enum class Level : std::uint8_t { Healthy, Degraded, Unhealthy };
  Level level = Level::Healthy;
  std::string reason;
  std::size_t total_workers = 0;
  std::size_t ready_workers = 0;
  std::size_t active_job_hosts = 0;
  double memory_utilization = 0;
  std::size_t pending_invocations = 0;
};

}  // namespace windlass::runtime
