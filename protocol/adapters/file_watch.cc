#include "protocol/adapters/file_watch.h"

#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <filesystem>
#include <utility>

namespace windlass {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kFolderEvents = IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CLOSE_WRITE |
                                        IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF;

struct WatchPoint {
  std::string folder;
  std::string name;
};

// Every name whose change can lead the path elsewhere: its own, and each symbolic link on the way. Where
// something is missing, the name that would have to appear.
std::vector<WatchPoint> points_of(const std::string& path) {
  std::error_code error;
  const fs::path whole = fs::absolute(path, error);
  std::deque<fs::path> parts(whole.begin(), whole.end());
  std::vector<WatchPoint> points;
  fs::path at = "/";
  std::size_t links = 0;
  while (!parts.empty()) {
    const fs::path part = parts.front();
    parts.pop_front();
    if (part.empty() || part == "." || part == "/") continue;
    if (part == "..") {
      at = at.parent_path();
      continue;
    }
    const fs::file_status status = fs::symlink_status(at / part, error);
    const bool is_link = fs::is_symlink(status);
    if (parts.empty() || is_link || !fs::exists(status)) points.push_back({at.string(), part.string()});
    if (!is_link && !fs::exists(status)) break;
    if (!is_link) {
      at /= part;
      continue;
    }
    if (++links > limits::kSymbolicLinksMax) break;
    const fs::path target = fs::read_symlink(at / part, error);
    if (target.is_absolute()) at = "/";
    parts.insert(parts.begin(), target.begin(), target.end());
  }
  return points;
}

std::int64_t nanoseconds_of(const timespec& time) {
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

FileWatch::Seen FileWatch::look_at(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return {};
  return {facts.st_dev, facts.st_ino, facts.st_size, nanoseconds_of(facts.st_mtim),
          nanoseconds_of(facts.st_ctim)};
}

FileWatch::FileWatch(EventLoop& loop, std::vector<std::string> paths, Handler on_change,
                     FileWatchOptions options)
    : loop_(loop),
      paths_(std::move(paths)),
      on_change_(std::move(on_change)),
      options_(options),
      alarm_(loop, [this] { check(); }) {
  if (Socket fd{::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)}; fd.is_open()) {
    inotify_ = std::make_unique<Readiness>(loop_, std::move(fd), static_cast<ReadinessEvents&>(*this));
    arm();
    inotify_->wait_readable();
  }
  for (const std::string& path : paths_) seen_.push_back(look_at(path));
  alarm_.set(loop_.now().steady + options_.look);
}

void FileWatch::on_readable() {
  alignas(inotify_event) std::array<char, 4096> buffer{};
  bool concerns = false;
  for (std::size_t reads = 0; reads < limits::kFileEventReadsMax; ++reads) {
    const ssize_t size = ::read(inotify_->fd(), buffer.data(), buffer.size());
    if (size <= 0) break;
    for (ssize_t at = 0; at < size;) {
      inotify_event event{};
      std::memcpy(&event, buffer.data() + at, sizeof event);
      // Its name is padded with zeroes.
      const std::string name{event.len == 0 ? "" : buffer.data() + at + sizeof event};
      concerns = concerns || (event.mask & IN_Q_OVERFLOW) != 0 || concerns_us(event.wd, name);
      at += static_cast<ssize_t>(sizeof event) + event.len;
    }
  }
  if (concerns) note_change();
  inotify_->wait_readable();
}

bool FileWatch::concerns_us(int watch, const std::string& name) const {
  const auto found = names_.find(watch);
  // Without a name it is the folder itself that changed.
  return found != names_.end() && (name.empty() || found->second.contains(name));
}

void FileWatch::note_change() {
  const Instant now = loop_.now().steady;
  if (!changed_since_) changed_since_ = now;
  alarm_.set(std::min(now + options_.settle, *changed_since_ + options_.settle_max));
}

void FileWatch::arm() {
  if (!inotify_) return;
  std::map<int, std::set<std::string>> names;
  for (const std::string& path : paths_) {
    for (const WatchPoint& point : points_of(path)) {
      const int watch = ::inotify_add_watch(inotify_->fd(), point.folder.c_str(), kFolderEvents);
      if (watch >= 0) names[watch].insert(point.name);
    }
  }
  for (const auto& [watch, unused] : names_) {
    if (!names.contains(watch)) ::inotify_rm_watch(inotify_->fd(), watch);
  }
  names_ = std::move(names);
}

void FileWatch::check() {
  changed_since_.reset();
  arm();  // before the look: what changes after it is told
  std::vector<std::size_t> changed;
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    if (const Seen seen = look_at(paths_[i]); seen != seen_[i]) {
      seen_[i] = seen;
      changed.push_back(i);
    }
  }
  alarm_.set(loop_.now().steady + options_.look);
  if (!changed.empty()) on_change_(changed);
}

}  // namespace windlass
