// The end of a fleet's world: nothing hurts any more, and what is left is looked at.
#include <algorithm>

#include "tests/sim/scheduler/fleet_world.h"

namespace windlass::sim {
namespace {

constexpr int kFleetCalmRounds = 600;

}  // namespace

// Of those that a place could be given to.
bool FleetWorld::is_anybody_free() const {
  return std::ranges::any_of(peers_, [&](const auto& each) {
    const auto row = rows_.find(each->key);
    const bool has_place = row != rows_.end() && row->second.state != AssignmentState::Lost;
    return each->role == Role::Worker && !each->is_dead && !each->is_unable && !has_place;
  });
}

// Whatever lives comes back and works; then every place is filled, with what was deployed last.
void FleetWorld::calm_down() {
  is_calm_ = true;
  is_store_full_ = false;
  for (int round = 0; round < kFleetCalmRounds && !broken_; ++round) {
    for (const auto& peer : peers_) {
      heal(*peer);
      for (int i = 0; i < 3; ++i) work(*peer);
      say_status(*peer);
    }
    beat();
    pass(seconds{1});
    for (int i = 0; i < 20 && !broken_; ++i) {
      if (!batch_) poll();
      if (!batch_) break;
      finish_batch(false);
    }
    if (round > 120 && unsettled().empty()) return;
  }
  if (!broken_ && !unsettled().empty()) fail("every place is filled", unsettled());
}

std::string FleetWorld::unsettled() const {
  std::size_t serving = 0;
  std::size_t out_of_work = 0;
  for (const auto& peer : peers_) {
    if (peer->role != Role::Worker || peer->is_dead) continue;
    const std::string& name = peer->key.instance.value();
    const auto row = rows_.find(peer->key);
    const bool is_its = row != rows_.end() && row->second.is_active();
    if (peer->drained == Peer::Drained::ForMemory) return name + " is drained still";
    // Nobody is told anything while its open place may still be its own; one that is drained not at all.
    const bool is_drained = peer->drained == Peer::Drained::ByOrder;
    const bool is_waiting = peer->is_unable && row != rows_.end() && row->second.is_open();
    if (!is_its && !is_waiting && !is_drained && !peer->held.code_version.empty()) {
      return name + " holds what nobody assigned";
    }
    out_of_work += !is_its && peer->is_unable ? 1U : 0U;
    if (is_its && peer->is_unable && is_anybody_free()) return name + " cannot work, and another could";
    if (!is_its) continue;
    if (row->second.state != AssignmentState::Ready) {
      const auto command = core_->outbox().view({kFleetTenant, row->second.command});
      return name + " is not ready, and its command is " +
             (command ? std::string{to_string(command->state)} : "forgotten");
    }
    if (is_drained) {
      ++serving;  // nobody else could
      continue;
    }
    if (peer->held.code_version != row->second.code_version) return name + " holds another version";
    const AppRecord* const app = core_->apps().find(kFleetTenant, kFleetApp, row->second.code_version);
    const bool is_stopped = app != nullptr && !app->rollout_stopped.empty();
    const bool is_old = app != nullptr && peer->held.settings != app->settings.at("K");
    if (is_old && !is_stopped) return name + " has old settings";
    ++serving;
  }
  const auto wanted = static_cast<std::size_t>(std::max<std::int64_t>(0, places_));
  if (serving < std::min(wanted, alive() - out_of_work)) {
    return std::to_string(serving) + " of " + std::to_string(wanted) + " places are filled";
  }
  return {};
}

}  // namespace windlass::sim
