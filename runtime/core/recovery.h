// The rules of recovery as data: what the end of a channel means, how an invocation is settled by why it
// ended, when a failed function is tried again, what memory pressure asks for. What is done about it is in
// core_recovery.cc.
#pragma once

#include <cstdint>
#include <string_view>

#include "protocol/base/random.h"
#include "runtime/core/runtime_core.h"

namespace windlass::runtime {

struct EndRule {
  ChannelEnd end;
  bool is_leave;    // the worker went by itself: a replacement only if work was lost
  bool is_timeout;  // counts towards deadline_exceeded_max
  std::string_view what;
};
const EndRule& rule_of(ChannelEnd end);

Settlement settlement_of(Cause cause, std::uint32_t delivery_count, std::uint32_t delivery_max);

// Whether the function is tried again after `retries` retries.
bool is_retried(const Function& function, std::int32_t retries);
// The wait before retry number `retry` (from 1): doubled each time, a fifth more or less, within the bounds.
Duration retry_delay(const RetryOptions& retry_options, std::int32_t retry, Random& random);

enum class MemoryPressure : std::uint8_t { Normal, Elevated, Critical };
std::string_view to_string(MemoryPressure pressure);
// Critical lasts until utilization is below memory_drain.
MemoryPressure pressure_of(double utilization, MemoryPressure before, const RuntimeOptions& options);

}  // namespace windlass::runtime
