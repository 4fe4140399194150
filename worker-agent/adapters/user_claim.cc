#include "worker-agent/adapters/user_claim.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>
#include <thread>

namespace windlass::agent {
namespace {

constexpr int kLockAttempts = 40;
constexpr std::chrono::milliseconds kLockPause{50};

Result<Done> open_locks(const std::string& locks) {
  // Neither is open to others, whatever the agent's mask is.
  const std::string above = std::filesystem::path{locks}.parent_path().string();
  if (::mkdir(above.c_str(), 0755) != 0 && errno != EEXIST)
    return file_error(above, "cannot be made a folder", errno);
  if (::mkdir(locks.c_str(), 0700) == 0) {
    // Agents of root and of users with capabilities share it.
    if (::chown(locks.c_str(), 0, 0) != 0 || ::chmod(locks.c_str(), 0700) != 0)
      return file_error(locks, "cannot be closed to others", errno);
  } else if (errno != EEXIST) {
    return file_error(locks, "cannot be made a folder", errno);
  }
  struct stat facts {};
  if (::lstat(locks.c_str(), &facts) != 0) return file_error(locks, "cannot be read", errno);
  const bool is_ours = facts.st_uid == 0 || facts.st_uid == ::geteuid();
  if (!S_ISDIR(facts.st_mode) || !is_ours || (facts.st_mode & 022U) != 0) {
    return Error{ErrorCode::StoreInvalid, Blame::Local,
                 locks + " is no folder that only the agent or root can change"};
  }
  return Done{};
}

// The users that any process runs as, by the process table.
std::set<std::uint32_t> users_of_processes() {
  std::set<std::uint32_t> users;
  std::error_code error;
  for (std::filesystem::directory_iterator at{"/proc", error}, end; !error && at != end;
       at.increment(error)) {
    if (std::atoi(at->path().filename().c_str()) <= 0) continue;
    // The folder's owner would be root where a process is closed to its own user.
    const auto status = read_all(at->path().string() + "/status");
    const std::size_t line = status ? status->find("\nUid:") : Bytes::npos;
    if (line == Bytes::npos) continue;
    const char* next = status->c_str() + line + 5;
    for (int i = 0; i < 4; ++i) {  // real, effective, saved, of files
      char* behind = nullptr;
      users.insert(static_cast<std::uint32_t>(std::strtoul(next, &behind, 10)));
      next = behind;
    }
  }
  return users;
}

bool has_entry(std::uint32_t user) {
  struct passwd entry {};
  struct passwd* found = nullptr;
  std::array<char, 16 * 1024> buffer;
  return ::getpwuid_r(user, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr;
}

class Claimer {
 public:
  Claimer(const std::string& locks, const std::string& state_folder)
      : locks_(locks), state_folder_(state_folder), busy_(users_of_processes()) {}

  // Nothing: somebody else has this user.
  std::optional<UserClaim> claim(const UserIds& ids, bool only_own) const {
    const std::string path = locks_ + "/" + std::to_string(ids.user) + ".lock";
    const int flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC | (only_own ? 0 : O_CREAT);
    FileDescriptor file{::open(path.c_str(), flags, 0600)};
    if (!file.is_open()) return std::nullopt;
    // A file of another agent is not locked even for a moment, which might be the moment in which that agent
    // starts.
    auto owner = owner_in(file, path);
    if (!owner || !may_have(ids, *owner, only_own)) return std::nullopt;
    if (!lock(file, *owner == state_folder_ ? kLockAttempts : 1)) return std::nullopt;
    owner = owner_in(file, path);  // it may have changed until now
    if (!owner || !may_have(ids, *owner, only_own)) return std::nullopt;
    if (*owner != state_folder_ &&
        (::ftruncate(file.get(), 0) != 0 || ::lseek(file.get(), 0, SEEK_SET) != 0 ||
         !write_all(file.get(), state_folder_))) {
      return std::nullopt;
    }
    return UserClaim{ids, std::move(file)};
  }

 private:
  static std::optional<std::string> owner_in(const FileDescriptor& file, const std::string& path) {
    if (::lseek(file.get(), 0, SEEK_SET) != 0) return std::nullopt;
    auto owner = read_all(file.get(), path);
    if (!owner) return std::nullopt;
    return *std::move(owner);
  }

  // An agent that was killed is survived for a moment by the supervisor of its worker, which ends all
  // processes of this user, and by copies of its descriptors in processes that it was about to start.
  static bool lock(const FileDescriptor& file, int attempts) {
    for (int attempt = 1; ::flock(file.get(), LOCK_EX | LOCK_NB) != 0; ++attempt) {
      if (errno != EWOULDBLOCK || attempt >= attempts) return false;
      std::this_thread::sleep_for(kLockPause);
    }
    return true;
  }

  bool may_have(const UserIds& ids, const std::string& owner, bool only_own) const {
    return owner == state_folder_ || (!only_own && is_free(ids, owner));
  }

  bool is_free(const UserIds& ids, const std::string& owner) const {
    std::error_code error;
    // Files of that folder are open to this user still.
    if (!owner.empty()) return !std::filesystem::exists(owner, error);
    // Without an owner before us, its processes are not left over from a worker.
    return !busy_.contains(ids.user) && !has_entry(ids.user);
  }

  const std::string& locks_;
  const std::string& state_folder_;
  std::set<std::uint32_t> busy_;
};

}  // namespace

Result<std::optional<UserClaim>> claim_user(const std::string& locks, const std::string& state_folder) {
  if (auto opened = open_locks(locks); !opened) return opened.error();
  const Claimer claimer{locks, state_folder};
  for (const bool only_own : {true, false}) {
    for (std::uint32_t attempt = 0; attempt < kUserCount; ++attempt) {
      if (auto claim = claimer.claim(user_for(state_folder, attempt), only_own)) return claim;
    }
  }
  return std::optional<UserClaim>{};
}

}  // namespace windlass::agent
