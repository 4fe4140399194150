// Runs the worlds of the scheduler's core with one planted bug after the other and says which oracle noticed.
// Exit 1 if one escapes.
#include <array>
#include <cstdint>
#include <cstdio>
#include <string_view>

#include "protocol/base/mutant.h"
#include "tests/sim/scheduler/core_world.h"

namespace windlass {

std::string_view active_mutant;

namespace sim {
namespace {

struct Mutant {
  std::string_view name;
  std::string_view breaks;
};

constexpr std::array kMutants = {
    Mutant{"outbox_ignores_body", "takes another body under a known id for the same"},
    Mutant{"outbox_believes_strangers", "takes a result from a worker that was not asked"},
    Mutant{"outbox_last_result_wins", "lets a second result replace the first"},
    Mutant{"outbox_forgets_in_flight", "does not send again what a session took with it"},
    Mutant{"core_owns_unstored", "owns frames while the store refuses"},
    Mutant{"core_sends_unstored", "sends commands that the store does not have"},
    Mutant{"core_forgets_failed_rows", "does not write again what a failed commit had"},
    Mutant{"core_accepts_unstored", "says accepted after the commit failed"},
    Mutant{"core_keeps_sent_marks", "takes what a failed batch did not send for sent"},
    Mutant{"core_forgets_owns", "does not own again what a failed batch did not own"},
};

bool is_caught(const Mutant& mutant, std::uint64_t seeds) {
  active_mutant = mutant.name;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const auto broken = CoreWorld{seed}.run();
    if (!broken) continue;
    std::printf("caught   %-28.*s at seed %llu by '%s': %s\n", static_cast<int>(mutant.name.size()),
                mutant.name.data(), static_cast<unsigned long long>(seed), broken->oracle.c_str(),
                broken->what.c_str());
    return true;
  }
  std::printf("ESCAPED  %.*s: %.*s\n", static_cast<int>(mutant.name.size()), mutant.name.data(),
              static_cast<int>(mutant.breaks.size()), mutant.breaks.data());
  return false;
}

}  // namespace
}  // namespace sim
}  // namespace windlass

int main() {
  bool all = true;
  for (const auto& mutant : windlass::sim::kMutants) all = windlass::sim::is_caught(mutant, 1000) && all;
  return all ? 0 : 1;
}
