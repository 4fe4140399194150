#include "tests/sim/duty_checker.h"

namespace windlass::sim {

void DutyChecker::journal_answered(const std::string& machine, const std::string& id, std::size_t content,
                                   JournalVerdict verdict) {
  const Command& command = commands_[id];
  const bool other_body = content != command.content;
  const bool done = has_effect(id, machine);
  //= IDM-2
  if (other_body && verdict != JournalVerdict::Conflict) {
    return context_.fail("journal-sees-other-body", "command ", id,
                         " came with another body and was taken for the same");
  }
  //= IDM-1
  if (!other_body && done && verdict != JournalVerdict::Done) {
    return context_.fail("journal-knows-what-was-done", "command ", id, " was done on ", machine,
                         " and is not known");
  }
  if (!other_body && !done && (verdict == JournalVerdict::Done || verdict == JournalVerdict::Conflict)) {
    context_.fail("journal-knows-what-was-done", "command ", id, " was not done on ", machine,
                  " and is answered as if it were");
  }
}

void DutyChecker::effect_durable(const std::string& id, const std::string& machine) {
  ++context_.stats.effects;
  Command& command = commands_[id];
  if (++command.effects[machine] > 1 || (!has_twins_ && command.effects.size() > 1)) {
    context_.fail("effect-exactly-once", "command ", id, " took effect twice");
  }
}

void DutyChecker::result_durable(const std::string& id) {
  Command& command = commands_[id];
  if (command.effects.empty()) context_.fail("no-result-without-effect", "command ", id);
  if (++command.results > 1) context_.fail("result-recorded-once", "command ", id);
}

void DutyChecker::event_durable(const std::string& id) {
  if (!events_accepted_.contains(id)) context_.fail("no-event-from-nowhere", id);
  if (++events_durable_[id] > 1) context_.fail("event-recorded-once", id);
}

void DutyChecker::command_acknowledged(const std::string& id) {
  if (commands_[id].effects.empty()) {
    context_.fail("acknowledged-is-durable", "command ", id, " is acknowledged but on no worker's disk");
  }
}

void DutyChecker::result_acknowledged(const std::string& id) {
  if (commands_[id].results == 0) {
    context_.fail("acknowledged-is-durable", "the result of ", id, " is acknowledged but not in the store");
  }
}

void DutyChecker::event_acknowledged(const std::string& id) {
  if (!events_durable_.contains(id)) {
    context_.fail("acknowledged-is-durable", "event ", id, " is acknowledged but not in the store");
  }
}

void DutyChecker::journal_recovered(const std::string& machine, const std::set<std::string>& completed) {
  for (const auto& [id, command] : commands_) {
    if (command.effects.contains(machine) != completed.contains(id)) {
      return context_.fail(
          "journal-recovers", "after a crash of ", machine, " command ", id,
          completed.contains(id) ? " is known but had no effect" : " had its effect but is not known");
    }
  }
}

bool DutyChecker::has_effect(const std::string& id, const std::string& machine) const {
  const auto command = commands_.find(id);
  return command != commands_.end() && command->second.effects.contains(machine);
}

bool DutyChecker::is_settled() const {
  return unsettled().empty();
}

std::string DutyChecker::unsettled() const {
  for (const auto& [id, command] : commands_) {
    if (command.results == 0) return "command " + id + " has no result";
  }
  for (const auto& id : events_accepted_) {
    if (!events_durable_.contains(id)) return "event " + id + " is not in the store";
  }
  return "";
}

}  // namespace windlass::sim
