#include "worker-agent/run/confine.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace windlass::agent {
namespace {

constexpr const char* kEmptyFolder = "mode=0755,size=1m,nr_inodes=4k";
constexpr const char* kScratchFolder = "mode=1777,size=64m,nr_inodes=64k";
constexpr const char* kPool = "mode=0711,nr_inodes=64k,size=";
// What a process maps is more than it uses: stacks of threads, and what allocators keep ready.
constexpr std::uint64_t kMappedAboveMemory = std::uint64_t{1} << 30U;

std::string failed(std::string_view doing, const std::string& what = {}) {
  const int error = errno;
  return std::string{doing} + (what.empty() ? "" : " " + what) + ": " + std::strerror(error);
}

bool write_text(const char* path, const std::string& text) {
  const int file = ::open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool is_written = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(file);
  return is_written;
}

// One user, the same inside and outside.
std::optional<std::string> enter_user_namespace() {
  const std::string user = std::to_string(::geteuid());
  const std::string group = std::to_string(::getegid());
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC) != 0)
    return failed("a user namespace cannot be made");
  if (!write_text("/proc/self/setgroups", "deny") ||
      !write_text("/proc/self/uid_map", user + " " + user + " 1") ||
      !write_text("/proc/self/gid_map", group + " " + group + " 1")) {
    return failed("the user cannot be mapped into its namespace");
  }
  return std::nullopt;
}

bool set_read_only(const char* path, bool is_read_only, bool is_recursive) {
  struct mount_attr attributes {};
  (is_read_only ? attributes.attr_set : attributes.attr_clr) = MOUNT_ATTR_RDONLY;
  return ::mount_setattr(AT_FDCWD, path, is_recursive ? AT_RECURSIVE : 0, &attributes, sizeof attributes) ==
         0;
}

// With the folders above it.
bool make_mount_point(const std::string& path, bool is_folder) {
  for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
    if (::mkdir(path.substr(0, at).c_str(), 0755) != 0 && errno != EEXIST && errno != EROFS) return false;
  }
  if (is_folder) return ::mkdir(path.c_str(), 0755) == 0 || errno == EEXIST || errno == EROFS;
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0444);
  if (file >= 0) ::close(file);
  return file >= 0 || errno == EROFS;
}

struct PutBack {
  std::string path;
  int source = -1;
  bool is_folder = true;
  bool is_writable = false;
};

std::optional<std::string> open_sources(const Confinement& confinement, std::vector<PutBack>& sources) {
  for (const auto& [paths, is_writable] :
       {std::pair{&confinement.shown, false}, std::pair{&confinement.writable, true}}) {
    for (const std::string& path : *paths) {
      struct stat facts {};
      const int source = ::open(path.c_str(), O_PATH | O_CLOEXEC);
      if (source < 0 || ::fstat(source, &facts) != 0) return failed("cannot be found:", path);
      sources.push_back({path, source, S_ISDIR(facts.st_mode), is_writable});
    }
  }
  return std::nullopt;
}

bool is_any_of(const std::string& path, const std::vector<std::string>& paths) {
  return std::ranges::find(paths, path) != paths.end();
}

// All that the worker writes lies in one file system in memory, so that one bound holds for all of it. By the
// path that each of its folders is to have.
std::optional<std::string> make_pool(const Confinement& confinement, std::map<std::string, int>& folders) {
  const std::string& place = confinement.own_folder;
  if (confinement.scratch_bytes_max == 0 || !is_any_of(place, confinement.writable)) return std::nullopt;
  const std::string options = kPool + std::to_string(confinement.scratch_bytes_max);
  if (::mount("tmpfs", place.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, options.c_str()) != 0)
    return failed("no file system in memory can be mounted at", place);
  std::vector<std::string> paths = confinement.scratch;
  paths.push_back(place);
  for (const std::string& path : paths) {
    const std::string folder = place + "/" + std::to_string(folders.size());
    const bool is_own = path == place;
    const UserIds& ids = confinement.ids;
    if (::mkdir(folder.c_str(), 0700) != 0 || ::chmod(folder.c_str(), is_own ? 0700 : 01777) != 0 ||
        (is_own && confinement.kind == ConfinementKind::OtherUser &&
         ::chown(folder.c_str(), ids.user, ids.group) != 0)) {
      return failed("no folder can be made for", path);
    }
    folders[path] = ::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folders[path] < 0) return failed("cannot be opened:", folder);
  }
  return std::nullopt;
}

// An empty folder in its place.
std::optional<std::string> hide(const std::string& path, const Confinement& confinement,
                                const std::map<std::string, int>& pool) {
  if (const auto found = pool.find(path); found != pool.end()) {
    const std::string source = "/proc/self/fd/" + std::to_string(found->second);
    if (::mount(source.c_str(), path.c_str(), nullptr, MS_BIND, nullptr) != 0)
      return failed("cannot be replaced:", path);
    return std::nullopt;
  }
  const char* const options = is_any_of(path, confinement.scratch) ? kScratchFolder : kEmptyFolder;
  if (::mount("tmpfs", path.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, options) != 0)
    return failed("cannot be hidden:", path);
  return std::nullopt;
}

