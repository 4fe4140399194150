// How much of the memory this process may use is in use: of its control group if that has a limit, else of
// the machine.
#pragma once

#include <optional>
#include <string>

namespace windlass::runtime {

// 0 to 1; none where the system does not tell. `root` is for tests.
std::optional<double> sample_memory(const std::string& root = "/");

}  // namespace windlass::runtime
