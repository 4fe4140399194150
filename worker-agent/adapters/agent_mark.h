// How agents of one user on a machine notice each other, whatever their state folders are: each holds a name
// of the kernel's (an abstract socket) with the number of its user in it. Unlike a file, it needs no folder
// that all of them see, and it ends with the process. Anybody can take such a name; whoever does so causes a
// warning that is wrong, and nothing else. Agents with different networks, as in containers, do not see each
// other.
#pragma once

#include <cstdint>

#include "worker-agent/adapters/files.h"

namespace windlass::agent {

struct AgentMark {
  FileDescriptor name;  // to be held for as long as the agent lives
  bool is_alone = true;
};
AgentMark mark_agent(std::uint32_t user);

}  // namespace windlass::agent
