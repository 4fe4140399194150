#include "protocol/shell/credentials.h"

#include <algorithm>
#include <utility>

#include "protocol/base/error_code.h"

namespace windlass {
namespace {

Error denied(ErrorCode code, const char* reason, SourceLine where = SourceLine::here()) {
  return {code, Blame::Peer, reason, where};
}

bool binds(const std::optional<std::string>& instance, std::string_view wanted) {
  return !instance || *instance == wanted;
}

// Runtimes are told secrets of applications and are believed about workers: no worker's credential makes one.
bool is_role(CredentialRole has, Role wanted) {
  return (has == CredentialRole::Runtime) == (wanted == Role::Runtime);
}

constexpr const char* kNotARuntime =
    "this credential is not one of a runtime; set role = \"runtime\" in its entry of the credentials file";
constexpr const char* kNotAWorker = "this credential is one of a runtime, not of a worker";

Error wrong_role(Role wanted) {
  return denied(ErrorCode::SessionDenied, wanted == Role::Runtime ? kNotARuntime : kNotAWorker);
}

bool is_shown(const CertificateCredential& credential, const PeerFacts& peer) {
  if (peer.certificate_fingerprint.empty()) return false;
  if (!credential.fingerprint.empty()) return credential.fingerprint == peer.certificate_fingerprint;
  return std::ranges::count(peer.certificate_sans, credential.san) > 0;
}

// Without a role: a resume, whose session has the role that was admitted.
Result<Done> admit_certificate(const Credentials& all, const ResumeRequest& request,
                               std::optional<Role> role) {
  if (request.peer.certificate_fingerprint.empty()) {
    return denied(ErrorCode::AuthMtlsRequired,
                  "the connection showed no client certificate that this server trusts");
  }
  bool is_known = false;
  bool is_of_tenant = false;
  bool is_of_worker = false;
  for (const CertificateCredential& each : all.certificates) {
    if (!is_shown(each, request.peer)) continue;
    is_known = true;
    if (each.tenant != request.tenant) continue;
    is_of_tenant = true;
    if (!binds(each.instance, request.instance_id)) continue;
    is_of_worker = true;
    if (!role || is_role(each.role, *role)) return Done{};
  }
  if (is_of_worker) return wrong_role(*role);
  if (!is_known)
    return denied(ErrorCode::AuthUnauthenticated, "the client certificate is bound to no tenant here");
  if (!is_of_tenant)
    return denied(ErrorCode::SessionTenantMismatch, "the client certificate is of another tenant");
  return denied(ErrorCode::SessionDenied, "the client certificate is bound to another worker");
}

// None for one that is not known, or not any more.
const BearerCredential* find_token(const Credentials& all, std::string_view token, WallTime now) {
  const Digest digest = sha256(token);
  const BearerCredential* found = nullptr;
  // All are compared, so that the time taken tells nothing of which one it was.
  for (const BearerCredential& each : all.tokens) {
    if (constant_time_equal(view_of(each.sha256), view_of(digest))) found = &each;
  }
  return found != nullptr && found->expires && *found->expires <= now ? nullptr : found;
}

Result<Done> admit_token(const Credentials& all, const AdmissionRequest& request, WallTime now) {
  if (request.handshake.token.empty()) {
    return denied(ErrorCode::AuthMissingToken, "the handshake carries no bearer token");
  }
  const BearerCredential* const found = find_token(all, request.handshake.token, now);
  if (found == nullptr) {
    return denied(ErrorCode::AuthInvalidToken, "the bearer token is not valid here");
  }
  if (found->tenant != request.tenant) {
    return denied(ErrorCode::SessionTenantMismatch, "the bearer token is of another tenant");
  }
  if (!binds(found->instance, request.instance_id)) {
    return denied(ErrorCode::SessionDenied, "the bearer token is bound to another worker");
  }
  if (!is_role(found->role, request.role)) return wrong_role(request.role);
  return Done{};
}

}  // namespace

bool Credentials::needs_certificate(std::string_view tenant) const {
  const auto policy = tenants.find(tenant);
  return policy != tenants.end() && policy->second.certificate_required;
}

Result<Done> Credentials::admit(const AdmissionRequest& request, WallTime now) const {
  const bool by_certificate = request.handshake.mode == AuthMode::Mtls;
  //= HSK-4
  if (by_certificate && !takes_certificates) {
    return denied(ErrorCode::AuthModeUnsupported,
                  "this server asks for no client certificates; use mode token");
  }
  if (by_certificate || needs_certificate(request.tenant)) {
    if (auto shown =
            admit_certificate(*this, {request.tenant, request.instance_id, request.peer}, request.role);
        !shown) {
      return shown;
    }
    //= HSK-14
    const auto& claimed = request.handshake.fingerprint;
    if (!claimed.empty() && claimed != request.peer.certificate_fingerprint) {
      return denied(ErrorCode::AuthUnauthenticated, "the fingerprint is not that of the certificate shown");
    }
  }
  return by_certificate ? Result<Done>{Done{}} : admit_token(*this, request, now);
}

Result<Done> Credentials::admit_resume(const ResumeRequest& request) const {
  return needs_certificate(request.tenant) ? admit_certificate(*this, request, std::nullopt)
                                           : Result<Done>{Done{}};
}

Result<ShownCredential> Credentials::identify(const PeerFacts& peer, std::string_view token,
                                              WallTime now) const {
  if (!peer.certificate_fingerprint.empty()) {
    for (const CertificateCredential& each : certificates) {
      if (is_shown(each, peer))
        return ShownCredential{each.tenant, each.instance.value_or(""), each.application, each.role};
    }
    return denied(ErrorCode::AuthUnauthenticated,
                  "the client certificate stands in no entry of the credentials file");
  }
  if (token.empty())
    return denied(ErrorCode::AuthMissingToken, "neither a certificate nor a token was shown");
  const BearerCredential* const found = find_token(*this, token, now);
  if (found == nullptr) return denied(ErrorCode::AuthInvalidToken, "the bearer token is not valid here");
  return ShownCredential{found->tenant, found->instance.value_or(""), found->application, found->role};
}

void LiveAdmission::replace(Credentials credentials) {
  credentials.takes_certificates = takes_certificates_;
  auto fresh = std::make_shared<const Credentials>(std::move(credentials));
  const std::lock_guard lock{mutex_};
  current_ = std::move(fresh);
}

std::shared_ptr<const Credentials> LiveAdmission::current() const {
  const std::lock_guard lock{mutex_};
  return current_;
}

Result<Done> LiveAdmission::admit(const AdmissionRequest& request) const {
  return current()->admit(request,
                          std::chrono::time_point_cast<milliseconds>(std::chrono::system_clock::now()));
}

Result<ShownCredential> LiveAdmission::identify(const PeerFacts& peer, std::string_view token) const {
  return current()->identify(peer, token,
                             std::chrono::time_point_cast<milliseconds>(std::chrono::system_clock::now()));
}

}  // namespace windlass
