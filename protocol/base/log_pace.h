// One line in a while for something that a peer can make happen as often as it likes, and how many were left
// out since the line before.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "protocol/base/time.h"

namespace windlass {

class LogPace final {
 public:
  explicit LogPace(Duration interval) : interval_(interval) {}

  // Nothing: it is not to be written now.
  std::optional<std::uint64_t> note(Instant now) {
    if (next_ && now < *next_) {
      ++left_out_;
      return std::nullopt;
    }
    next_ = now + interval_;
    return std::exchange(left_out_, 0);
  }

 private:
  Duration interval_;
  std::optional<Instant> next_;
  std::uint64_t left_out_ = 0;
};

}  // namespace windlass
