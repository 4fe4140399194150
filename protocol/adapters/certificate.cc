#include "protocol/adapters/certificate.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <array>
#include <cstdio>
#include <memory>

namespace windlass {

Result<std::string> certificate_fingerprint(const std::string& pem_file) {
  const auto close = [](std::FILE* file) { std::fclose(file); };
  const std::unique_ptr<std::FILE, decltype(close)> file{std::fopen(pem_file.c_str(), "re"), close};
  const auto free = [](X509* certificate) { X509_free(certificate); };
  const std::unique_ptr<X509, decltype(free)> certificate{
      file ? PEM_read_X509(file.get(), nullptr, nullptr, nullptr) : nullptr, free};
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  if (!certificate || X509_digest(certificate.get(), EVP_sha256(), digest.data(), &size) != 1) {
    return Error{ErrorCode::StoreInvalid, Blame::Local, pem_file + " holds no readable certificate in PEM"};
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (unsigned int i = 0; i < size; ++i) {
    text += kDigits[digest[i] >> 4U];
    text += kDigits[digest[i] & 15U];
  }
  return text;
}

}  // namespace windlass
