// A bearer token that a listener takes, kept as its hash.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "protocol/base/time.h"
#include "protocol/crypto/digest.h"

namespace windlass {

struct AccessToken {
  // NOLINTNEXTLINE(google-explicit-constructor): a hash alone is a token of nobody in particular.
  AccessToken(Digest digest, std::string owner = {}, std::optional<WallTime> end = std::nullopt)
      : sha256(digest), name(std::move(owner)), expires(end) {}

  Digest sha256;
  std::string name;  // whose it is, for the log
  std::optional<WallTime> expires;
};

}  // namespace windlass
