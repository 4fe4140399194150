#include "scheduler/core/assignment_plan.h"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <utility>

namespace windlass {
namespace {

constexpr std::size_t kNamesShownMax = 8;

Error no_plan(std::string reason) {
  return {ErrorCode::SessionUnknown, Blame::Peer, std::move(reason)};
}

std::size_t idle_of(const FleetView& fleet, const PlanRequest& request, const InstanceId& runtime) {
  return static_cast<std::size_t>(std::ranges::count_if(fleet.workers, [&](const PlacedWorker& each) {
    return each.availability == Availability::Idle && each.language == request.language &&
           each.runtime == runtime.value();
  }));
}

std::string names_of(const std::vector<PlacedRuntime>& runtimes) {
  std::string names;
  for (std::size_t i = 0; i < runtimes.size() && i < kNamesShownMax; ++i) {
    names += (names.empty() ? "" : ", ") + runtimes[i].id.value();
  }
  return runtimes.size() > kNamesShownMax ? names + ", ..." : names;
}

Result<const PlacedRuntime*> named_runtime(const FleetView& fleet, const std::string& name) {
  const auto found = std::ranges::find_if(fleet.runtimes,
                                          [&](const PlacedRuntime& each) { return each.id.value() == name; });
  if (found == fleet.runtimes.end()) {
    return no_plan(
        "no runtime '" + name + "' is connected; " +
        (fleet.runtimes.empty() ? std::string{"none is"} : "there are " + names_of(fleet.runtimes)));
  }
  if (!found->is_available)
    return no_plan("runtime '" + name + "' is draining, unhealthy, short of memory or away");
  return &*found;
}

Result<const PlacedRuntime*> choose_runtime(const FleetView& fleet, const PlanRequest& request) {
  if (!request.runtime.empty()) return named_runtime(fleet, request.runtime);
  const PlacedRuntime* best = nullptr;
  using Rank = std::tuple<bool, bool, std::size_t, bool, std::uint64_t>;
  std::optional<Rank> best_rank;
  for (const PlacedRuntime& each : fleet.runtimes) {
    if (!each.is_available || (request.needs_memory && !each.has_memory)) continue;
    const std::size_t idle = idle_of(fleet, request, each.id);
    const bool can_take = idle > 0 || !each.url.empty();
    // Fewer workers is better, so they count downwards.
    const Rank rank{each.has_memory && can_take, each.serves_app, idle, !each.url.empty(), ~each.workers};
    if (best_rank && *best_rank >= rank) continue;
    best = &each;
    best_rank = rank;
  }
  if (best == nullptr) {
    return no_plan(fleet.runtimes.empty() ? "no runtime is connected to the scheduler; start windlass-runtime"
                                          : "no runtime is available: " + names_of(fleet.runtimes) +
                                                " are draining, unhealthy, short of memory or away");
  }
  return best;
}

std::string counted(std::size_t count, std::string_view one, std::string_view many) {
  return std::to_string(count) + ' ' + std::string{count == 1 ? one : many};
}

// "2 idle placeholders of language 'node', 3 were asked for (1 is claimed, 1 is away)".
std::string shortfall(const FleetView& fleet, const PlanRequest& request, std::size_t found) {
  std::string text =
      (found == 1 ? "there is " : "there are ") + counted(found, "idle placeholder", "idle placeholders");
  text +=
      " of language '" + request.language + "', " + counted(request.workers, "was", "were") + " asked for";
  static constexpr std::array<std::pair<Availability, std::string_view>, 6> kWhy{{
      {Availability::Claimed, "assigned already"},
      {Availability::Busy, "busy with an application"},
      {Availability::Draining, "draining"},
      {Availability::Away, "away"},
      {Availability::Failed, "failed"},
      {Availability::Unfit, "not fit for new work"},
  }};
  std::string why;
  for (const auto& [availability, words] : kWhy) {
    const auto count =
        std::ranges::count_if(fleet.workers, [&, why_not = availability](const PlacedWorker& each) {
          return each.language == request.language && each.availability == why_not;
        });
    if (count > 0) why += (why.empty() ? "" : ", ") + std::to_string(count) + ' ' + std::string{words};
  }
  if (why.empty() && found == 0) why = "no agent with such a language worker is connected";
  return why.empty() ? text : text + " (" + why + ")";
}

}  // namespace

Result<PlacedRuntime> plan_runtime(const FleetView& fleet, const PlanRequest& request) {
  FleetView reachable = fleet;
  std::erase_if(reachable.runtimes, [](const PlacedRuntime& each) { return each.url.empty(); });
  const auto runtime = choose_runtime(reachable, request);
  if (!runtime) return runtime.error();
  return **runtime;
}

Result<AssignmentPlan> plan_assignment(const FleetView& fleet, const PlanRequest& request) {
  const auto runtime = choose_runtime(fleet, request);
  if (!runtime) return runtime.error();
  AssignmentPlan plan{(*runtime)->id, (*runtime)->url, {}, {}};
  for (const bool moves : {false, true}) {
    if (moves && plan.runtime_url.empty()) break;  // nobody can be sent there
    for (const PlacedWorker& each : fleet.workers) {
      if (plan.workers.size() == request.workers) break;
      if (each.availability != Availability::Idle || each.language != request.language) continue;
      if ((each.runtime != plan.runtime.value()) != moves) continue;
      plan.workers.push_back({each.id, moves});
    }
  }
  if (plan.workers.size() == request.workers) return plan;
  plan.shortfall = shortfall(fleet, request, plan.workers.size());
  if (plan.workers.empty() || !request.is_partial) {
    const bool could = !plan.workers.empty();
    return no_plan(plan.shortfall + (could ? "; ask for fewer, or take what there is with --partial" : ""));
  }
  return plan;
}

}  // namespace windlass
