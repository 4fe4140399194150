// How much of the memory that this process may use is in use: what its own control group holds against the
// limit on it, else what the process itself holds. What others on the machine use is not looked at.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace windlass::runtime {

// 0 to 1; none where the system does not tell. `limit` in bytes holds before any other; 0: that of the
// control group, or of the nearest above it that has one, else the machine's memory. `root` is for tests.
std::optional<double> sample_memory(std::uint64_t limit = 0, const std::string& root = "/");

}  // namespace windlass::runtime
