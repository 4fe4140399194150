#include "conformance/runner/identity.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <memory>

namespace windlass::conformance {
namespace {

constexpr long kValidSeconds = 24L * 3600;

struct OpenSslDeleter {
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(std::FILE* file) const { std::fclose(file); }
};
template <class T>
using Owned = std::unique_ptr<T, OpenSslDeleter>;

bool add_extension(X509* certificate, int kind, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value);
  if (extension == nullptr) return false;
  const bool added = X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return added;
}

bool fill(X509* certificate, EVP_PKEY* key) {
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate), kValidSeconds);
  X509_NAME* const name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("windlass-conformance"), -1, -1, 0);
  return X509_set_issuer_name(certificate, name) == 1 && X509_set_pubkey(certificate, key) == 1 &&
         add_extension(certificate, NID_basic_constraints, "critical,CA:TRUE") &&
         add_extension(certificate, NID_subject_alt_name, "IP:127.0.0.1,DNS:localhost") &&
         X509_sign(certificate, key, EVP_sha256()) > 0;
}

}  // namespace

Result<ThrowawayIdentity> make_identity(const std::string& folder) {
  ThrowawayIdentity made{folder + "/conformance.pem", folder + "/conformance.key"};
  const Owned<EVP_PKEY> key{EVP_EC_gen("P-256")};
  const Owned<X509> certificate{X509_new()};
  const bool is_made = key && certificate && fill(certificate.get(), key.get());
  const Owned<std::FILE> certificate_file{std::fopen(made.certificate_file.c_str(), "w")};
  const Owned<std::FILE> key_file{std::fopen(made.key_file.c_str(), "w")};
  if (!is_made || !certificate_file || !key_file ||
      PEM_write_X509(certificate_file.get(), certificate.get()) != 1 ||
      PEM_write_PrivateKey(key_file.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return Error{ErrorCode::Internal, Blame::Local,
                 "a certificate for the worker's connection could not be made in " + folder +
                     "; is the folder writable?"};
  }
  return made;
}

}  // namespace windlass::conformance
