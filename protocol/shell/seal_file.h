// The keys that state is encrypted with, in a file like that of signing keys (key_file.h): one per line,
// newest first, "<kid> <32 bytes in base64url>". Made with one key at the first start, readable by its owner
// only. Whoever loses it loses what was encrypted.
#pragma once

#include <string>

#include "protocol/crypto/seal.h"

namespace windlass {

// Makes the file if there is none and `may_make`.
Result<Sealer> open_seal_file(const std::string& path, bool may_make);

}  // namespace windlass
