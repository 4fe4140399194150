// The invocations that came on the present session and were not answered yet. Bounded: when it is full the
// older half is forgotten, and answers to those are dropped, as a runtime would that has given them up.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace windlass::agent {

inline constexpr std::size_t kKnownInvocationsMax = 65'536;

class KnownInvocations final {
 public:
  void add(std::string_view id) {
    if (young_.size() >= kKnownInvocationsMax / 2) old_ = std::exchange(young_, {});
    young_.emplace(id);
  }
  bool contains(std::string_view id) const { return young_.contains(id) || old_.contains(id); }
  bool remove(std::string_view id) { return remove_from(young_, id) || remove_from(old_, id); }
  void clear() {
    young_.clear();
    old_.clear();
  }
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const std::string& id : old_) visit(id);
    for (const std::string& id : young_) visit(id);
  }
  std::size_t size() const { return young_.size() + old_.size(); }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  // The same id may be under way twice: each is answered.
  using Set = std::unordered_multiset<std::string, Hash, std::equal_to<>>;
  static bool remove_from(Set& set, std::string_view id) {
    const auto found = set.find(id);
    if (found == set.end()) return false;
    set.erase(found);
    return true;
  }

  Set young_;
  Set old_;
};

}  // namespace windlass::agent
