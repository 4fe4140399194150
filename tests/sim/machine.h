// What worker and scheduler machines have in common: a clock, an alarm, sleep, and a process that may die and
// come back. Everything a process planned dies with it; what the machine was to do while asleep comes late.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "tests/sim/clock.h"
#include "tests/sim/context.h"
#include "tests/sim/network.h"

namespace windlass::sim {

class Machine : public SocketEvents {
 public:
  Machine(Context& context, std::string name, const ClockPlan& clock)
      : context_(context),
        name_(std::move(name)),
        clock_(context, clock),
        alarm_(context, clock_, asleep_until_, [this] { on_alarm(); }) {}

  const std::string& name() const { return name_; }
  const SimClock& clock() const { return clock_; }
  Duration asleep_until() const final { return asleep_until_; }
  std::uint64_t life() const { return life_; }  // counts processes

  // The action of a process, some time later: a loop turn of its own. Nothing when the process died before.
  void later(Duration delay, std::function<void()> action) {
    const Duration when = std::max(context_.now() + delay, asleep_until_);
    context_.timeline.at(when, [this, life = life_, act = std::move(action)]() mutable {
      if (life != life_) return;
      if (asleep_until_ > context_.now()) return later(Duration{}, std::move(act));
      act();
      finish_turn();
    });
  }

  // The process is frozen, or the whole machine sleeps, so that its steady clock stands still as well.
  void sleep(Duration time, bool clock_stands_still) {
    if (asleep_until_ > context_.now()) return;
    asleep_until_ = context_.now() + time;
    if (clock_stands_still) clock_.stand_still(time);
  }
  void jump_wall(Duration by) { clock_.jump_wall(by); }

 protected:
  virtual void on_alarm() = 0;
  // Owner events, sends, flush.
  virtual void finish_turn() = 0;

  void end_life() { ++life_; }

  Context& context_;
  std::string name_;
  SimClock clock_;
  Duration asleep_until_{};
  SimAlarm alarm_;

 private:
  std::uint64_t life_ = 1;
};

}  // namespace windlass::sim
