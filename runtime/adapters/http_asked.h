// What a request to a function says, read as far as choosing the function and calling it needs. Pure; what it
// costs grows no faster than the request.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "protocol/crypto/digest.h"
#include "runtime/adapters/rpc_values.h"

namespace windlass::runtime {

std::string in_lower_case(std::string_view text);

// The first of this name, which is in lower case; empty: there is none.
std::string_view header_of(const TextPairs& headers, std::string_view name);

// Names in lower case, each once, and without the function key: it is for the door, not for the function.
TextPairs joined_headers(const TextPairs& headers);

bool is_key(const Digest& key, std::string_view shown);

struct HttpQuery {
  std::string text;        // as it came, without the function key
  TextPairs pairs = {};    // decoded; a name twice: joined by a comma
  bool shows_key = false;  // as `code`
};
// None: it has more than limits::kHttpQueryPairsMax pairs. A `code` that is not the key is the function's.
std::optional<HttpQuery> read_query(std::string_view text, const std::optional<Digest>& key);

}  // namespace windlass::runtime
