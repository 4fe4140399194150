// What a request to a function says, read as far as choosing the function and calling it needs. Pure; what it
// costs grows no faster than the request.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/adapters/rpc_values.h"

namespace windlass::runtime {

std::string in_lower_case(std::string_view text);

// The first of this name, which is in lower case; empty: there is none.
std::string_view header_of(const TextPairs& headers, std::string_view name);

// Each name once, in lower case or as it was sent first, and without the function key: it is for the door,
// not for the function.
TextPairs joined_headers(const TextPairs& headers);
TextPairs joined_headers_as_sent(const TextPairs& headers);

struct HttpQuery {
  std::string text;        // as it came, without the function key
  TextPairs pairs = {};    // decoded; a name twice: joined by a comma
  bool shows_key = false;  // as `code`
};
// None: it has more than limits::kHttpQueryPairsMax pairs. A `code` that is not the key is the function's.
using IsKey = std::function<bool(std::string_view shown)>;
std::optional<HttpQuery> read_query(std::string_view text, const IsKey& is_key);

// The path as it is meant: without "." and "..", which lead nowhere above the root, however they are escaped.
// None for one with a wrong escape, or with too many segments. Slashes side by side have an empty segment
// between them.
struct HttpPath {
  std::string text;                   // escaped as it came
  std::vector<std::string> segments;  // decoded, but for an escaped slash
};
std::optional<HttpPath> read_path(std::string_view path);

// The scheme by which the caller reached whoever stands before us; empty: it does not say, or says nonsense.
std::string_view forwarded_scheme(const TextPairs& headers);

}  // namespace windlass::runtime
