// The promises one level above sessions: what the owners must get done. Each command takes effect exactly
// once and its result is recorded once; each event that a worker accepted reaches the scheduler's store; and
// at the moment a message is acknowledged to its sender, the receiver's disk has it.
//
// An event counts as accepted once it is on the worker's disk: only then is its origin told. What a crash
// loses before that was never promised.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "protocol/session/journal.h"
#include "tests/sim/context.h"

namespace windlass::sim {

class DutyChecker final {
 public:
  // With twins one identity has two disks, so that a command may take effect once on each.
  DutyChecker(Context& context, bool has_twins) : context_(context), has_twins_(has_twins) {}

  void command_submitted(const std::string& id, std::size_t content) { commands_[id].content = content; }
  void journal_answered(const std::string& machine, const std::string& id, std::size_t content,
                        JournalVerdict verdict);
  void effect_durable(const std::string& id, const std::string& machine);
  void result_durable(const std::string& id);  // in the scheduler's store
  void event_accepted(const std::string& id) { events_accepted_.insert(id); }
  void event_durable(const std::string& id);  // in the scheduler's store

  // The sender's owner was told that its message is acknowledged.
  void command_acknowledged(const std::string& id);
  void result_acknowledged(const std::string& id);
  void event_acknowledged(const std::string& id);
  // A journal was read back from this machine's disk.
  void journal_recovered(const std::string& machine, const std::set<std::string>& completed);

  bool has_effect(const std::string& id, const std::string& machine) const;
  bool is_settled() const;  // every duty is done
  std::string unsettled() const;

 private:
  struct Command {
    std::size_t content = 0;
    std::map<std::string, std::uint64_t> effects;  // by machine
    std::uint64_t results = 0;
  };

  Context& context_;
  bool has_twins_;
  std::map<std::string, Command> commands_;
  std::set<std::string> events_accepted_;
  std::map<std::string, std::uint64_t> events_durable_;
};

}  // namespace windlass::sim
