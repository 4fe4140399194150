#include "protocol/adapters/peer_info.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>
#include <memory>

namespace windlass {
namespace {

struct X509Deleter {
  void operator()(X509* certificate) const { X509_free(certificate); }
};
struct NamesDeleter {
  void operator()(GENERAL_NAMES* names) const { GENERAL_NAMES_free(names); }
};
struct BioDeleter {
  void operator()(BIO* bio) const { BIO_free(bio); }
};

std::string hex(const unsigned char* bytes, std::size_t count) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += kDigits[bytes[i] >> 4U];
    text += kDigits[bytes[i] & 0xFU];
  }
  return text;
}

std::string subject(const X509* certificate) {
  const std::unique_ptr<BIO, BioDeleter> bio{BIO_new(BIO_s_mem())};
  if (!bio) return {};
  X509_NAME_print_ex(bio.get(), X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253);
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

std::string ia5(const ASN1_IA5STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(ASN1_STRING_length(text))};
}

std::string ip(const ASN1_OCTET_STRING* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = ASN1_STRING_length(address) == 4 ? AF_INET : AF_INET6;
  if (family == AF_INET6 && ASN1_STRING_length(address) != 16) return {};
  ::inet_ntop(family, ASN1_STRING_get0_data(address), text.data(), text.size());
  return text.data();
}

// A name with a zero byte in it reads differently in C, so it is not passed on.
void add_san(const char* kind, std::string value, std::vector<std::string>& sans) {
  if (value.empty() || value.find('\0') != std::string::npos) return;
  sans.push_back(kind + std::move(value));
}

std::vector<std::string> alternative_names(const X509* certificate) {
  std::vector<std::string> sans;
  const std::unique_ptr<GENERAL_NAMES, NamesDeleter> names{
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr))};
  if (!names) return sans;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    switch (name->type) {
      case GEN_DNS:
        add_san("DNS:", ia5(name->d.dNSName), sans);
        break;
      case GEN_URI:
        add_san("URI:", ia5(name->d.uniformResourceIdentifier), sans);
        break;
      case GEN_EMAIL:
        add_san("email:", ia5(name->d.rfc822Name), sans);
        break;
      case GEN_IPADD:
        add_san("IP:", ip(name->d.iPAddress), sans);
        break;
      default:
        break;
    }
  }
  return sans;
}

void describe_certificate(const X509* certificate, PeerInfo& peer) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (X509_digest(certificate, EVP_sha256(), digest.data(), &size) != 1) return;
  peer.certificate_fingerprint = hex(digest.data(), size);
  peer.certificate_subject = subject(certificate);
  peer.certificate_sans = alternative_names(certificate);
}

}  // namespace

void read_verified_certificate(const std::string& pem, PeerInfo& peer) {
  const std::unique_ptr<BIO, BioDeleter> bio{BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))};
  if (!bio) return;
  const std::unique_ptr<X509, X509Deleter> certificate{
      PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)};
  if (certificate) describe_certificate(certificate.get(), peer);
}

void read_certificate(const SSL* ssl, PeerInfo& peer) {
  const std::unique_ptr<X509, X509Deleter> certificate{SSL_get1_peer_certificate(ssl)};
  if (!certificate || SSL_get_verify_result(ssl) != X509_V_OK) return;
  describe_certificate(certificate.get(), peer);
}

}  // namespace windlass
