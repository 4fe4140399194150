// Keeps revoked instances out, whatever credential they show. Asked by every loop, changed by the control
// thread once the store has it.
#pragma once

#include <mutex>
#include <string_view>
#include <unordered_set>

#include "protocol/base/text_pair.h"
#include "protocol/session/admission.h"

namespace windlass {

class DeniedInstances final {
 public:
  void add(std::string_view tenant, std::string_view instance) {
    const std::lock_guard lock{mutex_};
    denied_.emplace(TextPairView{tenant, instance});
  }
  void remove(std::string_view tenant, std::string_view instance) {
    const std::lock_guard lock{mutex_};
    if (const auto found = denied_.find(TextPairView{tenant, instance}); found != denied_.end()) {
      denied_.erase(found);
    }
  }
  bool contains(std::string_view tenant, std::string_view instance) const {
    const std::lock_guard lock{mutex_};
    return denied_.contains(TextPairView{tenant, instance});
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_set<TextPair, TextPairHash, TextPairEqual> denied_;
};

class DenyingAdmission final : public Admission {
 public:
  // Both must outlive this.
  DenyingAdmission(const Admission& inner, const DeniedInstances& denied) : inner_(inner), denied_(denied) {}

  // Only those who may connect at all learn that they were revoked.
  Result<Done> admit(const AdmissionRequest& request) const override {
    if (auto admitted = inner_.admit(request); !admitted) return admitted;
    return check(request.tenant, request.instance_id);
  }
  Result<Done> admit_resume(const ResumeRequest& request) const override {
    if (auto admitted = inner_.admit_resume(request); !admitted) return admitted;
    return check(request.tenant, request.instance_id);
  }
  TenantAccount* account(std::string_view tenant) const override { return inner_.account(tenant); }

 private:
  Result<Done> check(std::string_view tenant, std::string_view instance) const {
    if (!denied_.contains(tenant, instance)) return Done{};
    return Error{ErrorCode::SessionDenied, Blame::Peer,
                 "this worker was revoked; an operator can let it in again with windlass allow"};
  }

  const Admission& inner_;
  const DeniedInstances& denied_;
};

}  // namespace windlass
