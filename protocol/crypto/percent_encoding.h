// Percent-encoding of the parts of a URL (RFC 3986 section 2.1).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace windlass {

// All but letters, digits and -_.~ is escaped, so that the result is one part of a path or a query.
std::string percent_encode(std::string_view plain);

// Nothing for a '%' without two hexadecimal digits behind it.
std::optional<std::string> percent_decode(std::string_view text);

}  // namespace windlass
