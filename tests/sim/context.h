// What every part of a simulated world shares: its time, its randomness, its log, its counters and the first
// broken promise. One world is one thread; nothing here is shared between worlds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "protocol/base/random.h"
#include "protocol/base/time.h"
#include "tests/sim/stats.h"
#include "tests/sim/timeline.h"

namespace windlass::sim {

struct Violation {
  std::string oracle;  // which promise
  std::string what;
  Duration at{};
};

// Lines of text, made only when somebody will read them: a run over many seeds keeps none, and a seed that
// broke a promise is run again with the log on.
class Log final {
 public:
  explicit Log(bool is_on) : is_on_(is_on) {}
  bool is_on() const { return is_on_; }
  void append(Duration at, std::string_view text);
  const std::string& text() const { return text_; }

 private:
  bool is_on_;
  std::string text_;
};

class Context final {
 public:
  Context(std::uint64_t seed, bool log_is_on) : random(seed), log(log_is_on) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  Duration now() const { return timeline.now(); }

  template <class... Parts>
  void note(const Parts&... parts) {
    if (!log.is_on()) return;
    std::string line;
    (append(line, parts), ...);
    log.append(now(), line);
  }

  // The first broken promise ends the world.
  template <class... Parts>
  void fail(std::string_view oracle, const Parts&... parts) {
    if (violation) return;
    std::string what;
    (append(what, parts), ...);
    note("VIOLATION ", oracle, ": ", what);
    violation = Violation{std::string{oracle}, std::move(what), now()};
    timeline.stop();
  }

  Duration uniform(Duration from, Duration to) { return from + random.below(to - from + Duration{1}); }
  bool chance(std::uint64_t percent) { return random.below(100) < percent; }

  Timeline timeline;
  Random random;
  Log log;
  Stats stats;
  std::optional<Violation> violation;

 private:
  static void append(std::string& line, std::string_view text) { line.append(text); }
  static void append(std::string& line, const std::string& text) { line.append(text); }
  static void append(std::string& line, const char* text) { line.append(text); }
  static void append(std::string& line, Duration time);
  template <class Number>
  static void append(std::string& line, Number number) {
    line.append(std::to_string(number));
  }
};

}  // namespace windlass::sim
