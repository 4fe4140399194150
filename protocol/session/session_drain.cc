// How a session winds down: asked for by either side, finished by the worker, or ended by its deadline.
#include <algorithm>

#include "protocol/base/check.h"
#include "protocol/base/clip.h"
#include "protocol/base/mutant.h"
#include "protocol/session/session.h"

namespace windlass {

void Session::drain(std::string_view reason, Duration deadline, Now now) {
  // Longer than the wire can say is as good as never.
  deadline = std::clamp(deadline, Duration{}, limits::kIntervalMax);
  if (!ended_ && !draining_) start_draining(reason, deadline, true, now);
}

void Session::start_draining(std::string_view reason, Duration deadline, bool tell_peer, Now now) {
  draining_ = true;
  drain_ours_ = tell_peer;
  drain_reason_ = sayable(reason, limits::kReasonBytesMax);
  drain_deadline_ = deadline;
  if (connected_) CHECK(lifecycle_.apply(SessionTrigger::DrainStarted));
  //= DRN-1
  if (tell_peer && connected_) queue_control({Pending::Kind::DrainStart, "", ""});
  //= DRN-5
  if (side_ == Side::Scheduler && !MUTANT(drain_waits_for_ever))
    deadlines_.set(Timer::Drain, now.steady + deadline);
}

void Session::complete_drain(Now now) {
  if (ended_ || !draining_) return;
  complete_wanted_ = true;
  maybe_say_complete(now);
}

void Session::maybe_say_complete(Now now) {
  if (!complete_wanted_ || complete_said_ || !connected_ || ended_) return;
  if (!stream_.send_window().empty() && !MUTANT(drain_completes_early)) return;
  complete_said_ = true;
  if (identity_.revision == Revision::One) {
    // There is no word for it. The scheduler sees that nothing is in flight; one that does not close then is
    // not waited for.
    //= REV-8
    heartbeat_due_ = true;
    deadlines_.set(Timer::Drain, now.steady + config_.handshake_stage);
    return;
  }
  //= DRN-4
  queue_control({Pending::Kind::DrainComplete, "", ""});
}

void Session::handle_normal_close() {
  //= RST-3
  if (complete_said_ && !ended_) finish("", "drained", Blame::Peer, {});
}

void Session::handle_drain(const Frame& frame, const Drain& drain, Now now) {
  if (drain.phase == DrainPhase::Start) {
    if (!draining_) {
      const Duration deadline = drain.deadline.value_or(config_.drain_deadline);
      start_draining(drain.reason, deadline, false, now);
      events_.push_back(DrainRequested{drain_reason_, deadline});
    }
    //= DRN-1
    if (frame.ack_request) acknowledge(frame.id, "", true);
    return;
  }
  if (side_ != Side::Scheduler || !draining_) return refuse_out_of_turn(frame, now);
  //= DRN-4
  acknowledge(frame.id, "", true);
  close_ = CloseRequest{kCloseNormal, "drained"};
  finish("", "drained", Blame::Peer, {});
}

}  // namespace windlass
