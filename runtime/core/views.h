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
  std::uint64_t done = 0;       // invocations that it answered well
  std::uint64_t failed = 0;     // that it answered with a failure
  std::uint64_t abandoned = 0;  // that ended without its answer
  std::size_t functions_loaded = 0;
  std::vector<std::pair<std::string, std::string>> load_failures;  // function, reason
  std::optional<Duration> status_latency;
  Instant connected_at{};
  std::optional<Duration> specialization_took;
  bool is_detached = false;  // its session waits for a resume
  bool is_unfit = false;     // its agent is short of memory or disk, or not well by its own word
  std::string peer;
  std::string lost_because;  // of one that is gone
  Instant lost_at{};
};

enum class JobHostState : std::uint8_t { Starting, Running, Failed, Stopping };
std::string_view to_string(JobHostState state);

struct FunctionView {
  FunctionRef function;
  std::string load_failure;  // why no worker here can run it; empty: one can, or none has tried
  std::size_t lacking = 0;   // workers that could not load it
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
  std::uint64_t done = 0;  // invocations by how they ended, as of a worker
  std::uint64_t failed = 0;
  std::uint64_t abandoned = 0;
};

struct RuntimeHealth {
  enum class Level : std::uint8_t { Healthy, Degraded, Unhealthy };
  Level level = Level::Healthy;
  std::string reason;
  std::size_t total_workers = 0;
  std::size_t ready_workers = 0;  // that can take an invocation now
  std::size_t placeholders = 0;
  std::size_t detached_workers = 0;  // whose session waits for a resume
  std::size_t active_job_hosts = 0;
  double memory_utilization = 0;
  std::string_view memory_pressure;  // normal, elevated or critical
  std::size_t pending_invocations = 0;
};

}  // namespace windlass::runtime
