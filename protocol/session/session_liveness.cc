// Whether the peer is alive, and whether this side is in a position to judge: heartbeats, silence, clocks
// that part.
#include <utility>

#include "protocol/base/mutant.h"
#include "protocol/session/session.h"

namespace windlass {

void Session::arm_heartbeat(Now now) {
  if (side_ != Side::Worker) return;
  //= LIV-1
  const Duration early = random_.below(config_.heartbeat_interval / 6 + Duration{1});
  deadlines_.set(Timer::Heartbeat, now.steady + config_.heartbeat_interval - early);
}

void Session::note_heard(Now now) {
  //= LIV-2
  last_heard_ = now.steady;
  if (liveness_ == Liveness::Healthy) return;
  liveness_ = Liveness::Healthy;
  events_.push_back(LivenessChanged{Liveness::Healthy, Duration{}, ladder_.interval});
}

Duration Session::liveness_interval() const {
  //= REV-14
  // Revision 1 heartbeats come every interval give or take a sixth; ours come early instead.
  const Duration interval = side_ == Side::Scheduler ? ladder_.interval : config_.heartbeat_interval;
  return identity_.revision == Revision::One ? interval * 7 / 6 : interval;
}

void Session::check_liveness(Now now) {
  release_idle_memory();
  const Duration interval = liveness_interval();
  const auto missed = static_cast<std::uint32_t>((now.steady - last_heard_) / interval);
  //= LIV-3, LIM-9
  const Liveness level = missed >= ladder_.lost       ? Liveness::Lost
                         : missed >= ladder_.degraded ? Liveness::Degraded
                         : missed >= ladder_.warn     ? Liveness::Warn
                                                      : Liveness::Healthy;
  if (level > liveness_) {
    liveness_ = level;
    events_.push_back(LivenessChanged{level, now.steady - last_heard_, interval});
  }
  if (level == Liveness::Lost && !MUTANT(liveness_waits_for_ever)) {
    //= LIV-4
    //= LIV-5
    return drop_connection(kCloseInternal, "nothing heard for too long");
  }
  deadlines_.set(Timer::Liveness, last_heard_ + interval * (missed + 1));
}

void Session::note_clock(Now now) {
  const Duration moved = clock_offset(now) - std::exchange(clock_offset_, clock_offset(now));
  if (moved < config_.clock_jump && moved > -config_.clock_jump) return;
  events_.push_back(ClockJumped{moved});
  count_anew(now);
}

//= LIV-6
void Session::count_anew(Now now) {
  last_heard_ = now.steady;
  stream_.forget_attempts();
  if (side_ == Side::Worker && connected_) heartbeat_due_ = true;
}

}  // namespace windlass
