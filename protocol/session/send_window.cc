#include "protocol/session/send_window.h"

#include <algorithm>
#include <bit>

#include "protocol/base/limits.h"
#include "protocol/base/mutant.h"

namespace windlass {

bool SendWindow::has_credit(std::uint64_t bytes) const {
  //= WIN-2
  if (next_seq() >= right_edge_ + (MUTANT(window_overruns_edge) ? 1 : 0)) return false;
  //= WIN-3
  return slots_.empty() || pushed_bytes_ + bytes <= right_edge_bytes_;
}

std::uint32_t SendWindow::frames_credit() const {
  return static_cast<std::uint32_t>(right_edge_ > next_seq() ? right_edge_ - next_seq() : 0);
}

Seq SendWindow::push(Message message, Now now) {
  const std::uint64_t bytes = message.credit_bytes();
  CHECK(has_credit(bytes));
  //= WIN-1
  const Seq seq = next_seq();
  pushed_bytes_ += bytes;
  slots_.push_back(Slot{.message = std::move(message), .ts = now.wall});
  return seq;
}

Result<SendWindow::AckOutcome> SendWindow::handle_ack(const AckState& ack, Instant now) {
  //= ACK-4
  if (ack.owned_next > sent_next_) {
    if (MUTANT(window_believes_lies)) return AckOutcome{};
    return Error{ErrorCode::SessionAckInvalid, Blame::Peer, "ack_seq names a frame that was never sent"};
  }
  //= ACK-4
  if (!ack.held.empty() && ack.owned_next + ack.held.bit_length() > sent_next_) {
    if (MUTANT(window_believes_lies)) return AckOutcome{};
    return Error{ErrorCode::SessionAckInvalid, Blame::Peer, "ack_bitmap names a frame that was never sent"};
  }
  AckOutcome outcome;
  //= ACK-5
  if (ack.owned_next < first_ && MUTANT(window_minds_old_acks)) {
    return Error{ErrorCode::SessionAckInvalid, Blame::Peer, "ack_seq went back"};
  }
  if (ack.owned_next < first_) return outcome;

  // The newest frame mentioned for the first time gives the round trip, unless it was sent twice.
  std::optional<Seq> newest;
  if (ack.owned_next > first_) {
    const Slot& last = slot(ack.owned_next - 1);
    if (!last.held) newest = ack.owned_next - 1;
    outcome.progress = true;
  }
  const auto sample = [&](Seq seq) {
    const Slot& acked = slot(seq);
    if (acked.sent && !acked.resent) outcome.round_trip = now - acked.sent_at;
  };
  if (newest) sample(*newest);
  free_through(ack.owned_next);

  for (std::size_t word = 0; word < ack.held.size(); ++word) {
    for (std::uint64_t bits = ack.held.word(word); bits != 0; bits &= bits - 1) {
      const Seq seq = first_ + word * 64 + static_cast<Seq>(std::countr_zero(bits));
      if (!hold(seq)) continue;
      outcome.progress = true;
      sample(seq);
    }
  }
  if (MUTANT(window_frees_on_bitmap)) {
    Seq held = first_;
    while (contains(held) && slot(held).held) ++held;
    free_through(held);
  }
  skip_done();
  grant(ack.credit);
  return outcome;
}

Result<std::uint64_t> SendWindow::rewind(Seq peer_received_next) {
  //= RES-6
  if (peer_received_next > sent_next_) {
    return Error{ErrorCode::SessionAckInvalid, Blame::Peer,
                 "last_seen_seq names a frame that was never sent"};
  }
  //= RES-6
  if (peer_received_next < first_) {
    return Error{ErrorCode::ResultSeqGap, Blame::Peer,
                 "last_seen_seq lies below what was acknowledged before"};
  }
  if (MUTANT(resume_skips_one) && peer_received_next < next_seq()) ++peer_received_next;
  std::uint64_t again = 0;
  for (Seq seq = first_; seq < next_seq(); ++seq) {
    Slot& each = slot(seq);
    //= RES-4
    if (seq < peer_received_next && !MUTANT(resume_resends_held)) each.held = true;
    each.sent = each.held;
    if (each.sent) continue;
    if (seq < sent_next_) {
      each.resent = true;
      ++again;
    }
  }
  cursor_ = outstanding_ = first_;
  skip_done();
  return again;
}

void SendWindow::grant(Credit credit) {
  right_edge_ = std::max(right_edge_, first_ + std::min(credit.frames, limits::kWindowFramesMax));
  right_edge_bytes_ =
      std::max(right_edge_bytes_, freed_bytes_ + std::min(credit.bytes, limits::kSendBytesMax));
}

std::optional<Seq> SendWindow::next_unsent() const {
  for (Seq seq = cursor_; seq < next_seq(); ++seq) {
    if (!slot(seq).sent && !slot(seq).held) return seq;
  }
  return std::nullopt;
}

void SendWindow::mark_sent(Seq seq, Instant now) {
  Slot& sent = slot(seq);
  sent.sent = true;
  sent.sent_at = now;
  sent_next_ = std::max(sent_next_, seq + 1);
  if (seq == cursor_) ++cursor_;
}

std::optional<Seq> SendWindow::oldest_outstanding() const {
  for (Seq seq = outstanding_; seq < next_seq() && slot(seq).sent; ++seq) {
    if (!slot(seq).held) return seq;
  }
  return std::nullopt;
}

void SendWindow::disconnect() {
  for (std::size_t i = 0; i < slots_.size(); ++i) slots_[i].sent = false;
}

std::vector<Message> SendWindow::take_all() {
  std::vector<Message> messages;
  messages.reserve(slots_.size());
  first_ = next_seq();
  if (MUTANT(end_returns_too_little) && !slots_.empty()) slots_.drop_front();
  while (!slots_.empty()) messages.push_back(slots_.pop_front().message);
  freed_bytes_ = pushed_bytes_;
  cursor_ = outstanding_ = first_;
  return messages;
}

void SendWindow::release() {
  if (slots_.empty()) slots_.release();
}

void SendWindow::free_through(Seq next) {
  //= WIN-8
  //= ACK-3
  while (first_ < next) {
    freed_bytes_ += slots_.front().message.credit_bytes();
    slots_.drop_front();
    ++first_;
  }
  cursor_ = std::max(cursor_, first_);
  outstanding_ = std::max(outstanding_, first_);
}

bool SendWindow::hold(Seq seq) {
  Slot& held = slot(seq);
  if (held.held) return false;
  //= ACK-3
  held.held = true;
  return true;
}

void SendWindow::skip_done() {
  while (contains(cursor_) && (slot(cursor_).sent || slot(cursor_).held)) ++cursor_;
  while (contains(outstanding_) && slot(outstanding_).held) ++outstanding_;
}

}  // namespace windlass
