// One seed, one world: who is in it, how large the windows are, how wrong the clocks, how bad the links, and
// which faults may strike. Each kind of fault is in about half of the worlds, so that some worlds suffer few
// kinds often instead of all kinds rarely.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "protocol/session/session_config.h"
#include "tests/sim/clock.h"
#include "tests/sim/network.h"

namespace windlass::sim {

// clang-format off
#define WINDLASS_SIM_FAULTS(X)                                                                    \
  X(Cut) X(CutInTraffic) X(HalfOpen) X(LateClose) X(Stall) X(DelaySpike) X(SlowReader)            \
  X(RefuseDials) X(Swizzle) X(Replay) X(Lose) X(Thief)                                            \
  X(WallJump) X(Freeze) X(Suspend) X(SchedulerCrash) X(WorkerCrash) X(Twin) X(KeyRotation)        \
  X(TokenRotation) X(Revoke) X(SchedulerDrain) X(WorkerDrain) X(LoadDrain) X(Restart) X(Hostile)  \
  X(Lie) X(CloseCredit) X(Conflict)
// clang-format on

enum class Fault : std::uint8_t {
#define WINDLASS_SIM_ENUMERATOR(name) name,
  WINDLASS_SIM_FAULTS(WINDLASS_SIM_ENUMERATOR)
#undef WINDLASS_SIM_ENUMERATOR
};

std::string_view to_string(Fault fault);
// How often it is chosen, against the others of a world.
std::uint64_t weight(Fault fault);

struct WorkerPlan {
  Revision revision = Revision::Two;
  bool changes_revision = false;  // comes back from a crash with the other one
  bool sends_attachments = false;
  SessionConfig config;
  ClockPlan clock;
  LinkPlan link;
  Duration commit_time_max = milliseconds{2};
  Duration work_time_max = milliseconds{50};  // of one command
};

struct WorldOptions {
  static WorldOptions from_seed(std::uint64_t seed);

  std::uint64_t seed = 0;
  std::vector<WorkerPlan> workers;
  SessionConfig scheduler_config;
  ClockPlan scheduler_clock;
  Duration scheduler_commit_time_max = milliseconds{2};
  Duration own_delay_max = milliseconds{20};   // of either owner, before it even starts to commit
  Duration safety_time = seconds{60};          // with faults
  Duration liveness_time_max = seconds{1800};  // without, for everything to converge
  Duration fault_interval = seconds{2};        // on average
  std::vector<Fault> faults;
  std::uint64_t commands = 0;
  std::uint64_t events = 0;
  std::size_t payload_bytes_max = 200;
  bool comes_in_bursts = false;  // the work, instead of spread evenly
  bool trusts_acks = false;      // the scheduler does not send an acknowledged command again
  bool has_twins = false;
  bool tokens_stay_valid = false;  // no fault of this world can make an honest worker's token invalid
};

}  // namespace windlass::sim
