// Reserves a user id for the language worker of one agent. A lock file per id says who has it: the kernel
// holds the lock for as long as the agent lives, and the text in the file is the agent's state folder.
#pragma once

#include <optional>
#include <string>

#include "protocol/base/result.h"
#include "worker-agent/adapters/files.h"
#include "worker-agent/core/confinement.h"

namespace windlass::agent {

// Empty after a boot, as the process table is.
inline constexpr const char* kUserLocks = "/run/windlass/users";

struct UserClaim {
  UserIds ids;
  FileDescriptor lock;  // of an exclusive user
};

// The user that this state folder had before, or else the first free one in the order of user_for(). A user
// is not free if another agent holds it, if another state folder that is still there had it, if it has an
// entry in the user database, or if processes run as it that no worker of ours left behind. The folder of
// locks must belong to root or to the agent, and be closed to others. Nothing: no user is free. An error: no
// locks can be kept here.
Result<std::optional<UserClaim>> claim_user(const std::string& locks, const std::string& state_folder);

}  // namespace windlass::agent
