// Which rows differ from the store. A row is named when it changes and written as it is when the batch is
// made, so that ten changes of one row are one write; and a batch that failed is simply named again.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace windlass {

class DirtyRows final {
 public:
  void mark(std::string_view key) {
    const auto [at, is_new] = known_.emplace(key);
    if (is_new) order_.push_back(*at);
  }

  bool empty() const { return order_.empty(); }

  // In the order in which they were first marked. They are dirty no more.
  std::vector<std::string> take() {
    known_.clear();
    return std::exchange(order_, {});
  }

 private:
  std::unordered_set<std::string> known_;
  std::vector<std::string> order_;
};

}  // namespace windlass
