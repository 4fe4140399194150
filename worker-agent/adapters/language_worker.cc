#include "worker-agent/adapters/language_worker.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "worker-agent/adapters/files.h"
#include "worker-agent/adapters/output_lines.h"

namespace windlass::agent {
namespace {

// Output after the worker's own end is of processes that it left behind.
constexpr Duration kLateWorkerOutput = milliseconds{200};
// Where the kernel has no descriptors for processes.
constexpr Duration kLookForEnd = milliseconds{20};

Instant steady_now() {
  return Instant{std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch())};
}

struct Descriptors {
  FileDescriptor read;
  FileDescriptor write;
};

std::optional<Descriptors> open_pipe(int flags) {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC | flags) != 0) return std::nullopt;
  return Descriptors{FileDescriptor{ends[0]}, FileDescriptor{ends[1]}};
}

std::vector<char*> argument_pointers(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  all.reserve(texts.size() + 1);
  for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
  all.push_back(nullptr);
  return all;
}

struct ChildPlan {
  const char* program;
  char* const* arguments;
  char* const* environment;
  const char* folder;
  int out;
  int err;
  int failure;
  pid_t parent;
};

// Between fork and exec: system calls only, since other threads may have held locks.
[[noreturn]] void become_worker(const ChildPlan& plan) {
  ::setpgid(0, 0);  // a terminal's Ctrl-C is for the agent; and what it starts can be ended with it
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != plan.parent) ::_exit(127);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGPIPE, SIGTERM, SIGINT, SIGHUP}) ::signal(number, SIG_DFL);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0 && ::dup2(nothing, 0) >= 0 && ::dup2(plan.out, 1) >= 0 && ::dup2(plan.err, 2) >= 0 &&
      ::chdir(plan.folder) == 0) {
    ::execve(plan.program, plan.arguments, plan.environment);
  }
  const int error = errno;
  static_cast<void>(!::write(plan.failure, &error, sizeof error));
  ::_exit(127);
}

}  // namespace

