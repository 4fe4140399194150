// Virtual time: a queue of things to do, each at its moment, and those of one moment in the order they were
// asked for. Nothing in a world happens outside of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "protocol/base/time.h"

namespace windlass::sim {

class Timeline final {
 public:
  using Action = std::function<void()>;

  Duration now() const { return now_; }  // since the world began

  void at(Duration when, Action action) {
    queue_.push_back({std::max(when, now_), next_order_++, std::move(action)});
    std::push_heap(queue_.begin(), queue_.end(), Later{});
  }
  void after(Duration delay, Action action) { at(now_ + delay, std::move(action)); }

  // Does everything due up to `end`. False when it was stopped before.
  bool run_until(Duration end) {
    while (!stopped_ && !queue_.empty() && queue_.front().when <= end) {
      std::pop_heap(queue_.begin(), queue_.end(), Later{});
      const Entry entry = std::move(queue_.back());
      queue_.pop_back();
      now_ = entry.when;
      ++actions_;
      entry.action();
    }
    if (!stopped_) now_ = std::max(now_, end);
    return !stopped_;
  }

  void stop() { stopped_ = true; }
  std::uint64_t actions() const { return actions_; }

 private:
  struct Entry {
    Duration when{};
    std::uint64_t order = 0;
    Action action;
  };
  struct Later {
    bool operator()(const Entry& left, const Entry& right) const {
      return left.when != right.when ? left.when > right.when : left.order > right.order;
    }
  };

  std::vector<Entry> queue_;
  Duration now_{};
  std::uint64_t next_order_ = 0;
  std::uint64_t actions_ = 0;
  bool stopped_ = false;
};

}  // namespace windlass::sim
