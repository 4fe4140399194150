#include "tests/support/certificates.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include <cstdio>
#include <filesystem>

#include "protocol/base/check.h"

namespace windlass::testing {
namespace {

EVP_PKEY* new_key() {
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  CHECK(key != nullptr);
  return key;
}

void write_file(const std::string& path, const auto& write) {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  CHECK(file != nullptr);
  CHECK(write(file) == 1);
  CHECK(std::fclose(file) == 0);
}

void write_key(const std::string& path, EVP_PKEY* key) {
  write_file(path, [key](std::FILE* file) {
    return PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
}

void write_certificate(const std::string& path, X509* certificate) {
  write_file(path, [certificate](std::FILE* file) { return PEM_write_X509(file, certificate); });
}

void set_common_name(X509_NAME* name, const std::string& text) {
  CHECK(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                                   reinterpret_cast<const unsigned char*>(text.c_str()), -1, -1, 0) == 1);
}

void add_extension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  CHECK(extension != nullptr);
  CHECK(X509_add_ext(certificate, extension, -1) == 1);
  X509_EXTENSION_free(extension);
}

X509* new_certificate(EVP_PKEY* key, long serial, long from, long until) {
  X509* const certificate = X509_new();
  CHECK(certificate != nullptr);
  CHECK(X509_set_version(certificate, X509_VERSION_3) == 1);
  CHECK(ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial) == 1);
  CHECK(X509_gmtime_adj(X509_getm_notBefore(certificate), from) != nullptr);
  CHECK(X509_gmtime_adj(X509_getm_notAfter(certificate), until) != nullptr);
  CHECK(X509_set_pubkey(certificate, key) == 1);
  return certificate;
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "windlass-test-XXXXXX").string();
  CHECK(::mkdtemp(pattern.data()) != nullptr);
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void TestAuthority::KeyDeleter::operator()(EVP_PKEY* key) const {
  EVP_PKEY_free(key);
}

void TestAuthority::CertificateDeleter::operator()(X509* certificate) const {
  X509_free(certificate);
}

TestAuthority::TestAuthority(const std::string& name)
    : key_(new_key()), certificate_(new_certificate(key_.get(), 1, -3600, 24L * 3600)) {
  set_common_name(X509_get_subject_name(certificate_.get()), name);
  CHECK(X509_set_issuer_name(certificate_.get(), X509_get_subject_name(certificate_.get())) == 1);
  add_extension(certificate_.get(), certificate_.get(), NID_basic_constraints, "critical,CA:TRUE");
  add_extension(certificate_.get(), certificate_.get(), NID_key_usage, "critical,keyCertSign,cRLSign");
  add_extension(certificate_.get(), certificate_.get(), NID_subject_key_identifier, "hash");
  CHECK(X509_sign(certificate_.get(), key_.get(), EVP_sha256()) > 0);
  write_certificate(certificate_file(), certificate_.get());
}

TestAuthority::~TestAuthority() = default;

IssuedFiles TestAuthority::issue(const std::string& name, const LeafOptions& options) {
  const std::unique_ptr<EVP_PKEY, KeyDeleter> key{new_key()};
  const std::unique_ptr<X509, CertificateDeleter> leaf{
      new_certificate(key.get(), ++serial_, options.valid_from_seconds, options.valid_until_seconds)};
  set_common_name(X509_get_subject_name(leaf.get()), options.common_name);
  CHECK(X509_set_issuer_name(leaf.get(), X509_get_subject_name(certificate_.get())) == 1);
  add_extension(leaf.get(), certificate_.get(), NID_basic_constraints, "critical,CA:FALSE");
  if (!options.alternative_names.empty()) {
    add_extension(leaf.get(), certificate_.get(), NID_subject_alt_name, options.alternative_names);
  }
  CHECK(X509_sign(leaf.get(), key_.get(), EVP_sha256()) > 0);
  IssuedFiles files{folder_.file(name + ".pem"), folder_.file(name + ".key")};
  write_certificate(files.certificate, leaf.get());
  write_key(files.key, key.get());
  return files;
}

}  // namespace windlass::testing
