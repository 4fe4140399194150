// The retransmission interval: a smoothed round trip plus four deviations (RFC 6298's estimator), doubled by
// each attempt until a round trip is measured again, and stretched a little so that many peers that stalled
// together do not wake together. Which frame is sent again is the send window's business.
#pragma once

#include <algorithm>
#include <cstdint>

#include "protocol/base/random.h"
#include "protocol/base/time.h"
#include "protocol/session/session_config.h"

namespace windlass {

class RetransmitTimer {
 public:
  void sample(Duration round_trip) {
    doublings_ = 0;
    if (smoothed_ == Duration{}) {
      smoothed_ = round_trip;
      deviation_ = round_trip / 2;
      return;
    }
    const Duration error = round_trip > smoothed_ ? round_trip - smoothed_ : smoothed_ - round_trip;
    deviation_ += (error - deviation_) / 4;
    smoothed_ += (round_trip - smoothed_) / 8;
  }

  //= RTX-1
  Duration interval(const SessionConfig& config) const {
    const Duration base =
        std::clamp(smoothed_ + 4 * deviation_, config.retransmit_floor, config.retransmit_cap);
    const Duration doubled = base * (std::int64_t{1} << std::min<std::uint32_t>(doublings_, 16));
    const Duration plain = std::min(doubled, config.retransmit_cap);
    return plain + plain / (4 * kJitterSteps) * jitter_;
  }

  std::uint32_t attempts() const { return attempts_; }
  void note_connected(Random& random) {
    doublings_ = 0;
    draw(random);
  }
  void note_attempt(Random& random) {
    ++attempts_;
    ++doublings_;
    draw(random);
  }
  void take_back_attempt() {  // it was not sent after all
    attempts_ -= std::min(attempts_, 1U);
    doublings_ -= std::min(doublings_, 1U);
  }
  // The interval stays: where the round trip is longer than it, every frame is sent again and none measures.
  void note_progress() { attempts_ = 0; }

 private:
  static constexpr std::int64_t kJitterSteps = 1024;
  void draw(Random& random) { jitter_ = static_cast<std::int32_t>(random.below(kJitterSteps)); }

  Duration smoothed_{};
  Duration deviation_{};
  std::uint32_t attempts_ = 0;   // without progress
  std::uint32_t doublings_ = 0;  // since a frame that was sent once was acknowledged
  std::int32_t jitter_ = 0;      // in steps that make up a quarter
};

}  // namespace windlass
