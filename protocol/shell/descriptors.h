// How many descriptors this process may hold.
#pragma once

#include <cstdint>

namespace windlass {

// Raises the soft limit, which is small on most machines so that old programs can use select(), to the hard
// one, and returns what holds then.
std::uint64_t raise_descriptor_limit();

}  // namespace windlass
