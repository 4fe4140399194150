#include "worker-agent/adapters/socket_holder.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace windlass::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kProcessesMax = 256;  // looked at; a worker that starts more does not hide the first

// Nothing: its descriptors are not ours to see.
std::optional<bool> has_descriptor(int process, const std::string& link) {
  std::error_code error;
  fs::directory_iterator each{"/proc/" + std::to_string(process) + "/fd", error};
  if (error) return std::nullopt;
  for (; each != fs::directory_iterator{}; each.increment(error)) {
    if (error) break;
    if (fs::read_symlink(each->path(), error) == link) return true;
  }
  return false;
}

void add_children(int process, std::vector<int>& to) {
  std::error_code error;
  for (fs::directory_iterator task{"/proc/" + std::to_string(process) + "/task", error};
       !error && task != fs::directory_iterator{}; task.increment(error)) {
    std::ifstream file{task->path() / "children"};
    for (int child = 0; to.size() < kProcessesMax && file >> child;) to.push_back(child);
  }
}

}  // namespace

std::optional<bool> holds_socket(int process, std::uint64_t inode) {
  const std::string link = "socket:[" + std::to_string(inode) + "]";
  std::vector<int> family{process};
  bool is_hidden = false;
  for (std::size_t i = 0; i < family.size(); ++i) {
    const auto found = has_descriptor(family[i], link);
    if (found == true) return true;
    if (i == 0) is_hidden = !found;
    add_children(family[i], family);
  }
  return is_hidden ? std::nullopt : std::optional{false};
}

}  // namespace windlass::agent
