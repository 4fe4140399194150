#include "worker-agent/run/supervise.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "worker-agent/run/confine.h"

namespace windlass::agent {
namespace {

constexpr int kKillRounds = 2000;  // of 5 ms: then what is left hangs in the kernel
constexpr int kSweepRounds = 40;   // what has ended and is not waited for by anybody counts as there
constexpr useconds_t kKillPauseUs = 5000;

constexpr std::string_view kHere = "+";  // the worker's process, before it can fail

void tell(int report, std::string_view text) {
  static_cast<void>(!::write(report, text.data(), text.size()));
}

struct Told {
  std::string text;   // empty: there is nobody left who could say more
  pid_t process = 0;  // whose it is, as this process counts them; in a namespace it has another number
};

Told hear(int from) {
  std::array<char, 1024> text{};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> sender{};
  iovec part{text.data(), text.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = sender.data();
  message.msg_controllen = sender.size();
  const ssize_t count = ::recvmsg(from, &message, 0);
  if (count <= 0) return {};
  Told told{.text = {text.data(), static_cast<std::size_t>(count)}};
  if (const cmsghdr* head = CMSG_FIRSTHDR(&message);
      head != nullptr && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_CREDENTIALS) {
    ucred who{};
    std::memcpy(&who, CMSG_DATA(head), sizeof who);
    told.process = who.pid;
  }
  return told;
}

void reset_signals() {
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGPIPE, SIGTERM, SIGINT, SIGHUP, SIGCHLD}) ::signal(number, SIG_DFL);
}

// The process that becomes the worker.
[[noreturn]] void become(const SuperviseOptions& options, pid_t parent, int failure) {
  const auto fail = [failure](const std::string& reason) {
    tell(failure, reason);
    ::_exit(127);
  };
  tell(failure, kHere);
  if (const auto problem = give_up_privileges(options.confinement)) fail(*problem);
  // After the change of user, which takes it back.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  ::umask(077);
  reset_signals();
  std::vector<char*> arguments;
  for (const std::string& each : options.command) arguments.push_back(const_cast<char*>(each.c_str()));
  arguments.push_back(nullptr);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  // Anew, since the folder of that name may be another one in a namespace.
  if (::chdir(options.folder.c_str()) != 0)
    fail(options.folder + " cannot be entered: " + std::strerror(errno));
  if (nothing >= 0 && ::dup2(nothing, 0) >= 0) {
    ::syscall(SYS_close_range, 3U, ~0U, 4U);  // 4: closed by exec, since the failure is still to be told
    ::execv(arguments[0], arguments.data());
  }
  fail(options.command.front() + " cannot be started: " + std::strerror(errno));
  ::_exit(127);
}

[[noreturn]] void end_as(int status) {
  if (WIFSIGNALED(status)) {
    // Only the worker may leave a core dump; the supervisor must not.
    const struct rlimit none { 0, 0 };
    ::setrlimit(RLIMIT_CORE, &none);
    reset_signals();
    ::signal(WTERMSIG(status), SIG_DFL);
    ::raise(WTERMSIG(status));
  }
  ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 127);
}

