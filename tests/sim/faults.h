// What goes wrong in a world, and when. Each fault is one method; which kinds may strike, and how often, is
// in the options. stop() ends them all and repairs what does not repair itself.
#pragma once

#include <string_view>

#include "tests/sim/options.h"
#include "tests/sim/strangers.h"
#include "tests/sim/world.h"

namespace windlass::sim {

class Faults final {
 public:
  explicit Faults(World& world) : world_(world), context_(world.context()) {}

  void start();
  void stop();
  void strike(Fault fault);  // also for scenario tests

 private:
  void schedule();
  Wire* any_wire();
  WorkerMachine& any_worker();
  Machine& any_machine();
  Duration up_to(Duration most) { return context_.random.below(most); }

  Fault choose();
  void cut(bool half_open, bool late);
  void cut_in_traffic();
  void replay();
  void send_thief();
  void stall(Duration most);
  void swizzle();
  void crash_scheduler();
  void crash_worker(WorkerMachine& worker, bool now = false);
  void add_twin();
  void revoke();
  void close_credit();
  void lose_some(std::string_view machine, End to);
  void restart_scheduler();
  void tell_lie();
  void send_conflict();

  World& world_;
  Context& context_;
  std::vector<std::unique_ptr<Stranger>> strangers_;
  std::uint64_t bearers_ = 0;
  std::uint64_t conflicts_ = 0;
  bool stopped_ = false;
};

}  // namespace windlass::sim
