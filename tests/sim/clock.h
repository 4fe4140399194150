// The clock and the alarm of one simulated machine: an offset and a drift of its own, a wall clock that may
// jump, and sleep, during which nothing on the machine runs.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "protocol/seams/alarm.h"
#include "protocol/seams/clock.h"
#include "tests/sim/context.h"

namespace windlass::sim {

struct ClockPlan {
  Duration steady_base = seconds{1};
  Duration wall_offset{};
  std::int64_t drift_ppm = 0;
};

class SimClock final : public Clock {
 public:
  SimClock(const Context& context, const ClockPlan& plan) : context_(context), plan_(plan) {}

  Now now() const override {
    const Duration wall = context_.now() + context_.now() * plan_.drift_ppm / 1'000'000 + plan_.wall_offset;
    return {Instant{steady()}, kEpoch + std::chrono::duration_cast<milliseconds>(wall)};
  }

  // The world's time at which this machine's steady clock will have reached `instant`, if it does not sleep.
  Duration world_time(Instant instant) const {
    const Duration wait = instant.time_since_epoch() - steady();
    if (wait <= Duration{}) return context_.now();
    return context_.now() + wait - wait * plan_.drift_ppm / 1'000'000 + Duration{1};
  }

  void jump_wall(Duration by) { plan_.wall_offset += by; }
  // The machine sleeps, and its steady clock stands still for so long.
  void stand_still(Duration by) {
    stood_still_at_ = steady();
    plan_.steady_base -= by;
  }

 private:
  static constexpr WallTime kEpoch{milliseconds{1'790'000'000'000}};

  Duration steady() const {
    const Duration running =
        plan_.steady_base + context_.now() + context_.now() * plan_.drift_ppm / 1'000'000;
    return std::max(running, stood_still_at_);
  }

  const Context& context_;
  ClockPlan plan_;
  Duration stood_still_at_{};
};

// Fires at or after its deadline; later when the machine sleeps.
class SimAlarm final : public Alarm {
 public:
  SimAlarm(Context& context, const SimClock& clock, const Duration& asleep_until, std::function<void()> fire)
      : context_(context), clock_(clock), asleep_until_(asleep_until), fire_(std::move(fire)) {}

  void set(std::optional<Instant> deadline) override {
    deadline_ = deadline;
    if (deadline_) schedule(clock_.world_time(*deadline_));
  }

 private:
  // One queued wake-up serves all deadlines that come after it: most are moved before they are due.
  void schedule(Duration when) {
    when = std::max(when, asleep_until_);
    if (scheduled_ && *scheduled_ <= when) return;
    scheduled_ = when;
    context_.timeline.at(when, [this, when] { wake(when); });
  }

  void wake(Duration when) {
    if (scheduled_ != when) return;  // replaced by an earlier one
    scheduled_.reset();
    if (!deadline_) return;
    if (asleep_until_ > context_.now() || *deadline_ > clock_.now().steady) {
      return schedule(clock_.world_time(*deadline_));
    }
    deadline_.reset();
    fire_();
  }

  Context& context_;
  const SimClock& clock_;
  const Duration& asleep_until_;
  std::function<void()> fire_;
  std::optional<Instant> deadline_;
  std::optional<Duration> scheduled_;
};

}  // namespace windlass::sim
