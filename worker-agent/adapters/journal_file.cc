#include "worker-agent/adapters/journal_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "protocol/base/check.h"

namespace windlass::agent {
namespace {

constexpr std::chrono::seconds kRetryPause{1};

FileDescriptor open_log(const std::string& path) {
  return FileDescriptor{::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600)};
}

bool is_full(int error) {
  return error == ENOSPC || error == EDQUOT;
}

Error no_room(const std::string& path, int error) {
  Error refused = file_error(path, "cannot grow", error);
  refused.code = ErrorCode::StoreFull;
  return refused;
}

}  // namespace

Result<std::unique_ptr<JournalFile>> JournalFile::open(const std::string& path) {
  FileDescriptor file = open_log(path);
  if (!file.is_open()) return file_error(path, "cannot be opened", errno);
  auto contents = read_all(file.get(), path);
  if (!contents) return contents.error();
  if (auto synced = sync_folder_of(path); !synced) return synced.error();
  return std::unique_ptr<JournalFile>{new JournalFile{path, std::move(file), *std::move(contents)}};
}

JournalFile::JournalFile(std::string path, FileDescriptor file, Bytes contents)
    : path_(std::move(path)),
      file_(std::move(file)),
      contents_(std::move(contents)),
      size_(contents_.size()) {}

JournalFile::~JournalFile() {
  thread_.request_stop();
}

Result<Done> JournalFile::keep(std::size_t bytes) {
  CHECK(bytes <= size_);
  contents_ = {};
  if (bytes == size_) return Done{};
  if (::ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0 || ::fdatasync(file_.get()) != 0) {
    return file_error(path_, "cannot be shortened", errno);
  }
  size_ = bytes;
  return Done{};
}

void JournalFile::start(Written written) {
  written_ = std::move(written);
  thread_ = std::jthread{[this](const std::stop_token& stop) {
    std::unique_lock lock{mutex_};
    while (wanted_.wait(lock, stop, [this] { return batch_.has_value(); })) {
      const Batch batch = *std::exchange(batch_, std::nullopt);
      while (!stop.stop_requested()) {
        lock.unlock();
        const Result<Done> result = batch.replaces ? replace(batch.bytes) : append(batch.bytes);
        const bool is_over = result || result.error().code != ErrorCode::StoreFull;
        written_(result);
        lock.lock();
        if (is_over) break;
        wanted_.wait_for(lock, stop, kRetryPause, [] { return false; });
      }
    }
  }};
}

void JournalFile::write(Batch batch) {
  {
    const std::lock_guard lock{mutex_};
    CHECK(!batch_.has_value());
    batch_ = std::move(batch);
  }
  wanted_.notify_one();
}

Result<Done> JournalFile::append(BytesView bytes) {
  if (!write_all(file_.get(), bytes)) {
    const int error = errno;
    // What was written of it goes away again, or the next try would stand behind a torn record.
    if (::ftruncate(file_.get(), static_cast<off_t>(size_)) != 0 || !is_full(error)) {
      return file_error(path_, "cannot be written", error);
    }
    return no_room(path_, error);
  }
  // After a failed sync nobody can tell what is on the disk, and a second one would claim success.
  if (::fdatasync(file_.get()) != 0) return file_error(path_, "cannot be synced", errno);
  size_ += bytes.size();
  return Done{};
}

Result<Done> JournalFile::replace(BytesView bytes) {
  errno = 0;
  if (auto replaced = replace_file(path_, bytes); !replaced) {
    if (is_full(errno)) return no_room(path_, errno);
    return replaced;
  }
  file_ = open_log(path_);
  if (!file_.is_open()) return file_error(path_, "cannot be opened", errno);
  size_ = bytes.size();
  return Done{};
}

}  // namespace windlass::agent
