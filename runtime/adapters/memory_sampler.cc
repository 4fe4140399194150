#include "runtime/adapters/memory_sampler.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>

#include "protocol/adapters/group_memory.h"

namespace windlass::runtime {
namespace {

std::optional<double> share(std::uint64_t used, std::uint64_t all) {
  if (all == 0) return std::nullopt;
  return std::min(1.0, static_cast<double>(used) / static_cast<double>(all));
}

// Resident pages, as bytes.
std::optional<std::uint64_t> resident(const std::string& root) {
  std::ifstream file{root + "proc/self/statm"};
  std::uint64_t size = 0;
  std::uint64_t pages = 0;
  if (!(file >> size >> pages)) return std::nullopt;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

std::optional<double> sample_memory(std::uint64_t limit, const std::string& root) {
  const std::optional<std::uint64_t> own = resident(root);
  if (limit > 0) return own ? share(*own, limit) : std::nullopt;
  if (const auto group = own_group_memory(root)) {
    const auto used = group->used ? group->used : own;
    return used ? share(*used, group->limit) : std::nullopt;
  }
  const auto total = number_after(root + "proc/meminfo", "MemTotal:");  // in KiB
  if (!total || !own) return std::nullopt;
  return share(*own, *total * 1024);
}

}  // namespace windlass::runtime
