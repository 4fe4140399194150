// Preloaded where no file system may be mounted: while a mapped file says so, writing to any file below one
// folder fails with ENOSPC. Coarser than a full disk, which still takes what needs no new block.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

bool is_full() {
  static std::atomic<const std::atomic<char>*> mapped{nullptr};
  const auto* found = mapped.load();
  if (found == nullptr) {
    const char* const path = std::getenv("WINDLASS_TEST_DISK_FILE");
    const int file = path == nullptr ? -1 : ::open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    void* const page = ::mmap(nullptr, 1, PROT_READ, MAP_SHARED, file, 0);
    ::close(file);
    if (page == MAP_FAILED) return false;
    found = static_cast<const std::atomic<char>*>(page);
    mapped.store(found);
  }
  return found->load() != 0;
}

bool is_refused(int file) {
  if (!is_full()) return false;
  std::array<char, 64> link{};
  std::array<char, 4096> path{};
  std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", file);
  const ssize_t length = ::readlink(link.data(), path.data(), path.size());
  const char* const folder = std::getenv("WINDLASS_TEST_DISK_FOLDER");
  if (length <= 0 || folder == nullptr) return false;
  if (!std::string_view{path.data(), static_cast<std::size_t>(length)}.starts_with(folder)) return false;
  errno = ENOSPC;
  return true;
}

template <class Function>
Function* next_of(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

ssize_t write(int file, const void* bytes, size_t count) {
  static auto* const next = next_of<ssize_t(int, const void*, size_t)>("write");
  return is_refused(file) ? -1 : next(file, bytes, count);
}

ssize_t pwrite64(int file, const void* bytes, size_t count, off64_t at) {
  static auto* const next = next_of<ssize_t(int, const void*, size_t, off64_t)>("pwrite64");
  return is_refused(file) ? -1 : next(file, bytes, count, at);
}

ssize_t pwrite(int file, const void* bytes, size_t count, off_t at) {
  return pwrite64(file, bytes, count, at);
}

int fallocate(int file, int mode, off_t at, off_t count) {
  static auto* const next = next_of<int(int, int, off_t, off_t)>("fallocate");
  return is_refused(file) ? -1 : next(file, mode, at, count);
}

}  // extern "C"
