// A certificate for 127.0.0.1 that lives as long as a run, for workers that dial the runner.
#pragma once

#include <string>

#include "protocol/base/result.h"

namespace windlass::conformance {

struct ThrowawayIdentity {
  std::string certificate_file;  // trusts itself: what a worker is given as its authority, too
  std::string key_file;
};

// Writes both files into the folder.
Result<ThrowawayIdentity> make_identity(const std::string& folder);

}  // namespace windlass::conformance
