// A list whose links lie in its members: joining and leaving neither allocate nor search. The members are
// owned elsewhere and leave before they are destroyed.
#pragma once

#include <cstddef>

#include "protocol/base/check.h"

namespace windlass::runtime {

template <class T>
struct ListLink {
  T* previous = nullptr;
  T* next = nullptr;
  bool is_linked = false;
};

template <class T, ListLink<T> T::*kLink>
class IntrusiveList {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  T* front() const { return front_; }
  T* back() const { return back_; }
  static T* next(const T& item) { return (item.*kLink).next; }
  static T* previous(const T& item) { return (item.*kLink).previous; }

  void push_back(T& item) { insert_after(back_, item); }

  // nullptr: at the front.
  void insert_after(T* place, T& item) {
    ListLink<T>& link = item.*kLink;
    CHECK(!link.is_linked);
    T* const behind = place == nullptr ? front_ : (place->*kLink).next;
    link = {place, behind, true};
    (place == nullptr ? front_ : (place->*kLink).next) = &item;
    (behind == nullptr ? back_ : (behind->*kLink).previous) = &item;
    ++size_;
  }

  void erase(T& item) {
    ListLink<T>& link = item.*kLink;
    CHECK(link.is_linked);
    (link.previous == nullptr ? front_ : (link.previous->*kLink).next) = link.next;
    (link.next == nullptr ? back_ : (link.next->*kLink).previous) = link.previous;
    link = {};
    --size_;
  }

 private:
  T* front_ = nullptr;
  T* back_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace windlass::runtime
