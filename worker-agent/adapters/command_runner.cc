#include "worker-agent/adapters/command_runner.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <utility>

#include "worker-agent/adapters/files.h"
#include "worker-agent/core/run_record.h"

namespace windlass::agent {
namespace {

// How often the locks of adopted runs are tried. Only an agent that was killed has such runs.
constexpr int kAdoptedPollMs = 50;
// Above the descriptors that a watcher gets, so that none is overwritten before it is copied.
constexpr int kHighDescriptor = 16;

RunOutcome not_started(const std::string& reason) {
  return {.end = RunEnd::NotStarted, .reason = reason};
}

// Nothing keeps the lock: whoever watched is gone.
bool is_unwatched(int fd) {
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) return false;
  ::flock(fd, LOCK_UN);
  return true;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  all.reserve(texts.size() + 1);
  for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
  all.push_back(nullptr);
  return all;
}

// 0 and the process, or an errno.
struct Spawned {
  int error = 0;
  pid_t pid = 0;
};

Spawned spawn_watcher(const std::vector<std::string>& command, const std::vector<std::string>& environment,
                      int run_file, int alive_pipe) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, run_file, 3);
  posix_spawn_file_actions_adddup2(&actions, alive_pipe, 4);
  posix_spawn_file_actions_addclosefrom_np(&actions, 5);
  // A SIGTERM waits until the watcher is ready to end its program.
  sigset_t blocked;
  sigset_t all;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &blocked);
  posix_spawnattr_setsigdefault(&attributes, &all);
  // A session of its own: a terminal's Ctrl-C is for the agent, which then drains.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
  Spawned spawned;
  spawned.error = ::posix_spawn(&spawned.pid, command[0].c_str(), &actions, &attributes,
                                pointers(command).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return spawned;
}

}  // namespace

Result<std::unique_ptr<CommandRunner>> CommandRunner::open(RunnerOptions options, Finished finished) {
  if (auto made = make_folder(options.folder); !made) return made.error();
  if (::access(options.watcher.c_str(), X_OK) != 0) {
    return file_error(options.watcher, "cannot be executed; set exec.watcher to where windlass-run is",
                      errno);
  }
  const int wake = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake < 0) return file_error(options.folder, "cannot be watched", errno);
  return std::unique_ptr<CommandRunner>{new CommandRunner{std::move(options), std::move(finished), wake}};
}

CommandRunner::CommandRunner(RunnerOptions options, Finished finished, int wake)
    : options_(std::move(options)), finished_(std::move(finished)), wake_(wake) {
  thread_ = std::jthread{[this](const std::stop_token& stop) { loop(stop); }};
}

CommandRunner::~CommandRunner() {
  thread_.request_stop();
  wake();
  thread_.join();
  for (const Watched& each : watched_) {
    if (each.fd >= 0) ::close(each.fd);
  }
  ::close(wake_);
}

CommandRunner::Fate CommandRunner::adopt(const RunId& run) {
  const FileDescriptor file{::open(path_of(run).c_str(), O_RDWR | O_CLOEXEC)};
  if (!file.is_open()) return Fate::NeverBegun;
  if (is_unwatched(file.get())) {
    const auto bytes = read_all(file.get(), path_of(run));
    const auto record = bytes ? parse_run_record(*bytes) : RunProgress::Begun;
    const auto* progress = std::get_if<RunProgress>(&record);
    if (progress != nullptr && *progress == RunProgress::NotBegun) {
      remove(run);
      return Fate::NeverBegun;
    }
  }
  const std::lock_guard lock{mutex_};
  adopted_.push_back(run);
  wake();
  return Fate::Watched;
}

void CommandRunner::remove_all_but(const std::vector<RunId>& known) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator{options_.folder, error}) {
    const RunId run{entry.path().filename().string()};
    if (std::ranges::find(known, run) == known.end()) remove(run);
  }
}

void CommandRunner::run(RunRequest request) {
  {
    const std::lock_guard lock{mutex_};
    requested_.push_back(std::move(request));
  }
  wake();
}

void CommandRunner::remove(const RunId& run) {
  ::unlink(path_of(run).c_str());
}

void CommandRunner::stop_all() {
  stop_wanted_ = true;
  wake();
}

void CommandRunner::wake() {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(wake_, &one, sizeof one));
}

