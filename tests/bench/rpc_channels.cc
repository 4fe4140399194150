// What an invocation costs the runtime on a session, beside what it costs on its own gRPC channel: two agents
// with the same worker, each under TLS, that differ in nothing but the channel. Processor time of this
// process alone, whose other half is the load, which is the same for both.
#include <unistd.h>

#include <cstdio>

#include "tests/bench/bare_host.h"
#include "tests/bench/rpc_sections.h"
#include "tests/bench/runtime_under_test.h"

namespace windlass::bench {
void channel_bars(Run& run, Identity& identity) {
  const Duration window = run.is_smoke() ? milliseconds{20} : seconds{2};
  RuntimeUnderTest runtime{identity};
  const AgentUnderTest session_agent{identity, runtime, "session", WorkerChannelKind::Session};
  const AgentUnderTest grpc_agent{identity, runtime, "grpc", WorkerChannelKind::Grpc};
  ApplicationHost session{runtime, "session", "session"};
  ApplicationHost grpc{runtime, "grpc", "grpc"};
  std::array<RpcHost*, 2> hosts{&session, &grpc};
  std::array<Samples, 2> spent{};
  std::array<Samples, 2> rate{};
  for (RpcHost* each : hosts) static_cast<void>(saturate(*each, 64, window / 2));
  for (std::size_t round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      const double before = process_nanoseconds(::getpid());
      const RpcRate measured = saturate(*hosts[i], 64, window);
      rate[i][round] = measured.per_second;
      spent[i][round] = (process_nanoseconds(::getpid()) - before) / static_cast<double>(measured.answers);
    }
  }
  Samples ratios{};
  for (std::size_t round = 0; round < kRounds; ++round) ratios[round] = spent[0][round] / spent[1][round];
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    std::printf("channel %s %.0f/s, the runtime spends %.2f us on each\n", hosts[i]->name().c_str(),
                median(rate[i]), median(spent[i]) / 1e3);
  }
  run.bar("rpc_runtime_cpu_session_vs_grpc", median(ratios), "<=", 0.5);
}

}  // namespace windlass::bench
