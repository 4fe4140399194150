// The files of keys that callers of functions show: one key (http.key_file), or a list (http.keys_file),
// which holds digests, never a key.
//
//   [[key]]
//   sha256 = "…"             # as `windlass key new` prints it
//   application = "orders"   # none: every application
//   function = "place"       # none: every function of the application
//   level = "function"       # or "admin": functions of level admin, too
#pragma once

#include <string>

#include "protocol/base/result.h"
#include "runtime/adapters/http_access.h"

namespace windlass::runtime {

// The error is one sentence that names the file and the place in it.
Result<HttpKeys> read_http_keys_file(const std::string& path);
// The digest of the key; a key that can be guessed, or a file that everybody can read, is an error too.
Result<Digest> read_http_key_file(const std::string& path);

}  // namespace windlass::runtime
