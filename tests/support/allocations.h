// Counts heap allocations, for tests and benchmarks that promise there are none. Link allocations.cc into the
// binary: it replaces the global operator new.
#pragma once

#include <cstdint>

namespace windlass::support {

// Allocations made by this thread so far.
std::uint64_t allocation_count();

}  // namespace windlass::support
