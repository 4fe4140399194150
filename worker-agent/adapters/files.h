// Small files with one owner, written so that a crash leaves the old or the new, never a mixture.
#pragma once

#include <string>
#include <utility>

#include "protocol/base/bytes.h"
#include "protocol/base/result.h"

namespace windlass::agent {

class FileDescriptor final {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor();
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

Error file_error(const std::string& path, const std::string& what, int error);

Result<Done> make_folder(const std::string& path);  // and those above it
Result<Bytes> read_all(const std::string& path);    // a missing file is empty
Result<Bytes> read_all(int fd, const std::string& path);
bool write_all(int fd, BytesView bytes);  // errno tells
Result<Done> sync_folder_of(const std::string& path);
Result<Done> replace_file(const std::string& path, BytesView bytes);  // aside, synced, renamed

// Held until it is destroyed, by one process of the machine.
Result<FileDescriptor> lock_file(const std::string& path, const std::string& sentence_if_held);

}  // namespace windlass::agent
