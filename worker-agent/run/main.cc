// windlass-run TIMEOUT_MS OUTPUT_BYTES PROGRAM [ARGUMENT...]
// Started by windlass-agent for one command. Descriptor 3 is the run's file, locked for as long as this
// process lives: an agent that comes back sees by the lock that the program is still watched.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "worker-agent/core/run_record.h"
#include "worker-agent/run/watch.h"

namespace {

constexpr int kRunFile = 3;
constexpr int kAlivePipe = 4;  // closed by our end: tells an agent that is still there at once

bool write_synced(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(kRunFile, bytes.data(), bytes.size());
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return ::fdatasync(kRunFile) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace windlass;
  if (argc < 4 || ::fcntl(kRunFile, F_GETFD) < 0) {
    std::fputs("windlass-run is started by windlass-agent, not by hand\n", stderr);
    return 2;
  }
  // The program must not hold the lock or the pipe open.
  ::fcntl(kRunFile, F_SETFD, FD_CLOEXEC);
  ::fcntl(kAlivePipe, F_SETFD, FD_CLOEXEC);
  agent::WatchOptions options{.command = {argv + 3, argv + argc},
                              .timeout = milliseconds{std::strtoll(argv[1], nullptr, 10)},
                              .output_bytes_max = std::strtoull(argv[2], nullptr, 10)};
  if (!write_synced(agent::kBegun)) return 1;
  return write_synced(agent::encode_outcome(agent::watch(options))) ? 0 : 1;
}
