// What a runtime says of itself as JSON: to the scheduler, to health checks. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "runtime/core/runtime_core.h"

namespace windlass::runtime {

struct StatusPlaces {
  std::string url;   // for agents
  std::string http;  // empty: none
  std::string grpc;  // likewise
};

// Names of functions and single workers are left out where the whole would be longer than `bytes_max`, but
// for those of applications that are cut off, draining or unhealthy: without them the scheduler would count
// them as ready. Where these are too many to be named, the number of the others is told.
std::string status_text(const RuntimeCore& core, const StatusPlaces& places, std::size_t bytes_max);
std::string signal_text(const Signal& signal);
std::string health_text(const RuntimeHealth& health, bool has_grpc);

std::string_view to_string(Signal::Kind kind);
std::string_view to_string(RuntimeHealth::Level level);

}  // namespace windlass::runtime
