// The command line of the runtime's worlds: many seeds, one with its log, or each planted bug until it is
// caught.
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "protocol/base/mutant.h"
#include "tests/sim/runtime/runtime_world.h"

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
    PlantedBug{"health_loses_detached", "gives up a worker whose session may still resume"},
};

constexpr const char* kHelp =
    R"(windlass-runtime-sim: worlds around the runtime's core, hurt in many ways, checked by oracles.
  --seeds N          run N worlds, from --first on; stop at the first broken rule
  --first S          the first seed (default 1)
  --seed S           run one world and print its whole log
  --mutant NAME      with a planted bug (only windlass-runtime-sim-mutants)
  --catch-mutants    run each planted bug until it is caught, at most --seeds worlds each; exit 1 if one escapes
exit code: 0 every rule held, 1 one was broken, 2 wrong usage
)";

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
  std::optional<BrokenRule> broken;
};

Found run_worlds(std::uint64_t first, std::uint64_t count, RuntimeStats& total) {
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    RuntimeWorld world{seed, false};
    std::optional<BrokenRule> broken = world.run();
    add(total, world.stats());
    if (broken) return {seed, std::move(broken)};
  }
  return {};
}

int run_many(std::uint64_t first, std::uint64_t count) {
  const auto started = std::chrono::steady_clock::now();
  RuntimeStats total;
  const Found found = run_worlds(first, count, total);
  const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  print(total);
  if (found.broken) {
    std::printf("FAIL: seed %llu broke the rule '%s': %s\n", static_cast<unsigned long long>(found.seed),
                found.broken->oracle.c_str(), found.broken->what.c_str());
    return 1;
  }
  std::printf("PASS: every rule held in %llu worlds (%.1f s)\n", static_cast<unsigned long long>(count),
              spent);
  return 0;
}

#ifdef WINDLASS_MUTANTS
int catch_planted(std::uint64_t count) {
  int escaped = 0;
  for (const PlantedBug& bug : kPlantedBugs) {
    active_mutant = bug.name;
    RuntimeStats total;
    const Found found = run_worlds(1, count, total);
    if (found.broken) {
      std::printf("caught   %-28s at seed %llu by '%s'\n", std::string{bug.name}.c_str(),
                  static_cast<unsigned long long>(found.seed), found.broken->oracle.c_str());
    } else {
      ++escaped;
      std::printf("ESCAPED  %-28s %s\n", std::string{bug.name}.c_str(), std::string{bug.breaks}.c_str());
    }
  }
  return escaped == 0 ? 0 : 1;
}
#endif

int run(int count, char** values) {
  std::uint64_t seeds = 0;
  std::uint64_t first = 1;
  bool catches = false;
  for (int i = 1; i < count; ++i) {
    const std::string_view flag = values[i];
    if (flag == "--help") return std::fputs(kHelp, stdout), 0;
    if (flag == "--catch-mutants") {
      catches = true;
      continue;
    }
    if (i + 1 >= count) return std::fputs(kHelp, stderr), 2;
    const char* const value = values[++i];
    if (flag == "--seeds") {
      seeds = std::strtoull(value, nullptr, 10);
    } else if (flag == "--first") {
      first = std::strtoull(value, nullptr, 10);
    } else if (flag == "--seed") {
      return RuntimeWorld{std::strtoull(value, nullptr, 10), true}.run() ? 1 : 0;
#ifdef WINDLASS_MUTANTS
    } else if (flag == "--mutant") {
      active_mutant = value;
#endif
    } else {
      return std::fputs(kHelp, stderr), 2;
    }
  }
  if (seeds == 0) {
    return std::fputs("windlass-runtime-sim: --seeds wants at least 1, because no world proves nothing\n",
                      stderr),
           2;
  }
#ifdef WINDLASS_MUTANTS
  if (catches) return catch_planted(seeds);
#else
  if (catches) return std::fputs("only windlass-runtime-sim-mutants has planted bugs\n", stderr), 2;
  static_cast<void>(kPlantedBugs);
#endif
  return run_many(first, seeds);
}

}  // namespace
}  // namespace sim
}  // namespace windlass

int main(int count, char** values) {
  return windlass::sim::run(count, values);
}
