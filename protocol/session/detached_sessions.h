// Which sessions wait for a resume, by tenant. When there is no room for another session, the youngest of
// these is ended: a worker that has been here for long is believed to come back before one that just came and
// went.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "protocol/session/session_event.h"

namespace windlass {

class DetachedSessions final {
 public:
  void add(std::string_view tenant, SessionHandle session) {
    auto found = tenants_.find(tenant);
    if (found == tenants_.end()) found = tenants_.emplace(tenant, std::set<std::uint64_t>{}).first;
    found->second.insert(session.value());
  }

  void remove(std::string_view tenant, SessionHandle session) {
    const auto found = tenants_.find(tenant);
    if (found == tenants_.end()) return;
    found->second.erase(session.value());
    if (found->second.empty()) tenants_.erase(found);
  }

  // Handles are given in the order in which sessions begin.
  std::optional<SessionHandle> youngest_of(std::string_view tenant) const {
    const auto found = tenants_.find(tenant);
    if (found == tenants_.end()) return std::nullopt;
    return SessionHandle{*found->second.rbegin()};
  }
  // Of the tenant that has most of them.
  std::optional<SessionHandle> youngest_of_largest() const {
    const auto largest =
        std::ranges::max_element(tenants_, {}, [](const auto& each) { return each.second.size(); });
    if (largest == tenants_.end()) return std::nullopt;
    return SessionHandle{*largest->second.rbegin()};
  }

 private:
  std::map<std::string, std::set<std::uint64_t>, std::less<>> tenants_;
};

}  // namespace windlass
