// One simulated world: a scheduler, one to five workers, an operator who sends commands, origins that send
// events, and a seed that decides everything else. Read this first, then options.h (what a seed decides),
// faults.cc (what goes wrong), session_checker.h and duty_checker.h (what must hold all the same).
//
// The production code runs unchanged: endpoints, drivers, codec, WebSocket codec, tokens, journal. Only
// clock, alarm, network and disks are simulated. A world has two phases. While it is being hurt, only safety
// is asked for: nothing wrong may be said or done, ever. Then the faults stop and everything must converge:
// workers ready, commands answered, windows and outboxes empty.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/sim/context.h"
#include "tests/sim/duty_checker.h"
#include "tests/sim/network.h"
#include "tests/sim/options.h"
#include "tests/sim/scheduler_machine.h"
#include "tests/sim/session_checker.h"
#include "tests/sim/worker_machine.h"

namespace windlass::sim {

class Faults;

class World final {
 public:
  World(const WorldOptions& options, bool log_is_on);
  ~World();

  // True when every promise held; else context().violation says which did not.
  bool run();

  Context& context() { return context_; }
  const WorldOptions& options() const { return options_; }

  // What faults reach for.
  Network& network() { return network_; }
  SessionChecker& sessions() { return sessions_; }
  SchedulerMachine& scheduler() { return scheduler_; }
  std::vector<std::unique_ptr<WorkerMachine>>& workers() { return workers_; }
  // A second machine with the identity of a worker.
  WorkerMachine& add_twin(std::size_t worker);
  // Tries until the scheduler has confirmed it.
  void submit(const Row& row);

 private:
  struct Pending;

  void plan_work();
  void plan_command(std::uint64_t number, Duration when);
  void plan_event(std::uint64_t number, Duration when);
  void try_submit(const std::shared_ptr<Pending>& pending);
  Duration serial_time() const;
  bool converge();
  std::string unconverged() const;
  void check_ends();

  WorldOptions options_;
  Context context_;
  Decoder decoder_;
  SessionChecker sessions_;
  DutyChecker duties_;
  Network network_;
  SchedulerMachine scheduler_;
  std::vector<std::unique_ptr<WorkerMachine>> workers_;
  std::vector<std::unique_ptr<WorkerMachine>> twins_;
  std::unique_ptr<Faults> faults_;
  std::uint64_t unconfirmed_ = 0;
};

}  // namespace windlass::sim
