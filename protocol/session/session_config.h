// What may be tuned about sessions, with the safe defaults of limits.h. One config serves many sessions and
// must outlive them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "protocol/base/limits.h"
#include "protocol/base/time.h"
#include "protocol/messages/control.h"

namespace windlass {

//= HSK-15
struct SessionConfig {
  // Window
  Credit receive_credit{limits::kWindowFrames, limits::kWindowBytes};  // what this side offers to hold
  Duration ack_delay = limits::kAckDelay;
  std::uint64_t frame_bytes_max = limits::kFrameBytesMax;

  // Retransmission
  Duration retransmit_floor = limits::kRetransmitFloor;
  Duration retransmit_cap = limits::kRetransmitCap;
  std::uint32_t attempts_max = limits::kAttemptsMax;

  // Lifecycle
  Duration handshake_stage = limits::kHandshakeStage;
  Duration resume_ttl = limits::kResumeTtl;
  Duration token_rotation = limits::kTokenLifetime / 2;  // of a connection that lasts
  Duration drain_deadline = limits::kDrainDeadline;
  Duration backoff_first = limits::kBackoffFirst;
  Duration backoff_cap = limits::kBackoffCap;
  Duration retry_after_max = limits::kRetryAfterMax;

  // Liveness
  Duration heartbeat_interval = limits::kHeartbeatInterval;
  // How many heartbeats in a row must be missed for each level; in this order, none below the one before.
  std::uint32_t heartbeat_misses_warn = limits::kHeartbeatMissesWarn;
  std::uint32_t heartbeat_misses_degraded = limits::kHeartbeatMissesDegraded;
  std::uint32_t heartbeat_misses_lost = limits::kHeartbeatMissesLost;
  Duration clock_jump = limits::kClockJump;
  // A link is closed when the peer has acknowledged neither data nor TCP's probes for so long, or has taken
  // nothing for so long, so that a cut is noticed before a heartbeat is due. For transports; 0: off.
  Duration dead_link_after = limits::kDeadLink;
  // A worker that reports as much or more is short of it, until it reports less than this minus the
  // hysteresis. 0: it never is.
  double mem_pct_max = 90;
  double disk_pct_max = 95;
  double load_hysteresis_pct = 5;

  // Abuse
  std::uint32_t error_budget = limits::kErrorBudget;
  Duration error_refill = limits::kErrorRefill;
  std::uint64_t frames_per_second_max = limits::kFramesPerSecondMax;
  std::size_t control_queue_max = limits::kControlQueueMax;
  std::size_t pending_handshakes_max = limits::kPendingHandshakesMax;
  std::size_t sessions_max = limits::kSessionsMax;
  // Of a tenant whose terms set no bound, over all loops.
  std::uint64_t tenant_sessions_max = std::numeric_limits<std::uint64_t>::max();
};

// Of tokens: the newest one may be as old as a rotation when its link falls silent, is noticed to be lost
// some heartbeats later, and still resumes at the end of the window that begins then.
//= RES-1
inline Duration token_lifetime(const SessionConfig& config) {
  const Duration unnoticed = 2 * config.heartbeat_misses_lost * config.heartbeat_interval;
  return std::max(limits::kTokenLifetime, config.token_rotation + unnoticed + config.resume_ttl);
}

}  // namespace windlass
