// The receiving half of a session: order, duplicates, gaps, and the credit this side gave. A frame passes
// through three positions: received (held), delivered to the owner in order, owned once the owner says so.
// Only owned is ack_seq.
#pragma once

#include <cstdint>
#include <map>

#include "protocol/base/ids.h"
#include "protocol/base/ring.h"
#include "protocol/messages/control.h"
#include "protocol/messages/message.h"

namespace windlass {

class ReceiveWindow {
 public:
  enum class Arrival {
    InOrder,    // the next one: deliver it, then whatever take_next gives
    Early,      // kept until the gap is filled
    Duplicate,  // received before
    Outside,    // beyond the credit given
  };

  explicit ReceiveWindow(Credit capacity);

  // Judges a frame and takes note of it. The message of an Early one is kept.
  Arrival handle(Seq seq, const Data& data, const MessageParts& parts);

  // After InOrder: the early frames that are next in order now, one by one.
  bool take_next(Message& message);

  // The owner took responsibility for every frame below `next`, which was delivered.
  void own(Seq next);

  // What the owner will hold from now on. Credit that was given stays given.
  void set_capacity(Credit capacity);

  Seq received_next() const { return received_next_; }
  Seq owned_next() const { return owned_next_; }
  bool has_gap() const { return !early_.empty(); }
  // Nothing new fits: the peer has spent all that it was offered.
  bool is_closed() const {
    return received_next_ >= right_edge_ || received_bytes_ + early_bytes_ >= right_edge_bytes_;
  }
  std::uint32_t frames_open() const { return static_cast<std::uint32_t>(right_edge_ - owned_next_); }
  Credit credit() const { return {frames_open(), right_edge_bytes_ - owned_bytes_}; }
  Credit capacity() const { return capacity_; }

  // Fills in position, bitmap and credit; `dup` is the caller's.
  void describe(AckState& state) const;

  void release() {
    if (sizes_.empty()) sizes_.release();
  }

 private:
  void open_edge();
  void receive_in_order(std::uint64_t bytes);

  Credit capacity_;
  Seq owned_next_ = 0;
  Seq received_next_ = 0;
  Seq right_edge_ = 0;                // never moves back
  std::uint64_t owned_bytes_ = 0;     // of all frames below owned_next_
  std::uint64_t received_bytes_ = 0;  // of all frames below received_next_
  std::uint64_t early_bytes_ = 0;
  std::uint64_t right_edge_bytes_ = 0;
  Ring<std::uint32_t> sizes_;     // of the frames owned_next_ .. received_next_-1
  std::map<Seq, Message> early_;  // rare: TCP keeps order, so only a resend can come early
};

}  // namespace windlass
