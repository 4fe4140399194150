#include "scheduler/cli/certificates.h"

#include <fcntl.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "protocol/crypto/text_encoding.h"

namespace windlass::cli {
namespace {

constexpr long kDaySeconds = 24L * 3600;
constexpr std::uint32_t kAuthorityDays = 10 * 365;
constexpr long kBackdatedSeconds = 300;  // for machines whose clocks are a little behind

template <auto Free>
struct Freed {
  void operator()(auto* object) const { Free(object); }
};
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using File = std::unique_ptr<std::FILE, Freed<std::fclose>>;

struct Authority {
  Certificate certificate;
  Key key;
};

Error wrong(std::string reason) {
  return {ErrorCode::Internal, Blame::Local, std::move(reason)};
}

Error wrong_file(const std::string& file) {
  return wrong("the file '" + file + "' cannot be written: " + std::strerror(errno));
}

std::string library_error() {
  std::array<char, 256> text{};
  ERR_error_string_n(ERR_get_error(), text.data(), text.size());
  ERR_clear_error();
  return text.data();
}

// Written beside and renamed, so that nobody ever finds half a file.
template <class Write>
Result<Done> write_file(const std::string& path, mode_t mode, const Write& write) {
  const std::string beside = path + ".new";
  ::unlink(beside.c_str());
  const int fd = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (fd < 0) return wrong_file(beside);
  File file{::fdopen(fd, "w")};
  if (!file || write(file.get()) != 1 || std::fflush(file.get()) != 0) return wrong_file(beside);
  file.reset();
  if (std::rename(beside.c_str(), path.c_str()) != 0) return wrong_file(path);
  return Done{};
}

Result<Done> write_pair(const std::string& stem, X509* certificate, EVP_PKEY* key) {
  auto written = write_file(stem + ".key", 0600, [key](std::FILE* file) {
    return PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
  if (!written) return written;
  return write_file(stem + ".pem", 0644,
                    [certificate](std::FILE* file) { return PEM_write_X509(file, certificate); });
}

bool add_extension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION_free>> extension{
      X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str())};
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

// Everything but the issuer, the extensions and the signature.
Certificate begin_certificate(EVP_PKEY* key, const std::string& name, std::uint32_t days) {
  Certificate certificate{X509_new()};
  std::array<unsigned char, 16> serial{};
  if (!certificate || RAND_bytes(serial.data(), static_cast<int>(serial.size())) != 1) return nullptr;
  serial[0] &= 0x7fU;  // a positive number
  const std::unique_ptr<BIGNUM, Freed<BN_free>> number{
      BN_bin2bn(serial.data(), static_cast<int>(serial.size()), nullptr)};
  X509_NAME* const subject = X509_get_subject_name(certificate.get());
  const bool is_filled =
      number && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate.get())) != nullptr &&
      X509_set_version(certificate.get(), X509_VERSION_3) == 1 &&
      X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -kBackdatedSeconds) != nullptr &&
      X509_gmtime_adj(X509_getm_notAfter(certificate.get()), static_cast<long>(days) * kDaySeconds) !=
          nullptr &&
      X509_set_pubkey(certificate.get(), key) == 1 &&
      X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                                 reinterpret_cast<const unsigned char*>(name.data()),
                                 static_cast<int>(name.size()), -1, 0) == 1;
  return is_filled ? std::move(certificate) : nullptr;
}

Result<Authority> make_authority(const std::string& stem) {
  Authority authority{nullptr, Key{EVP_EC_gen("P-256")}};
  if (authority.key) {
    authority.certificate =
        begin_certificate(authority.key.get(), "Windlass development authority", kAuthorityDays);
  }
  X509* const made = authority.certificate.get();
  const bool is_signed = made != nullptr && X509_set_issuer_name(made, X509_get_subject_name(made)) == 1 &&
                         add_extension(made, made, NID_basic_constraints, "critical,CA:TRUE") &&
                         add_extension(made, made, NID_key_usage, "critical,keyCertSign,cRLSign") &&
                         add_extension(made, made, NID_subject_key_identifier, "hash") &&
                         X509_sign(made, authority.key.get(), EVP_sha256()) > 0;
  if (!is_signed) return wrong("no authority can be made: " + library_error());
  if (const auto written = write_pair(stem, made, authority.key.get()); !written) return written.error();
  return authority;
}

