// When to acknowledge: at once where the peer waits or something is odd, else after a quarter of the window
// or a short delay, whichever comes first. Pure bookkeeping; the stream owns the timer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "protocol/base/ids.h"
#include "protocol/messages/control.h"

namespace windlass {

class AckPolicy {
 public:
  //= ACK-6
  void note_received(std::uint32_t window_frames) {
    if (++received_ >= quarter(window_frames)) urgent_ = true;
    pending_ = true;
  }

  // The owner moved ack_seq to `owned_next`. `at_once` where the revision or a closed window wants it.
  void note_owned(Seq owned_next, std::uint32_t window_frames, bool at_once) {
    if (at_once || owned_next - announced_ >= quarter(window_frames)) urgent_ = true;
    pending_ = true;
  }

  //= ACK-6
  void note_urgent() { urgent_ = pending_ = true; }

  //= ACK-9
  void note_duplicate() {
    ++duplicates_;
    note_urgent();
  }

  // The delay has passed, or the loop has nothing better to do.
  void flush() { urgent_ = pending_; }

  bool is_due() const { return urgent_; }
  bool is_pending() const { return pending_; }

  // An ack with this position leaves now; hands out the duplicates it reports.
  std::uint64_t take(Seq owned_next) {
    announced_ = owned_next;
    received_ = 0;
    urgent_ = pending_ = false;
    return std::exchange(duplicates_, 0);
  }

 private:
  static std::uint32_t quarter(std::uint32_t window_frames) {
    return std::max<std::uint32_t>(1, window_frames / 4);
  }

  Seq announced_ = 0;
  std::uint64_t duplicates_ = 0;
  std::uint32_t received_ = 0;
  bool pending_ = false;
  bool urgent_ = false;
};

}  // namespace windlass
