#include "protocol/adapters/event_loop.h"

#include <algorithm>
#include <array>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <mutex>
#include <vector>

#include "protocol/adapters/loop_buffers.h"
#include "protocol/base/check.h"

namespace windlass {
namespace {

namespace asio = boost::asio;
using Executor = asio::io_context::executor_type;

constexpr std::size_t kPhases = 3;

std::size_t index(TurnPhase phase) {
  return static_cast<std::size_t>(phase);
}

}  // namespace

struct EventLoop::Inside {
  // One thread runs it, so Asio need not wake others. Posting from other threads stays safe.
  asio::io_context context{1};
  asio::executor_work_guard<Executor> work{context.get_executor()};
  std::array<std::vector<TurnEnd*>, kPhases> turn_ends;
  std::mutex mutex;  // of `posted` alone
  std::vector<std::unique_ptr<Task>> posted;
  std::vector<std::unique_ptr<Task>> running;
};

EventLoop::EventLoop() : buffers_(std::make_unique<LoopBuffers>()), inside_(std::make_unique<Inside>()) {}

EventLoop::~EventLoop() = default;

void EventLoop::run() {
  while (!stopping_.load(std::memory_order_acquire)) {
    wait();
    run_ready();
    run_timers();
    end_turn();
  }
  stopping_.store(false, std::memory_order_release);
}

void EventLoop::stop() {
  stopping_.store(true, std::memory_order_release);
  asio::post(inside_->context, [] {});
}

boost::asio::io_context& EventLoop::context() {
  return inside_->context;
}

// Runs the first ready handler, after waiting for it if none is.
void EventLoop::wait() {
  if (std::exchange(again_, false)) {
    inside_->context.poll_one();
    return;
  }
  const std::optional<Instant> next = timers_.next();
  if (!next) {
    inside_->context.run_one();
    return;
  }
  using Steady = std::chrono::steady_clock;
  inside_->context.run_one_until(Steady::time_point{next->time_since_epoch()});
}

// Runs what was ready when the turn began, and no more: Asio puts the marker behind it, and behind one more
// look at the sockets, whose results are then the next turn's. Without it a busy loop would never end a turn.
void EventLoop::run_ready() {
  turn_over_ = false;
  asio::post(inside_->context, [this] { turn_over_ = true; });
  while (!turn_over_) inside_->context.poll_one();
}

void EventLoop::run_timers() {
  if (timers_.size() == 0) return;
  const Instant now = clock_.now().steady;
  while (TimerTarget* const target = timers_.pop_due(now)) target->on_timer();
}

void EventLoop::end_turn() {
  for (std::size_t phase = 0; phase < kPhases; ++phase) {
    for (TurnEnd* const end : inside_->turn_ends[phase]) end->on_turn_end(static_cast<TurnPhase>(phase));
  }
  clock_.forget();
  ran_posted_ = false;
}

void EventLoop::add_turn_end(TurnPhase phase, TurnEnd& end) {
  inside_->turn_ends[index(phase)].push_back(&end);
}

void EventLoop::remove_turn_end(TurnPhase phase, TurnEnd& end) {
  auto& ends = inside_->turn_ends[index(phase)];
  const auto at = std::find(ends.begin(), ends.end(), &end);
  CHECK(at != ends.end());
  ends.erase(at);
}

// One Asio handler carries all tasks posted since the last one ran.
void EventLoop::post_task(std::unique_ptr<Task> task) {
  bool first = false;
  {
    const std::lock_guard lock{inside_->mutex};
    first = inside_->posted.empty();
    inside_->posted.push_back(std::move(task));
  }
  if (first) asio::post(inside_->context, [this] { run_posted(); });
}

void EventLoop::run_posted() {
  // The turn's first handler runs before the marker is there, so its posts could still slip into this turn.
  if (std::exchange(ran_posted_, true)) return asio::post(inside_->context, [this] { run_posted(); });
  {
    const std::lock_guard lock{inside_->mutex};
    inside_->running.swap(inside_->posted);
  }
  for (const auto& task : inside_->running) task->run();
  inside_->running.clear();
}

Now EventLoop::TurnClock::now() const {
  if (!fresh_) {
    now_.steady =
        Instant{std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch())};
    now_.wall = std::chrono::time_point_cast<milliseconds>(std::chrono::system_clock::now());
    fresh_ = true;
  }
  return now_;
}

LoopTimer::LoopTimer(EventLoop& loop, TimerTarget& target) : loop_(loop), node_(&target) {}

LoopTimer::~LoopTimer() {
  loop_.timers_.clear(node_);
}

void LoopTimer::set(std::optional<Instant> deadline) {
  loop_.timers_.set(node_, deadline);
}

}  // namespace windlass
