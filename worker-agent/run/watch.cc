#include "worker-agent/run/watch.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>

namespace windlass::agent {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Output that comes after the program itself ended is of processes it left behind.
constexpr Duration kLateOutput = milliseconds{100};

struct Pipe {
  int read = -1;
  int write = -1;
};

Pipe make_pipe() {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  return {ends[0], ends[1]};
}

[[noreturn]] void become(const WatchOptions& options, const Pipe& out, const Pipe& err, int failure) {
  ::setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  std::vector<char*> arguments;
  for (const std::string& each : options.command) arguments.push_back(const_cast<char*>(each.c_str()));
  arguments.push_back(nullptr);
  if (nothing >= 0 && ::dup2(nothing, 0) >= 0 && ::dup2(out.write, 1) >= 0 && ::dup2(err.write, 2) >= 0) {
    ::execv(arguments[0], arguments.data());
  }
  const int error = errno;
  static_cast<void>(!::write(failure, &error, sizeof error));
  ::_exit(127);
}

class Watcher {
 public:
  explicit Watcher(const WatchOptions& options) : options_(options) {}

  RunOutcome run() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigaddset(&signals, SIGTERM);
    ::sigprocmask(SIG_BLOCK, &signals, nullptr);
    signals_ = ::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    out_ = make_pipe();
    err_ = make_pipe();
    const Pipe failure = make_pipe();
    if (signals_ < 0 || out_.read < 0 || err_.read < 0 || failure.read < 0) return not_started(errno);
    started_ = SteadyClock::now();
    child_ = ::fork();
    if (child_ < 0) return not_started(errno);
    if (child_ == 0) become(options_, out_, err_, failure.write);
    ::setpgid(child_, child_);  // in both processes: whoever comes first
    for (const int end : {out_.write, err_.write, failure.write}) ::close(end);
    int error = 0;
    if (::read(failure.read, &error, sizeof error) == sizeof error) {
      ::waitpid(child_, nullptr, 0);
      return not_started(error);
    }
    deadline_ = started_ + options_.timeout;
    while (!step()) {
    }
    outcome_.took = SteadyClock::now() - started_;
    return std::move(outcome_);
  }

 private:
  RunOutcome not_started(int error) const {
    return {.end = RunEnd::NotStarted,
            .reason = options_.command.front() + " cannot be started: " + std::strerror(error)};
  }

  // True when all is over.
  bool step() {
    std::array<pollfd, 3> waits{{{signals_, POLLIN, 0}, {out_.read, POLLIN, 0}, {err_.read, POLLIN, 0}}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - SteadyClock::now()).count();
    const int ready = ::poll(waits.data(), waits.size(), static_cast<int>(std::clamp<long>(left, 0, 60'000)));
    if (ready > 0) {
      if (waits[0].revents != 0) take_signals();
      if (waits[1].revents != 0) read_output(out_, outcome_.standard_output);
      if (waits[2].revents != 0) read_output(err_, outcome_.standard_error);
    }
    const bool is_read = out_.read < 0 && err_.read < 0;
    if (child_ == 0 && is_read) return true;
    if (SteadyClock::now() < deadline_) return false;
    if (child_ == 0) return true;
    end_group(RunEnd::TimedOut);
    return false;
  }

  void take_signals() {
    signalfd_siginfo info{};
    while (::read(signals_, &info, sizeof info) == sizeof info) {
      if (info.ssi_signo == SIGTERM && child_ != 0 && !ending_) end_group(RunEnd::Stopped);
    }
    int status = 0;
    if (child_ == 0 || ::waitpid(child_, &status, WNOHANG) != child_) return;
    if (!ending_) {
      outcome_.end = WIFEXITED(status) ? RunEnd::Exited : RunEnd::Signalled;
      outcome_.code = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
    } else {
      ::kill(-child_, SIGKILL);  // what is left of its group
    }
    child_ = 0;
    deadline_ = SteadyClock::now() + kLateOutput;
  }

  // First politely, then surely.
  void end_group(RunEnd why) {
    if (!ending_) outcome_.end = why;
    ::kill(-child_, ending_ ? SIGKILL : SIGTERM);
    ending_ = true;
    deadline_ = SteadyClock::now() + options_.grace;
  }

  void read_output(Pipe& pipe, std::string& into) {
    std::array<char, 65536> buffer{};
    const ssize_t count = ::read(pipe.read, buffer.data(), buffer.size());
    if (count <= 0) {
      if (count < 0 && errno == EINTR) return;
      ::close(pipe.read);
      pipe.read = -1;
      return;
    }
    // What does not fit is read all the same: a full pipe would stop the program.
    const std::size_t room = options_.output_bytes_max - into.size();
    into.append(buffer.data(), std::min(room, static_cast<std::size_t>(count)));
    outcome_.is_cut = outcome_.is_cut || static_cast<std::size_t>(count) > room;
  }

  const WatchOptions& options_;
  RunOutcome outcome_;
  Pipe out_;
  Pipe err_;
  int signals_ = -1;
  pid_t child_ = 0;  // 0: none any more
  SteadyClock::time_point started_;
  SteadyClock::time_point deadline_;
  bool ending_ = false;
};

}  // namespace

RunOutcome watch(const WatchOptions& options) {
  return Watcher{options}.run();
}

}  // namespace windlass::agent
