// How many mistakes a peer may make, and how many frames per second it may send: two buckets that refill with
// time.
#pragma once

#include <algorithm>
#include <cstdint>

#include "protocol/base/time.h"

namespace windlass {

class Bucket {
 public:
  Bucket(std::uint64_t capacity, Duration refill_one)
      : capacity_(capacity), refill_one_(std::max(refill_one, Duration{1})), level_(capacity) {}

  // Takes one unit; false when none is left.
  bool take(Instant now) {
    refill(now);
    if (level_ == 0) return false;
    --level_;
    return true;
  }

  std::uint64_t level() const { return level_; }

 private:
  void refill(Instant now) {
    if (level_ == capacity_) {
      refilled_at_ = now;
      return;
    }
    const auto units =
        static_cast<std::uint64_t>(std::max<Duration::rep>(0, (now - refilled_at_) / refill_one_));
    if (units == 0) return;
    refilled_at_ += refill_one_ * static_cast<Duration::rep>(units);
    level_ = units >= capacity_ - level_ ? capacity_ : level_ + units;
  }

  std::uint64_t capacity_;
  Duration refill_one_;
  std::uint64_t level_;
  Instant refilled_at_{};
};

}  // namespace windlass