Result<Authority> read_authority(const std::string& stem) {
  const File certificate_file{std::fopen((stem + ".pem").c_str(), "r")};
  const File key_file{std::fopen((stem + ".key").c_str(), "r")};
  Authority authority;
  if (certificate_file)
    authority.certificate.reset(PEM_read_X509(certificate_file.get(), nullptr, nullptr, nullptr));
  if (key_file) authority.key.reset(PEM_read_PrivateKey(key_file.get(), nullptr, nullptr, nullptr));
  if (!authority.certificate || !authority.key ||
      X509_check_private_key(authority.certificate.get(), authority.key.get()) != 1) {
    ERR_clear_error();
    return wrong("the authority in '" + stem + ".pem' and '" + stem +
                 ".key' cannot be used: both must be there and belong together; choose another folder, or "
                 "remove both");
  }
  return authority;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& each : names) text += (text.empty() ? "" : ",") + each;
  return text;
}

std::string fingerprint_of(X509* certificate) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  X509_digest(certificate, EVP_sha256(), digest.data(), &size);
  return hex_encode(BytesView{reinterpret_cast<const char*>(digest.data()), size});
}

}  // namespace

Result<IssuedCertificate> issue_certificate(const CertificateRequest& request) {
  std::error_code error;
  std::filesystem::create_directories(request.folder, error);
  if (error) return wrong("the folder '" + request.folder + "' cannot be made: " + error.message());
  const std::string authority_stem = request.folder + "/ca";
  const std::string stem = request.folder + '/' + request.name;
  if (request.name == "ca" || request.name.empty() || request.name.find('/') != std::string::npos) {
    return wrong("'" + request.name + "' is no name for a certificate's files here");
  }
  if (!request.overwrites &&
      (std::filesystem::exists(stem + ".pem") || std::filesystem::exists(stem + ".key"))) {
    return wrong("'" + stem + ".pem' is there already; choose another --name, or give --force");
  }
  const bool is_new =
      !std::filesystem::exists(authority_stem + ".pem") && !std::filesystem::exists(authority_stem + ".key");
  const auto authority = is_new ? make_authority(authority_stem) : read_authority(authority_stem);
  if (!authority) return authority.error();

  const Key key{EVP_EC_gen("P-256")};
  const Certificate leaf = key ? begin_certificate(key.get(), request.name, request.days) : nullptr;
  X509* const issuer = authority->certificate.get();
  if (!leaf || X509_set_issuer_name(leaf.get(), X509_get_subject_name(issuer)) != 1) {
    return wrong("no certificate can be made: " + library_error());
  }
  const std::string names = joined(request.alternative_names);
  if (!names.empty() && !add_extension(leaf.get(), issuer, NID_subject_alt_name, names)) {
    ERR_clear_error();
    return wrong("the alternative names '" + names +
                 "' are not of the form DNS:name, IP:address or URI:text");
  }
  const bool is_signed = add_extension(leaf.get(), issuer, NID_basic_constraints, "critical,CA:FALSE") &&
                         add_extension(leaf.get(), issuer, NID_key_usage, "critical,digitalSignature") &&
                         add_extension(leaf.get(), issuer, NID_ext_key_usage, "serverAuth,clientAuth") &&
                         add_extension(leaf.get(), issuer, NID_authority_key_identifier, "keyid") &&
                         X509_sign(leaf.get(), authority->key.get(), EVP_sha256()) > 0;
  if (!is_signed) return wrong("no certificate can be signed: " + library_error());
  if (const auto written = write_pair(stem, leaf.get(), key.get()); !written) return written.error();
  return IssuedCertificate{authority_stem + ".pem", stem + ".pem", stem + ".key", fingerprint_of(leaf.get()),
                           is_new};
}

}  // namespace windlass::cli
