// Which tokens were revoked, per worker and by time of issue. Bounded, and never un-revokes: what it forgets
// it covers by a floor that holds for every worker.
#pragma once

#include <cstddef>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "protocol/base/limits.h"
#include "protocol/base/text_pair.h"
#include "protocol/base/time.h"

namespace windlass {

class Revocations final {
 public:
  explicit Revocations(milliseconds token_lifetime, std::size_t entries_max = limits::kRevokedMax)
      : token_lifetime_(token_lifetime), entries_max_(entries_max) {}
  Revocations(Revocations&&) = default;
  Revocations& operator=(Revocations&&) = default;

  // Tokens of the worker issued up to and at `until` are revoked. Entries whose tokens have all expired at
  // `now` are forgotten; at the bound so is the oldest one. Forgetting raises the floor to that entry's time.
  // For an expired entry this costs nobody anything, and it still holds when the wall clock steps back; at
  // the bound it makes the workers whose tokens are older than the oldest revocation register afresh, which
  // is safe where forgetting would not be.
  void add(std::string_view tenant, std::string_view wid, WallTime until, WallTime now);

  // The latest time of issue that is revoked for this worker.
  WallTime revoked_until(std::string_view tenant, std::string_view wid) const;

  WallTime floor() const { return floor_; }
  std::size_t size() const { return until_.size(); }

 private:
  void forget_oldest();

  milliseconds token_lifetime_;
  std::size_t entries_max_;
  WallTime floor_ = WallTime::min();
  std::unordered_map<TextPair, WallTime, TextPairHash, TextPairEqual> until_;  // by tenant and wid
  std::set<std::pair<WallTime, const TextPair*>> by_time_;  // keys of until_, which do not move
};

}  // namespace windlass
