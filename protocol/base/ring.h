// A growable FIFO over one power-of-two array, indexed from its front. Unlike std::deque an empty one owns no
// memory, which is what keeps an idle session small.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "protocol/base/check.h"

namespace windlass {

template <class T>
class Ring {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  std::size_t capacity() const { return capacity_; }

  T& operator[](std::size_t i) {
    DCHECK(i < size_);
    return slots_[(head_ + i) & (capacity_ - 1)];
  }
  const T& operator[](std::size_t i) const {
    DCHECK(i < size_);
    return slots_[(head_ + i) & (capacity_ - 1)];
  }
  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  T& back() { return (*this)[size_ - 1]; }
  const T& back() const { return (*this)[size_ - 1]; }

  void push_back(T value) {
    if (size_ == capacity_) grow();
    ++size_;
    back() = std::move(value);
  }

  void push_front(T value) {
    if (size_ == capacity_) grow();
    head_ = (head_ + capacity_ - 1) & (capacity_ - 1);
    ++size_;
    front() = std::move(value);
  }

  T pop_front() {
    T value = std::move(front());
    drop_front();
    return value;
  }

  void drop_front() {
    CHECK(size_ > 0);
    front() = T{};
    head_ = (head_ + 1) & (capacity_ - 1);
    --size_;
  }

  void clear() {
    while (!empty()) drop_front();
  }

  // Gives the memory back; only of an empty ring.
  void release() {
    CHECK(empty());
    slots_.reset();
    capacity_ = head_ = 0;
  }

 private:
  void grow() {
    const std::size_t larger = capacity_ == 0 ? 1 : capacity_ * 2;
    auto slots = std::make_unique<T[]>(larger);
    for (std::size_t i = 0; i < size_; ++i) slots[i] = std::move((*this)[i]);
    slots_ = std::move(slots);
    capacity_ = larger;
    head_ = 0;
  }

  std::unique_ptr<T[]> slots_;
  std::size_t capacity_ = 0;
  std::size_t head_ = 0;
  std::size_t size_ = 0;
};

}  // namespace windlass
