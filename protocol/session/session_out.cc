// The frames that a session gives out. Their text is views into the session, valid until it is called again.
#include <charconv>
#include <utility>

#include "protocol/base/check.h"
#include "protocol/session/session.h"

namespace windlass {

std::optional<Frame> Session::poll_transmit(Now now) {
  if (!connected_) return std::nullopt;
  //= ACK-10
  if (!control_.empty()) return pending_frame(now);
  if (ended_ || close_) return std::nullopt;
  //= ACK-7
  if (!awaited_.empty() && awaited_.front().seq < stream_.receive_window().owned_next()) {
    current_ = {Pending::Kind::Ack, awaited_.pop_front().frame_id, ""};
    return ack_frame(now);
  }
  const bool probe = stream_.take_probe();
  if (probe || stream_.is_ack_due()) {
    current_ = {};
    Frame frame = ack_frame(now);
    //= WIN-11
    frame.ack_request = probe;
    return frame;
  }
  if (std::exchange(heartbeat_due_, false)) return heartbeat_frame(now);
  if (const auto seq = stream_.poll_data(now.steady)) return data_frame(*seq);
  return std::nullopt;
}

Frame Session::control_frame(FrameBody body, Now now) {
  char* const begin = frame_id_.data();
  begin[0] = '~';
  begin[1] = side_ == Side::Worker ? 'w' : 's';
  //= ENV-5
  const auto end = std::to_chars(begin + 2, begin + frame_id_.size(), frame_counter_++).ptr;
  return Frame{.revision = identity_.revision,
               .id = {begin, static_cast<std::size_t>(end - begin)},
               .ts = now.wall,
               .tenant = identity_.tenant,
               .sender_role = identity_.self_role,
               .sender_id = identity_.self_id,
               .corr = {},
               .seq = {},
               .ack_for = {},
               .ack_request = false,
               .flags = {},
               .ext = {},
               .body = std::move(body)};
}

Frame Session::data_frame(Seq seq) {
  const SendWindow::Slot& slot = stream_.send_window().slot(seq);
  //= ENV-5
  return Frame{.revision = identity_.revision,
               .id = slot.message.id(),
               .ts = slot.ts,
               .tenant = identity_.tenant,
               .sender_role = identity_.self_role,
               .sender_id = identity_.self_id,
               .corr = slot.message.corr(),
               .seq = seq,
               .ack_for = {},
               .ack_request = slot.message.ack_request(),
               .flags = {},
               .ext = {},
               .body = slot.message.data()};
}

Frame Session::pending_frame(Now now) {
  current_ = control_.pop_front();
  switch (current_.kind) {
    case Pending::Kind::Ack:
    case Pending::Kind::HeartbeatAck:
    case Pending::Kind::Nack:
      return ack_frame(now);
    case Pending::Kind::Reset:
      return control_frame(Reset{current_.info, current_.for_id, reset_retry_after_}, now);
    case Pending::Kind::DrainStart: {
      Frame frame = control_frame(Drain{DrainPhase::Start, drain_reason_, drain_deadline_}, now);
      frame.ack_request = true;
      drain_frame_id_ = frame.id;
      return frame;
    }
    case Pending::Kind::DrainComplete: {
      Frame frame = control_frame(Drain{DrainPhase::Complete, {}, {}}, now);
      frame.ack_request = true;
      complete_frame_id_ = frame.id;
      return frame;
    }
  }
  CHECK(false);
  return {};
}

Frame Session::ack_frame(Now now) {
  Frame frame = control_frame(Ack{}, now);
  auto& ack = std::get<Ack>(frame.body);
  ack.ok = current_.kind != Pending::Kind::Nack;
  //= ACK-7
  frame.ack_for = ack.for_id = current_.for_id;
  ack.info = current_.info;
  // Every ack carries the position; this one saves the next.
  if (!ended_) stream_.take_ack(ack.state.emplace());
  return frame;
}

Frame Session::heartbeat_frame(Now now) {
  Frame frame = control_frame(Heartbeat{load_.healthy,
                                        complete_said_ ? 0 : load_.inflight,
                                        load_.cpu_pct,
                                        load_.mem_pct,
                                        load_.disk_pct,
                                        load_.latency_ms,
                                        {},
                                        {}},
                              now);
  //= LIV-5
  //= REV-14
  frame.ack_request = identity_.revision == Revision::Two;
  return frame;
}

}  // namespace windlass
