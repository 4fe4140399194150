#include "scheduler/core/place_view.h"

namespace windlass {
namespace {

constexpr std::array<std::string_view, kPlaceStates> kPlaceNames = {
    "pending",   "ready",  "starting", "failed",    "drained", "draining",
    "unhealthy", "paused", "detached", "releasing", "lost"};

PlaceState state_of_ready(const Fleet& fleet, const AssignmentRecord& assignment, bool is_missing) {
  const Worker* const worker = fleet.find(assignment.worker);
  if (worker == nullptr || !is_reachable(fleet, *worker, assignment.runtime)) return PlaceState::Detached;
  if (worker->language_worker == nullptr) return PlaceState::Starting;  // it says so in a moment
  const LanguageWorkerStatus& status = *worker->language_worker;
  if (status.is_drained()) return PlaceState::Drained;
  if (status.state == "failed") return PlaceState::Failed;
  if (status.state != "ready") return PlaceState::Starting;
  if (worker->is_draining) return PlaceState::Draining;
  return is_missing ? PlaceState::Detached : state_at_runtime(fleet, *worker, assignment.runtime);
}

}  // namespace

std::string_view to_string(PlaceState state) {
  return kPlaceNames[static_cast<std::size_t>(state)];
}

bool is_reachable(const Fleet& fleet, const Worker& worker, const std::string& runtime_id) {
  if (!worker.is_connected() || worker.liveness >= Liveness::Degraded) return false;
  const Worker* const runtime = fleet.find(WorkerKey{worker.key.tenant, InstanceId{runtime_id}});
  if (runtime == nullptr || runtime->role != Role::Runtime) return true;
  if (!runtime->is_connected() || runtime->liveness >= Liveness::Degraded) return false;
  if (runtime->runtime == nullptr) return true;
  // Where not all that are cut off are named, whoever is not named may be one of them.
  return runtime->runtime->detached_left_out == 0 &&
         !runtime->runtime->detached.contains(worker.key.instance.value());
}

PlaceState state_at_runtime(const Fleet& fleet, const Worker& worker, const std::string& runtime_id) {
  const Worker* const runtime = fleet.find(WorkerKey{worker.key.tenant, InstanceId{runtime_id}});
  if (runtime == nullptr || runtime->role != Role::Runtime || runtime->runtime == nullptr) {
    return PlaceState::Ready;
  }
  // By the id of its process: the one before it may be draining there still.
  const auto& unready = runtime->runtime->unready;
  const auto found = unready.find(worker.language_worker->worker_id);
  if (found == unready.end()) {
    return runtime->runtime->is_critical() ? PlaceState::Paused : PlaceState::Ready;
  }
  if (found->second == "Draining") return PlaceState::Draining;
  return found->second == "Unhealthy" ? PlaceState::Unhealthy : PlaceState::Starting;
}

PlaceState place_state(const Fleet& fleet, const AssignmentRecord& assignment, bool is_missing) {
  switch (assignment.state) {
    case AssignmentState::Pending:
      return PlaceState::Pending;
    case AssignmentState::Ready:
      return state_of_ready(fleet, assignment, is_missing);
    case AssignmentState::Failed:
      return PlaceState::Failed;
    case AssignmentState::Releasing:
      return PlaceState::Releasing;
    case AssignmentState::Lost:
      break;
  }
  // One whose place another took because it was drained is not gone.
  const Worker* const worker = fleet.find(assignment.worker);
  const bool is_drained = worker != nullptr && worker->is_connected() && worker->has_drained();
  return is_drained ? PlaceState::Drained : PlaceState::Lost;
}

void PlaceCounts::add(const AssignmentRecord& assignment, PlaceState state) {
  ++by_state[static_cast<std::size_t>(state)];
  wanted += assignment.holds_place() ? 1U : 0U;
}

}  // namespace windlass
