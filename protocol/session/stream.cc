#include "protocol/session/stream.h"

#include <algorithm>

#include "protocol/base/mutant.h"

namespace windlass {
namespace {

// Revision 1 knows windows of 1 to 64 frames and no byte credit: 64 frames of any size are the bound.
//= REV-2
Credit fit(Credit capacity, Revision revision) {
  capacity.frames = std::min(capacity.frames, limits::kWindowFramesMax);
  if (revision == Revision::One) {
    capacity.frames = std::clamp<std::uint32_t>(capacity.frames, 1, limits::kWindowFramesRevision1Max);
    capacity.bytes = limits::kIntegerMax;
  }
  return capacity;
}

// What the peer may send before it has heard anything of this side's credit.
Credit at_first(const SessionConfig& config, Revision revision) {
  Credit capacity = config.receive_credit;
  //= REV-11
  if (revision == Revision::One) capacity.frames = limits::kWindowFramesRevision1Max;
  return fit(capacity, revision);
}

}  // namespace

Stream::Stream(const SessionConfig& config, Revision revision)
    : config_(config), revision_(revision), receive_(at_first(config, revision)) {
  receive_.set_capacity(fit(config.receive_credit, revision));
}

Result<Seq> Stream::send(Message&& message, Now now) {
  //= WIN-9
  if (const std::uint64_t bytes = message.credit_bytes(); !send_.has_credit(bytes)) {
    blocked_ = std::min(blocked_.value_or(bytes), bytes);
    arm_probe(now.steady);
    return Error{ErrorCode::SessionWouldBlock, Blame::Peer,
                 "the peer's credit is spent; wait until it is writable"};
  }
  return send_.push(std::move(message), now);
}

void Stream::own(Seq next, Instant now) {
  if (next <= receive_.owned_next()) return;
  const bool was_closed = receive_.is_closed();
  receive_.own(next);
  //= REV-5
  //= WIN-12
  ack_.note_owned(next, receive_.capacity().frames, revision_ == Revision::One || was_closed);
  arm_ack(now);
}

void Stream::set_receive_credit(Credit capacity, Instant now) {
  const bool was_closed = receive_.is_closed();
  const Credit before = receive_.credit();
  receive_.set_capacity(fit(capacity, revision_));
  if (receive_.credit() == before) return;
  //= WIN-12
  ack_.note_owned(receive_.owned_next(), receive_.capacity().frames, was_closed);
  arm_ack(now);
}

ReceiveWindow::Arrival Stream::handle_data(const Frame& frame, Instant now, std::vector<Message>& delivered) {
  const Data& data = std::get<Data>(frame.body);
  const MessageParts parts{data.type, frame.id, data.payload, frame.corr, data.attachment, frame.ack_request};
  const auto arrival = receive_.handle(*frame.seq, data, parts);
  switch (arrival) {
    case ReceiveWindow::Arrival::InOrder: {
      peer_sends_ = true;
      delivered.emplace_back(parts);
      Message next;
      const bool filled_gap = receive_.has_gap();
      while (receive_.take_next(next)) delivered.push_back(std::move(next));
      counters_.delivered += delivered.size();
      ack_.note_received(receive_.capacity().frames);
      if (filled_gap || frame.ack_request) ack_.note_urgent();
      break;
    }
    case ReceiveWindow::Arrival::Early:
      peer_sends_ = true;
      ack_.note_urgent();
      break;
    case ReceiveWindow::Arrival::Duplicate:
      ++counters_.duplicates;
      ack_.note_duplicate();
      break;
    case ReceiveWindow::Arrival::Outside:
      //= WIN-7
      ++counters_.outside_window;
      ack_.note_urgent();
      break;
  }
  arm_ack(now);
  return arrival;
}

Result<bool> Stream::handle_ack(const AckState& ack, Instant now) {
  const Seq before = send_.earliest_retained();
  const auto outcome = send_.handle_ack(ack, now);
  if (!outcome) return outcome.error();
  //= ACK-9
  const std::uint64_t spurious = std::min(ack.dup, retransmits_unreported_);
  counters_.spurious_retransmits += spurious;
  retransmits_unreported_ -= spurious;
  if (outcome->round_trip) retransmit_.sample(*outcome->round_trip);
  if (outcome->progress) {
    note_progress();
    resend_.reset();
    deadlines_.clear(Timer::Retransmit);
    arm_retransmit(now);
  }
  return send_.earliest_retained() > before;
}

void Stream::connect(Credit peer_credit, Random& random, Instant now) {
  connected_ = true;
  retransmit_.note_connected(random);
  send_.grant(peer_credit);
  arm_probe(now);
}

Result<std::uint64_t> Stream::resume(Seq peer_received_next, Seq peer_earliest_retained, Credit peer_credit,
                                     Random& random, Instant now) {
  //= RES-6
  if (peer_earliest_retained > receive_.received_next()) {
    return Error{ErrorCode::ResultSeqGap, Blame::Peer,
                 "earliest_retained_seq lies above the next frame expected"};
  }
  // Nothing would ever send it again. A revision 1 scheduler's accept states no position.
  //= RES-6
  if (revision_ == Revision::Two && send_.is_held(peer_received_next)) {
    return Error{ErrorCode::ResultSeqGap, Blame::Peer,
                 "last_seen_seq takes back a frame that was said to be held"};
  }
  const auto again = send_.rewind(peer_received_next);
  if (!again) return again.error();
  //= RES-9
  connect(peer_credit, random, now);
  counters_.replayed += *again;
  note_progress();
  return *again;
}

void Stream::disconnect() {
  connected_ = false;
  send_.disconnect();
  resend_.reset();
  left_.reset();
  spent_at_.reset();
  deadlines_.clear_all();
  retransmits_unreported_ = 0;
  transport_busy_ = probe_due_ = false;
}

void Stream::set_transport_busy(bool busy, Instant now) {
  if (transport_busy_ == busy || MUTANT(resends_while_blocked)) return;
  transport_busy_ = busy;
  if (busy) {
    if (std::exchange(resend_, std::nullopt)) retransmit_.take_back_attempt();
    return;
  }
  const auto oldest = send_.oldest_outstanding();
  if (!oldest) return;
  // It has left by now, or the peer that read nothing has it to read: its interval begins anew. Not for ever,
  // or a transport that is busy now and then would starve the timer.
  if (left_ != oldest) waits_ = 0;
  left_ = oldest;
  if (waits_ < limits::kRetransmitWaitsMax) {
    ++waits_;
    left_at_ = now;
  }
  // Never in this turn, which has only begun to write what waited.
  if (!deadlines_.is_set(Timer::Retransmit)) {
    deadlines_.set(Timer::Retransmit, std::max(resend_time(*oldest), now + Duration{1}));
  }
}

Instant Stream::resend_time(Seq seq) const {
  const Instant sent_at = send_.slot(seq).sent_at;
  return (left_ == seq ? std::max(left_at_, sent_at) : sent_at) + retransmit_.interval(config_);
}

void Stream::take_ack(AckState& state) {
  receive_.describe(state);
  state.dup = ack_.take(receive_.owned_next());
  deadlines_.clear(Timer::Ack);
}

bool Stream::take_probe() {
  return std::exchange(probe_due_, false);
}

std::optional<Seq> Stream::poll_data(Instant now) {
  if (!connected_) return std::nullopt;
  std::optional<Seq> seq = std::exchange(resend_, std::nullopt);
  if (seq) {
    left_.reset();
    ++counters_.retransmits;
    ++retransmits_unreported_;
    send_.slot(*seq).resent = true;
  } else {
    seq = send_.next_unsent();
  }
  if (!seq) return std::nullopt;
  send_.mark_sent(*seq, now);
  arm_retransmit(now);
  return seq;
}

bool Stream::take_writable() {
  if (!blocked_ || !send_.has_credit(*blocked_)) return false;
  blocked_.reset();
  deadlines_.clear(Timer::Probe);
  return true;
}

Result<Done> Stream::handle_timeout(Instant now, Random& random) {
  if (deadlines_.take_due(Timer::Ack, now)) ack_.flush();
  if (deadlines_.take_due(Timer::Probe, now) && blocked_) {
    //= WIN-11
    probe_due_ = !MUTANT(probes_nothing);
    ++counters_.probes;
    deadlines_.set(Timer::Probe, now + retransmit_.interval(config_));
  }
  if (!deadlines_.take_due(Timer::Retransmit, now)) return Done{};
  //= RTX-2
  if (transport_busy_ || resend_) return Done{};  // armed again when it no longer is, or when that is sent
  //= RTX-3
  const auto oldest = send_.oldest_outstanding();
  if (!oldest) return Done{};
  // The timer is armed once and checked late: a frame sent after it was armed gets its whole interval.
  if (const Instant due = resend_time(*oldest); due > now) {
    deadlines_.set(Timer::Retransmit, due);
    return Done{};
  }
  //= RTX-4
  if (retransmit_.attempts() >= config_.attempts_max) {
    if (is_ack_behind_data(now)) {
      deadlines_.set(Timer::Retransmit, now + retransmit_.interval(config_));
      return Done{};
    }
    return Error{ErrorCode::Timeout, Blame::Peer,
                 "the peer did not acknowledge a frame that was sent again and again"};
  }
  retransmit_.note_attempt(random);
  peer_sends_ = false;
  resend_ = oldest;
  return Done{};
}

// On a slow way back an acknowledgement may lie behind more of the peer's frames than all attempts take. To
// end the session then would have both sides send everything again, and come to the same end for ever.
//= RTX-4
bool Stream::is_ack_behind_data(Instant now) {
  if (!std::exchange(peer_sends_, false) || MUTANT(gives_up_behind_data)) return false;
  if (!spent_at_) spent_at_ = now;
  return now - *spent_at_ < limits::kAckBehindDataMax;
}

void Stream::note_progress() {
  retransmit_.note_progress();
  spent_at_.reset();
}

void Stream::release_idle_memory() {
  send_.release();
  receive_.release();
}

void Stream::arm_ack(Instant now) {
  // Without a connection it waits for the next one, which begins with an ack.
  if (connected_ && ack_.is_pending() && !deadlines_.is_set(Timer::Ack)) {
    deadlines_.set(Timer::Ack, now + config_.ack_delay);
  }
}

void Stream::arm_probe(Instant now) {
  // Revision 1 windows never close, so there is nothing to probe.
  if (!blocked_ || !connected_ || revision_ == Revision::One || deadlines_.is_set(Timer::Probe)) return;
  deadlines_.set(Timer::Probe, now + retransmit_.interval(config_));
}

void Stream::arm_retransmit(Instant now) {
  if (!connected_ || transport_busy_ || deadlines_.is_set(Timer::Retransmit)) return;
  if (send_.oldest_outstanding()) deadlines_.set(Timer::Retransmit, now + retransmit_.interval(config_));
}

}  // namespace windlass
