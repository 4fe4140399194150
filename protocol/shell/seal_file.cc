#include "protocol/shell/seal_file.h"

#include <sys/random.h>

#include <utility>

#include "protocol/base/check.h"
#include "protocol/shell/key_file.h"

namespace windlass {

Result<Sealer> open_seal_file(const std::string& path, bool may_make) {
  auto keys = may_make ? read_or_make_keys(path) : read_keys(path);
  if (!keys) return keys.error();
  std::vector<SealKey> all;
  for (SigningKey& each : *keys) all.push_back({std::move(each.kid), std::move(each.secret)});
  Bytes salt(kSealSaltBytes, '\0');
  CHECK(::getrandom(salt.data(), salt.size(), 0) == static_cast<ssize_t>(salt.size()));
  auto sealer = Sealer::create(std::move(all), salt);
  if (!sealer) return Error{ErrorCode::StoreInvalid, Blame::Local, path + ": " + sealer.error().reason};
  return sealer;
}

}  // namespace windlass
