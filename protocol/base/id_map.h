// Objects by their number, in one array with open addressing: among ten thousand a lookup touches one line
// of it beside the object itself, where a chained table touches two more that are as cold.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "protocol/base/check.h"

namespace windlass {

// `Id` is a StrongId of an integer, given out by this process, so nobody can make them collide. `Pointer` is
// T* or std::unique_ptr<T>.
template <class Id, class Pointer>
class IdMap {
 public:
  using Object = typename std::pointer_traits<Pointer>::element_type;

  std::size_t size() const { return size_; }

  Object* find(Id id) const {
    if (slots_.empty()) return nullptr;
    for (std::size_t at = home(id);; at = next(at)) {
      const Slot& slot = slots_[at];
      if (slot.object == nullptr) return nullptr;
      if (slot.id == id) return std::to_address(slot.object);
    }
  }

  // Whatever has this id must be new.
  Object& insert(Id id, Pointer object) {
    CHECK(object != nullptr && find(id) == nullptr);
    if ((size_ + 1) * 2 > slots_.size()) grow();
    ++size_;
    return place(id, std::move(object));
  }

  void erase(Id id) {
    if (find(id) == nullptr) return;
    std::size_t hole = home(id);
    while (slots_[hole].id != id) hole = next(hole);
    [[maybe_unused]] const Pointer erased = std::exchange(slots_[hole].object, nullptr);  // goes last
    --size_;
    // Those behind it move up, so that no search ends at the hole.
    for (std::size_t at = next(hole); slots_[at].object != nullptr; at = next(at)) {
      const std::size_t wanted = home(slots_[at].id);
      if (((at - wanted) & mask()) < ((at - hole) & mask())) continue;
      slots_[hole] = std::exchange(slots_[at], Slot{});
      hole = at;
    }
  }

  template <class Function>
  void for_each(Function function) const {
    for (const Slot& slot : slots_) {
      if (slot.object != nullptr) function(*slot.object);
    }
  }

 private:
  struct Slot {
    Id id{};
    Pointer object{};
  };

  std::size_t mask() const { return slots_.size() - 1; }
  std::size_t next(std::size_t at) const { return (at + 1) & mask(); }
  // Fibonacci hashing: numbers in a row are spread evenly.
  std::size_t home(Id id) const {
    return static_cast<std::size_t>((static_cast<std::uint64_t>(id.value()) * 0x9E3779B97F4A7C15U) >> shift_);
  }

  Object& place(Id id, Pointer object) {
    std::size_t at = home(id);
    while (slots_[at].object != nullptr) at = next(at);
    slots_[at] = {id, std::move(object)};
    return *slots_[at].object;
  }

  void grow() {
    std::vector<Slot> old = std::exchange(slots_, {});
    slots_.resize(old.empty() ? 8 : old.size() * 2);
    shift_ = 64U - static_cast<unsigned>(std::countr_zero(slots_.size()));
    for (Slot& slot : old) {
      if (slot.object != nullptr) place(slot.id, std::move(slot.object));
    }
  }

  std::vector<Slot> slots_;  // a power of two, at most half of them taken
  std::size_t size_ = 0;
  unsigned shift_ = 0;
};

}  // namespace windlass
