// A key of two texts for unordered containers, found by views: a lookup builds no string.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace windlass {

struct TextPairView {
  std::string_view first;
  std::string_view second;
  friend bool operator==(const TextPairView&, const TextPairView&) = default;
};

struct TextPair {
  explicit TextPair(TextPairView view) : first(view.first), second(view.second) {}
  operator TextPairView() const { return {first, second}; }  // NOLINT(google-explicit-constructor)

  std::string first;
  std::string second;
};

struct TextPairHash {
  using is_transparent = void;
  std::size_t operator()(TextPairView pair) const {
    const std::hash<std::string_view> hash;
    return hash(pair.first) * 31 + hash(pair.second);
  }
};

struct TextPairEqual {
  using is_transparent = void;
  bool operator()(TextPairView left, TextPairView right) const { return left == right; }
};

}  // namespace windlass