// The first process of a process namespace: with it all others there end.
[[noreturn]] void be_init(const SuperviseOptions& options, int failure) {
  mount_own_proc();
  const pid_t worker = ::fork();
  if (worker == 0) become(options, 1, failure);
  for (const int each : {failure, options.report, options.alive}) ::close(each);
  if (worker < 0) ::_exit(127);
  for (;;) {
    int status = 0;
    const pid_t ended = ::waitpid(-1, &status, 0);
    if (ended < 0 && errno != EINTR) ::_exit(127);
    // The kernel lets no signal end the first process, so its own end tells in the shell's way.
    if (ended == worker) ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
}

// By parent, from the process table.
std::multimap<pid_t, pid_t> children_of_all() {
  std::multimap<pid_t, pid_t> all;
  DIR* const table = ::opendir("/proc");
  if (table == nullptr) return all;
  while (const dirent* entry = ::readdir(table)) {
    const pid_t pid = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
    if (pid <= 0) continue;
    const int file = ::open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    std::array<char, 512> text{};
    static_cast<void>(!::read(file, text.data(), text.size() - 1));
    ::close(file);
    // "pid (name) state parent": the name may hold anything.
    const char* const name_end = std::strrchr(text.data(), ')');
    if (name_end == nullptr || std::strlen(name_end) < 5) continue;
    all.emplace(static_cast<pid_t>(std::strtol(name_end + 4, nullptr, 10)), pid);
  }
  ::closedir(table);
  return all;
}

void kill_descendants() {
  const auto all = children_of_all();
  std::vector<pid_t> open{::getpid()};
  while (!open.empty()) {
    const auto [begin, end] = all.equal_range(open.back());
    open.pop_back();
    for (auto each = begin; each != end; ++each) {
      ::kill(each->second, SIGKILL);
      open.push_back(each->second);
    }
  }
}

// One sweep of the kernel, which no process that keeps on forking escapes. False: there was nothing to kill.
bool kill_user(const UserIds& ids) {
  const pid_t killer = ::fork();
  if (killer == 0) {
    if (ids.user == 0 || ::setresuid(ids.user, ids.user, ids.user) != 0) ::_exit(1);
    ::_exit(::kill(-1, SIGKILL) != 0 && errno == ESRCH ? 1 : 0);
  }
  int status = 0;
  // One of those that are to be killed may have killed the killer.
  return killer > 0 && ::waitpid(killer, &status, 0) == killer &&
         !(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

bool owns_user(const Confinement& how) {
  return how.kind == ConfinementKind::OtherUser && how.is_user_exclusive;
}

class Supervisor {
 public:
  explicit Supervisor(const SuperviseOptions& options) : options_(options) {}

  int run() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, number);
    ::sigprocmask(SIG_BLOCK, &signals, nullptr);
    signals_ = ::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    static_cast<void>(::chdir("/"));  // no way around a hidden folder
    if (signals_ < 0 || !start()) return 127;
    while (!status_) step();
    kill_rest();
    end_as(*status_);
  }

 private:
  bool start() {
    if (const auto problem = enter_namespaces(options_.confinement)) {
      tell(options_.report, *problem);
      return false;
    }
    ::prctl(PR_SET_DUMPABLE, 0);
    std::array<int, 2> failure{-1, -1};
    const int on = 1;
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, failure.data()) != 0 ||
        ::setsockopt(failure[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0) {
      return false;
    }
    const pid_t self = ::getpid();
    child_ = ::fork();
    if (child_ < 0) {
      tell(options_.report, std::string{"no process can be made: "} + std::strerror(errno));
      return false;
    }
    if (child_ == 0) {
      ::setpgid(0, 0);
      ::close(failure[0]);
      if (options_.confinement.kind == ConfinementKind::Namespace) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        be_init(options_, failure[1]);
      }
      become(options_, self, failure[1]);
    }
    ::setpgid(child_, child_);  // in both processes: whoever comes first
    ::close(failure[1]);
    Told told = hear(failure[0]);
    const pid_t worker = told.text == kHere ? told.process : child_;
    if (told.text == kHere) told = hear(failure[0]);
    ::close(failure[0]);
    if (!told.text.empty()) {
      tell(options_.report, told.text);
      ::waitpid(child_, nullptr, 0);
      return false;
    }
    tell(options_.report, "pid " + std::to_string(worker) + "\n");
    ::close(options_.report);
    return true;
  }

  void step() {
    std::array<pollfd, 2> waits{{{signals_, POLLIN, 0}, {options_.alive, POLLIN, 0}}};
    ::poll(waits.data(), waits.size(), -1);
    signalfd_siginfo info{};
    while (::read(signals_, &info, sizeof info) == sizeof info) {
      if (info.ssi_signo != SIGCHLD) ::kill(-child_, SIGTERM);
    }
    if (waits[1].revents != 0) {
      ::kill(-child_, SIGKILL);
      ::kill(child_, SIGKILL);
      options_.alive = -1;  // poll ignores it
    }
    reap();
  }

  // True: there are children still.
  bool reap() {
    for (;;) {
      int status = 0;
      const pid_t ended = ::waitpid(-1, &status, WNOHANG);
      if (ended == 0) return true;
      if (ended < 0) return errno == EINTR;
      if (ended == child_) status_ = status;
    }
  }

  void kill_rest() {
    ::kill(-child_, SIGKILL);
    if (owns_user(options_.confinement)) kill_user(options_.confinement.ids);
    for (int round = 0; reap() && round < kKillRounds; ++round) {
      kill_descendants();
      if (owns_user(options_.confinement)) kill_user(options_.confinement.ids);
      ::usleep(kKillPauseUs);
    }
  }

  SuperviseOptions options_;
  int signals_ = -1;
  pid_t child_ = 0;
  std::optional<int> status_;
};

// What keeps the present user from using the path, if anything does.
std::optional<std::string> unreachable(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) == 0) {
    const int wanted = S_ISDIR(facts.st_mode) ? X_OK : R_OK;
    if (::access(path.c_str(), wanted) == 0) return std::nullopt;
  }
  return path + " cannot be reached: " + std::strerror(errno);
}

}  // namespace

int supervise(const SuperviseOptions& options) {
  return Supervisor{options}.run();
}

int sweep(const Confinement& confinement) {
  if (!owns_user(confinement)) return 0;
  for (int round = 0; round < kSweepRounds && kill_user(confinement.ids); ++round) ::usleep(kKillPauseUs);
  return 0;
}

int check_confinement(const Confinement& confinement, const std::vector<std::string>& paths) {
  const auto fail = [](const std::string& reason) {
    std::fputs((reason + "\n").c_str(), stderr);
    return 1;
  };
  if (const auto problem = enter_namespaces(confinement)) return fail(*problem);
  const pid_t child = ::fork();  // into the process namespace, if there is a new one
  if (child < 0) return fail(std::string{"no process can be made: "} + std::strerror(errno));
  if (child == 0) {
    auto problem = give_up_privileges(confinement);
    for (const std::string& each : paths) {
      if (!problem) problem = unreachable(each);
    }
    ::_exit(problem ? fail(*problem) : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace windlass::agent
