// Invocations from the runtime to a worker behind an agent, beside a bare gRPC relay: how many, and how long
// each takes at half of what both manage.
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "tests/bench/bare_host.h"
#include "tests/bench/rpc_sections.h"
#include "tests/bench/runtime_under_test.h"

namespace windlass::bench {
namespace {

constexpr std::size_t kInFlight = 64;

// A host with what its processes spend, for who wants to know where the time goes.
struct Side {
  RpcHost& host;
  std::function<std::array<double, 3>()> spent;  // host, in between, worker; nanoseconds
  Samples rate{};
  Samples p99{};
  std::array<Samples, 3> each{};  // of one invocation
};

void measure_rates(std::array<Side, 2>& sides, Duration window) {
  for (Side& side : sides) static_cast<void>(saturate(side.host, kInFlight, window / 2));
  for (std::size_t round = 0; round < kRounds; ++round) {
    for (Side& side : sides) {
      const auto before = side.spent();
      const RpcRate rate = saturate(side.host, kInFlight, window);
      const auto after = side.spent();
      side.rate[round] = rate.per_second;
      for (std::size_t i = 0; i < 3; ++i) {
        side.each[i][round] = (after[i] - before[i]) / static_cast<double>(rate.answers);
      }
    }
  }
}

}  // namespace

void relay_bars(Run& run, Identity& identity) {
  const Duration window = run.is_smoke() ? milliseconds{20} : seconds{2};
  BareHost bare{identity};
  RuntimeUnderTest runtime{identity};
  const AgentUnderTest agent{identity, runtime, "echo"};
  ApplicationHost ours{runtime, "session_and_agent", "echo"};
  std::array<Side, 2> sides{Side{ours,
                                 [&] {
                                   return std::array{process_nanoseconds(::getpid()), agent.nanoseconds(),
                                                     agent.worker_nanoseconds()};
                                 }},
                            Side{bare, [&] {
                                   return std::array{process_nanoseconds(::getpid()),
                                                     bare.relay_nanoseconds(), bare.worker_nanoseconds()};
                                 }}};
  measure_rates(sides, window);
  const double half = std::min(median(sides[0].rate), median(sides[1].rate)) / 2;
  for (std::size_t round = 0; round < kRounds; ++round) {
    for (Side& side : sides) side.p99[round] = quantile(pace(side.host, half, window), 0.99);
  }
  Samples rates{};
  Samples p99s{};
  for (std::size_t i = 0; i < kRounds; ++i) {
    rates[i] = sides[0].rate[i] / sides[1].rate[i];
    p99s[i] = sides[0].p99[i] / sides[1].p99[i];
  }
  for (const Side& side : sides) {
    std::printf(
        "load %s %zu in flight %.0f/s; us each: host %.1f, in between %.1f, worker %.1f; p99 at %.0f/s %.2f "
        "ms\n",
        side.host.name().c_str(), kInFlight, median(side.rate), median(side.each[0]) / 1e3,
        median(side.each[1]) / 1e3, median(side.each[2]) / 1e3, half, median(side.p99) * 1e3);
  }
  run.bar("rpc_invocations_vs_bare_grpc_relay", median(rates), ">=", 1.2);
  run.bar("rpc_p99_at_half_load_vs_bare_grpc_relay", median(p99s), "<=", 1.2);
}

}  // namespace windlass::bench
