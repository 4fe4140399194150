#include "protocol/adapters/private_file.h"

#include <sys/stat.h>

#include <filesystem>
#include <utility>

namespace windlass {
namespace {

bool lets_others(const std::filesystem::path& path, mode_t bit) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 && (facts.st_mode & bit) != 0;
}

}  // namespace

Result<Done> check_private(const std::string& path) {
  std::error_code error;
  const std::filesystem::path file = std::filesystem::canonical(path, error);
  if (error || !std::filesystem::is_regular_file(file, error) || !lets_others(file, S_IROTH)) return Done{};
  for (auto folder = file.parent_path(); lets_others(folder, S_IXOTH); folder = folder.parent_path()) {
    if (folder != folder.root_path()) continue;
    std::string reason = path;
    reason += ": every user of this machine can read this secret; run chmod o-rwx ";
    reason += path;
    return Error{ErrorCode::Internal, Blame::Local, std::move(reason)};
  }
  return Done{};
}

}  // namespace windlass
