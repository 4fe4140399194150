#include "tests/sim/faults.h"

#include <algorithm>

#include "protocol/codec/encode.h"

namespace windlass::sim {

void Faults::start() {
  if (!world_.options().faults.empty()) schedule();
}

void Faults::schedule() {
  const Duration wait = up_to(2 * world_.options().fault_interval);
  context_.timeline.after(wait, [this] {
    if (stopped_) return;
    strike(choose());
    schedule();
  });
}

Fault Faults::choose() {
  const auto& faults = world_.options().faults;
  std::uint64_t total = 0;
  for (const Fault fault : faults) total += weight(fault);
  std::uint64_t drawn = context_.random.below(total);
  for (const Fault fault : faults) {
    if (drawn < weight(fault)) return fault;
    drawn -= weight(fault);
  }
  return faults.back();
}

void Faults::stop() {
  stopped_ = true;
  world_.network().calm();
  world_.network().refuse_dials(Duration{}, false);
  for (Wire* const wire : world_.network().live()) world_.network().slow_down(*wire, 0);
}

Wire* Faults::any_wire() {
  const auto wires = world_.network().live();
  return wires.empty() ? nullptr : wires[context_.random.below(wires.size())];
}

WorkerMachine& Faults::any_worker() {
  return *world_.workers()[context_.random.below(world_.workers().size())];
}

Machine& Faults::any_machine() {
  if (context_.random.one_in(3)) return world_.scheduler();
  return any_worker();
}

void Faults::strike(Fault fault) {
  context_.note("FAULT ", to_string(fault));
  Stats& stats = context_.stats;
  SchedulerMachine& scheduler = world_.scheduler();
  switch (fault) {
    case Fault::Cut:
      ++stats.cuts;
      return cut(false, false);
    case Fault::CutInTraffic:
      return cut_in_traffic();
    case Fault::Replay:
      return replay();
    case Fault::Lose:
      if (Wire* const wire = any_wire()) {
        world_.network().lose_one(*wire, context_.chance(50) ? End::Worker : End::Scheduler);
      }
      return;
    case Fault::Thief:
      return send_thief();
    case Fault::HalfOpen:
      ++stats.half_open_cuts;
      return cut(true, false);
    case Fault::LateClose:
      ++stats.late_closes;
      return cut(false, true);
    case Fault::Stall:
      ++stats.stalls;
      return stall(seconds{20});
    case Fault::DelaySpike:
      ++stats.delay_spikes;
      return stall(milliseconds{800});
    case Fault::SlowReader:
      if (Wire* const wire = any_wire()) {
        ++stats.slow_readers;
        world_.network().slow_down(*wire, 300 + context_.random.below(5'000));
      }
      return;
    case Fault::RefuseDials:
      return world_.network().refuse_dials(context_.now() + up_to(seconds{15}), context_.chance(30));
    case Fault::Swizzle:
      return swizzle();
    case Fault::WallJump:
      ++stats.wall_jumps;
      return any_machine().jump_wall(up_to(seconds{600}) - Duration{seconds{300}});
    case Fault::Freeze:
      ++stats.freezes;
      return any_machine().sleep(up_to(seconds{15}), false);
    case Fault::Suspend:
      ++stats.suspends;
      return any_machine().sleep(up_to(seconds{60}), true);
    case Fault::SchedulerCrash:
      return crash_scheduler();
    case Fault::WorkerCrash:
      return crash_worker(any_worker());
    case Fault::Twin:
      return add_twin();
    case Fault::KeyRotation:
      ++stats.key_rotations;
      return scheduler.add_key();
    case Fault::TokenRotation:
      ++stats.token_rotations;
      return scheduler.rotate_token(any_worker().instance());
    case Fault::Revoke:
      return revoke();
    case Fault::SchedulerDrain:
      ++stats.scheduler_drains;
      return scheduler.drain(any_worker().instance(), up_to(seconds{20}));
    case Fault::WorkerDrain:
      ++stats.worker_drains;
      return any_worker().drain(up_to(seconds{20}));
    case Fault::LoadDrain: {
      ++stats.load_drains;
      WorkerMachine& worker = any_worker();
      worker.set_memory(95);
      return context_.timeline.after(up_to(seconds{10}), [&worker] { worker.set_memory(20); });
    }
    case Fault::Restart:
      return restart_scheduler();
    case Fault::Hostile:
      if (!scheduler.is_listening() || strangers_.size() > 200) return;
      ++stats.hostile_connections;
      strangers_.push_back(std::make_unique<Stranger>(context_, world_.network()));
      return strangers_.back()->attack();
    case Fault::Lie:
      return tell_lie();
    case Fault::CloseCredit:
      return close_credit();
    case Fault::Conflict:
      return send_conflict();
  }
}

void Faults::cut(bool half_open, bool late) {
  Wire* const wire = any_wire();
  if (wire == nullptr) return;
  CutPlan plan;
  if (half_open) {
    plan.worker_notices = context_.chance(50);
    plan.scheduler_notices = !plan.worker_notices && context_.chance(50);
  }
  if (late) {
    plan.notice_max = seconds{40};
    plan.late_max = seconds{20};
  }
  world_.network().cut(*wire, plan);
}

void Faults::cut_in_traffic() {
  Wire* const wire = any_wire();
  if (wire == nullptr) return;
  ++context_.stats.traffic_cuts;
  CutPlan plan;
  plan.worker_notices = context_.chance(90);
  plan.scheduler_notices = context_.chance(90);
  if (context_.chance(20)) plan.late_max = seconds{5};
  world_.network().cut_after(*wire, context_.random.below(1500), plan);
}

// Puts a message of the session into its connection again.
void Faults::replay() {
  Wire* const wire = any_wire();
  if (wire == nullptr) return;
  const End to = context_.chance(50) ? End::Worker : End::Scheduler;
  const TapedMessage* const old = world_.sessions().old_message(*wire, to);
  if (old == nullptr) return;
  ++context_.stats.replays;
  world_.sessions().expect_replay(old->seen);
  wire->inject(to, old->bytes, old->kind);
}

// Somebody who got hold of a token that its session has replaced.
void Faults::send_thief() {
  if (!world_.scheduler().is_listening() || strangers_.size() > 200) return;
  const auto stolen = world_.sessions().replaced_token();
  if (!stolen) return;
  ++context_.stats.thieves;
  strangers_.push_back(std::make_unique<Stranger>(context_, world_.network()));
  strangers_.back()->use(*stolen, world_.scheduler().bearer_of(stolen->instance));
}

void Faults::stall(Duration most) {
  Wire* const wire = any_wire();
  if (wire == nullptr) return;
  world_.network().stall(*wire, context_.chance(50) ? End::Worker : End::Scheduler, up_to(most));
}

// Stops links one by one and lets them go again in another order.
void Faults::swizzle() {
  ++context_.stats.swizzles;
  for (Wire* const wire : world_.network().live()) {
    if (!context_.chance(70)) continue;
    context_.timeline.after(up_to(seconds{5}), [this, wire] {
      const Duration time = up_to(seconds{12});
      world_.network().stall(*wire, End::Worker, time);
      world_.network().stall(*wire, End::Scheduler, time);
    });
  }
}

void Faults::crash_scheduler() {
  if (!world_.scheduler().is_up()) return;
  ++context_.stats.scheduler_crashes;
  world_.scheduler().crash(context_.chance(70));
  context_.timeline.after(up_to(seconds{10}), [this] { world_.scheduler().start(); });
}

// At once, or in the middle of the next commit.
void Faults::crash_worker(WorkerMachine& worker, bool now) {
  if (!worker.is_up()) return;
  if (!now && context_.chance(50)) return worker.set_trap([this, &worker] { crash_worker(worker, true); });
  ++context_.stats.worker_crashes;
  worker.crash(context_.chance(60));
  if (worker.plan().changes_revision && context_.chance(50)) {
    ++context_.stats.version_changes;
    worker.change_revision();
  }
  context_.timeline.after(up_to(seconds{10}), [&worker] { worker.start(); });
}

void Faults::add_twin() {
  ++context_.stats.twins;
  WorkerMachine& twin = world_.add_twin(context_.random.below(world_.workers().size()));
  twin.start();
  context_.timeline.after(up_to(seconds{40}), [this, &twin] { twin.retire(context_.chance(50)); });
}

void Faults::revoke() {
  ++context_.stats.revocations;
  WorkerMachine& worker = any_worker();
  const std::string bearer = "bearer-" + std::to_string(++bearers_);
  world_.scheduler().revoke(worker.instance(), bearer);
  // The operator hands out the newest one.
  context_.timeline.after(up_to(seconds{20}), [this, &worker] {
    worker.set_bearer(world_.scheduler().bearer_of(worker.instance()));
  });
}

void Faults::close_credit() {
  ++context_.stats.credit_closed;
  WorkerMachine& worker = any_worker();
  const Duration time = up_to(seconds{10});
  const Credit open = context_.chance(50) ? worker.plan().config.receive_credit : Credit{8, 2'000};
  if (context_.chance(50)) {
    worker.set_credit({0, 0});
    return context_.timeline.after(time, [this, &worker, open] {
      lose_some(worker.name(), End::Scheduler);
      worker.set_credit({std::max(open.frames, 1U), open.bytes});
    });
  }
  const std::string instance = worker.instance();
  world_.scheduler().set_credit(instance, {0, 0});
  context_.timeline.after(time, [this, &worker, instance, open] {
    lose_some(worker.name(), End::Worker);
    world_.scheduler().set_credit(instance, {std::max(open.frames, 1U), open.bytes});
  });
}

// What tells that a window is open again may be the one message that is lost.
void Faults::lose_some(std::string_view machine, End to) {
  if (stopped_ || !context_.chance(50)) return;
  for (Wire* const wire : world_.network().live(machine)) world_.network().lose_one(*wire, to);
}

// An orderly stop: resets spread over a window, then the process ends and another one starts.
void Faults::restart_scheduler() {
  SchedulerMachine& scheduler = world_.scheduler();
  if (!scheduler.is_up()) return;
  ++context_.stats.restarts;
  const Duration window = up_to(seconds{5});
  scheduler.drain_all(window);
  context_.timeline.after(window + up_to(seconds{2}), [this, &scheduler] {
    scheduler.crash(context_.chance(90));
    scheduler.start();
  });
}

// Puts an ack into a connection for frames that were never sent.
void Faults::tell_lie() {
  Wire* const wire = any_wire();
  if (wire == nullptr || world_.sessions().session_on(*wire, End::Worker) == nullptr) return;
  ++context_.stats.lies;
  const End to = context_.chance(50) ? End::Worker : End::Scheduler;
  Frame frame;
  frame.id = "lie";
  frame.tenant = "acme";
  frame.sender_role = to == End::Worker ? Role::Scheduler : Role::Worker;
  frame.sender_id = to == End::Worker ? std::string_view{"scheduler-1"} : std::string_view{wire->instance()};
  Ack ack;
  AckState& state = ack.state.emplace();
  state.credit = {16, 10'000};
  if (context_.chance(50)) {
    state.owned_next = 1'000'000;
  } else {
    state.held.set(wire->revision() == Revision::One ? 63 : 4095);
    state.owned_next = wire->revision() == Revision::One ? 1'000'000 : 0;
  }
  frame.body = ack;
  Bytes message;
  const MessageKind kind = encode(frame, wire->revision(), message);
  wire->inject(to, message, kind);
}

// The id of a command that is done, with another body.
void Faults::send_conflict() {
  std::vector<const Row*> done;
  for (const auto& [number, row] : world_.scheduler().store().rows) {
    if (row.is_done && !row.is_conflict) done.push_back(&row);
  }
  if (done.empty()) return;
  Row row = *done[context_.random.below(done.size())];
  for (const auto& [number, other] : world_.scheduler().store().rows) {
    if (other.is_conflict && other.id == row.id) return;
  }
  ++context_.stats.conflicts;
  row.is_conflict = true;
  row.is_done = row.is_acknowledged = false;
  row.payload = R"({"other":)" + std::to_string(++conflicts_) + "}";
  world_.submit(row);
}

}  // namespace windlass::sim
