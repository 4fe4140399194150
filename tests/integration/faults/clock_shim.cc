// Preloaded into a program under test: its calendar is off by as many seconds as a mapped file says, which a
// test changes while the program runs. The steady clock is left alone, as on a machine whose time is set, or
// that slept.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

std::int64_t offset_seconds() {
  // Asked for before constructors may have run, so it is found on first use, and by two threads at worst
  // twice.
  static std::atomic<const std::atomic<std::int64_t>*> mapped{nullptr};
  const auto* found = mapped.load();
  if (found == nullptr) {
    const char* const path = std::getenv("WINDLASS_TEST_CLOCK_FILE");
    const int file = path == nullptr ? -1 : ::open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    void* const page = ::mmap(nullptr, sizeof(std::int64_t), PROT_READ, MAP_SHARED, file, 0);
    ::close(file);
    if (page == MAP_FAILED) return 0;
    found = static_cast<const std::atomic<std::int64_t>*>(page);
    mapped.store(found);
  }
  return found->load(std::memory_order_relaxed);
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const long answer = ::syscall(SYS_clock_gettime, clock, time);
  if (answer == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    time->tv_sec += offset_seconds();
  }
  return static_cast<int>(answer);
}

time_t time(time_t* into) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (into != nullptr) *into = now.tv_sec;
  return now.tv_sec;
}

int gettimeofday(timeval* into, void*) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  into->tv_sec = now.tv_sec;
  into->tv_usec = now.tv_nsec / 1000;
  return 0;
}

}  // extern "C"
