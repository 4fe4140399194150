// Cuts a stream of output into lines, with bounds: a long line is cut, and too many lines in a short time are
// counted instead of told.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>

#include "protocol/base/time.h"
#include "worker-agent/adapters/language_worker.h"

namespace windlass::agent {

class LineRate final {
 public:
  explicit LineRate(std::uint32_t per_second)
      : per_second_(per_second), tokens_(5.0 * static_cast<double>(per_second)) {}
  bool take(Instant now) {
    const double room = 5.0 * static_cast<double>(per_second_);
    tokens_ = std::min(room, tokens_ + static_cast<double>(per_second_) *
                                           std::chrono::duration<double>(now - last_).count());
    last_ = now;
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }

 private:
  std::uint32_t per_second_;
  double tokens_;
  Instant last_{};
};

class OutputLines final {
 public:
  explicit OutputLines(const WorkerOutputLimits& limits) : limits_(limits) {}

  // `tell(std::string_view line, bool is_cut)` for every line that ends in these bytes.
  template <class Tell>
  void feed(std::string_view bytes, Tell&& tell) {
    while (!bytes.empty()) {
      const std::size_t end = bytes.find('\n');
      const std::string_view piece = bytes.substr(0, end);
      const std::size_t room = limits_.line_bytes_max - line_.size();
      line_.append(piece.substr(0, room));
      is_cut_ = is_cut_ || piece.size() > room;
      if (end == std::string_view::npos) return;
      bytes.remove_prefix(end + 1);
      flush(tell);
    }
  }
  // Also what has no end of line, when the stream ended.
  template <class Tell>
  void finish(Tell&& tell) {
    if (!line_.empty()) flush(tell);
  }

 private:
  template <class Tell>
  void flush(Tell&& tell) {
    if (line_.ends_with('\r')) line_.pop_back();
    tell(std::string_view{line_}, std::exchange(is_cut_, false));
    line_.clear();
  }

  const WorkerOutputLimits& limits_;
  std::string line_;
  bool is_cut_ = false;
};

}  // namespace windlass::agent
