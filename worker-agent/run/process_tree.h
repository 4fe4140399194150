// The processes that descend from this one, by the system's table of processes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace windlass::agent {

std::vector<pid_t> descendants();

// Of all these together, what is their own and not a part of a file: in memory or swapped out. Pages that
// they share after a fork count for each.
std::uint64_t memory_of(const std::vector<pid_t>& processes);

}  // namespace windlass::agent
