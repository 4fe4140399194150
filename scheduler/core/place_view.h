// What an assignment amounts to right now: its record against what its worker and its runtime said last.
// Whoever shows or counts workers uses this, so that all views agree.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "scheduler/core/app_values.h"
#include "scheduler/core/fleet.h"

namespace windlass {

enum class PlaceState : std::uint8_t {
  Pending,    // its worker is becoming the application's
  Ready,      // it can take an invocation now
  Starting,   // it will, when its language worker is up again
  Failed,     // it could not become the application's, or its language worker does not run
  Drained,    // its language worker was drained and stays so until somebody says otherwise
  Draining,   // it finishes what it has: its agent goes, or its runtime drains it
  Unhealthy,  // its runtime gives it nothing until it is well again
  Paused,     // its runtime takes no invocations until it has memory again
  Detached,   // it cannot be reached
  Releasing,  // it is to become a placeholder again
  Lost,       // it lost its place
};
inline constexpr std::size_t kPlaceStates = 11;

std::string_view to_string(PlaceState state);

// Whether invocations can reach the worker: the scheduler hears it, and its runtime does.
bool is_reachable(const Fleet& fleet, const Worker& worker, const std::string& runtime_id);
// What a worker that its agent calls ready is by its runtime's word.
PlaceState state_at_runtime(const Fleet& fleet, const Worker& worker, const std::string& runtime_id);
// `is_missing`: its runtime said that it has no such worker any more.
PlaceState place_state(const Fleet& fleet, const AssignmentRecord& assignment, bool is_missing);

// Of one application.
struct PlaceCounts {
  void add(const AssignmentRecord& assignment, PlaceState state);
  std::uint64_t of(PlaceState state) const { return by_state[static_cast<std::size_t>(state)]; }

  std::uint64_t wanted = 0;
  std::array<std::uint64_t, kPlaceStates> by_state{};
};

}  // namespace windlass
