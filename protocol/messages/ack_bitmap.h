// The set of frames a receiver holds beyond its ack_seq: bit i stands for ack_seq + 1 + i. A fixed array
// without allocation; only the words in use are ever touched, since nearly every ack holds none.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "protocol/base/check.h"
#include "protocol/base/limits.h"

namespace windlass {

class AckBitmap {
 public:
  static constexpr std::size_t kBitsMax = limits::kWindowFramesMax;

  AckBitmap() {}  // NOLINT(modernize-use-equals-default): `= default` would zero the array.
  AckBitmap(const AckBitmap& other) : used_(other.used_) { copy(other); }
  AckBitmap& operator=(const AckBitmap& other) {
    used_ = other.used_;
    copy(other);
    return *this;
  }

  void set(std::size_t bit) {
    CHECK(bit < kBitsMax);
    const std::size_t word = bit / 64;
    while (used_ <= word) words_[used_++] = 0;
    words_[word] |= std::uint64_t{1} << (bit % 64);
  }

  // Sets bits 0 .. count-1 of an empty set.
  void set_first(std::size_t count) {
    CHECK(used_ == 0 && count <= kBitsMax);
    for (; count >= 64; count -= 64) words_[used_++] = ~std::uint64_t{0};
    if (count > 0) words_[used_++] = (std::uint64_t{1} << count) - 1;
  }

  bool test(std::size_t bit) const {
    const std::size_t word = bit / 64;
    return word < used_ && ((words_[word] >> (bit % 64)) & 1U) != 0;
  }

  // Words beyond size() are zero; the last one in use is not.
  std::size_t size() const { return used_; }
  bool empty() const { return used_ == 0; }
  std::uint64_t word(std::size_t i) const { return i < used_ ? words_[i] : 0; }

  // The number of bits up to and including the highest one set.
  std::size_t bit_length() const {
    return used_ == 0
               ? 0
               : used_ * std::size_t{64} - static_cast<std::size_t>(std::countl_zero(words_[used_ - 1U]));
  }

  friend bool operator==(const AckBitmap& a, const AckBitmap& b) {
    return a.used_ == b.used_ && std::equal(a.words_.begin(), a.words_.begin() + a.used_, b.words_.begin());
  }

 private:
  void copy(const AckBitmap& other) {
    std::copy(other.words_.begin(), other.words_.begin() + other.used_, words_.begin());
  }

  std::uint16_t used_ = 0;
  std::array<std::uint64_t, kBitsMax / 64> words_;
};

}  // namespace windlass
