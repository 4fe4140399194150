// What a session does with frames that come in.
#include <utility>

#include "protocol/base/check.h"
#include "protocol/session/session.h"
#include "protocol/session/worker_profile.h"

namespace windlass {

void Session::handle_frame(const Frame& frame, Now now) {
  if (ended_ || !connected_) return;
  note_clock(now);
  note_heard(now);
  if (!check_rate(now) || !check_sender(frame, now)) return;
  handle_body(frame, now);
}

bool Session::check_rate(Now now) {
  if (side_ == Side::Worker) return true;
  //= LIM-6
  if (!frames_.take(now.steady)) {
    reset(ErrorCode::LimitRate, "more frames per second than allowed", now);
    return false;
  }
  // The session whose frame is one too many goes, so that who sends most is who is met most.
  //= LIM-9
  if (account_ != nullptr && !account_->take_frame(now.steady)) {
    reset(ErrorCode::LimitRate, "more frames per second than the tenant's sessions may send together", now);
    return false;
  }
  return true;
}

bool Session::check_sender(const Frame& frame, Now now) {
  //= ENV-12
  if (frame.tenant != identity_.tenant) {
    reset(ErrorCode::SessionTenantMismatch, "the frame names another tenant than the session's", now);
    return false;
  }
  //= ENV-12
  if (frame.sender_role != identity_.peer_role || frame.sender_id != identity_.peer_id) {
    reset(ErrorCode::SessionMismatch, "the frame names another sender than the session's", now);
    return false;
  }
  return true;
}

// Flags are not looked at.
//= ENV-13
void Session::handle_body(const Frame& frame, Now now) {
  if (frame.is_data()) return handle_data(frame, now);
  if (const auto* ack = std::get_if<Ack>(&frame.body)) return handle_ack(frame, *ack, now);
  if (const auto* drain = std::get_if<Drain>(&frame.body)) return handle_drain(frame, *drain, now);
  if (const auto* reset = std::get_if<Reset>(&frame.body)) return handle_reset(*reset);
  if (const auto* heartbeat = std::get_if<Heartbeat>(&frame.body); heartbeat && side_ == Side::Scheduler) {
    if (frame.ack_request) acknowledge_heartbeat(frame.id);
    return handle_heartbeat(*heartbeat);
  }
  if (const auto* body = std::get_if<Register>(&frame.body); body && side_ == Side::Scheduler) {
    return handle_register(frame, *body);
  }
  if (const auto* accept = std::get_if<SessionAccept>(&frame.body); accept && side_ == Side::Worker) {
    return handle_accept(frame, *accept, now);
  }
  if (std::holds_alternative<UnknownControl>(frame.body)) {
    //= REV-13
    if (identity_.revision == Revision::One) {
      if (frame.ack_request) acknowledge(frame.id, "", true);
      return;
    }
    //= ENV-11
    return acknowledge(frame.id, to_string(ErrorCode::CmdUnknown), false);
  }
  //= REV-12
  if (identity_.revision == Revision::One && side_ == Side::Scheduler && frame.ack_request &&
      (std::holds_alternative<Handshake>(frame.body) || std::holds_alternative<Resume>(frame.body))) {
    return acknowledge(frame.id, "", true);
  }
  refuse_out_of_turn(frame, now);
}

void Session::refuse_out_of_turn(const Frame& frame, Now now) {
  //= HSK-13
  refuse(ErrorCode::ProtoState, {frame.id, type_of(frame)},
         "this frame may not be sent in this state or by this side", now);
}

void Session::handle_data(const Frame& frame, Now now) {
  CHECK(frame.seq.has_value());
  const auto arrival = stream_.handle_data(frame, now.steady, delivered_);
  Seq seq = stream_.receive_window().received_next() - delivered_.size();
  for (Message& message : delivered_) events_.push_back(Delivered{seq++, std::move(message)});
  delivered_.clear();
  if (arrival == ReceiveWindow::Arrival::Outside) {
    //= WIN-7
    if (!errors_.take(now.steady)) reset(ErrorCode::LimitErrors, "too many frames outside the window", now);
    return;
  }
  if (!frame.ack_request) return;
  //= ACK-7
  if (*frame.seq < stream_.receive_window().owned_next()) return acknowledge(frame.id, "", true);
  if (arrival != ReceiveWindow::Arrival::Duplicate) await_own_ack(frame);
}

void Session::await_own_ack(const Frame& frame) {
  // More than a window of them are waiting to be sent to a peer that does not read.
  //= LIM-7
  if (awaited_.size() >= limits::kWindowFramesMax) {
    return drop_connection(kClosePolicy, "acks are not being read");
  }
  awaited_.push_back({*frame.seq, std::string{frame.id}});
  for (std::size_t i = awaited_.size() - 1; i > 0 && awaited_[i - 1].seq > awaited_[i].seq; --i) {
    std::swap(awaited_[i - 1], awaited_[i]);
  }
}

void Session::handle_ack(const Frame& frame, const Ack& ack, Now now) {
  if (ack.state) {
    const auto moved = stream_.handle_ack(*ack.state, now.steady);
    if (!moved) return reset(moved.error().code, moved.error().reason, now);
    if (*moved) events_.push_back(Acknowledged{stream_.send_window().earliest_retained()});
    if (stream_.take_writable()) events_.push_back(Writable{});
  }
  if (!ack.ok) {
    handle_nack(ack, now);
    if (ended_) return;
  } else if (!ack.for_id.empty()) {
    if (ack.for_id == drain_frame_id_) drain_acknowledged_ = true;
    if (ack.for_id == complete_frame_id_ && complete_said_) {
      close_ = CloseRequest{kCloseNormal, "drained"};
      return finish("", "drained", Blame::Peer, {});
    }
  }
  //= ACK-8
  if (frame.ack_request) stream_.request_ack();
  maybe_say_complete(now);
}

void Session::handle_nack(const Ack& ack, Now now) {
  const std::string_view code_text = ack.info.substr(0, ack.info.find(' '));
  //= LIM-8
  const ErrorCode code = error_code_from(code_text).value_or(ErrorCode::Internal);
  const SendWindow& window = stream_.send_window();
  for (Seq seq = window.earliest_retained(); seq < window.next_seq() && !ack.for_id.empty(); ++seq) {
    if (window.slot(seq).message.id() != ack.for_id) continue;
    //= LIM-4
    return reset(code, "the peer refused a frame for good: " + std::string{ack.info}, now);
  }
  events_.push_back(Refused{code, std::string{ack.info}, std::string{ack.for_id}, {}, true});
}

// While the transport is busy, one answer stands for all heartbeats: a worker only wants to hear something.
// On a slow link their answers would otherwise fill the queue, and look like a peer that does not read.
//= LIV-5
void Session::acknowledge_heartbeat(std::string_view frame_id) {
  if (stream_.is_transport_busy()) {
    for (std::size_t i = 0; i < control_.size(); ++i) {
      if (control_[i].kind != Pending::Kind::HeartbeatAck) continue;
      control_[i].for_id = frame_id;
      return;
    }
  }
  queue_control({Pending::Kind::HeartbeatAck, std::string{frame_id}, {}});
}

void Session::handle_heartbeat(const Heartbeat& heartbeat) {
  judge_load(heartbeat);
  events_.push_back(LoadReported{heartbeat.healthy, heartbeat.inflight, heartbeat.cpu_pct, heartbeat.mem_pct,
                                 heartbeat.disk_pct, heartbeat.latency_ms, std::string{heartbeat.metrics},
                                 is_short_of_memory_, is_short_of_disk_});
  if (!draining_) return;
  // Frames come in order: what was acknowledged before this heartbeat is counted in it.
  //= REV-8
  const bool done = heartbeat.inflight == 0 && stream_.send_window().empty();
  if (identity_.revision == Revision::Two || !done) return;
  close_ = CloseRequest{kCloseNormal, "drained"};
  finish("", "drained", Blame::Local, {});
}

// The session stays as it is: what to do about a worker that is short is its owner's affair.
//= LIV-7
void Session::judge_load(const Heartbeat& heartbeat) {
  //= LIM-9
  const double mem_pct_max = account_ != nullptr ? account_->mem_pct_max() : config_.mem_pct_max;
  const double disk_pct_max = account_ != nullptr ? account_->disk_pct_max() : config_.disk_pct_max;
  const double back = account_ != nullptr ? account_->load_hysteresis_pct() : config_.load_hysteresis_pct;
  const auto is_short = [back](std::optional<double> used, double max, bool was_short) {
    if (max <= 0 || !used) return false;
    return *used >= max || (was_short && *used >= max - back);
  };
  is_short_of_memory_ = is_short(heartbeat.mem_pct, mem_pct_max, is_short_of_memory_);
  is_short_of_disk_ = is_short(heartbeat.disk_pct, disk_pct_max, is_short_of_disk_);
}

void Session::handle_reset(const Reset& reset) {
  finish(reset.code, reset.reason, Blame::Peer, reset.retry_after);
  control_.clear();
  close_ = CloseRequest{kCloseNormal, "reset received"};
}

void Session::handle_register(const Frame& frame, const Register& body) {
  //= HSK-8
  acknowledge(frame.id, "", true);
  auto profile = std::make_shared<WorkerProfile>();
  describe(body, *profile);
  events_.push_back(Registered{std::move(profile)});
}

void Session::handle_accept(const Frame& frame, const SessionAccept& accept, Now now) {
  if (accept.session_id != identity_.session_id) {
    return refuse(ErrorCode::SessionMismatch, {frame.id, type_of(frame)}, "the accept names another session",
                  now);
  }
  //= TOK-6
  events_.push_back(TokenRotated{std::string{accept.session_token}});
  //= HSK-11
  if (identity_.revision == Revision::Two || frame.ack_request) acknowledge(frame.id, "", true);
}

void Session::handle_bad_frame(const BadFrame& bad, Now now) {
  if (ended_ || !connected_) return;
  note_heard(now);
  // Where it costs no error budget the rate is all that bounds it.
  if (!check_rate(now)) return;
  // Two peers that misread one another's acks must not answer each other for ever.
  //= ACK-8
  const bool answerable = bad.frame_type != "control.ack" && bad.frame_type != "control.reset";
  //= LIM-9
  const SchemaMode mode = account_ != nullptr ? account_->schema_mode() : SchemaMode::Strict;
  //= LIM-2
  refuse(bad.code, {bad.frame_id, bad.frame_type}, bad.info, now, answerable ? Answer::Yes : Answer::No,
         mode);
}

}  // namespace windlass
