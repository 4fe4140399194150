#include "protocol/adapters/group_memory.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace windlass {
namespace {

std::optional<std::uint64_t> number_in(const std::string& path) {
  std::ifstream file{path};
  std::uint64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;
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
  const std::uint64_t cache = number_after(folder + "memory.stat", group.files.cache).value_or(0);
  return *used - std::min(cache, *used);
}

}  // namespace

std::optional<GroupMemory> own_group_memory(const std::string& root) {
  std::optional<Group> group = own_group(root);
  if (!group) return std::nullopt;
  // Inside a container the group's path may be one of the machine outside: what is mounted is then its own.
  if (!number_in(group->mount + group->path + "/" + group->files.used)) group->path.clear();
  const auto limit = limit_on(*group);
  if (!limit) return std::nullopt;
  return GroupMemory{*limit, used_by(*group)};
}

std::optional<std::uint64_t> number_after(const std::string& path, std::string_view name) {
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

}  // namespace windlass
