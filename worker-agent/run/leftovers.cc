#include "worker-agent/run/leftovers.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

namespace windlass::agent {
namespace {

constexpr int kDepthMax = 64;                 // of folders; one descriptor each
constexpr std::size_t kEntriesMax = 500'000;  // looked at, all folders together

class Sweeper {
 public:
  explicit Sweeper(uid_t user) : user_(user) {}

  // Everything of the user below the open folder, which is closed.
  void clear(int folder, int depth) {
    DIR* const entries = ::fdopendir(folder);
    if (entries == nullptr) {
      ::close(folder);
      return;
    }
    while (const dirent* entry = ::readdir(entries)) {
      if (std::strcmp(entry->d_name, ".") == 0 || std::strcmp(entry->d_name, "..") == 0) continue;
      if (++entries_ > kEntriesMax) break;
      clear_entry(folder, entry->d_name, depth);
    }
    ::closedir(entries);
  }

 private:
  void clear_entry(int folder, const char* name, int depth) {
    struct stat facts {};
    if (::fstatat(folder, name, &facts, AT_SYMLINK_NOFOLLOW) != 0) return;
    const bool is_own = facts.st_uid == user_;
    if (!S_ISDIR(facts.st_mode)) {
      if (is_own) ::unlinkat(folder, name, 0);
      return;
    }
    // It may have closed its own folder to itself.
    if (is_own) ::fchmodat(folder, name, 0700, 0);
    const int inside = ::openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inside >= 0 && depth < kDepthMax) {
      clear(inside, depth + 1);
    } else if (inside >= 0) {
      ::close(inside);
    }
    if (is_own) ::unlinkat(folder, name, AT_REMOVEDIR);
  }

  uid_t user_;
  std::size_t entries_ = 0;
};

bool is_of(uid_t user, const ipc_perm& facts) {
  return facts.uid == user || facts.cuid == user;
}

void remove_shared_memory(uid_t user) {
  struct shmid_ds facts {};
  struct shm_info all {};
  const int last = ::shmctl(0, SHM_INFO, reinterpret_cast<shmid_ds*>(&all));
  for (int index = 0; index <= last; ++index) {
    const int id = ::shmctl(index, SHM_STAT_ANY, &facts);
    if (id >= 0 && is_of(user, facts.shm_perm)) ::shmctl(id, IPC_RMID, nullptr);
  }
}

void remove_queues(uid_t user) {
  struct msqid_ds facts {};
  struct msginfo all {};
  const int last = ::msgctl(0, MSG_INFO, reinterpret_cast<msqid_ds*>(&all));
  for (int index = 0; index <= last; ++index) {
    const int id = ::msgctl(index, MSG_STAT_ANY, &facts);
    if (id >= 0 && is_of(user, facts.msg_perm)) ::msgctl(id, IPC_RMID, nullptr);
  }
}

void remove_semaphores(uid_t user) {
  union {
    int value;
    struct semid_ds* facts;
    struct seminfo* all;
  } argument{};
  struct seminfo all {};
  argument.all = &all;
  const int last = ::semctl(0, 0, SEM_INFO, argument);
  for (int index = 0; index <= last; ++index) {
    struct semid_ds facts {};
    argument.facts = &facts;
    const int id = ::semctl(index, 0, SEM_STAT_ANY, argument);
    if (id >= 0 && is_of(user, facts.sem_perm)) ::semctl(id, 0, IPC_RMID);
  }
}

}  // namespace

void remove_leftovers(const Confinement& confinement) {
  if (confinement.swept.empty()) return;
  const pid_t child = ::fork();
  if (child == 0) {
    const uid_t user = confinement.ids.user;
    const gid_t group = confinement.ids.group;
    if (user == 0 || ::setgroups(0, nullptr) != 0 || ::setresgid(group, group, group) != 0 ||
        ::setresuid(user, user, user) != 0) {
      ::_exit(1);
    }
    Sweeper sweeper{user};
    for (const std::string& each : confinement.swept) {
      const int folder = ::open(each.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
      if (folder >= 0) sweeper.clear(folder, 0);
    }
    remove_shared_memory(user);
    remove_queues(user);
    remove_semaphores(user);
    ::_exit(0);
  }
  if (child > 0) ::waitpid(child, nullptr, 0);
}

}  // namespace windlass::agent
