#include "protocol/crypto/digest.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <memory>

#include "protocol/base/big_endian.h"
#include "protocol/base/check.h"

namespace windlass {
namespace {

struct ContextDeleter {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

// Fetched once: looking the algorithm up by name for each hash costs more than hashing a small message.
const EVP_MD* sha256_algorithm() {
  static const EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  CHECK(algorithm != nullptr);
  return algorithm;
}

class Hash final {
 public:
  Hash() : context_(EVP_MD_CTX_new()) {
    CHECK(context_ != nullptr);
    CHECK(EVP_DigestInit_ex2(context_.get(), sha256_algorithm(), nullptr) == 1);
  }
  void add(BytesView data) { CHECK(EVP_DigestUpdate(context_.get(), data.data(), data.size()) == 1); }
  Digest finish() {
    Digest digest{};
    CHECK(EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr) == 1);
    return digest;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, ContextDeleter> context_;
};

}  // namespace

BytesView view_of(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

Digest sha256(BytesView data) {
  Hash hash;
  hash.add(data);
  return hash.finish();
}

Digest sha256_parts(std::span<const BytesView> parts) {
  Hash hash;
  for (const BytesView part : parts) {
    Bytes length;  // short enough to need no memory of its own
    append_big_endian(length, part.size(), 8);
    hash.add(length);
    hash.add(part);
  }
  return hash.finish();
}

Digest hmac_sha256(BytesView key, BytesView data) {
  Digest digest{};
  unsigned int length = 0;
  const auto* bytes = reinterpret_cast<const unsigned char*>(data.data());
  CHECK(HMAC(sha256_algorithm(), key.data(), static_cast<int>(key.size()), bytes, data.size(), digest.data(),
             &length) != nullptr);
  CHECK(length == digest.size());
  return digest;
}

bool constant_time_equal(BytesView left, BytesView right) {
  return left.size() == right.size() && CRYPTO_memcmp(left.data(), right.data(), left.size()) == 0;
}

}  // namespace windlass
