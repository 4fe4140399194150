#include "runtime/adapters/memory_sampler.h"

#include <unistd.h>

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

// A control group's files, in either version of them.
struct GroupFiles {
  const char* limit;
  const char* used;
  const char* cache;  // in memory.stat: files that are given back when they are in the way
};
constexpr GroupFiles kGroupV2{"memory.max", "memory.current", "inactive_file"};
constexpr GroupFiles kGroupV1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr std::uint64_t kNoLimit = 1ULL << 60U;  // version 1 writes a number of this size for none

struct Group {
  std::string mount;
  std::string path;  // of this process, below the mount; begins with a slash
  GroupFiles files;
};

// Of a line "0::/path" or "4:memory:/path".
std::optional<Group> own_group(const std::string& root) {
  std::ifstream file{root + "proc/self/cgroup"};
  std::optional<Group> found;
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty() && !found) found = Group{root + "sys/fs/cgroup", path, kGroupV2};
    if (("," + controllers + ",").find(",memory,") == std::string::npos) continue;
    return Group{root + "sys/fs/cgroup/memory", path, kGroupV1};
  }
  return found;
}

// The limit on a group is its own or that of one above it.
std::optional<std::uint64_t> limit_on(const Group& group) {
  for (std::string path = group.path;; path.resize(path.rfind('/'))) {
    const auto limit = number_in(group.mount + path + "/" + group.files.limit);
    if (limit && *limit < kNoLimit) return limit;
    if (path.find('/') == std::string::npos) return std::nullopt;
  }
}

std::optional<std::uint64_t> used_by(const Group& group) {
  const std::string folder = group.mount + group.path + "/";
  const auto used = number_in(folder + group.files.used);
  if (!used) return std::nullopt;
  const std::uint64_t cache = field_in(folder + "memory.stat", group.files.cache).value_or(0);
  return *used - std::min(cache, *used);
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
  std::optional<Group> group = own_group(root);
  // Inside a container the group's path may be one of the machine outside: what is mounted is then its own.
  if (group && !number_in(group->mount + group->path + "/" + group->files.used)) group->path.clear();
  if (const auto on_group = group ? limit_on(*group) : std::nullopt) {
    const auto used = used_by(*group);
    return used ? share(*used, *on_group) : own ? share(*own, *on_group) : std::nullopt;
  }
  const auto total = field_in(root + "proc/meminfo", "MemTotal:");  // in KiB
  if (!total || !own) return std::nullopt;
  return share(*own, *total * 1024);
}

}  // namespace windlass::runtime
