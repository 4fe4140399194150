// How long a worker waits before it dials again: full jitter, drawn after the cap is applied, so that a fleet
// that lost its scheduler in one instant does not come back in one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "protocol/base/error_code.h"
#include "protocol/base/random.h"
#include "protocol/base/time.h"
#include "protocol/session/session_config.h"

namespace windlass {

// The codes whose retry rule in schema/errors.json is at_cap: somebody must change something first.
inline bool retries_at_cap(std::string_view code) {
  using enum ErrorCode;
  const auto known = error_code_from(code);
  return code.starts_with("E.AUTH.") || known == SessionDenied || known == SessionSuperseded ||
         known == SessionTenantMismatch || known == ProtoVersion;
}

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
    return config.backoff_cap + random.below(config.backoff_cap + Duration{1});
  }

  void forget() { failures_ = 0; }
  std::uint32_t failures() const { return failures_; }

 private:
  std::uint32_t failures_ = 0;
};

}  // namespace windlass
