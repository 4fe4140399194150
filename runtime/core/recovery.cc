#include "runtime/core/recovery.h"

#include <algorithm>
#include <array>

namespace windlass::runtime {
namespace {

constexpr std::array kEndRules = {
    EndRule{ChannelEnd::Closed, true, false, "left"},
    // A gRPC server sees a killed worker's stream as cancelled, so this is a crash as well as a shutdown.
    EndRule{ChannelEnd::Cancelled, false, false, "its stream was cancelled"},
    EndRule{ChannelEnd::Unavailable, false, false, "died, or its session could not be resumed"},
    EndRule{ChannelEnd::DeadlineExceeded, false, true, "its stream timed out"},
    EndRule{ChannelEnd::ResourceExhausted, false, false, "its stream ran out of resources"},
    EndRule{ChannelEnd::Internal, false, false, "its stream broke"},
    EndRule{ChannelEnd::ProtocolError, false, false, "did not keep to the protocol"},
};

}  // namespace

const EndRule& rule_of(ChannelEnd end) {
  const auto* const rule = std::ranges::find(kEndRules, end, &EndRule::end);
  CHECK(rule != kEndRules.end());
  return *rule;
}

Settlement settlement_of(Cause cause, std::uint32_t delivery_count, std::uint32_t delivery_max) {
  switch (cause) {
    case Cause::None:
      return Settlement::Complete;
    case Cause::TooLarge:
    case Cause::UnknownFunction:
      return Settlement::DeadLetter;  // it will not get better by itself
    case Cause::FunctionFailed:
    case Cause::TimedOut:
    case Cause::WorkerLost:
    case Cause::LoadFailed:
      return delivery_count >= delivery_max ? Settlement::DeadLetter : Settlement::Abandon;
    case Cause::Cancelled:
    case Cause::CallerLeft:
    case Cause::NoWorker:
    case Cause::Overloaded:
    case Cause::JobHostFailed:
    case Cause::Orphaned:
    case Cause::Stopping:
      return Settlement::Abandon;  // not the message's fault: no delivery may kill it
  }
  return Settlement::Abandon;
}

bool is_retried(const Function& function, std::int32_t retries) {
  if (!function.has_retry) return false;
  return function.retry.retries_max < 0 || retries < function.retry.retries_max;
}

Duration retry_delay(const RetryOptions& retry_options, std::int32_t retry, Random& random) {
  if (retry_options.strategy == RetryOptions::Strategy::FixedDelay) {
    return std::max(retry_options.delay, Duration::zero());
  }
  const Duration least = std::max<Duration>(retry_options.delay_least, milliseconds{1});
  const Duration most = std::max(retry_options.delay_most, least);
  Duration delay = least;
  for (std::int32_t i = 1; i < retry && delay < most; ++i) delay = delay > most / 2 ? most : delay * 2;
  const Duration fifth = delay / 5;
  return std::clamp(delay - fifth + random.below(fifth * 2 + Duration{1}), least, most);
}

std::string_view to_string(MemoryPressure pressure) {
  static constexpr std::string_view kNames[] = {"normal", "elevated", "critical"};
  return kNames[static_cast<std::size_t>(pressure)];
}

MemoryPressure pressure_of(double utilization, MemoryPressure before, const RuntimeOptions& options) {
  if (utilization > options.memory_critical) return MemoryPressure::Critical;
  if (before == MemoryPressure::Critical && utilization > options.memory_drain) return before;
  return utilization > options.memory_elevated ? MemoryPressure::Elevated : MemoryPressure::Normal;
}

}  // namespace windlass::runtime