void CommandRunner::loop(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::vector<pollfd> waits{{wake_, POLLIN, 0}};
    bool has_adopted = false;
    for (const Watched& each : watched_) {
      waits.push_back({each.fd, POLLIN, 0});  // poll ignores -1
      has_adopted = has_adopted || each.fd < 0;
    }
    ::poll(waits.data(), waits.size(), has_adopted ? kAdoptedPollMs : -1);
    if (stop_wanted_.exchange(false)) end_watched();
    if (stop.stop_requested()) return;
    std::uint64_t count = 0;
    static_cast<void>(!::read(wake_, &count, sizeof count));
    for (std::size_t i = watched_.size(); i > 0; --i) {
      const Watched each = watched_[i - 1];
      const FileDescriptor file{each.fd < 0 ? ::open(path_of(each.id).c_str(), O_RDWR | O_CLOEXEC) : -1};
      const bool is_over = each.fd < 0 ? !file.is_open() || is_unwatched(file.get()) : waits[i].revents != 0;
      if (!is_over) continue;
      watched_.erase(watched_.begin() + static_cast<std::ptrdiff_t>(i - 1));
      finish(each);
    }
    std::vector<RunRequest> requested;
    {
      const std::lock_guard lock{mutex_};
      requested = std::exchange(requested_, {});
      for (RunId& run : std::exchange(adopted_, {})) watched_.push_back({.id = std::move(run)});
    }
    for (const RunRequest& request : requested) start(request);
  }
}

void CommandRunner::end_watched() {
  for (const Watched& each : watched_) {
    if (each.pid > 0) ::kill(each.pid, SIGTERM);
  }
}

void CommandRunner::start(const RunRequest& request) {
  const std::string path = path_of(request.id);
  const FileDescriptor made{::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
  if (!made.is_open()) {
    return finished_(request.id, not_started(file_error(path, "cannot be made", errno).reason));
  }
  // The lock goes over to the watcher with the descriptor: there is no moment at which a run that may begin
  // looks unwatched. Room for the outcome is taken now, while it can still be refused.
  const FileDescriptor file{::fcntl(made.get(), F_DUPFD_CLOEXEC, kHighDescriptor)};
  std::array<int, 2> alive{-1, -1};
  const auto room = static_cast<off_t>(2 * request.output_bytes_max + 4096);
  const bool is_ready = file.is_open() && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0 &&
                        (::fallocate(file.get(), FALLOC_FL_KEEP_SIZE, 0, room) == 0 || errno == EOPNOTSUPP) &&
                        sync_folder_of(path).has_value() && ::pipe2(alive.data(), O_CLOEXEC) == 0;
  if (!is_ready) {
    const std::string reason = file_error(path, "cannot be prepared", errno).reason;
    remove(request.id);
    return finished_(request.id, not_started(reason));
  }
  const FileDescriptor told{::fcntl(alive[1], F_DUPFD_CLOEXEC, kHighDescriptor)};
  ::close(alive[1]);
  std::vector<std::string> command{options_.watcher, std::to_string(request.timeout / milliseconds{1}),
                                   std::to_string(request.output_bytes_max), request.program};
  command.insert(command.end(), request.args.begin(), request.args.end());
  const Spawned spawned = spawn_watcher(command, options_.environment, file.get(), told.get());
  if (spawned.error != 0) {
    ::close(alive[0]);
    remove(request.id);
    return finished_(request.id,
                     not_started(file_error(options_.watcher, "cannot be started", spawned.error).reason));
  }
  watched_.push_back({.id = request.id, .fd = alive[0], .pid = spawned.pid});
}

void CommandRunner::finish(const Watched& watched) {
  if (watched.fd >= 0) ::close(watched.fd);
  if (watched.pid > 0) ::waitpid(watched.pid, nullptr, 0);
  const auto bytes = read_all(path_of(watched.id));
  auto record = bytes ? parse_run_record(*bytes) : RunProgress::Begun;
  if (auto* outcome = std::get_if<RunOutcome>(&record)) return finished_(watched.id, std::move(*outcome));
  if (std::get<RunProgress>(record) == RunProgress::NotBegun) {
    return finished_(watched.id, not_started("the program's watcher could not begin; is the disk full?"));
  }
  finished_(watched.id, {.end = RunEnd::Interrupted});
}

}  // namespace windlass::agent
