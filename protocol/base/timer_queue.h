// Many objects with one deadline each: a binary heap that knows its nodes, which live in their owners, so
// that setting and clearing neither allocates nor leaves stale entries behind. What is compared lies in the
// heap itself: the nodes of idle objects are cold.
//
// Deadlines of busy objects move later with every message. Such a node keeps its place, and finds its new one
// when its old time comes, instead of walking the heap each time.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "protocol/base/check.h"
#include "protocol/base/time.h"

namespace windlass {

// `Owner` is what pop_due hands back. A node must be cleared before it is destroyed, and does not move.
template <class Owner>
class TimerQueue {
 public:
  class Node {
   public:
    explicit Node(Owner* owner) : owner_(owner) {}
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;
    ~Node() { CHECK(position_ == kAbsent); }
    bool is_set() const { return position_ != kAbsent; }

   private:
    friend class TimerQueue;
    Owner* owner_;
    Instant wanted_{};  // never earlier than its place in the heap says
    std::size_t position_ = kAbsent;
  };

  void set(Node& node, std::optional<Instant> at) {
    if (!at) return clear(node);
    node.wanted_ = *at;
    if (node.position_ == kAbsent) {
      node.position_ = heap_.size();
      heap_.push_back({*at, &node});
    } else if (heap_[node.position_].at <= *at) {
      return;
    }
    heap_[node.position_].at = *at;
    sift_up(node.position_);
  }

  void clear(Node& node) {
    if (node.position_ == kAbsent) return;
    const std::size_t hole = std::exchange(node.position_, kAbsent);
    const Entry last = heap_.back();
    heap_.pop_back();
    if (last.node == &node) return;
    place(hole, last);
    sift_up(hole);
    sift_down(last.node->position_);
  }

  // When to look again: the earliest deadline, or a time before it at which nothing may be due.
  std::optional<Instant> next() const {
    return heap_.empty() ? std::nullopt : std::optional(heap_.front().at);
  }

  // The earliest owner that is due, taken out of the queue; nullptr when none is.
  Owner* pop_due(Instant now) {
    while (!heap_.empty() && heap_.front().at <= now) {
      Node& node = *heap_.front().node;
      if (node.wanted_ <= now) {
        clear(node);
        return node.owner_;
      }
      heap_.front().at = node.wanted_;
      sift_down(0);
    }
    return nullptr;
  }

  std::size_t size() const { return heap_.size(); }

 private:
  static constexpr std::size_t kAbsent = static_cast<std::size_t>(-1);

  struct Entry {
    Instant at;
    Node* node;
  };

  void place(std::size_t position, Entry entry) {
    heap_[position] = entry;
    entry.node->position_ = position;
  }

  void sift_up(std::size_t position) {
    const Entry entry = heap_[position];
    while (position > 0 && heap_[(position - 1) / 2].at > entry.at) {
      place(position, heap_[(position - 1) / 2]);
      position = (position - 1) / 2;
    }
    place(position, entry);
  }

  void sift_down(std::size_t position) {
    const Entry entry = heap_[position];
    for (std::size_t child = 2 * position + 1; child < heap_.size(); child = 2 * position + 1) {
      if (child + 1 < heap_.size() && heap_[child + 1].at < heap_[child].at) ++child;
      if (heap_[child].at >= entry.at) break;
      place(position, heap_[child]);
      position = child;
    }
    place(position, entry);
  }

  std::vector<Entry> heap_;
};

}  // namespace windlass