class LanguageWorker::Inside final {
 public:
  Inside(const WorkerOutputLimits& limits, Callbacks callbacks, int wake)
      : limits_(limits),
        callbacks_(std::move(callbacks)),
        wake_(wake),
        out_lines_(limits_),
        err_lines_(limits_),
        rate_(limits.lines_per_second) {
    thread_ = std::jthread{[this](const std::stop_token& stop) { run(stop); }};
  }
  ~Inside() {
    thread_.request_stop();
    wake();
    thread_.join();
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

  void start(WorkerLaunch launch) {
    {
      const std::lock_guard lock{mutex_};
      to_start_ = std::move(launch);
      to_stop_.reset();  // it was for the one before
    }
    wake();
  }
  void stop(const StopGrace& grace) {
    {
      const std::lock_guard lock{mutex_};
      to_stop_ = grace;
    }
    wake();
  }
  int pid() const { return pid_; }

 private:
  void wake() const {
    const std::uint64_t one = 1;
    static_cast<void>(!::write(wake_.get(), &one, sizeof one));
  }

  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      std::array<pollfd, 4> waits{{{wake_.get(), POLLIN, 0},
                                   {out_.get(), POLLIN, 0},
                                   {err_.get(), POLLIN, 0},
                                   {process_.get(), POLLIN, 0}}};
      ::poll(waits.data(), waits.size(), patience());
      std::uint64_t count = 0;
      static_cast<void>(!::read(wake_.get(), &count, sizeof count));
      if (stop.stop_requested()) break;
      take_orders();
      if (waits[1].revents != 0) read_output(out_, out_lines_, false);
      if (waits[2].revents != 0) read_output(err_, err_lines_, true);
      look_for_end();
      take_deadlines();
    }
    if (pid_ == 0) return;
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  int patience() const {
    std::optional<Instant> until;
    if (ladder_at_) until = ladder_at_;
    if (late_until_) until = late_until_;
    if (pid_ != 0 && !process_.is_open()) {
      const Instant look = steady_now() + kLookForEnd;
      until = until ? std::min(*until, look) : look;
    }
    if (!until) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*until - steady_now()).count();
    return static_cast<int>(std::clamp<long>(left, 0, 60'000));
  }

  void take_orders() {
    std::optional<WorkerLaunch> launch;
    std::optional<StopGrace> grace;
    {
      const std::lock_guard lock{mutex_};
      launch = std::exchange(to_start_, std::nullopt);
      grace = std::exchange(to_stop_, std::nullopt);
    }
    if (launch) spawn(*launch);
    if (!grace || pid_ == 0) return;
    grace_ = *grace;
    // A second order does not prolong the first.
    if (!ladder_at_) ladder_at_ = steady_now() + grace_.word;
  }

  void fail_start(const std::string& reason) {
    callbacks_.ended({.kind = WorkerEnd::Kind::NotStarted, .reason = reason});
  }

  void spawn(const WorkerLaunch& launch) {
    auto out = open_pipe(0);
    auto err = open_pipe(0);
    auto failure = open_pipe(0);
    if (!out || !err || !failure) return fail_start(std::strerror(errno));
    std::vector<std::string> arguments{launch.program};
    arguments.insert(arguments.end(), launch.arguments.begin(), launch.arguments.end());
    const auto argument_list = argument_pointers(arguments);
    const auto environment = argument_pointers(launch.environment);
    const ChildPlan plan{
        launch.program.c_str(), argument_list.data(), environment.data(),   launch.folder.c_str(),
        out->write.get(),       err->write.get(),     failure->write.get(), ::getpid()};
    const pid_t child = ::fork();
    if (child < 0) return fail_start(std::strerror(errno));
    if (child == 0) become_worker(plan);
    ::setpgid(child, child);  // in both processes: whoever comes first
    failure->write = FileDescriptor{};
    int error = 0;
    if (::read(failure->read.get(), &error, sizeof error) == sizeof error) {
      ::waitpid(child, nullptr, 0);
      return fail_start(launch.program + " in " + launch.folder + ": " + std::strerror(error));
    }
    pid_ = child;
    process_ = FileDescriptor{static_cast<int>(::syscall(SYS_pidfd_open, child, 0))};
    if (process_.is_open()) ::fcntl(process_.get(), F_SETFD, FD_CLOEXEC);
    out_ = std::move(out->read);
    err_ = std::move(err->read);
    for (const int fd : {out_.get(), err_.get()}) ::fcntl(fd, F_SETFL, O_NONBLOCK);
    last_errors_.clear();
    ladder_at_.reset();
    ladder_step_ = 0;
  }

  void read_output(FileDescriptor& from, OutputLines& lines, bool is_error) {
    std::array<char, 65'536> buffer;
    const ssize_t count = ::read(from.get(), buffer.data(), buffer.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
    const auto tell = [&](std::string_view text, bool is_cut) { tell_line({is_error, text, is_cut}); };
    if (count > 0) return lines.feed({buffer.data(), static_cast<std::size_t>(count)}, tell);
    lines.finish(tell);
    from = FileDescriptor{};
  }

  void tell_line(WorkerLine line) {
    if (line.is_error) {
      last_errors_.emplace_back(line.text.substr(0, limits_.last_error_bytes_max));
      if (last_errors_.size() > limits_.last_errors_max) last_errors_.pop_front();
    }
    if (!rate_.take(steady_now())) {
      ++left_out_;
      return;
    }
    line.left_out = std::exchange(left_out_, 0);
    callbacks_.line(line);
  }

  void look_for_end() {
    if (pid_ != 0) {
      int status = 0;
      if (::waitpid(pid_, &status, WNOHANG) != pid_) return;
      ::kill(-pid_, SIGKILL);  // what is left of its group
      pid_ = 0;
      process_ = FileDescriptor{};
      ladder_at_.reset();
      end_.kind = WIFEXITED(status) ? WorkerEnd::Kind::Exited : WorkerEnd::Kind::Signalled;
      end_.code = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
      late_until_ = steady_now() + kLateWorkerOutput;
    }
    if (late_until_ && !out_.is_open() && !err_.is_open()) tell_end();
  }

  void tell_end() {
    late_until_.reset();
    for (auto* from : {&out_, &err_}) {
      if (from->is_open()) *from = FileDescriptor{};
    }
    end_.errors.assign(last_errors_.begin(), last_errors_.end());
    callbacks_.ended(std::exchange(end_, {}));
  }

  void take_deadlines() {
    const Instant now = steady_now();
    if (late_until_ && now >= *late_until_) tell_end();
    if (!ladder_at_ || now < *ladder_at_ || pid_ == 0) return;
    ::kill(-pid_, ladder_step_ == 0 ? SIGTERM : SIGKILL);
    ladder_at_ = now + (ladder_step_++ == 0 ? grace_.term : seconds{1});
  }

  WorkerOutputLimits limits_;
  Callbacks callbacks_;
  FileDescriptor wake_;
  std::mutex mutex_;
  std::optional<WorkerLaunch> to_start_;  // guarded by mutex_
  std::optional<StopGrace> to_stop_;      // guarded by mutex_
  std::atomic<int> pid_{0};

  // Of the thread.
  FileDescriptor out_;
  FileDescriptor err_;
  FileDescriptor process_;
  OutputLines out_lines_;
  OutputLines err_lines_;
  LineRate rate_;
  std::uint64_t left_out_ = 0;
  std::deque<std::string> last_errors_;
  WorkerEnd end_;
  std::optional<Instant> late_until_;
  std::optional<Instant> ladder_at_;
  int ladder_step_ = 0;
  StopGrace grace_;
  std::jthread thread_;
};

Result<std::unique_ptr<LanguageWorker>> LanguageWorker::open(const WorkerOutputLimits& limits,
                                                             Callbacks callbacks) {
  const int wake = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake < 0) return file_error("eventfd", "cannot be made", errno);
  return std::unique_ptr<LanguageWorker>{
      new LanguageWorker{std::make_unique<Inside>(limits, std::move(callbacks), wake)}};
}

LanguageWorker::LanguageWorker(std::unique_ptr<Inside> inside) : inside_(std::move(inside)) {}
LanguageWorker::~LanguageWorker() = default;

void LanguageWorker::start(WorkerLaunch launch) {
  inside_->start(std::move(launch));
}

void LanguageWorker::stop(const StopGrace& grace) {
  inside_->stop(grace);
}

int LanguageWorker::pid() const {
  return inside_->pid();
}

}  // namespace windlass::agent
