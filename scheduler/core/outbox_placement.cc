// Which worker a command is for: chosen, given back, or lost together with it.
#include <algorithm>
#include <utility>

#include "protocol/base/check.h"
#include "protocol/base/mutant.h"
#include "scheduler/core/outbox.h"

namespace windlass {
namespace {

constexpr Duration kAbsenceAlarmLateMax = seconds{5};

}  // namespace

bool Command::is_order() const {
  return record.target.kind == CommandTarget::Kind::Worker &&
         (record.type.starts_with("biz.worker.") ||
          (record.type.starts_with("biz.runtime.") && record.type != kInvokeType));
}

std::vector<UnplacedKey> Outbox::unplaced() const {
  std::vector<UnplacedKey> keys;
  keys.reserve(unplaced_.size());
  for (const auto& [key, commands] : unplaced_) keys.push_back(key);
  return keys;
}

std::vector<Command*> Outbox::unplaced_of(const UnplacedKey& key, std::size_t count_max) const {
  std::vector<Command*> commands;
  const auto found = unplaced_.find(key);
  if (found == unplaced_.end()) return commands;
  for (const auto& [number, command] : found->second) {
    if (commands.size() == count_max) break;
    commands.push_back(command);
  }
  return commands;
}

void Outbox::place(Command& command, const InstanceId& worker) {
  CHECK(command.record.worker.value().empty() && !worker.value().empty());
  const auto found = unplaced_.find({command.record.key.tenant, command.record.target});
  CHECK(found != unplaced_.end() && found->second.erase(command.record.number) == 1);
  if (found->second.empty()) unplaced_.erase(found);
  command.record.worker = worker;
  command.is_choice_unstored = true;
  enter_queue(command);
  dirty_.mark(command.row);
}

// Out of the worker's queue, and back among those without a worker.
void Outbox::unplace(Command& command) {
  const WorkerKey worker = command.record.worker_key();
  Queue& queue = queues_[worker];
  queue.waiting_for(command).erase(command.record.number);
  queue.in_flight.erase(command.record.number);
  if (queue.empty()) forget_absence(worker);
  mark_ready(worker);  // take_ready forgets a queue that is empty
  command.record.worker = InstanceId{};
  command.was_given_here = false;
  command.sends_elsewhere = command.sends;
  ++command.record.moves;
  command.is_sent = false;
  command.is_choice_unstored = true;
  if (command.may_have_begun()) command.next_cause = DispatchCause::WorkerLost;
  ++counters_.moved;
  enter_queue(command);
  dirty_.mark(command.row);
}

void Outbox::give_back(const WorkerKey& worker) {
  const auto found = queues_.find(worker);
  if (found == queues_.end()) return;
  std::vector<Command*> kept;
  for (const auto& [number, command] : found->second.waiting) {
    // Another runtime has other workers, so one that is only away for a moment is waited for.
    const bool is_bound = command->record.target.kind == CommandTarget::Kind::Worker ||
                          command->record.target.kind == CommandTarget::Kind::Serving;
    if (!is_bound && !command->may_be_with_its_worker()) kept.push_back(command);
  }
  for (Command* const command : kept) unplace(*command);
}

void Outbox::fail_unless(const WorkerKey& worker,
                         const std::function<bool(const std::string& type)>& is_taken, Now now) {
  const auto found = queues_.find(worker);
  if (found == queues_.end()) return;
  std::vector<Command*> refused;
  for (const auto& [number, command] : found->second.waiting) {
    if (!is_taken(command->record.type)) refused.push_back(command);
  }
  for (Command* const command : refused) {
    fail(*command,
         {ErrorCode::CmdUnknown, "worker '" + worker.instance.value() + "' does not take commands of type '" +
                                     command->record.type + "'"},
         now);
  }
}

void Outbox::worker_came(const WorkerKey& worker) {
  present_.insert(worker);
  forget_absence(worker);
}

void Outbox::worker_left(const WorkerKey& worker, Instant lost_at) {
  present_.erase(worker);
  const auto found = queues_.find(worker);
  if (found != queues_.end() && !found->second.empty()) note_absence(worker, lost_at);
}

void Outbox::note_absence(const WorkerKey& worker, Instant lost_at) {
  if (lost_at_.try_emplace(worker, lost_at).second) by_loss_.emplace(lost_at, worker);
}

void Outbox::forget_absence(const WorkerKey& worker) {
  const auto found = lost_at_.find(worker);
  if (found == lost_at_.end()) return;
  by_loss_.erase({found->second, worker});
  lost_at_.erase(found);
}

// An alarm that comes late says that this process stood still, and nothing of the workers, who could not come
// back meanwhile: they have their whole time again.
void Outbox::excuse_absences(Instant now) {
  if (by_loss_.empty() || now - by_loss_.begin()->first <= kAbsenceAlarmLateMax) return;
  by_loss_.clear();
  for (auto& [worker, at] : lost_at_) {
    at = now + options_.lost_after_of(worker.tenant);
    by_loss_.emplace(at, worker);
  }
}

std::optional<WorkerKey> Outbox::first_lost(Instant now) const {
  if (MUTANT(outbox_waits_for_lost_workers)) return std::nullopt;
  if (by_loss_.empty() || by_loss_.begin()->first > now) return std::nullopt;
  return by_loss_.begin()->second;
}

// Each of its commands has one outcome now, or goes to another worker. One that may have begun does so only
// if it says that a second time does no harm.
void Outbox::lose(const WorkerKey& worker, Now now) {
  forget_absence(worker);
  const auto found = queues_.find(worker);
  if (found == queues_.end()) return;
  std::vector<Command*> all;
  for (const auto* commands : {&found->second.orders, &found->second.waiting, &found->second.in_flight}) {
    for (const auto& [number, command] : *commands) all.push_back(command);
  }
  std::ranges::sort(all, {}, [](const Command* each) { return each->record.number; });
  const Duration lost_after = options_.lost_after_of(worker.tenant);
  const std::string gone = "worker '" + worker.instance.value() + "' is lost: it was gone for " +
                           std::to_string(std::chrono::duration_cast<seconds>(lost_after).count()) + " s";
  for (Command* const command : all) {
    const bool is_bound = command->record.target.kind == CommandTarget::Kind::Worker;
    const bool is_safe =
        !command->may_have_begun() || command->record.is_idempotent || MUTANT(outbox_repeats_lost_commands);
    if (!is_bound && is_safe) {
      unplace(*command);
      continue;
    }
    ++counters_.lost;
    fail(*command,
         {ErrorCode::WorkerLost,
          gone + (command->may_have_begun() ? "; the command was given to it and may have run"
                                            : "; the command was never given to it")},
         now);
  }
}

}  // namespace windlass
