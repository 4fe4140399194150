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

struct BearerCredential {
  std::string tenant;
  Digest sha256{};                      // of the token's text
  std::string name;                     // for people
  std::optional<std::string> instance;  // only this worker may use it
  std::optional<WallTime> expires;
};

struct CertificateCredential {
  std::string tenant;
  std::string fingerprint;  // SHA-256 in lower-case hex, or
  std::string san;          // as "DNS:worker-1.example"; one of the two is set
  std::optional<std::string> instance;
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

 private:
  bool needs_certificate(std::string_view tenant) const;
};

// From a TOML file:
//   [[token]]        tenant = "acme"  sha256 = "..."  name = "laptop"  instance = "i-1"  expires =
//   2027-01-01T00:00:00Z
//   [[certificate]]  tenant = "acme"  fingerprint = "..."  or  san = "URI:..."  instance = "i-1"
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

 private:
  std::shared_ptr<const Credentials> current() const;

  LiveTenants& tenants_;
  const bool takes_certificates_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Credentials> current_;  // shared with the loop that is just asking
};

}  // namespace windlass