std::optional<std::string> put_back(const PutBack& each) {
  const std::string source = "/proc/self/fd/" + std::to_string(each.source);
  if (!make_mount_point(each.path, each.is_folder)) return failed("no place can be made for", each.path);
  if (::mount(source.c_str(), each.path.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0 ||
      !set_read_only(each.path.c_str(), !each.is_writable, true)) {
    return failed("cannot be put back:", each.path);
  }
  ::close(each.source);
  return std::nullopt;
}

std::optional<std::string> arrange_mounts(const Confinement& confinement) {
  ::umask(022);  // the folders on the way to what is put back are for the worker
  // Nothing of this may reach the machine. Fails in a chroot, whose root is no mount.
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return failed("mounts cannot be made private");
  std::vector<PutBack> sources;
  if (auto error = open_sources(confinement, sources)) return error;
  if (confinement.kind == ConfinementKind::Namespace && !set_read_only("/", true, true))
    return failed("the file system cannot be made read-only");
  std::map<std::string, int> pool;
  if (auto error = make_pool(confinement, pool)) return error;
  for (const std::string& path : confinement.hidden) {
    if (auto error = hide(path, confinement, pool)) return error;
  }
  for (PutBack& each : sources) {
    if (const auto found = pool.find(each.path); found != pool.end()) {
      ::close(each.source);
      each.source = found->second;
      pool.erase(found);
    }
    if (auto error = put_back(each)) return error;
  }
  // Some of them lie below what was put back.
  for (const std::string& path : confinement.covered) {
    if (::mount("/dev/null", path.c_str(), nullptr, MS_BIND, nullptr) != 0)
      return failed("cannot be covered:", path);
  }
  for (const auto& [path, folder] : pool) ::close(folder);
  for (const std::string& path : confinement.hidden) {
    if (!is_any_of(path, confinement.scratch) && !set_read_only(path.c_str(), true, false))
      return failed("cannot be closed:", path);
  }
  return std::nullopt;
}

bool limit(__rlimit_resource which, std::uint64_t most) {
  struct rlimit present {};
  if (::getrlimit(which, &present) != 0) return false;
  const rlim_t value = present.rlim_max == RLIM_INFINITY || most < present.rlim_max ? most : present.rlim_max;
  const struct rlimit wanted { value, value };
  return ::setrlimit(which, &wanted) == 0;
}

// A change from one plain user to another takes no capability away, and those of a service file would go on
// to the worker's program.
bool drop_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const std::array<__user_cap_data_struct, 2> none{};
  return ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == 0 &&
         ::syscall(SYS_capset, &header, none.data()) == 0;
}

}  // namespace

std::optional<std::string> enter_namespaces(const Confinement& confinement) {
  if (!confinement.has_namespaces()) return std::nullopt;
  if (confinement.kind == ConfinementKind::Namespace) {
    if (auto error = enter_user_namespace()) return error;
  } else if (::unshare(CLONE_NEWNS | CLONE_NEWIPC) != 0) {
    return failed("a mount and an IPC namespace cannot be made");
  }
  return arrange_mounts(confinement);
}

bool mount_own_proc() {
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) == 0;
}

std::optional<std::string> give_up_privileges(const Confinement& confinement) {
  static_cast<void>(limit(RLIMIT_CORE, 0));  // a dump would have the application's secrets in it
  if (confinement.open_files_max > 0 && !limit(RLIMIT_NOFILE, confinement.open_files_max))
    return failed("open files cannot be limited");
  if (confinement.processes_max > 0 && !limit(RLIMIT_NPROC, confinement.processes_max))
    return failed("processes cannot be limited");
  if (confinement.scratch_bytes_max > 0 && !limit(RLIMIT_FSIZE, confinement.scratch_bytes_max))
    return failed("the size of files cannot be limited");
  // The supervisor looks at the whole; this is for what happens between two looks.
  if (confinement.memory_bytes_max > 0 &&
      !limit(RLIMIT_DATA, confinement.memory_bytes_max + kMappedAboveMemory)) {
    return failed("memory cannot be limited");
  }
  if (confinement.kind == ConfinementKind::OtherUser) {
    const uid_t user = confinement.ids.user;
    const gid_t group = confinement.ids.group;
    if (::setgroups(0, nullptr) != 0 || ::setresgid(group, group, group) != 0 ||
        ::setresuid(user, user, user) != 0) {
      return failed("the user cannot be switched to", std::to_string(user));
    }
    if (!drop_capabilities()) return failed("capabilities cannot be given up");
    if (user != 0 && ::setuid(0) == 0) return "the user can be switched back";
  }
  if (!confinement.is_guarded) return std::nullopt;
  if (::geteuid() != 0 && !drop_capabilities()) return failed("capabilities cannot be given up");
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return failed("new privileges cannot be forbidden");
  return std::nullopt;
}

}  // namespace windlass::agent
