// What a worker that is connected over a session and waits to be needed costs the runtime in memory. The
// runtime has a process of its own, so that nothing else's memory is used again for it.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "tests/bench/rpc_sections.h"
#include "tests/bench/runtime_under_test.h"
#include "tests/bench/session_workers.h"

namespace windlass::bench {
namespace {

constexpr const char* kRuntimeAlone = "--runtime-alone";

// Memory that is still being given back is not an idle worker's.
double settled_resident_bytes(const Run& run, const ChildProcess& process) {
  std::this_thread::sleep_for(run.is_smoke() ? milliseconds{20} : seconds{1});
  return process.resident_bytes();
}

}  // namespace

void worker_memory_bars(Run& run, Identity& identity) {
  const std::size_t count = run.is_smoke() ? 10 : 1000;
  ChildProcess runtime{{"/proc/self/exe", kRuntimeAlone, identity.files.certificate, identity.files.key,
                        identity.authority.certificate_file()}};
  const auto port = static_cast<std::uint16_t>(std::atoi(runtime.read_line().c_str()));
  const auto warm = SessionWorkers::placeholders(identity, port, 0, 64);  // buffers and tables are there
  const double before = settled_resident_bytes(run, runtime);
  const auto workers = SessionWorkers::placeholders(identity, port, 1000, count);
  const double kib = (settled_resident_bytes(run, runtime) - before) / static_cast<double>(count) / 1024;
  std::printf("memory: %zu placeholders on sessions, %.1f KiB each\n", count, kib);
  run.bar("rpc_runtime_kib_per_idle_worker", kib, "<=", 64);
}

bool plays_runtime_alone(int argc, char** argv) {
  if (argc != 5 || std::string_view{argv[1]} != kRuntimeAlone) return false;
  const RuntimeUnderTest runtime{{argv[2], argv[3]}, argv[4]};
  std::fprintf(stderr, "%d\n", runtime.port());
  for (;;) ::pause();  // until it is ended
}

}  // namespace windlass::bench
