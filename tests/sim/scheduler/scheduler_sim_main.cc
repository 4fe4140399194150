// The command line of the scheduler core's worlds: many seeds, one seed again, or each planted bug until it
// is caught.
#include <array>
#include <cstdio>
#include <string>
#include <string_view>

#include "protocol/base/mutant.h"
#include "tests/sim/scheduler/core_world.h"
#include "tests/sim/scheduler/fleet_world.h"
#include "tests/sim/seed_run.h"

namespace windlass {

#ifdef WINDLASS_MUTANTS
std::string_view active_mutant;
#endif

namespace sim {
namespace {

constexpr SimProgram kProgram{
    "windlass-scheduler-sim", "scheduler ",
    R"(windlass-scheduler-sim: worlds around the scheduler's core, its store and its workers, checked by oracles.

  --seeds N          run N worlds; stop at the first broken promise
  --minutes N        run worlds for N minutes; with --seeds whichever ends first
  --first S          the first seed (default: drawn from the clock and printed, so that each run is a new one)
  --seed S           run one world
  --mutant NAME      with a planted bug (only windlass-scheduler-sim-mutants)
  --catch-mutants    run each planted bug until it is caught, at most --seeds worlds each; exit 1 if one escapes
  --list-mutants     names of the planted bugs, and what each breaks

exit code: 0 every promise held, 1 one was broken, 2 wrong usage
)"};

constexpr std::array kPlantedBugs = {
    PlantedBug{"outbox_ignores_body", "takes another body under a known id for the same"},
    PlantedBug{"outbox_believes_strangers", "takes a result from a worker that was not asked"},
    PlantedBug{"outbox_last_result_wins", "lets a second result replace the first"},
    PlantedBug{"outbox_forgets_in_flight", "does not send again what a session took with it"},
    PlantedBug{"outbox_overfills_workers", "gives a worker more at once than it takes"},
    PlantedBug{"outbox_waits_for_lost_workers", "lets commands wait for a worker that is lost"},
    PlantedBug{"outbox_repeats_lost_commands", "gives another worker what the lost one may have run"},
    PlantedBug{"inbox_forgets_keys", "keeps a message anew that made room before"},
    PlantedBug{"core_owns_unstored", "owns frames while the store refuses"},
    PlantedBug{"core_sends_unstored", "sends commands that the store does not have"},
    PlantedBug{"core_forgets_failed_rows", "does not write again what a failed commit had"},
    PlantedBug{"core_accepts_unstored", "says accepted after the commit failed"},
    PlantedBug{"core_keeps_sent_marks", "takes what a failed batch did not send for sent"},
    PlantedBug{"core_forgets_owns", "does not own again what a failed batch did not own"},
    PlantedBug{"loss_forgets_the_place", "frees the place of a lost worker and gives it to nobody"},
    PlantedBug{"loss_keeps_unable_workers", "leaves places with workers that cannot work"},
    PlantedBug{"loss_forgets_failed_places",
               "gives up the place of a worker that fails when it is told again"},
    PlantedBug{"loss_fills_a_place_twice", "keeps a place open that somebody took"},
    PlantedBug{"loss_leaves_strays", "does not release a worker that comes back and was replaced"},
    PlantedBug{"active_follows_the_first_ready", "lets who is ready first decide which version serves"},
    PlantedBug{"reload_takes_all_at_once", "reloads all workers of an application at once"},
    PlantedBug{"resume_forgets_the_drained", "leaves workers drained when the memory is back"},
    PlantedBug{"resume_overrules_orders", "resumes workers that somebody ordered to be drained"},
    PlantedBug{"plan_ignores_memory", "sends workers to a runtime whose memory is critical"},
    PlantedBug{"dispatch_ignores_health", "gives work to a named worker that says it is not well"},
    PlantedBug{"reload_forgets_the_rest", "reloads one worker and leaves the others with old settings"},
};

constexpr std::uint64_t kWorldsThatTell = 500;  // fewer may be calm by chance

void add(CoreStats& total, const CoreStats& one) {
  total.accepted += one.accepted;
  total.refused += one.refused;
  total.results += one.results;
  total.expired += one.expired;
  total.crashes += one.crashes;
  total.commits += one.commits;
  total.commits_failed += one.commits_failed;
  total.sessions += one.sessions;
  total.resent += one.resent;
  total.from_journal += one.from_journal;
  total.lost += one.lost;
  total.moved += one.moved;
  total.dropped += one.dropped;
}

void add(FleetStats& total, const FleetStats& one) {
  total.assigned += one.assigned;
  total.lost += one.lost;
  total.replaced += one.replaced;
  total.reloads += one.reloads;
  total.moves += one.moves;
  total.crashes += one.crashes;
  total.left_dead += one.left_dead;
  total.unable += one.unable;
  total.resumed += one.resumed;
  total.refused += one.refused;
}

void print(const CoreStats& stats, const FleetStats& fleet) {
  const auto line = [](const char* name, std::uint64_t count) {
    std::printf("  %-14s %llu\n", name, static_cast<unsigned long long>(count));
  };
  line("accepted", stats.accepted);
  line("refused", stats.refused);
  line("results", stats.results);
  line("expired", stats.expired);
  line("crashes", stats.crashes);
  line("commits", stats.commits);
  line("commits failed", stats.commits_failed);
  line("sessions", stats.sessions);
  line("sent again", stats.resent);
  line("from journals", stats.from_journal);
  line("given up", stats.lost);
  line("moved", stats.moved);
  line("dropped", stats.dropped);
  line("assigned", fleet.assigned);
  line("lost", fleet.lost);
  line("replaced", fleet.replaced);
  line("reloads", fleet.reloads);
  line("moves", fleet.moves);
  line("left dead", fleet.left_dead);
  line("unable", fleet.unable);
  line("resumed", fleet.resumed);
  line("orders refused", fleet.refused);
}

class SchedulerWorlds final : public Worlds {
 public:
  std::optional<BrokenPromise> run(std::uint64_t seed, bool) override {
    CoreWorld world{seed};
    std::optional<BrokenPromise> broken = world.run();
    add(core_, world.stats());
    if (broken) return broken;
    FleetWorld fleet{seed};
    broken = fleet.run();
    add(fleet_, fleet.stats());
    return broken;
  }

  void print_sum() const override { print(core_, fleet_); }

  bool hurt(std::uint64_t count) const override {
    return count < kWorldsThatTell ||
           (fleet_.assigned > count && fleet_.lost > count / 10 && fleet_.replaced > count / 100 &&
            fleet_.reloads > count / 4 && fleet_.moves > count / 4 && fleet_.left_dead > count / 4 &&
            fleet_.resumed > count / 10 && core_.results > 10 * count && core_.crashes > count &&
            core_.commits_failed > count && core_.resent > count && core_.from_journal > count / 2 &&
            core_.expired > count / 10 && core_.lost > count / 10 && core_.moved > count / 100 &&
            core_.dropped > count / 10);
  }

 private:
  CoreStats core_;
  FleetStats fleet_;
};

}  // namespace
}  // namespace sim
}  // namespace windlass

int main(int count, char** values) {
  windlass::sim::SchedulerWorlds worlds;
#ifdef WINDLASS_MUTANTS
  std::string_view* const mutant = &windlass::active_mutant;
#else
  std::string_view* const mutant = nullptr;
#endif
  return windlass::sim::run_program(windlass::sim::kProgram, worlds, windlass::sim::kPlantedBugs, mutant,
                                    count, values);
}
