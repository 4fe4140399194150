// Who may hold a session: bearer tokens kept as hashes and client certificates, each bound to a tenant and,
// if the operator wishes, to one worker. A value, read from the credentials file; reloading makes a new one.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "protocol/base/time.h"
#include "protocol/crypto/digest.h"
#include "protocol/session/admission.h"
#include "protocol/shell/tenants.h"

namespace windlass {

// What whoever shows a credential may be. An agent is a worker that also speaks for its language worker on a
// runtime's gRPC listener; a worker there is the language worker itself.
enum class CredentialRole : std::uint8_t { Worker, Agent, Runtime };

struct BearerCredential {
  std::string tenant;
  Digest sha256{};                      // of the token's text
  std::string name;                     // for people
  std::optional<std::string> instance;  // only this worker may use it
  std::optional<WallTime> expires;
  CredentialRole role = CredentialRole::Worker;
  std::string application = {};  // of a language worker that dials a runtime's gRPC listener itself
};

struct CertificateCredential {
  std::string tenant;
  std::string fingerprint;  // SHA-256 in lower-case hex, or
  std::string san;          // as "DNS:worker-1.example"; one of the two is set
  std::optional<std::string> instance;
  CredentialRole role = CredentialRole::Worker;
  std::string application = {};  // likewise
};

// Who somebody is that came without a session, by what was shown.
struct ShownCredential {
  std::string tenant;
  std::string instance;     // empty: the credential is bound to none
  std::string application;  // empty: likewise
  CredentialRole role = CredentialRole::Worker;
};

struct TenantPolicy {
  bool certificate_required = false;
};

struct Credentials {
  std::vector<BearerCredential> tokens;
  std::vector<CertificateCredential> certificates;
  std::map<std::string, TenantPolicy, std::less<>> tenants;
  // Whether connections here can show a client certificate at all; else nobody can use mode mtls.
  bool takes_certificates = true;

  // Done, or what the worker is told. A wrong token is never told from an expired or a foreign one by more
  // than its owner may know.
  Result<Done> admit(const AdmissionRequest& request, WallTime now) const;
  Result<Done> admit_resume(const ResumeRequest& request) const;
  // Whose certificate or token it is. A certificate, where one was shown, has to be known: a token does not
  // make up for it.
  Result<ShownCredential> identify(const PeerFacts& peer, std::string_view token, WallTime now) const;

 private:
  bool needs_certificate(std::string_view tenant) const;
};

// From a TOML file:
//   [[token]]        tenant = "acme"  sha256 = "..."  name = "laptop"  instance = "i-1"  role = "worker"
//                    application = "orders"  expires = "2027-01-31"
//   [[certificate]]  tenant = "acme"  fingerprint = "..."  or  san = "URI:..."  instance, role, application
//   [tenant.acme]    certificate_required = true
// An error names the file, the line and what to write instead.
Result<Credentials> read_credentials(const std::string& path);

// The credentials in force. Asked by every loop, replaced by the control thread.
class LiveAdmission final : public Admission {
 public:
  // The tenants must outlive this. `takes_certificates`: the listener asks for client certificates.
  LiveAdmission(Credentials credentials, LiveTenants& tenants, bool takes_certificates)
      : tenants_(tenants), takes_certificates_(takes_certificates) {
    replace(std::move(credentials));
  }
  void replace(Credentials credentials);
  Result<Done> admit(const AdmissionRequest& request) const override;
  Result<Done> admit_resume(const ResumeRequest& request) const override {
    return current()->admit_resume(request);
  }
  TenantAccount* account(std::string_view tenant) const override { return &tenants_.account(tenant); }
  Result<ShownCredential> identify(const PeerFacts& peer, std::string_view token) const;

 private:
  std::shared_ptr<const Credentials> current() const;

  LiveTenants& tenants_;
  const bool takes_certificates_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Credentials> current_;  // shared with the loop that is just asking
};

}  // namespace windlass
