#include "protocol/crypto/seal.h"

#include <openssl/evp.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "protocol/base/big_endian.h"
#include "protocol/base/check.h"

namespace windlass {
namespace {

constexpr std::string_view kMagic{"\x01WS", 3};
constexpr std::size_t kNonceBytes = 12;
constexpr std::size_t kTagBytes = 16;
constexpr std::size_t kKidBytesMax = 64;
constexpr std::string_view kPurpose = "windlass seal 1";

using Context = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

const EVP_CIPHER* algorithm() {
  static const EVP_CIPHER* const cipher = EVP_CIPHER_fetch(nullptr, "AES-256-GCM", nullptr);
  CHECK(cipher != nullptr);
  return cipher;
}

const unsigned char* bytes_of(BytesView bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

Digest derive(const SealKey& key, BytesView salt) {
  Bytes text{kPurpose};
  text += salt;
  return hmac_sha256(key.secret, text);
}

struct Parts {
  std::string_view kid;
  BytesView salt;
  BytesView header;  // up to and with the nonce
  BytesView nonce;
  BytesView body;
  BytesView tag;
};

std::optional<Parts> take_apart(BytesView sealed) {
  if (!sealed.starts_with(kMagic) || sealed.size() <= kMagic.size()) return std::nullopt;
  const std::size_t kid_bytes = static_cast<unsigned char>(sealed[kMagic.size()]);
  const std::size_t salt_at = kMagic.size() + 1 + kid_bytes;
  const std::size_t body_at = salt_at + kSealSaltBytes + kNonceBytes;
  if (sealed.size() < body_at + kTagBytes) return std::nullopt;
  return Parts{.kid = sealed.substr(kMagic.size() + 1, kid_bytes),
               .salt = sealed.substr(salt_at, kSealSaltBytes),
               .header = sealed.substr(0, body_at),
               .nonce = sealed.substr(salt_at + kSealSaltBytes, kNonceBytes),
               .body = sealed.substr(body_at, sealed.size() - body_at - kTagBytes),
               .tag = sealed.substr(sealed.size() - kTagBytes)};
}

// What is authenticated besides the text: the header, and the place.
void bind(EVP_CIPHER_CTX* context, BytesView header, BytesView place) {
  int size = 0;
  CHECK(EVP_CipherUpdate(context, nullptr, &size, bytes_of(header), static_cast<int>(header.size())) == 1);
  if (place.empty()) return;
  CHECK(EVP_CipherUpdate(context, nullptr, &size, bytes_of(place), static_cast<int>(place.size())) == 1);
}

Error unreadable(std::string reason) {
  return {ErrorCode::StoreInvalid, Blame::Local, std::move(reason)};
}

}  // namespace

Result<Sealer> Sealer::create(std::vector<SealKey> keys, BytesView salt) {
  if (keys.empty()) return unreadable("there is no key to encrypt with");
  if (salt.size() != kSealSaltBytes) return unreadable("the salt of a sealer must be 16 bytes");
  for (auto each = keys.begin(); each != keys.end(); ++each) {
    if (each->secret.size() != kSealKeyBytes)
      return unreadable("key " + each->kid + " must be 32 bytes, not " + std::to_string(each->secret.size()));
    const auto is_same = [&](const SealKey& other) { return other.kid == each->kid; };
    if (each->kid.empty() || each->kid.size() > kKidBytesMax || std::any_of(keys.begin(), each, is_same))
      return unreadable("every key needs a name of its own, up to 64 bytes long");
  }
  return Sealer{std::move(keys), salt};
}

Sealer::Sealer(std::vector<SealKey> keys, BytesView salt)
    : keys_(std::move(keys)), salt_(salt), own_key_(derive(keys_.front(), salt)) {}

const SealKey* Sealer::find(std::string_view kid) const {
  const auto found = std::ranges::find(keys_, kid, &SealKey::kid);
  return found == keys_.end() ? nullptr : &*found;
}

Bytes Sealer::seal(BytesView clear, BytesView place) {
  Bytes sealed{kMagic};
  sealed += static_cast<char>(newest().size());
  sealed += newest();
  sealed += salt_;
  append_big_endian(sealed, 0, 4);
  append_big_endian(sealed, ++sealed_, 8);
  const std::size_t body_at = sealed.size();
  sealed.resize(body_at + clear.size() + kTagBytes);
  auto* const out = reinterpret_cast<unsigned char*>(sealed.data());
  const Context context{EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free};
  CHECK(context != nullptr);
  CHECK(EVP_EncryptInit_ex2(context.get(), algorithm(), own_key_.data(), out + body_at - kNonceBytes,
                            nullptr) == 1);
  bind(context.get(), BytesView{sealed}.substr(0, body_at), place);
  int size = 0;
  CHECK(EVP_EncryptUpdate(context.get(), out + body_at, &size, bytes_of(clear),
                          static_cast<int>(clear.size())) == 1);
  CHECK(EVP_EncryptFinal_ex(context.get(), out + body_at + size, &size) == 1);
  CHECK(EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, kTagBytes, out + body_at + clear.size()) ==
        1);
  return sealed;
}

Result<Bytes> Sealer::open(BytesView sealed, BytesView place) const {
  const auto parts = take_apart(sealed);
  if (!parts) return unreadable("it is not encrypted in a form that is known here");
  const SealKey* const key = find(parts->kid);
  if (key == nullptr)
    return unreadable("it is encrypted with key " + std::string{parts->kid} + ", which is not known");
  const Digest derived = derive(*key, parts->salt);
  const Context context{EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free};
  CHECK(context != nullptr);
  CHECK(EVP_DecryptInit_ex2(context.get(), algorithm(), derived.data(), bytes_of(parts->nonce), nullptr) ==
        1);
  bind(context.get(), parts->header, place);
  Bytes clear(parts->body.size() + 1, '\0');  // never no memory at all
  auto* const out = reinterpret_cast<unsigned char*>(clear.data());
  Bytes tag{parts->tag};
  int size = 0;
  CHECK(EVP_DecryptUpdate(context.get(), out, &size, bytes_of(parts->body),
                          static_cast<int>(parts->body.size())) == 1);
  CHECK(EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, kTagBytes, tag.data()) == 1);
  if (EVP_DecryptFinal_ex(context.get(), out + size, &size) != 1)
    return unreadable("it was changed, belongs somewhere else, or its key is another one of the same name");
  clear.pop_back();
  return clear;
}

bool Sealer::is_sealed(BytesView bytes) {
  return take_apart(bytes).has_value();
}

std::string_view Sealer::kid_of(BytesView sealed) {
  const auto parts = take_apart(sealed);
  return parts ? parts->kid : std::string_view{};
}

}  // namespace windlass
