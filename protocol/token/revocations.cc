#include "protocol/token/revocations.h"

#include <algorithm>

namespace windlass {

void Revocations::add(std::string_view tenant, std::string_view wid, WallTime until, WallTime now) {
  const TextPairView worker{tenant, wid};
  if (const auto known = until_.find(worker); known != until_.end()) {
    if (known->second >= until) return;
    by_time_.erase({known->second, &known->first});
    known->second = until;
    by_time_.emplace(until, &known->first);
  } else {
    const auto added = until_.emplace(worker, until).first;
    by_time_.emplace(until, &added->first);
  }
  while (!by_time_.empty() && by_time_.begin()->first + token_lifetime_ <= now) forget_oldest();
  while (until_.size() > entries_max_) forget_oldest();
}

WallTime Revocations::revoked_until(std::string_view tenant, std::string_view wid) const {
  const auto known = until_.find(TextPairView{tenant, wid});
  return known == until_.end() ? floor_ : std::max(floor_, known->second);
}

void Revocations::forget_oldest() {
  const auto oldest = by_time_.begin();
  floor_ = std::max(floor_, oldest->first);
  const auto entry = until_.find(*oldest->second);
  by_time_.erase(oldest);
  until_.erase(entry);
}

}  // namespace windlass
