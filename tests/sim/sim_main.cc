// The command line of the simulator.
#include <chrono>
#include <cstdio>

#include "tests/sim/mutants.h"
#include "tests/sim/runner.h"

namespace {

using windlass::sim::SeedRun;
using windlass::sim::SimProgram;

constexpr SimProgram kProgram{
    "windlass-sim", "",
    R"(windlass-sim: worlds of one scheduler and some workers, hurt in many ways, checked by oracles.
One seed is one world; the same seed gives the same world and the same log, byte for byte.

  --seeds N          run N worlds; stop at the first broken promise
  --minutes N        run worlds for N minutes; with --seeds whichever ends first
  --first S          the first seed (default: drawn from the clock and printed, so that each run is a new one)
  --jobs J           processes (default: one per core)
  --seed S           run one world and print its whole event log
  --mutant NAME      with a planted bug (only windlass-sim-mutants)
  --catch-mutants    run each planted bug until it is caught, at most --seeds worlds each; exit 1 if one escapes
  --list-mutants     names of the planted bugs, and what each breaks
  --help             this text

examples
  windlass-sim --seeds 10000
  windlass-sim --minutes 30
  windlass-sim --seeds 500 --first 20000 --jobs 1
  windlass-sim --seed 4711 | less
  windlass-sim-mutants --mutant resume_skips_one --seeds 200
  windlass-sim-mutants --catch-mutants --seeds 2000

exit code: 0 every promise held, 1 one was broken, 2 wrong usage
)"};

int run(const SeedRun& run) {
  using Clock = std::chrono::steady_clock;
  const auto started = Clock::now();
  print_first_seed(run);
  const auto result = run_seeds(run, windlass::sim::Noise::Loud);
  const double seconds = std::chrono::duration<double>(Clock::now() - started).count();
  const bool spread = windlass::sim::print_summary(result, seconds);
  if (result.failure) {
    print_failure(kProgram, result.failure->seed, result.failure->oracle, result.failure->what);
  } else if (spread) {
    std::printf("PASS: every promise held in %llu worlds\n", static_cast<unsigned long long>(result.seeds));
  }
  return result.failure || !spread ? 1 : 0;
}

}  // namespace

int main(int count, char** values) {
  const auto [arguments, exit_code] = read_run(kProgram, count, values);
  if (exit_code) return *exit_code;
  if (arguments.lists_mutants) return windlass::sim::print_mutants(), 0;
  if (!arguments.mutant.empty() && !windlass::sim::activate_mutant(arguments.mutant)) {
    std::fprintf(
        stderr, "windlass-sim: there is no planted bug '%s' in this program; windlass-sim-mutants has them\n",
        arguments.mutant.c_str());
    return 2;
  }
  if (arguments.seed) return windlass::sim::replay(kProgram, *arguments.seed);
  if (arguments.catches_mutants) {
    print_first_seed(arguments);
    return windlass::sim::catch_mutants(arguments);
  }
  return run(arguments);
}
