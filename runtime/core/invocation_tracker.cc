#include "runtime/core/invocation_tracker.h"

namespace windlass::runtime {

InvocationTracker::~InvocationTracker() {
  for (auto& [id, tracked] : by_id_) timers_.clear(tracked->timer);
}

Tracked* InvocationTracker::find(const InvocationId& id) const {
  const auto found = by_id_.find(id.value());
  return found == by_id_.end() ? nullptr : found->second.get();
}

Tracked& InvocationTracker::add(Invocation invocation, Instant now) {
  CHECK(!is_full());
  auto made = std::make_unique<Tracked>(std::move(invocation));
  Tracked& tracked = *made;
  CHECK(by_id_.emplace(tracked.invocation.id.value(), std::move(made)).second);
  tracked.number = ++next_number_;
  tracked.submitted_at = tracked.moved_at = now;
  by_progress_.push_back(tracked);
  return tracked;
}

void InvocationTracker::remove(Tracked& tracked) {
  CHECK(!tracked.of_host.is_linked && !tracked.of_worker.is_linked && !tracked.pending.is_linked);
  timers_.clear(tracked.timer);
  by_progress_.erase(tracked);
  const auto found = by_id_.find(tracked.invocation.id.value());
  const std::unique_ptr<Tracked> last = std::move(found->second);  // its id is the key
  by_id_.erase(found);
}

void InvocationTracker::moved(Tracked& tracked, Instant now) {
  tracked.moved_at = now;
  by_progress_.erase(tracked);
  by_progress_.push_back(tracked);
}

Tracked* InvocationTracker::oldest(Instant before) const {
  Tracked* const first = by_progress_.front();
  return first != nullptr && first->moved_at <= before ? first : nullptr;
}

}  // namespace windlass::runtime
