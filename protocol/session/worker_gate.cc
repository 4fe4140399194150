// A worker's connection before its accept: the greeting that is sent, the answers that are taken.
#include <algorithm>
#include <utility>

#include "protocol/base/check.h"
#include "protocol/base/clip.h"
#include "protocol/session/worker_endpoint.h"
#include "protocol/session/worker_profile.h"

namespace windlass {

void WorkerEndpoint::handle_before_accept(const Frame& frame, Now now) {
  //= ENV-12
  if (const auto* reset = std::get_if<Reset>(&frame.body)) return handle_early_reset(*reset, now);
  //= ENV-12
  if (frame.tenant != options_.tenant) {
    return refuse(ErrorCode::SessionTenantMismatch, "the frame names another tenant", now);
  }
  if (const auto* ack = std::get_if<Ack>(&frame.body)) {
    if (!ack->ok) return abandon("the scheduler refused: " + std::string{ack->info}, now);
    if (ack->for_id.empty() || ack->for_id != awaited_ack_) return;
    awaited_ack_.clear();
    if (lifecycle_.state() == SessionState::Handshaking) {
      CHECK(lifecycle_.apply(SessionTrigger::HandshakeAccepted));
      //= HSK-6
      resuming_ = session_ != nullptr;
      outgoing_ = resuming_ ? Outgoing::Resume : Outgoing::Register;
    }
    return await_stage(now);
  }
  if (const auto* accept = std::get_if<SessionAccept>(&frame.body);
      accept && lifecycle_.state() == SessionState::Registered && outgoing_ == Outgoing::None) {
    return handle_accept(frame, *accept, now);
  }
  //= ENV-11
  if (std::holds_alternative<UnknownControl>(frame.body)) return;
  //= HSK-9
  //= HSK-13
  refuse(ErrorCode::ProtoState, "this frame may not come before the accept", now);
}

void WorkerEndpoint::handle_early_reset(const Reset& reset, Now now) {
  const auto code = error_code_from(reset.code).value_or(ErrorCode::Internal);
  const bool stale = code == ErrorCode::SessionStaleBinding || code == ErrorCode::SessionUnknown;
  if (!session_ || lifecycle_.state() != SessionState::Registered) {
    // Before the handshake was accepted nothing was said about the session: it may still resume later.
    //= RST-1
    next_delay_ = delay_after(reset.code, reset.retry_after);
  } else if (stale && session_->has_said_complete()) {
    // The scheduler heard that the drain is complete; only its answer was lost.
    //= DRN-4
    session_->handle_normal_close();
  } else {
    //= RST-2
    session_->end(code, reset.reason, Blame::Peer, reset.retry_after);
  }
  collect(now);
  abandon(std::string{reset.code} + " " + std::string{reset.reason}, now);
  //= RST-1
  close_ = CloseRequest{kCloseNormal, "reset received"};
}

void WorkerEndpoint::handle_accept(const Frame& frame, const SessionAccept& accept, Now now) {
  const bool other_session = resuming_ && accept.session_id != session_->identity().session_id;
  //= RES-3
  if (accept.worker_instance_id != options_.instance_id || accept.resumed != resuming_ || other_session) {
    constexpr std::string_view kReason = "the accept does not answer what was asked";
    if (session_) session_->end(ErrorCode::SessionMismatch, kReason, Blame::Peer);
    collect(now);
    return refuse(ErrorCode::SessionMismatch, kReason, now);
  }
  deadlines_.clear(Timer::Stage);
  deadlines_.clear(Timer::ResumeExpiry);
  session_token_ = accept.session_token;
  if (resuming_) {
    accept_resumed(accept, now);
  } else {
    accept_new(frame, accept, now);
  }
  if (!session_ || !session_->is_connected()) return;
  CHECK(lifecycle_.apply(session_->is_draining() ? SessionTrigger::AcceptedDraining
                                                 : SessionTrigger::Accepted));
  ready_since_ = now.steady;
  session_->set_transport_busy(busy_, now);
  //= HSK-11
  if (options_.revision == Revision::Two || frame.ack_request) session_->acknowledge(frame.id, "", true);
  if (drain_until_) session_->drain(drain_reason_, std::max(*drain_until_ - now.steady, Duration{}), now);
  collect(now);
}

void WorkerEndpoint::accept_new(const Frame& frame, const SessionAccept& accept, Now now) {
  Credit credit = accept.credit;
  if (options_.revision == Revision::Two) {
    if (accept.heartbeat_interval > Duration{}) config_.heartbeat_interval = accept.heartbeat_interval;
    config_.resume_ttl = accept.resume_ttl;
    //= LIM-1
    config_.frame_bytes_max = std::min(frame_bytes_max_, accept.frame_bytes_max);
  } else {
    //= REV-11
    credit = {limits::kWindowFramesRevision1Max, limits::kWindowBytes};
  }
  SessionIdentity identity{.session_id = std::string{accept.session_id},
                           .tenant = options_.tenant,
                           .self_role = options_.role,
                           .self_id = options_.instance_id,
                           .peer_role = frame.sender_role,
                           .peer_id = std::string{frame.sender_id},
                           .revision = options_.revision};
  handle_ = SessionHandle{handle_.value() + 1};
  session_ = std::make_unique<Session>(Side::Worker, std::move(identity), config_, random_.next());
  session_->set_load(load_);
  session_->connect(credit, now);
}

void WorkerEndpoint::accept_resumed(const SessionAccept& accept, Now now) {
  PeerPosition peer{accept.received_next, accept.earliest_retained, accept.credit};
  if (options_.revision == Revision::One) {
    // Revision 1 states nothing here. What is unacknowledged and not held goes out again, and the credit is
    // what it was.
    peer = {session_->stream().send_window().earliest_retained(), 0, {}};
  }
  const auto resumed = session_->resume(peer, now);
  if (resumed) return;
  session_->end(resumed.error().code, resumed.error().reason, Blame::Peer);
  collect(now);
  refuse(resumed.error().code, resumed.error().reason, now);
}

// A session that was to be resumed stays, unless the caller ended it: the scheduler has not bound this
// connection to it yet, or said so too late to be heard.
//= RST-1
void WorkerEndpoint::refuse(ErrorCode code, std::string_view reason, Now now) {
  refusal_code_ = code;
  refusal_reason_ = clip(reason, limits::kReasonBytesMax);
  abandon(refusal_reason_, now);
  outgoing_ = Outgoing::Reset;
}

Frame WorkerEndpoint::greeting(Outgoing kind, Now now) {
  frame_id_ = "~h";
  frame_id_.append(std::to_string(connection_.value())).append("-").append(std::to_string(frame_counter_++));
  Frame frame;
  frame.revision = options_.revision;
  frame.id = frame_id_;
  frame.ts = now.wall;
  frame.tenant = options_.tenant;
  frame.sender_role = options_.role;
  frame.sender_id = options_.instance_id;
  if (kind == Outgoing::Reset) {
    frame.body = Reset{to_string(refusal_code_), refusal_reason_, {}};
    return frame;
  }
  // The accept, or a reset, is the whole answer to a resume; revision 1 acknowledges it besides.
  //= RES-3
  //= REV-6
  frame.ack_request = kind != Outgoing::Resume || options_.revision == Revision::One;
  awaited_ack_ = frame.ack_request ? frame_id_ : std::string{};
  const WorkerProfile& profile = options_.profile;
  if (kind == Outgoing::Handshake) {
    //= HSK-2
    //= HSK-3
    frame.body = Handshake{static_cast<std::uint32_t>(options_.revision),
                           options_.auth_mode,
                           options_.auth_token,
                           options_.fingerprint,
                           profile.worker_name,
                           options_.instance_id,
                           profile.version,
                           profile.hostname};
  } else if (kind == Outgoing::Register) {
    frame.body = register_of(profile);
  } else {
    //= RES-2
    const PeerPosition position = session_->position();
    frame.body = Resume{session_->identity().session_id, session_token_, position.received_next,
                        position.earliest_retained, position.credit};
  }
  return frame;
}

}  // namespace windlass
