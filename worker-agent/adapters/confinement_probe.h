// What this machine and the agent's user allow, found out by trying: windlass-run itself is asked whether it
// can confine a worker in a given way.
#pragma once

#include <string>
#include <vector>

#include "protocol/base/result.h"
#include "worker-agent/core/confinement.h"

namespace windlass::agent {

// A name, a number, or two numbers as "1234:1234".
Result<UserIds> find_user(const std::string& text);

// The agent's own, as it is now.
UserIds own_ids();
bool may_switch_user();

// Without links; what is not there stays as it is.
std::string real_path(const std::string& path);

// Of all folders above the paths and the paths themselves, those that other users may not enter.
std::vector<std::string> closed_folders(const std::vector<std::string>& paths);

struct ConfinementOutcome {
  Confinement chosen;
  std::vector<std::string> refused;  // why the better ones were not: one sentence each
};
// The first of the choices that windlass-run (`supervisor`) brings about, such that all of `needed` can be
// used there. An error says why none can.
Result<ConfinementOutcome> choose_confinement(const std::string& supervisor,
                                              const std::vector<Confinement>& choices,
                                              const std::vector<std::string>& needed);

// Ends, through windlass-run, the processes of a user that is reserved for workers, while none should run,
// and removes what they wrote to folders that they shared with others.
Result<Done> sweep_user(const std::string& supervisor, const Confinement& confinement);

// Other processes of this user cannot read this one's memory and environment. Not in builds with sanitizers,
// which look into themselves.
void shut_own_memory();

}  // namespace windlass::agent
