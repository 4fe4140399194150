// Invocations of a function that echoes 1 KiB: as many as a host takes with a number in flight, or at a given
// rate. Every host that is measured is loaded by this one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "protocol/base/time.h"

namespace windlass::bench {

inline constexpr std::size_t kPayloadBytes = 1024;
inline constexpr const char* kEchoFunction = "echo";

// The body of an InvocationRequest for it, without ids.
std::string echo_body();

class RpcHost {
 public:
  virtual ~RpcHost() = default;
  virtual std::string name() const = 0;
  // Runs `work` where invocations may be begun: here and now, or soon on the host's own thread.
  virtual void perform(std::function<void()> work) = 0;
  // Inside `work` or on_answer. The tag comes back with the answer.
  virtual void invoke(std::uint64_t tag) = 0;
  // One call at a time. To be set while nothing is under way.
  std::function<void(std::uint64_t tag)> on_answer = {};
};

struct RpcRate {
  double per_second = 0;      // answers counted in the window
  std::uint64_t answers = 0;  // all
};
// Returns when the last answer has come back.
RpcRate saturate(RpcHost& host, std::size_t in_flight, Duration window);

// One invocation's time.
struct RpcTime {
  Instant due;
  double seconds = 0;  // from then to the answer
};
// Begins invocations at this rate, whatever comes back; all that are due at a tick together.
std::vector<RpcTime> pace(RpcHost& host, double per_second, Duration window);

// Of a paced run.
double quantile(std::vector<RpcTime> times, double part);

Instant steady_now();  // of this machine's one monotonic clock, so that processes agree

}  // namespace windlass::bench
