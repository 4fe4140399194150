// What the control group of this process holds of the memory that it may use. What others on the machine use
// is not looked at.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace windlass {

struct GroupMemory {
  std::uint64_t limit = 0;            // bytes; its own, or that of the nearest group above it that has one
  std::optional<std::uint64_t> used;  // without files that are given back when they are in the way
};

// Of either version of control groups. Nothing: there is no group, or no limit on it. `root` is for tests.
std::optional<GroupMemory> own_group_memory(const std::string& root = "/");

// The number after `name` in a file of "name value" lines, as those of the kernel are.
std::optional<std::uint64_t> number_after(const std::string& path, std::string_view name);

}  // namespace windlass
