// A certificate authority for development, kept as two files in a folder, and certificates that it issues.
// Not for production: its key lies unencrypted beside its certificate.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "protocol/base/result.h"

namespace windlass::cli {

struct CertificateRequest {
  std::string folder;
  std::string name;                            // of the files and of the subject
  std::vector<std::string> alternative_names;  // "DNS:localhost", "IP:127.0.0.1", "URI:..."
  std::uint32_t days = 365;
  bool overwrites = false;
};

struct IssuedCertificate {
  std::string authority_file;
  std::string certificate_file;
  std::string key_file;
  std::string fingerprint;  // SHA-256 in lower-case hex, as the credentials file wants it
  bool is_authority_new = false;
};

// Makes the folder and the authority if they are not there. An error names the file and what is wrong.
Result<IssuedCertificate> issue_certificate(const CertificateRequest& request);

}  // namespace windlass::cli
