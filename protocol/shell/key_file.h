// The keys that session tokens are signed with, in a file that only the scheduler may read. One per line,
// newest first: "<kid> <secret in base64url>". Rotation: put a new line on top, reload, and drop the old one
// a token lifetime later.
#pragma once

#include <string>
#include <vector>

#include "protocol/token/token.h"

namespace windlass {

// An error names the file and the line.
Result<std::vector<SigningKey>> read_keys(const std::string& path);

// The same, but makes the file with one random key if there is none.
Result<std::vector<SigningKey>> read_or_make_keys(const std::string& path);

SigningKey random_key();

}  // namespace windlass
