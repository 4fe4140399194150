#include "worker-agent/run/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

namespace windlass::agent {
namespace {

// The beginning of a file of the process, which is all that is asked for.
std::string text_of(pid_t process, const char* name) {
  const int file = ::open(("/proc/" + std::to_string(process) + "/" + name).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::array<char, 4096> text{};
  const ssize_t count = ::read(file, text.data(), text.size());
  ::close(file);
  return {text.data(), count > 0 ? static_cast<std::size_t>(count) : 0};
}

std::multimap<pid_t, pid_t> children_of_all() {
  std::multimap<pid_t, pid_t> all;
  DIR* const table = ::opendir("/proc");
  if (table == nullptr) return all;
  while (const dirent* entry = ::readdir(table)) {
    const pid_t process = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
    if (process <= 0) continue;
    // "pid (name) state parent": the name may hold anything.
    const std::string text = text_of(process, "stat");
    const std::size_t name_end = text.rfind(')');
    if (name_end == std::string::npos || text.size() < name_end + 5) continue;
    all.emplace(static_cast<pid_t>(std::strtol(text.c_str() + name_end + 4, nullptr, 10)), process);
  }
  ::closedir(table);
  return all;
}

}  // namespace

std::vector<pid_t> descendants() {
  const auto all = children_of_all();
  std::vector<pid_t> found;
  const auto add_children = [&](pid_t parent) {
    const auto [begin, end] = all.equal_range(parent);
    for (auto each = begin; each != end; ++each) found.push_back(each->second);
  };
  add_children(::getpid());
  for (std::size_t i = 0; i < found.size(); ++i) add_children(found[i]);
  return found;
}

std::uint64_t memory_of(const std::vector<pid_t>& processes) {
  constexpr std::uint64_t kKibibyte = 1024;
  std::uint64_t bytes = 0;
  for (const pid_t process : processes) {
    const std::string status = text_of(process, "status");
    for (const char* const name : {"\nRssAnon:", "\nRssShmem:", "\nVmSwap:"}) {
      const std::size_t at = status.find(name);
      if (at == std::string::npos) continue;
      bytes += std::strtoull(status.c_str() + at + std::strlen(name), nullptr, 10) * kKibibyte;
    }
  }
  return bytes;
}

}  // namespace windlass::agent
