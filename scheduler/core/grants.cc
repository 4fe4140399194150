#include "scheduler/core/grants.h"

#include <algorithm>

namespace windlass {

void Grants::open(const TenantId& tenant, const std::string& runtime, SessionRef session) {
  runtimes_.insert_or_assign(session, Told{tenant, runtime});
}

void Grants::close(SessionRef session) {
  runtimes_.erase(session);
}

void Grants::owe_all() {
  for (auto& [session, told] : runtimes_) told.is_owed = true;
}

bool Grants::is_any_owed() const {
  return std::ranges::any_of(runtimes_, [](const auto& each) { return each.second.is_owed; });
}

std::vector<GrantUpdate> Grants::update(const GrantTable& granted) {
  std::vector<GrantUpdate> updates;
  for (auto& [session, told] : runtimes_) {
    std::map<std::string, std::string> wanted;
    if (const auto of_tenant = granted.find(told.tenant); of_tenant != granted.end()) {
      for (const Grant& each : of_tenant->second) {
        if (!each.runtime.empty() && each.runtime != told.runtime) continue;
        wanted.insert_or_assign(each.instance, each.application_id);
      }
    }
    tell(session, told, std::move(wanted), updates);
  }
  return updates;
}

void Grants::tell(const SessionRef& session, Told& told, std::map<std::string, std::string> wanted,
                  std::vector<GrantUpdate>& updates) {
  const bool is_whole = std::exchange(told.is_owed, false);
  std::vector<GrantUpdate> parts{{.session = session, .is_whole = is_whole}};
  const auto room = [&]() -> GrantUpdate& {
    if (parts.back().granted.size() + parts.back().revoked.size() >= kPerMessageMax) {
      parts.back().has_more = true;
      parts.push_back({.session = session, .is_whole = is_whole, .is_first = false});
    }
    return parts.back();
  };
  for (const auto& [instance, application] : wanted) {
    const auto before = told.applications.find(instance);
    const bool is_known = before != told.applications.end() && before->second == application;
    if (is_whole || !is_known) room().granted.emplace_back(instance, application);
  }
  for (const auto& [instance, application] : told.applications) {
    if (!is_whole && !wanted.contains(instance)) room().revoked.push_back(instance);
  }
  told.applications = std::move(wanted);
  const bool is_news = is_whole || !parts.front().granted.empty() || !parts.front().revoked.empty();
  if (is_news) std::ranges::move(parts, std::back_inserter(updates));
}

}  // namespace windlass
