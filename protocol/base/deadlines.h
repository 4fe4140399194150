// A fixed table of named deadlines. The next timeout is its minimum; a deadline that is not set costs
// nothing.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

#include "protocol/base/time.h"

namespace windlass {

// `Name` is an enum class whose last enumerator is `Count`.
template <class Name>
class Deadlines {
 public:
  void set(Name name, Instant at) { at_[index(name)] = at; }
  void clear(Name name) { at_[index(name)] = kNever; }
  void clear_all() { at_.fill(kNever); }
  bool is_set(Name name) const { return at_[index(name)] != kNever; }
  bool is_due(Name name, Instant now) const { return at_[index(name)] <= now; }

  std::optional<Instant> at(Name name) const {
    return is_set(name) ? std::optional(at_[index(name)]) : std::nullopt;
  }

  // True once per deadline: a due deadline is cleared as it is taken.
  bool take_due(Name name, Instant now) {
    if (!is_due(name, now)) return false;
    clear(name);
    return true;
  }

  std::optional<Instant> next() const {
    const Instant first = *std::min_element(at_.begin(), at_.end());
    return first == kNever ? std::nullopt : std::optional(first);
  }

 private:
  static constexpr Instant kNever = Instant::max();
  static constexpr std::size_t kCount = static_cast<std::size_t>(Name::Count);
  static constexpr std::size_t index(Name name) { return static_cast<std::size_t>(name); }
  static constexpr std::array<Instant, kCount> all_never() {
    std::array<Instant, kCount> table{};
    table.fill(kNever);
    return table;
  }

  std::array<Instant, kCount> at_ = all_never();
};

}  // namespace windlass
