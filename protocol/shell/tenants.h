// The accounts of all tenants that were ever admitted, with the terms of the [tenants] tables in force. Asked
// by every loop at a handshake, changed by the control thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "protocol/session/tenant_account.h"

namespace windlass {

using TenantTable = std::map<std::string, TenantTerms, std::less<>>;

class LiveTenants final {
 public:
  // `otherwise` holds for tenants that the table does not have, and for what it leaves open.
  LiveTenants(const SessionConfig& otherwise, TenantTable table);

  // The same one for as long as this lives. A tenant that is in no table has one too: it may come into one
  // while its sessions are up. Credentials bound how many there are.
  TenantAccount& account(std::string_view tenant);
  // In force at once; a tenant that is missing has no terms of its own any more.
  void replace(TenantTable table);

 private:
  TenantTerms terms_of(std::string_view tenant) const;

  const SessionConfig otherwise_;
  std::mutex mutex_;
  TenantTable table_;
  std::map<std::string, std::unique_ptr<TenantAccount>, std::less<>> accounts_;
};

}  // namespace windlass
