// How long a worker waits before it dials again: full jitter, drawn after the cap is applied, so that a fleet
// that lost its scheduler in one instant does not come back in one.
#pragma once

#include <algorithm>
#include <cstdint>

#include "protocol/base/random.h"
#include "protocol/base/time.h"
#include "protocol/session/session_config.h"

namespace windlass {

class Backoff {
 public:
  //= RST-4
  Duration next(const SessionConfig& config, Random& random) {
    const Duration doubled =
        config.backoff_first * (std::int64_t{1} << std::min<std::uint32_t>(failures_, 20));
    ++failures_;
    return random.below(std::min(config.backoff_cap, doubled) + Duration{1});
  }

  //= RST-7
  Duration at_cap(const SessionConfig& config, Random& random) {
    ++failures_;
    return random.below(config.backoff_cap + Duration{1});
  }

  void forget() { failures_ = 0; }
  std::uint32_t failures() const { return failures_; }

 private:
  std::uint32_t failures_ = 0;
};

}  // namespace windlass
