#include "tests/sim/context.h"

#include <array>
#include <cstdio>

namespace windlass::sim {
namespace {

// Seconds with microseconds: integers only, so that the text is the same on every machine.
std::string seconds_text(Duration time) {
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(time).count();
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%lld.%06lld", static_cast<long long>(micros / 1'000'000),
                static_cast<long long>(micros % 1'000'000));
  return text.data();
}

}  // namespace

void Log::append(Duration at, std::string_view text) {
  const std::string time = seconds_text(at);
  text_.append(time.size() < 12 ? 12 - time.size() : 0, ' ')
      .append(time)
      .append("  ")
      .append(text)
      .append("\n");
}

void Context::append(std::string& line, Duration time) {
  line.append(seconds_text(time)).append("s");
}

}  // namespace windlass::sim
