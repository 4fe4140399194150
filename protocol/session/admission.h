// Who may connect. The scheduler's endpoint asks once per handshake; how tokens and certificates are kept is
// the owner's business.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "protocol/base/result.h"
#include "protocol/messages/control.h"
#include "protocol/session/tenant_account.h"

namespace windlass {

// What the transport knows of the other end, beyond what it says of itself.
struct PeerFacts {
  std::string address;
  std::string certificate_fingerprint;  // empty: no verified client certificate
  std::string certificate_subject;
  std::vector<std::string> certificate_sans;  // "DNS:name", "URI:..."
};

struct AdmissionRequest {
  const Handshake& handshake;
  std::string_view tenant;
  std::string_view instance_id;
  Role role;
  const PeerFacts& peer;
};

// A resume that comes without a handshake. Its token has to prove who it is; this is about the rest.
struct ResumeRequest {
  std::string_view tenant;
  std::string_view instance_id;
  const PeerFacts& peer;
};

class Admission {
 public:
  virtual ~Admission() = default;
  // Done, or the code to reset with: E.AUTH.* or E.SESSION.TENANT_MISMATCH or E.SESSION.DENIED.
  virtual Result<Done> admit(const AdmissionRequest& request) const = 0;
  // The same for a resume that no handshake precedes: whether policy asks for more than its token.
  virtual Result<Done> admit_resume(const ResumeRequest& request) const = 0;
  // What this tenant, one of whose workers was just admitted, may take; it outlives the endpoint. None: its
  // sessions are bounded as all are.
  virtual TenantAccount* account(std::string_view /*tenant*/) const { return nullptr; }
};

}  // namespace windlass
