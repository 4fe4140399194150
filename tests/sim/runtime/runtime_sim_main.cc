// The command line of the runtime's worlds: many seeds, one with its log, or each planted bug until it is
// caught.
#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>

#include "protocol/base/mutant.h"
#include "tests/sim/runtime/runtime_world.h"
#include "tests/sim/seed_run.h"

namespace windlass {

#ifdef WINDLASS_MUTANTS
std::string_view active_mutant;
#endif

namespace sim {
namespace {

struct PlantedBug {
  std::string_view name;
  std::string_view breaks;
};

constexpr std::array kPlantedBugs = {
    PlantedBug{"outcome_twice", "says an outcome twice"},
    PlantedBug{"recovery_loses_unsent", "forgets what was never sent when its worker is lost or blocked"},
    PlantedBug{"switch_drops_held", "loses what a worker says during a switch"},
    PlantedBug{"switch_reverses_held", "releases what was held in the wrong order"},
    PlantedBug{"router_overbooks", "gives a worker more than it has slots"},
    PlantedBug{"router_ignores_zero_weight", "sends to a version that weighs nothing"},
    PlantedBug{"health_never_lost", "never gives up a worker that hangs"},
    PlantedBug{"patience_recycles", "recycles a worker because a caller waited no longer"},
    PlantedBug{"load_failure_spreads", "takes a function from all workers because one could not load it"},
    PlantedBug{"ended_is_ignored", "goes on giving work to a worker whose end was told"},
    PlantedBug{"ended_reroutes_running", "runs again what a dead worker had begun"},
    PlantedBug{"health_waits_for_ever", "never gives up a worker whose session has no connection"},
    PlantedBug{"health_loses_detached", "gives up a worker whose session may still resume"},
};

constexpr SimProgram kProgram{
    "windlass-runtime-sim", "runtime ",
    R"(windlass-runtime-sim: worlds around the runtime's core, hurt in many ways, checked by oracles.

  --seeds N          run N worlds; stop at the first broken rule
  --minutes N        run worlds for N minutes; with --seeds whichever ends first
  --first S          the first seed (default: drawn from the clock and printed, so that each run is a new one)
  --seed S           run one world and print its whole log
  --mutant NAME      with a planted bug (only windlass-runtime-sim-mutants)
  --catch-mutants    run each planted bug until it is caught, at most --seeds worlds each; exit 1 if one escapes

exit code: 0 every rule held, 1 one was broken, 2 wrong usage
)"};

void add(RuntimeStats& total, const RuntimeStats& one) {
  total.submitted += one.submitted;
  total.refused += one.refused;
  total.completed += one.completed;
  total.abandoned += one.abandoned;
  total.dead += one.dead;
  total.crashes += one.crashes;
  total.hangs += one.hangs;
  total.detaches += one.detaches;
  total.stalls += one.stalls;
  total.switches += one.switches;
  total.held += one.held;
  total.rerouted += one.rerouted;
  total.bad_peers += one.bad_peers;
  total.host_failures += one.host_failures;
}

void print(const RuntimeStats& s) {
  const auto line = [](const char* name, std::uint64_t count) {
    std::printf("  %-14s %llu\n", name, static_cast<unsigned long long>(count));
  };
  line("submitted", s.submitted);
  line("refused", s.refused);
  line("completed", s.completed);
  line("abandoned", s.abandoned);
  line("dead letters", s.dead);
  line("sent again", s.rerouted);
  line("crashes", s.crashes);
  line("hangs", s.hangs);
  line("detaches", s.detaches);
  line("stalls", s.stalls);
  line("switches", s.switches);
  line("held", s.held);
  line("bad peers", s.bad_peers);
  line("host failures", s.host_failures);
}

struct Found {
  std::uint64_t seed = 0;
  std::uint64_t worlds = 0;
  std::optional<BrokenRule> broken;
};

Found run_worlds(const SeedRun& run, RuntimeStats& total) {
  Found found;
  Seeds seeds{run};
  while (const auto seed = seeds.next()) {
    RuntimeWorld world{*seed, false};
    std::optional<BrokenRule> broken = world.run();
    add(total, world.stats());
    ++found.worlds;
    if (!broken) continue;
    found.seed = *seed;
    found.broken = std::move(broken);
    break;
  }
  return found;
}

int run_many(const SeedRun& run) {
  const auto started = std::chrono::steady_clock::now();
  print_first_seed(run);
  RuntimeStats total;
  const Found found = run_worlds(run, total);
  const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  print(total);
  if (found.broken) {
    print_failure(kProgram, found.seed, found.broken->oracle, found.broken->what);
    return 1;
  }
  std::printf("PASS: every rule held in %llu worlds (%.1f s)\n",
              static_cast<unsigned long long>(found.worlds), spent);
  return 0;
}

#ifdef WINDLASS_MUTANTS
int catch_planted(const SeedRun& run) {
  print_first_seed(run);
  int escaped = 0;
  for (const PlantedBug& bug : kPlantedBugs) {
    active_mutant = bug.name;
    RuntimeStats total;
    const Found found = run_worlds(run, total);
    if (found.broken) {
      std::printf("caught   %-28s at seed %llu, after %llu worlds, by '%s'\n", std::string{bug.name}.c_str(),
                  static_cast<unsigned long long>(found.seed), static_cast<unsigned long long>(found.worlds),
                  found.broken->oracle.c_str());
    } else {
      ++escaped;
      std::printf("ESCAPED  %-28s %s\n", std::string{bug.name}.c_str(), std::string{bug.breaks}.c_str());
    }
  }
  return escaped == 0 ? 0 : 1;
}
#endif

int run(int count, char** values) {
  const auto [arguments, exit_code] = read_run(kProgram, count, values);
  if (exit_code) return *exit_code;
#ifdef WINDLASS_MUTANTS
  if (!arguments.mutant.empty()) active_mutant = arguments.mutant;
  if (arguments.catches_mutants) return catch_planted(arguments);
#else
  if (arguments.catches_mutants || !arguments.mutant.empty()) {
    return std::fputs("only windlass-runtime-sim-mutants has planted bugs\n", stderr), 2;
  }
#endif
  if (arguments.lists_mutants) {
    for (const PlantedBug& bug : kPlantedBugs) {
      std::printf("%-28s %s\n", std::string{bug.name}.c_str(), std::string{bug.breaks}.c_str());
    }
    return 0;
  }
  if (arguments.seed) return RuntimeWorld{*arguments.seed, true}.run() ? 1 : 0;
  return run_many(arguments);
}

}  // namespace
}  // namespace sim
}  // namespace windlass

int main(int count, char** values) {
  return windlass::sim::run(count, values);
}
