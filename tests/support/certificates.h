// A certificate authority for tests: makes keys and certificates with libcrypto and writes them as PEM files
// to a folder of its own, which goes with it.
#pragma once

#include <openssl/types.h>

#include <memory>
#include <string>
#include <vector>

namespace windlass::testing {

// A folder under the system's temporary one, removed at the end.
class TemporaryFolder final {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + '/' + name; }

 private:
  std::string path_;
};

struct IssuedFiles {
  std::string certificate;
  std::string key;
};

struct LeafOptions {
  std::string common_name = "localhost";
  std::string alternative_names = "DNS:localhost,IP:127.0.0.1";  // as OpenSSL's configuration writes them
  long valid_from_seconds = -3600;                               // relative to now
  long valid_until_seconds = 3600;
};

class TestAuthority final {
 public:
  explicit TestAuthority(const std::string& name = "Test Authority");
  ~TestAuthority();

  // Writes <name>.pem and <name>.key.
  IssuedFiles issue(const std::string& name, const LeafOptions& options = {});
  std::string certificate_file() const { return folder_.file("authority.pem"); }
  const TemporaryFolder& folder() const { return folder_; }

 private:
  struct KeyDeleter {
    void operator()(EVP_PKEY* key) const;
  };
  struct CertificateDeleter {
    void operator()(X509* certificate) const;
  };
  TemporaryFolder folder_;
  std::unique_ptr<EVP_PKEY, KeyDeleter> key_;
  std::unique_ptr<X509, CertificateDeleter> certificate_;
  long serial_ = 1;
};

}  // namespace windlass::testing
