// Every number the runtime's core decides by. Defaults are those of the design; all are settings.
#pragma once

#include <cstddef>
#include <cstdint>

#include "protocol/base/time.h"

namespace windlass::runtime {

enum class RoutingStrategy : std::uint8_t { LeastLoaded, RoundRobin, Sticky };

struct RuntimeOptions {
  // Workers
  std::uint32_t slots_per_worker = 10;  // invocations at once
  std::size_t workers_max = 10'000;
  std::size_t channels_waiting_max = 10'000;  // that have not said who they are
  Duration start_stream_timeout = seconds{60};
  Duration init_timeout = seconds{10};
  Duration reload_timeout = seconds{30};
  Duration metadata_timeout = seconds{60};
  Duration load_timeout = seconds{60};
  Duration warmup_timeout = seconds{90};

  // Health
  Duration status_interval = seconds{15};
  Duration status_lost = seconds{45};
  Duration lost_after = seconds{45};  // a session without its connection for so long: its worker is lost
  // A worker that could not load what others of its version can is replaced after this, doubled each time.
  Duration load_retry_first = seconds{10};
  Duration load_retry_cap = seconds{300};
  // Failed starts in a row that an agent reports: callers wait for it no longer where it has the only worker.
  std::uint32_t starts_failed_max = 2;
  // Silences and answers not in time without an answered probe between: who comes back after more is drained.
  std::uint32_t deadline_exceeded_max = 5;
  Duration backpressure_max = seconds{5};  // full this long: unhealthy, its unsent work goes elsewhere

  // Invocations
  RoutingStrategy routing = RoutingStrategy::LeastLoaded;
  std::uint32_t tries_max =
      3;  // of an idempotent invocation after lost workers, and of one that was never sent
  Duration invocation_timeout = seconds{300};
  Duration invocation_timeout_max = seconds{600};
  std::size_t tracked_max = 100'000;
  std::size_t pending_max = 1'000;  // per JobHost: accepted, waiting for a slot
  Duration pending_timeout = seconds{60};
  Duration orphan_after = seconds{900};
  Duration sweep_interval = seconds{60};
  std::uint32_t delivery_max = 5;
  Duration unknown_interval = seconds{10};  // of one worker's answers to nothing, one is noted in this time
  std::size_t sticky_keys_max = 10'000;     // per JobHost; the one unused for longest is forgotten
  std::size_t functions_max = 1'000;        // per application

  // Recovery
  bool recycle_on_timeout = true;
  Duration timeout_grace = seconds{2};  // for what else a worker runs that is recycled for a timeout
  std::uint32_t recycle_on_consecutive_timeouts = 3;  // where the above is off
  Duration drain_timeout = seconds{30};
  Duration terminate_grace = seconds{5};
  Duration abandoned_keep = seconds{300};
  std::uint32_t job_host_recreations_max = 3;

  // JobHosts
  std::size_t held_max = 100;  // messages of one worker during a switch
  std::size_t job_hosts_max = 1'000;
  bool awaits_assignments = false;  // what is served here is for set_assigned() to say, and nothing before it

  // Memory
  double memory_elevated = 0.70;
  double memory_critical = 0.90;
  double memory_drain = 0.85;
  std::uint32_t memory_drain_workers = 2;
  Duration memory_interval = seconds{10};

  // Scale signals
  std::size_t missing_max = 1'000;  // lost workers that nobody came for yet, to be said again
  double utilization_high = 0.70;
  double utilization_low = 0.20;
  Duration utilization_low_for = seconds{300};
  Duration utilization_interval = seconds{5};
  Duration relieved_for =
      seconds{1};  // a slot is free this long: SlotFree, so that a full house does not flap
};

}  // namespace windlass::runtime
