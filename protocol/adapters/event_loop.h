// One thread's event loop: turns, frozen clocks, timers, and work posted from other threads. Sockets wait for
// readiness through Boost.Asio (readiness.h); this header shows none of it, because Asio is slow to compile.
//
// A turn is: every handler that is ready, timers that are due, then the three phases of TurnPhase, then the
// wait for the next event.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "protocol/base/time.h"
#include "protocol/base/timer_queue.h"
#include "protocol/seams/alarm.h"
#include "protocol/seams/clock.h"

namespace boost::asio {
class io_context;
}

namespace windlass {

class LoopBuffers;
class EventLoop;

enum class TurnPhase : std::uint8_t {
  Decide,  // drivers poll their cores and send into transports
  Write,   // transports write what the turn produced
  Reap,    // connections that ended are reported and destroyed
};

class TurnEnd {
 public:
  virtual ~TurnEnd() = default;
  virtual void on_turn_end(TurnPhase phase) = 0;
};

class TimerTarget {
 public:
  virtual ~TimerTarget() = default;
  virtual void on_timer() = 0;
};

// One deadline of one object. Loop thread only.
class LoopTimer final {
 public:
  LoopTimer(EventLoop& loop, TimerTarget& target);
  ~LoopTimer();
  LoopTimer(const LoopTimer&) = delete;
  LoopTimer& operator=(const LoopTimer&) = delete;
  // A new deadline replaces the one before; none cancels.
  void set(std::optional<Instant> deadline);
  bool is_set() const { return node_.is_set(); }

 private:
  EventLoop& loop_;
  TimerQueue<TimerTarget>::Node node_;
};

class EventLoop final {
 public:
  EventLoop();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Turns until stop(). The calling thread becomes the loop's. It may be called again after it returned.
  void run();

  // From any thread; the turn under way is finished first. Sticks if run() has not begun yet.
  void stop();

  // From any thread: `task()` runs in a later turn, in the order posted. The queue has no bound of its own:
  // whoever posts on behalf of a peer counts what it has under way. Tasks left when the loop is destroyed
  // are destroyed without being run.
  template <class Function>
  void post(Function task) {
    post_task(std::make_unique<TaskOf<Function>>(std::move(task)));
  }

  // Loop thread only from here on. Both clocks are read once per turn, when somebody first asks.
  Now now() const { return clock_.now(); }
  const Clock& clock() const { return clock_; }

  // Called in every turn, in the order added, until removed; not to be added or removed from inside one.
  // What is added must be removed before the loop is destroyed.
  void add_turn_end(TurnPhase phase, TurnEnd& end);
  void remove_turn_end(TurnPhase phase, TurnEnd& end);

  // The next turn begins without waiting: a Reap told somebody news that they may want to answer.
  void turn_again() { again_ = true; }

  LoopBuffers& buffers() { return *buffers_; }
  boost::asio::io_context& context();

 private:
  friend class LoopTimer;

  class Task {
   public:
    virtual ~Task() = default;
    virtual void run() = 0;
  };
  template <class Function>
  class TaskOf final : public Task {
   public:
    explicit TaskOf(Function function) : function_(std::move(function)) {}
    void run() override { function_(); }

   private:
    Function function_;
  };

  class TurnClock final : public Clock {
   public:
    Now now() const override;
    void forget() { fresh_ = false; }

   private:
    mutable Now now_;
    mutable bool fresh_ = false;
  };

  struct Inside;

  void post_task(std::unique_ptr<Task> task);
  void run_posted();
  void wait();
  void run_ready();
  void run_timers();
  void end_turn();

  TurnClock clock_;
  TimerQueue<TimerTarget> timers_;
  std::unique_ptr<LoopBuffers> buffers_;
  std::unique_ptr<Inside> inside_;  // what needs Asio or a lock
  std::atomic<bool> stopping_{false};
  bool again_ = false;
  bool turn_over_ = false;
  bool ran_posted_ = false;  // in this turn
};

// The Alarm of one driver. `on_alarm` is called on the loop, never from inside set().
class LoopAlarm final : public Alarm, private TimerTarget {
 public:
  LoopAlarm(EventLoop& loop, std::function<void()> on_alarm)
      : on_alarm_(std::move(on_alarm)), timer_(loop, *this) {}
  void set(std::optional<Instant> deadline) override { timer_.set(deadline); }

 private:
  void on_timer() override { on_alarm_(); }

  std::function<void()> on_alarm_;
  LoopTimer timer_;
};

}  // namespace windlass
