// Which process holds a socket, for telling one's own child from others of the same user.
#pragma once

#include <cstdint>
#include <optional>

namespace windlass::agent {

// Whether the process or one that descends from it has the socket of this inode open. Nothing: the system
// does not let us look at the process itself.
std::optional<bool> holds_socket(int process, std::uint64_t inode);

}  // namespace windlass::agent
