// How this agent's language worker is confined: gathers what confinement.h decides on, and makes the folders
// that the worker shares with the agent fit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "protocol/shell/json_log.h"
#include "worker-agent/adapters/files.h"
#include "worker-agent/core/confinement.h"
#include "worker-agent/shell/config.h"

namespace windlass::agent {

class WorkerConfinement final {
 public:
  // Tries what the machine allows, and says in the log what came of it: loudly if user code is not apart from
  // the agent, or if other agents of this user (not `is_alone`) are not apart from it. An error: the settings
  // want more than there is.
  static Result<WorkerConfinement> open(const AgentSettings& settings, bool is_alone, JsonLog& log);

  const Confinement& how() const { return how_; }
  const std::vector<std::string>& gaps() const { return gaps_; }
  std::uint32_t user() const;                         // the worker's
  std::optional<std::uint32_t> group() const;         // of another user
  int user_lock() const { return user_lock_.get(); }  // -1: none; for the worker's supervisor
  bool is_apart() const { return how_.kind != ConfinementKind::Shared; }

  // The folder that the worker may write to, empty: what an earlier worker left is gone.
  Result<std::string> fresh_scratch();

 private:
  Confinement how_;
  std::vector<std::string> gaps_;
  std::string supervisor_;  // windlass-run
  std::string state_folder_;
  FileDescriptor user_lock_;  // held for as long as workers run as this user
};

}  // namespace windlass::agent
