#include "scheduler/core/values.h"

#include <array>

#include "scheduler/core/app_values.h"

namespace windlass {
namespace {

constexpr std::array<std::string_view, 4> kStates = {"waiting", "sent", "done", "failed"};
constexpr std::array<std::string_view, 5> kAssignmentStates = {"pending", "ready", "failed", "releasing",
                                                               "lost"};

}  // namespace

std::string_view to_string(CommandState state) {
  return kStates[static_cast<std::size_t>(state)];
}

std::optional<CommandState> command_state_from(std::string_view text) {
  for (std::size_t i = 0; i < kStates.size(); ++i) {
    if (kStates[i] == text) return static_cast<CommandState>(i);
  }
  return std::nullopt;
}

std::string_view to_string(AssignmentState state) {
  return kAssignmentStates[static_cast<std::size_t>(state)];
}

std::optional<AssignmentState> assignment_state_from(std::string_view text) {
  for (std::size_t i = 0; i < kAssignmentStates.size(); ++i) {
    if (kAssignmentStates[i] == text) return static_cast<AssignmentState>(i);
  }
  return std::nullopt;
}

}  // namespace windlass
