#include "tests/sim/mutants.h"

#include <algorithm>
#include <cstdio>

#include "protocol/base/mutant.h"

namespace windlass {

#ifdef WINDLASS_MUTANTS
std::string_view active_mutant;
#endif

namespace sim {

void print_mutants() {
  for (const Mutant& mutant : kMutants) {
    std::printf("%-28.*s %.*s\n", static_cast<int>(mutant.name.size()), mutant.name.data(),
                static_cast<int>(mutant.breaks.size()), mutant.breaks.data());
  }
}

bool activate_mutant([[maybe_unused]] std::string_view name) {
#ifdef WINDLASS_MUTANTS
  const auto known = std::ranges::find(kMutants, name, &Mutant::name);
  if (known == kMutants.end()) return false;
  active_mutant = known->name;
  return true;
#else
  return false;
#endif
}

int catch_mutants([[maybe_unused]] const SeedRun& run) {
#ifdef WINDLASS_MUTANTS
  std::size_t escaped = 0;
  for (const Mutant& mutant : kMutants) {
    active_mutant = mutant.name;
    const RunResult result = run_seeds(run, Noise::Quiet);
    if (result.failure) {
      std::printf("caught   %-28.*s at seed %llu, after %llu worlds, by '%s'\n",
                  static_cast<int>(mutant.name.size()), mutant.name.data(),
                  static_cast<unsigned long long>(result.failure->seed),
                  static_cast<unsigned long long>(result.seeds), result.failure->oracle.c_str());
    } else {
      ++escaped;
      std::printf("ESCAPED  %-28.*s in %llu worlds\n", static_cast<int>(mutant.name.size()),
                  mutant.name.data(), static_cast<unsigned long long>(result.seeds));
    }
    std::fflush(stdout);
  }
  std::printf("%zu of %zu planted bugs caught\n", kMutants.size() - escaped, kMutants.size());
  return escaped == 0 ? 0 : 1;
#else
  std::fprintf(stderr, "windlass-sim has no planted bugs; windlass-sim-mutants has\n");
  return 2;
#endif
}

}  // namespace sim
}  // namespace windlass
