// Lets in agents of one tenant only: what a tenant's runtime holds is no business of another's agents,
// whatever the credentials file says of them.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "protocol/session/admission.h"

namespace windlass::runtime {

class TenantAdmission final : public Admission {
 public:
  // Of every tenant where `tenant` is empty. `inner` must outlive this.
  TenantAdmission(const Admission& inner, std::string tenant) : inner_(inner), tenant_(std::move(tenant)) {}

  Result<Done> admit(const AdmissionRequest& request) const override {
    if (auto ours = check(request.tenant); !ours) return ours;
    return inner_.admit(request);
  }
  Result<Done> admit_resume(const ResumeRequest& request) const override {
    if (auto ours = check(request.tenant); !ours) return ours;
    return inner_.admit_resume(request);
  }
  TenantAccount* account(std::string_view tenant) const override { return inner_.account(tenant); }

 private:
  Result<Done> check(std::string_view tenant) const {
    if (tenant_.empty() || tenant == tenant_) return Done{};
    return Error{ErrorCode::SessionTenantMismatch, Blame::Peer, "this runtime works for another tenant"};
  }

  const Admission& inner_;
  const std::string tenant_;
};

}  // namespace windlass::runtime
