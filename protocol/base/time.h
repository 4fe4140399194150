// Time as the cores see it. CoreClock has no now(): a core cannot ask the time, it is told.
#pragma once

#include <chrono>
#include <cstdint>

namespace windlass {

using Duration = std::chrono::nanoseconds;

struct CoreClock {
  using rep = Duration::rep;
  using period = Duration::period;
  using duration = Duration;
  using time_point = std::chrono::time_point<CoreClock, Duration>;
  static constexpr bool is_steady = true;
};

using Instant = CoreClock::time_point;

// Milliseconds since the Unix epoch, as the wall clock of this machine tells them. It may jump.
using WallTime = std::chrono::time_point<std::chrono::system_clock, std::chrono::milliseconds>;

// One reading of both clocks, constant within one loop turn. `steady` drives every timer; `wall` stamps
// frames, dates tokens, and its drift against `steady` betrays a suspended machine.
struct Now {
  Instant steady{};
  WallTime wall{};
};

// Wall minus steady. It stands still while neither clock is set and the machine does not sleep.
inline Duration clock_offset(Now now) {
  return now.wall.time_since_epoch() - now.steady.time_since_epoch();
}

using std::chrono::milliseconds;
using std::chrono::seconds;

}  // namespace windlass
