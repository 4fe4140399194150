// What language workers and runtimes say of themselves from time to time. It is never stored: they say it
// again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/base/time.h"

namespace windlass {

// biz.worker.status: the language worker that an agent looks after.
struct LanguageWorkerStatus {
  std::string worker_id;
  std::string language;
  std::string runtime;           // id or URL of the one it is connected to
  std::string state;             // starting, placeholder, specializing, ready, failed or drained
  std::string drained_for = {};  // memory: its runtime was short of it; empty: somebody ordered it
  std::string application_id;
  std::string metadata_version;
  std::string code_version;
  std::uint64_t pid = 0;
  std::string last_error;
  std::uint64_t package_bytes = 0;  // of the package it fetches, that have come
  std::uint64_t package_total = 0;  // 0: it fetches none, or a small one
  std::string confinement;          // how user code is kept apart from the agent: user, namespace or none
  std::vector<std::string> confinement_gaps;  // what user code can do all the same, one sentence each

  bool is_placeholder() const { return state == "placeholder" && application_id.empty(); }
  // By its runtime; it stays so until it is told to do something.
  bool is_drained() const { return state == "drained"; }
};

struct RuntimeApplication {
  std::string application_id;
  std::string metadata_version;
  std::vector<std::string> code_versions;
  std::vector<std::string> functions;
  std::vector<std::string> warnings = {};  // of what functions want and do not get; a sentence each
  std::uint64_t ready = 0;                 // workers that take invocations
  std::uint64_t detached = 0;              // workers that will take invocations again once reconnected
  std::uint64_t workers = 0;
  std::uint64_t in_flight = 0;
  std::uint64_t pending = 0;
};

// What a runtime knows of one language worker.
struct RuntimeWorker {
  std::string worker_id;  // as the agent's status names it
  std::string state;
  bool has_counts = false;  // a short status names a worker, and says nothing of its invocations
  std::uint64_t in_flight = 0;
  std::uint64_t slots = 0;
  std::uint64_t done = 0;
  std::uint64_t failed = 0;
  std::uint64_t abandoned = 0;
  std::uint64_t functions_loaded = 0;
  std::vector<std::pair<std::string, std::string>> load_failures;  // function and reason
  std::optional<double> status_latency_ms;
  std::optional<double> specialization_ms;
};

// biz.runtime.status.
struct RuntimeStatus {
  std::string url;               // where agents dial
  std::string url_refused = {};  // what it said instead, and nobody vouches for
  std::string http;              // where HTTP-triggered functions answer
  std::string grpc;
  std::string health;
  std::string memory_pressure = {};  // normal, elevated or critical; empty: an older runtime's
  std::vector<RuntimeApplication> applications;
  std::vector<RuntimeWorker> known_workers;
  std::map<std::string, std::string> unready = {};  // states of workers that are not Ready there, by their id
  std::set<std::string> detached;                   // instances whose worker it cannot reach now
  std::uint64_t detached_left_out = 0;              // more of either, that it could not name
  std::uint64_t workers = 0;
  std::uint64_t in_flight = 0;
  WallTime at{};

  // It takes no invocations until that is over.
  bool is_critical() const { return memory_pressure == "critical"; }
  bool has_memory() const { return memory_pressure.empty() || memory_pressure == "normal"; }
};

// biz.runtime.signal: a runtime wants more workers, fewer, or help.
struct RuntimeSignal {
  std::string kind;
  std::string application_id;
  std::string worker;
  std::string reason;
  bool urgent = false;
  std::string urgency = {};        // low, medium or high; empty: an older runtime's
  bool agent_brings_next = false;  // Replace: nobody else needs to
  WallTime at{};
};

// biz.package.get of an agent.
struct PackageRequest {
  std::string digest;
  std::uint64_t offset = 0;
};

}  // namespace windlass
