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

bool is_shown(const CertificateCredential& credential, const PeerFacts& peer) {
  if (peer.certificate_fingerprint.empty()) return false;
  if (!credential.fingerprint.empty()) return credential.fingerprint == peer.certificate_fingerprint;
  return std::ranges::count(peer.certificate_sans, credential.san) > 0;
}

Result<Done> admit_certificate(const Credentials& all, const ResumeRequest& request) {
  if (request.peer.certificate_fingerprint.empty()) {
    return denied(ErrorCode::AuthMtlsRequired,
                  "the connection showed no client certificate that this server trusts");
  }
  bool is_known = false;
  bool is_of_tenant = false;
  for (const CertificateCredential& each : all.certificates) {
    if (!is_shown(each, request.peer)) continue;
    is_known = true;
    if (each.tenant != request.tenant) continue;
    is_of_tenant = true;
    if (binds(each.instance, request.instance_id)) return Done{};
  }
  if (!is_known)
    return denied(ErrorCode::AuthUnauthenticated, "the client certificate is bound to no tenant here");
  if (!is_of_tenant)
    return denied(ErrorCode::SessionTenantMismatch, "the client certificate is of another tenant");
  return denied(ErrorCode::SessionDenied, "the client certificate is bound to another worker");
}

Result<Done> admit_token(const Credentials& all, const AdmissionRequest& request, WallTime now) {
  if (request.handshake.token.empty()) {
    return denied(ErrorCode::AuthMissingToken, "the handshake carries no bearer token");
  }
  const Digest digest = sha256(request.handshake.token);
  const BearerCredential* found = nullptr;
  // All are compared, so that the time taken tells nothing of which one it was.
  for (const BearerCredential& each : all.tokens) {
    if (constant_time_equal(view_of(each.sha256), view_of(digest))) found = &each;
  }
  if (found == nullptr || (found->expires && *found->expires <= now)) {
    return denied(ErrorCode::AuthInvalidToken, "the bearer token is not valid here");
  }
  if (found->tenant != request.tenant) {
    return denied(ErrorCode::SessionTenantMismatch, "the bearer token is of another tenant");
  }
  if (!binds(found->instance, request.instance_id)) {
    return denied(ErrorCode::SessionDenied, "the bearer token is bound to another worker");
  }
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
    if (auto shown = admit_certificate(*this, {request.tenant, request.instance_id, request.peer}); !shown) {
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
  return needs_certificate(request.tenant) ? admit_certificate(*this, request) : Result<Done>{Done{}};
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

}  // namespace windlass
