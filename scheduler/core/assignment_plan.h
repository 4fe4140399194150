// Which workers are to run an application: decided from a view of the fleet alone, so that whoever decides,
// an operator or a controller, is answered by the same rules and a test needs no fleet.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/base/result.h"
#include "scheduler/core/values.h"

namespace windlass {

enum class Availability : std::uint8_t {
  Idle,      // a connected placeholder that nobody claimed
  Claimed,   // it was told to run something
  Busy,      // it holds an application, or is becoming one
  Draining,  // it takes no orders
  Away,      // no connection now
  Failed,    // its language worker does not run
  Unfit,     // short of memory or disk, degraded, or not healthy by its own word
};

struct PlacedWorker {
  InstanceId id;
  std::string language;
  std::string runtime;  // id of the one it is connected to; empty: none that is known
  Availability availability = Availability::Idle;
};

struct PlacedRuntime {
  InstanceId id;
  std::string url;  // empty: agents cannot be sent to it
  std::uint64_t workers = 0;
  bool is_available = true;  // connected, not draining, fit for new work
  bool serves_app = false;   // has workers of the application, or is to get some
  bool has_memory = true;    // else it is chosen only where no other will do
};

// Of one tenant.
struct FleetView {
  std::vector<PlacedWorker> workers;
  std::vector<PlacedRuntime> runtimes;
};

struct PlanRequest {
  std::string application_id;
  std::string language;
  std::uint32_t workers = 1;
  std::string runtime;        // id; empty: whichever suits best
  bool is_partial = false;    // fewer than asked for are better than none
  bool needs_memory = false;  // a runtime that is short of it will not do at all
};

struct PlannedWorker {
  InstanceId id;
  bool moves = false;  // it is connected to another runtime now
  friend bool operator==(const PlannedWorker&, const PlannedWorker&) = default;
};

struct AssignmentPlan {
  InstanceId runtime;
  std::string runtime_url;
  std::vector<PlannedWorker> workers;  // those that are connected to the runtime first
  std::string shortfall;               // why they are fewer than asked for; empty: they are not
};

// The runtime alone, of those that agents can be sent to.
Result<PlacedRuntime> plan_runtime(const FleetView& fleet, const PlanRequest& request);

// Chooses the runtime that was asked for, else of those with memory enough, if any can take workers, the one
// that serves the application already, else the one with most idle placeholders of the language; then idle
// placeholders, those of that runtime first. The error is one sentence that says how many there are and why
// no more. The same view gives the same plan.
Result<AssignmentPlan> plan_assignment(const FleetView& fleet, const PlanRequest& request);

}  // namespace windlass
