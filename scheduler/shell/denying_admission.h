// Keeps revoked instances out, whatever credential they show, and workers that take a runtime's name. Asked
// by every loop; the control thread changes who is revoked once the store has it.
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

// Ids under which a runtime was let in. A worker that registered under one would supersede the runtime and
// get its orders, so such an id is the runtimes' until the scheduler is started again.
class RuntimeIds final {
 public:
  static constexpr std::size_t kMax = 65'536;

  bool add(std::string_view tenant, std::string_view instance) {
    const std::lock_guard lock{mutex_};
    if (ids_.contains(TextPairView{tenant, instance})) return true;
    if (ids_.size() >= kMax) return false;
    ids_.emplace(TextPairView{tenant, instance});
    return true;
  }
  bool contains(std::string_view tenant, std::string_view instance) const {
    const std::lock_guard lock{mutex_};
    return ids_.contains(TextPairView{tenant, instance});
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_set<TextPair, TextPairHash, TextPairEqual> ids_;
};

class DenyingAdmission final : public Admission {
 public:
  // All must outlive this.
  DenyingAdmission(const Admission& inner, const DeniedInstances& denied, RuntimeIds& runtimes)
      : inner_(inner), denied_(denied), runtimes_(runtimes) {}

  // Only those who may connect at all learn that they were revoked.
  Result<Done> admit(const AdmissionRequest& request) const override {
    if (auto admitted = inner_.admit(request); !admitted) return admitted;
    if (auto allowed = check(request.tenant, request.instance_id); !allowed) return allowed;
    return check_name(request);
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

  Result<Done> check_name(const AdmissionRequest& request) const {
    if (request.role == Role::Runtime) {
      if (runtimes_.add(request.tenant, request.instance_id)) return Done{};
      return Error{ErrorCode::LimitCapacity, Blame::Peer, "too many runtimes have had ids of their own here"};
    }
    if (!runtimes_.contains(request.tenant, request.instance_id)) return Done{};
    return Error{ErrorCode::SessionDenied, Blame::Peer,
                 "this id is a runtime's; a worker needs an id of its own"};
  }

  const Admission& inner_;
  const DeniedInstances& denied_;
  RuntimeIds& runtimes_;
};

}  // namespace windlass
