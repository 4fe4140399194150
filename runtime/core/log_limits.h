// How many of the lines that user code logs reach the runtime's own log: so many per second and worker, and
// per second and invocation, beyond a burst. What is left out is counted, and told in one line per worker
// once the flood has lasted for a while. Knows no clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "protocol/base/clip.h"
#include "protocol/base/time.h"

namespace windlass::runtime {

// Of one text that user code can write: a message, the name of a category, an exception.
inline constexpr std::size_t kLogTextBytesMax = 16 * 1024;
inline std::string_view log_text(std::string_view text) {
  return clip(text, kLogTextBytesMax);
}

struct LogLimits {
  std::uint32_t worker_lines = 500;        // per second
  std::uint32_t invocation_lines = 200;    // per second
  std::uint32_t burst_seconds = 5;         // worth of either at once
  std::size_t worker_bytes = 1024 * 1024;  // per second, of their texts
  Duration report_after = seconds{5};      // from the first line left out
  std::size_t invocations_max = 1024;      // of a worker, told apart; further ones share one limit
};

struct LeftOut {
  std::string worker;
  std::uint64_t lines = 0;
  std::uint64_t bytes = 0;
};

class LogThrottle final {
 public:
  explicit LogThrottle(const LogLimits& limits) : limits_(limits) {}

  // Whether a line with so many bytes of text is written.
  bool admit(std::string_view worker, std::string_view invocation, std::size_t bytes, Instant now);

  // The next worker whose lines were left out and whose report is due; `is_last`: all of them, now.
  std::optional<LeftOut> poll_report(Instant now, bool is_last = false);
  std::optional<Instant> poll_timeout() const;

 private:
  // Fills with time up to what a burst may take.
  struct Bucket {
    double level = 0;
    Instant filled_at{};
    bool is_new = true;
    void fill(double rate, double most, Instant now);
  };
  struct Worker {
    Bucket lines;
    Bucket bytes;
    std::unordered_map<std::string, Bucket> invocations;
    LeftOut left_out;
    std::optional<Instant> report_at;
    Instant seen_at{};
  };
  void forget_idle(Instant now);
  Bucket& invocation_of(Worker& worker, std::string_view invocation, Instant now) const;

  LogLimits limits_;
  std::unordered_map<std::string, Worker> workers_;
};

}  // namespace windlass::runtime
