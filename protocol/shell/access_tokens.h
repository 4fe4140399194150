// Who may use a listener of operators: one shared token, or a file of named ones, several of which may be
// good at a time. Both are read again when their files change.
#pragma once

#include <string>
#include <vector>

#include "protocol/base/result.h"
#include "protocol/crypto/access_token.h"
#include "protocol/shell/config_reader.h"

namespace windlass {

// Shorter ones can be guessed. What `windlass token new` makes has 43 characters.
inline constexpr std::size_t kAccessTokenBytesMin = 16;

// Where the tokens of a listener are.
struct AccessSettings {
  std::string token;        // secret; from the environment
  std::string token_file;   // one token, known as "admin"
  std::string tokens_file;  // [[token]] with name, sha256 and expires

  bool is_any() const { return !token.empty() || !token_file.empty() || !tokens_file.empty(); }
};

// token, token_file and tokens_file of the table, each looked at; whatever is wrong is a problem of the
// table.
AccessSettings read_access(ConfigTable& table);

// All that are good now, and those that expired: the listener compares dates.
Result<std::vector<AccessToken>> read_access_tokens(const AccessSettings& settings);

}  // namespace windlass
