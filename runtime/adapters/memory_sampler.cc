#include "runtime/adapters/memory_sampler.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <sstream>

namespace windlass::runtime {
namespace {

std::optional<std::uint64_t> number_in(const std::string& path) {
  std::ifstream file{path};
  std::uint64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

// The number after `name` in a file of "name value" lines.
std::optional<std::uint64_t> field_in(const std::string& path, std::string_view name) {
  std::ifstream file{path};
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words{line};
    std::string key;
    std::uint64_t value = 0;
    if (words >> key >> value && key == name) return value;
  }
  return std::nullopt;
}

std::optional<double> share(std::uint64_t used, std::uint64_t all) {
  if (all == 0) return std::nullopt;
  return std::min(1.0, static_cast<double>(used) / static_cast<double>(all));
}

}  // namespace

std::optional<double> sample_memory(const std::string& root) {
  const std::string group = root + "sys/fs/cgroup/";
  const auto limit = number_in(group + "memory.max");  // "max" without one
  const auto current = number_in(group + "memory.current");
  if (limit && current) {
    // Cached files are given back when they are in the way.
    const std::uint64_t cache = field_in(group + "memory.stat", "inactive_file").value_or(0);
    return share(*current - std::min(cache, *current), *limit);
  }
  const auto total = field_in(root + "proc/meminfo", "MemTotal:");
  const auto available = field_in(root + "proc/meminfo", "MemAvailable:");
  if (!total || !available) return std::nullopt;
  return share(*total - std::min(*available, *total), *total);
}

}  // namespace windlass::runtime
