#include "worker-agent/adapters/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <thread>

namespace windlass::agent {
namespace {

constexpr int kLockAttempts = 20;
constexpr std::chrono::milliseconds kLockPause{50};

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Error file_error(const std::string& path, const std::string& what, int error) {
  return {ErrorCode::StoreFailed, Blame::Local, path + " " + what + ": " + std::strerror(error) + "."};
}

Result<Done> make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return file_error(path, "cannot be made a folder", error.value());
  return Done{};
}

Result<Bytes> read_all(const std::string& path) {
  const FileDescriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!file.is_open() && errno == ENOENT) return Bytes{};
  if (!file.is_open()) return file_error(path, "cannot be read", errno);
  return read_all(file.get(), path);
}

Result<Bytes> read_all(int fd, const std::string& path) {
  Bytes bytes;
  std::array<char, 65536> buffer{};
  for (;;) {
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error(path, "cannot be read", errno);
    if (count == 0) return bytes;
    bytes.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

bool write_all(int fd, BytesView bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

Result<Done> sync_folder_of(const std::string& path) {
  const std::string parent = std::filesystem::path{path}.parent_path().string();
  const std::string folder = parent.empty() ? "." : parent;
  const FileDescriptor fd{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!fd.is_open() || ::fsync(fd.get()) != 0) return file_error(folder, "cannot be synced", errno);
  return Done{};
}

Result<Done> replace_file(const std::string& path, BytesView bytes) {
  const std::string aside = path + ".new";
  const FileDescriptor file{::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)};
  if (!file.is_open() || !write_all(file.get(), bytes) || ::fdatasync(file.get()) != 0) {
    return file_error(aside, "cannot be written", errno);
  }
  if (std::rename(aside.c_str(), path.c_str()) != 0) return file_error(path, "cannot be replaced", errno);
  return sync_folder_of(path);
}

Result<FileDescriptor> lock_file(const std::string& path, const std::string& sentence_if_held) {
  FileDescriptor file{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
  if (!file.is_open()) return file_error(path, "cannot be opened", errno);
  // A process that was killed while it started another one is survived by a copy of its descriptors, until
  // the other one has begun: that is a moment, not another owner.
  for (int attempt = 0; attempt < kLockAttempts; ++attempt) {
    if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return file;
    if (errno != EWOULDBLOCK) return file_error(path, "cannot be locked", errno);
    std::this_thread::sleep_for(kLockPause);
  }
  return Error{ErrorCode::StoreFailed, Blame::Local, sentence_if_held};
}

}  // namespace windlass::agent
