// windlass-run TIMEOUT_MS OUTPUT_BYTES PROGRAM [ARGUMENT...]
// Started by windlass-agent for one command. Descriptor 3 is the run's file, locked for as long as this
// process lives: an agent that comes back sees by the lock that the program is still watched.
//
// windlass-run worker [OPTION...] -- FOLDER PROGRAM [ARGUMENT...]
// Started for one language worker, which it confines. Descriptor 3 takes the report, 4 is the alive pipe,
// 5 the lock of the worker's user, or anything else if it has none.
//
// windlass-run check [OPTION...] -- [PATH...]
// Tells whether a worker could be confined like this, which walls would be missing, and whether it could
// reach the paths.
//
// windlass-run sweep [OPTION...] --
// Ends and removes what an earlier worker that was confined like this left behind.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "worker-agent/core/run_record.h"
#include "worker-agent/run/supervise.h"
#include "worker-agent/run/watch.h"

namespace {

constexpr int kRunFile = 3;
constexpr int kAlivePipe = 4;  // closed by our end: tells an agent that is still there at once
constexpr int kUserLock = 5;   // of the worker's user: nobody else gets the user before we have ended

bool write_synced(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(kRunFile, bytes.data(), bytes.size());
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return ::fdatasync(kRunFile) == 0;
}

int misuse() {
  std::fputs("windlass-run is started by windlass-agent, not by hand\n", stderr);
  return 2;
}

int run_confined(const std::string& mode, std::vector<std::string> arguments) {
  using namespace windlass;
  std::size_t taken = 0;
  const auto confinement = agent::parse_confinement(arguments, taken);
  if (!confinement) {
    std::fputs(("windlass-run: " + confinement.error().reason + "\n").c_str(), stderr);
    return 2;
  }
  arguments.erase(arguments.begin(), arguments.begin() + static_cast<std::ptrdiff_t>(taken));
  if (mode == "check") return agent::check_confinement(*confinement, arguments);
  if (mode == "sweep") return agent::sweep(*confinement);
  if (arguments.size() < 2 || ::fcntl(kRunFile, F_SETFD, FD_CLOEXEC) < 0 ||
      ::fcntl(kAlivePipe, F_SETFD, FD_CLOEXEC) < 0 || ::fcntl(kUserLock, F_SETFD, FD_CLOEXEC) < 0) {
    return misuse();
  }
  return agent::supervise({.confinement = *confinement,
                           .folder = arguments.front(),
                           .command = {arguments.begin() + 1, arguments.end()},
                           .report = kRunFile,
                           .alive = kAlivePipe});
}

}  // namespace

int main(int argc, char** argv) {
  using namespace windlass;
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "worker" || mode == "check" || mode == "sweep")
    return run_confined(mode, {argv + 2, argv + argc});
  if (argc < 4 || ::fcntl(kRunFile, F_GETFD) < 0) return misuse();
  // The program must not hold the lock or the pipe open.
  ::fcntl(kRunFile, F_SETFD, FD_CLOEXEC);
  ::fcntl(kAlivePipe, F_SETFD, FD_CLOEXEC);
  agent::WatchOptions options{.command = {argv + 3, argv + argc},
                              .timeout = milliseconds{std::strtoll(argv[1], nullptr, 10)},
                              .output_bytes_max = std::strtoull(argv[2], nullptr, 10)};
  if (!write_synced(agent::kBegun)) return 1;
  return write_synced(agent::encode_outcome(agent::watch(options))) ? 0 : 1;
}
