// The core's randomness: a seed in, the same numbers out on every machine. Not for secrets; ids and jitter
// only.
#pragma once

#include <cstdint>

#include "protocol/base/time.h"

namespace windlass {

// SplitMix64 (Steele, Lea, Flood 2014): one word of state, full period, good enough for jitter and ids.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31U);
  }

  // Uniform in [0, bound); 0 for a bound of 0.
  std::uint64_t below(std::uint64_t bound) {
    return static_cast<std::uint64_t>((static_cast<Wide>(next()) * bound) >> 64U);
  }

  // Uniform in [0, limit).
  Duration below(Duration limit) {
    return Duration{static_cast<Duration::rep>(below(static_cast<std::uint64_t>(limit.count())))};
  }

  bool one_in(std::uint64_t n) { return below(n) == 0; }

 private:
  __extension__ using Wide = unsigned __int128;
  std::uint64_t state_;
};

}  // namespace windlass
