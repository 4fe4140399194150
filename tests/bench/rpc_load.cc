#include "tests/bench/rpc_load.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>

#include "protocol/base/check.h"
#include "runtime/adapters/rpc_values.h"

namespace windlass::bench {
namespace {

constexpr Duration kTick = std::chrono::microseconds{500};

double as_seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// Of one closed-loop run. The answers come on the host's thread; only the count is read meanwhile.
struct Saturation {
  std::atomic<std::uint64_t> answers{0};
  std::atomic<bool> is_ending{false};
  std::size_t live = 0;
  std::promise<void> quiet;
};

}  // namespace

std::string echo_body() {
  runtime::TriggerInput input;
  input.binding = "event";
  input.data.kind = runtime::Datum::Kind::Bytes;
  input.data.value = std::string(kPayloadBytes, 'x');
  input.trace.parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  return runtime::write_invocation_body(input);
}

Instant steady_now() {
  return Instant{std::chrono::steady_clock::now().time_since_epoch()};
}

RpcRate saturate(RpcHost& host, std::size_t in_flight, Duration window) {
  Saturation run;
  run.live = in_flight;
  host.on_answer = [&](std::uint64_t) {
    run.answers.fetch_add(1, std::memory_order_relaxed);
    if (!run.is_ending.load(std::memory_order_relaxed)) return host.invoke(0);
    if (--run.live == 0) run.quiet.set_value();
  };
  const Instant start = steady_now();
  host.perform([&] {
    for (std::size_t i = 0; i < in_flight; ++i) host.invoke(0);
  });
  std::this_thread::sleep_for(window);
  const double counted = static_cast<double>(run.answers.load());
  const double spent = as_seconds(steady_now() - start);
  run.is_ending = true;
  run.quiet.get_future().wait();
  return {counted / spent, run.answers.load()};
}

std::vector<RpcTime> pace(RpcHost& host, double per_second, Duration window) {
  std::vector<RpcTime> times(static_cast<std::size_t>(as_seconds(window) * per_second));
  CHECK(!times.empty());
  std::size_t answered = 0;
  std::promise<void> quiet;
  host.on_answer = [&](std::uint64_t tag) {
    times.at(tag).seconds = as_seconds(steady_now() - times[tag].due);
    if (++answered == times.size()) quiet.set_value();
  };
  const Instant start = steady_now();
  std::size_t begun = 0;
  for (Instant tick = start + kTick; begun < times.size(); tick += kTick) {
    std::this_thread::sleep_until(std::chrono::steady_clock::time_point{tick.time_since_epoch()});
    const auto wanted = static_cast<std::size_t>(as_seconds(tick - start) * per_second);
    const std::size_t end = std::min(times.size(), wanted);
    if (begun == end) continue;
    host.perform([&times, &host, tick, from = begun, end] {
      for (std::size_t i = from; i < end; ++i) {
        times[i].due = tick;
        host.invoke(i);
      }
    });
    begun = end;
  }
  quiet.get_future().wait();
  return times;
}

double quantile(std::vector<RpcTime> times, double part) {
  CHECK(!times.empty());
  const auto at = static_cast<std::ptrdiff_t>(part * static_cast<double>(times.size() - 1));
  std::ranges::nth_element(times, times.begin() + at, {}, &RpcTime::seconds);
  return times[static_cast<std::size_t>(at)].seconds;
}

}  // namespace windlass::bench
