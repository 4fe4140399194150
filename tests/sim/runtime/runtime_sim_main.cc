// The command line of the runtime's worlds: many seeds, one with its log, or each planted bug until it is
// caught.
#include <array>
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

constexpr std::array kPlantedBugs = {
    PlantedBug{"outcome_twice", "says an outcome twice"},
    PlantedBug{"recovery_loses_unsent", "forgets what was never sent when its worker is lost or blocked"},
    PlantedBug{"switch_drops_held", "loses what a worker says during a switch"},
    PlantedBug{"switch_reverses_held", "releases what was held in the wrong order"},
    PlantedBug{"router_overbooks", "gives a worker more than it has slots"},
    PlantedBug{"router_ignores_zero_weight", "sends to a version that weighs nothing"},
    PlantedBug{"health_never_lost", "never gives up a worker that hangs"},
    PlantedBug{"patience_recycles", "recycles a worker because a caller waited no longer"},
    PlantedBug{"timeout_hurts_others", "ends a worker at once for a timeout, and what else it runs with it"},
    PlantedBug{"load_failure_spreads", "takes a function from all workers because one could not load it"},
    PlantedBug{"ended_is_ignored", "goes on giving work to a worker whose end was told"},
    PlantedBug{"ended_reroutes_running", "runs again what a dead worker had begun"},
    PlantedBug{"health_waits_for_ever", "never gives up a worker whose session has no connection"},
    PlantedBug{"health_loses_detached", "gives up a worker whose session may still resume"},
    PlantedBug{"health_drains_detached", "ends a drain though the session is cut and may still resume"},
};

constexpr SimProgram kProgram{
    "windlass-runtime-sim", "runtime ",
    R"(windlass-runtime-sim: worlds around the runtime's core, hurt in many ways, checked by oracles.

  --seeds N          run N worlds; stop at the first broken promise
  --minutes N        run worlds for N minutes; with --seeds whichever ends first
  --first S          the first seed (default: drawn from the clock and printed, so that each run is a new one)
  --seed S           run one world and print its whole log
  --mutant NAME      with a planted bug (only windlass-runtime-sim-mutants)
  --catch-mutants    run each planted bug until it is caught, at most --seeds worlds each; exit 1 if one escapes

exit code: 0 every promise held, 1 one was broken, 2 wrong usage
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

constexpr std::uint64_t kWorldsThatTell = 300;  // fewer may be calm by chance

class RuntimeWorlds final : public Worlds {
 public:
  std::optional<BrokenPromise> run(std::uint64_t seed, bool is_logged) override {
    RuntimeWorld world{seed, is_logged};
    std::optional<BrokenPromise> broken = world.run();
    add(sum_, world.stats());
    return broken;
  }

  void print_sum() const override { print(sum_); }

  bool hurt(std::uint64_t count) const override {
    return count < kWorldsThatTell ||
           (sum_.completed > 10 * count && sum_.abandoned > count && sum_.crashes > count &&
            sum_.hangs > count / 4 && sum_.detaches > count && sum_.stalls > count / 4 &&
            sum_.switches > count && sum_.held > count && sum_.rerouted > count / 4 &&
            sum_.bad_peers > count / 4 && sum_.host_failures > count / 4);
  }

 private:
  RuntimeStats sum_;
};

}  // namespace
}  // namespace sim
}  // namespace windlass

int main(int count, char** values) {
  windlass::sim::RuntimeWorlds worlds;
#ifdef WINDLASS_MUTANTS
  std::string_view* const mutant = &windlass::active_mutant;
#else
  std::string_view* const mutant = nullptr;
#endif
  return windlass::sim::run_program(windlass::sim::kProgram, worlds, windlass::sim::kPlantedBugs, mutant,
                                    count, values);
}
