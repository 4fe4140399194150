#include "protocol/shell/tenants.h"

#include <utility>

namespace windlass {

LiveTenants::LiveTenants(const SessionConfig& otherwise, TenantTable table)
    : otherwise_(otherwise), table_(std::move(table)) {}

TenantTerms LiveTenants::terms_of(std::string_view tenant) const {
  const auto found = table_.find(tenant);
  return found == table_.end() ? TenantTerms{} : found->second;
}

TenantAccount& LiveTenants::account(std::string_view tenant) {
  const std::lock_guard lock{mutex_};
  auto found = accounts_.find(tenant);
  if (found == accounts_.end()) {
    found = accounts_.emplace(tenant, std::make_unique<TenantAccount>(otherwise_, terms_of(tenant))).first;
  }
  return *found->second;
}

void LiveTenants::replace(TenantTable table) {
  const std::lock_guard lock{mutex_};
  table_ = std::move(table);
  for (auto& [tenant, account] : accounts_) account->set_terms(terms_of(tenant));
}

}  // namespace windlass
