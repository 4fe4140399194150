#include "worker-agent/adapters/language_worker.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
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
  char* const* arguments;  // windlass-run's
  char* const* environment;
  int out;
  int err;
  int report;
  int alive;
  int user_lock;  // -1: none
};

// Above the descriptors that windlass-run gets, so that none is overwritten before it is copied.
constexpr int kFirstFreeDescriptor = 16;
constexpr std::string_view kStarted = "pid ";

// Between fork and exec: system calls only, since other threads may have held locks.
[[noreturn]] void become_supervisor(const ChildPlan& plan) {
  ::setpgid(0, 0);  // a terminal's Ctrl-C is for the agent
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGPIPE, SIGTERM, SIGINT, SIGHUP}) ::signal(number, SIG_DFL);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int report = ::fcntl(plan.report, F_DUPFD_CLOEXEC, kFirstFreeDescriptor);
  const int alive = ::fcntl(plan.alive, F_DUPFD_CLOEXEC, kFirstFreeDescriptor);
  const int out = ::fcntl(plan.out, F_DUPFD_CLOEXEC, kFirstFreeDescriptor);
  const int err = ::fcntl(plan.err, F_DUPFD_CLOEXEC, kFirstFreeDescriptor);
  const int user_lock =
      plan.user_lock < 0 ? nothing : ::fcntl(plan.user_lock, F_DUPFD_CLOEXEC, kFirstFreeDescriptor);
  if (nothing >= 0 && ::dup2(nothing, 0) >= 0 && ::dup2(out, 1) >= 0 && ::dup2(err, 2) >= 0 &&
      ::dup2(user_lock, 5) >= 0 && ::dup2(alive, 4) >= 0 && ::dup2(report, 3) >= 0) {
    ::execve(plan.arguments[0], plan.arguments, plan.environment);
  }
  static constexpr std::string_view kNoSupervisor = "windlass-run cannot be started; see exec.watcher";
  static_cast<void>(!::write(report, kNoSupervisor.data(), kNoSupervisor.size()));
  ::_exit(127);
}

std::vector<std::string> supervisor_command(const WorkerLaunch& launch) {
  std::vector<std::string> command{launch.supervisor, "worker"};
  const auto options = to_arguments(launch.confinement);
  command.insert(command.end(), options.begin(), options.end());
  command.push_back(launch.folder);
  command.push_back(launch.program);
  command.insert(command.end(), launch.arguments.begin(), launch.arguments.end());
  return command;
}

// All that comes until the other end is closed.
std::string read_report(int fd) {
  std::string text;
  std::array<char, 1024> buffer;
  for (;;) {
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
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
    if (supervisor_ == 0) return;
    alive_ = FileDescriptor{};  // kills all
    ::waitpid(supervisor_, nullptr, 0);
  }

  int patience() const {
    std::optional<Instant> until;
    if (ladder_at_) until = ladder_at_;
    if (late_until_) until = late_until_;
    if (supervisor_ != 0 && !process_.is_open()) {
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
    if (!grace || supervisor_ == 0) return;
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
    auto report = open_pipe(0);
    auto alive = open_pipe(0);
    if (!out || !err || !report || !alive) return fail_start(std::strerror(errno));
    const std::vector<std::string> command = supervisor_command(launch);
    const auto arguments = argument_pointers(command);
    const auto environment = argument_pointers(launch.environment);
    const ChildPlan plan{arguments.data(),    environment.data(), out->write.get(), err->write.get(),
                         report->write.get(), alive->read.get(),  launch.user_lock};
    const pid_t child = ::fork();
    if (child < 0) return fail_start(std::strerror(errno));
    if (child == 0) become_supervisor(plan);
    report->write = FileDescriptor{};
    const std::string said = read_report(report->read.get());
    if (!said.starts_with(kStarted)) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
      return fail_start(launch.program + " in " + launch.folder + ": " + (said.empty() ? "it ended" : said));
    }
    supervisor_ = child;
    pid_ = std::atoi(said.c_str() + kStarted.size());
    process_ = FileDescriptor{static_cast<int>(::syscall(SYS_pidfd_open, child, 0))};
    if (process_.is_open()) ::fcntl(process_.get(), F_SETFD, FD_CLOEXEC);
    alive_ = std::move(alive->write);
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
    if (supervisor_ != 0) {
      int status = 0;
      if (::waitpid(supervisor_, &status, WNOHANG) != supervisor_) return;
      pid_ = supervisor_ = 0;
      alive_ = FileDescriptor{};
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
    if (!ladder_at_ || now < *ladder_at_ || supervisor_ == 0) return;
    if (ladder_step_ == 0) ::kill(supervisor_, SIGTERM);
    if (ladder_step_ == 1) alive_ = FileDescriptor{};  // windlass-run kills what there is
    ladder_at_ = now + (ladder_step_++ == 0 ? grace_.term : seconds{60});
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
  pid_t supervisor_ = 0;
  FileDescriptor alive_;  // while it is open, the worker may live
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
