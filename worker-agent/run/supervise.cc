#include "worker-agent/run/supervise.h"

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
#include <optional>
#include <utility>

#include "worker-agent/run/confine.h"
#include "worker-agent/run/leftovers.h"
#include "worker-agent/run/process_tree.h"

namespace windlass::agent {
namespace {

constexpr int kKillRounds = 2000;  // of 5 ms: then what is left hangs in the kernel
constexpr int kSweepRounds = 40;   // what has ended and is not waited for by anybody counts as there
constexpr useconds_t kKillPauseUs = 5000;
constexpr int kMemoryLookMs = 100;   // between two looks at how much memory is used
constexpr int kLooksPerFamily = 10;  // after which new processes are looked for
// Above that of the agent and of whoever else is here: when the machine has no memory left, the kernel takes
// a worker first.
constexpr std::string_view kOutOfMemoryScore = "500";

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

bool wants_call_filter(const Confinement& confinement) {
  return confinement.is_guarded && confinement.has_call_filter;
}

bool wants_port_rules(const Confinement& confinement) {
  return confinement.is_guarded && confinement.has_port_rules;
}

// The process that becomes the worker.
[[noreturn]] void become(const SuperviseOptions& options, pid_t parent, int failure) {
  const auto fail = [failure](const std::string& reason) {
    tell(failure, reason);
    ::_exit(127);
  };
  tell(failure, kHere);
  if (const auto problem = give_up_privileges(options.confinement)) fail(*problem);
  if (wants_port_rules(options.confinement) && !install_port_rules(options.confinement.ports))
    fail(std::string{"rules for ports cannot be installed: "} + std::strerror(errno));
  if (wants_call_filter(options.confinement) && !install_call_filter())
    fail(std::string{"a filter of system calls cannot be installed: "} + std::strerror(errno));
  // After the change of user, which takes it back.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  ::umask(077);
  reset_signals();
  ::signal(SIGXFSZ, SIG_IGN);  // a file that is too large is an error of the write, no reason to die
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
  if (options.confinement.has_own_proc && !mount_own_proc()) {
    tell(failure, std::string{"a /proc of its own cannot be mounted: "} + std::strerror(errno));
    ::_exit(127);
  }
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

void kill_descendants() {
  for (const pid_t each : descendants()) ::kill(each, SIGKILL);
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

// Inherited by the worker and what it starts.
void prefer_when_out_of_memory() {
  const int file = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  tell(file, kOutOfMemoryScore);
  ::close(file);
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
    prefer_when_out_of_memory();
    if (signals_ < 0 || !start()) return 127;
    while (!status_) step();
    kill_rest();
    if (owns_user(options_.confinement)) remove_leftovers(options_.confinement);
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
    const bool is_limited = options_.confinement.memory_bytes_max > 0;
    ::poll(waits.data(), waits.size(), is_limited ? kMemoryLookMs : -1);
    if (is_limited) look_at_memory();
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

  // A kernel's own limit would need a control group, which an agent is seldom allowed to make.
  void look_at_memory() {
    if (looks_++ % kLooksPerFamily == 0) family_ = descendants();
    const std::uint64_t most = options_.confinement.memory_bytes_max;
    const std::uint64_t used = memory_of(family_);
    if (used <= most || is_over_memory_) return;
    is_over_memory_ = true;
    ::kill(-child_, SIGKILL);
    ::kill(child_, SIGKILL);
    kill_descendants();
    constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20U;
    // Among the worker's last words, which the agent tells with its end.
    tell(STDERR_FILENO, "windlass-run: the language worker was killed, because its processes used " +
                            std::to_string(used / kMebibyte) +
                            " MiB of memory and language_worker.memory_max is " +
                            std::to_string(most / kMebibyte) + " MiB\n");
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
  std::vector<pid_t> family_;  // as of the last look
  std::uint64_t looks_ = 0;
  bool is_over_memory_ = false;
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
  remove_leftovers(confinement);
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
    const auto miss = [](std::string_view what) { tell(STDERR_FILENO, std::string{what} + "\n"); };
    if (confinement.kind == ConfinementKind::Namespace && !mount_own_proc()) miss(kNoOwnProc);
    auto problem = give_up_privileges(confinement);
    if (!problem && confinement.is_guarded) {
      if (!install_port_rules(confinement.ports)) miss(kNoPortRules);
      if (!install_call_filter()) miss(kNoCallFilter);
    }
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
