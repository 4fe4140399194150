// JSON for reading: whatever fits on a line stays on one, the rest is broken and indented.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace windlass::conformance {

// Only white space changes: members keep their order and doubles, numbers their spelling. Text that is not
// JSON comes back as it is, since a report shows just what was on the wire.
std::string pretty_json(std::string_view text, std::size_t columns = 100);

// The text of a member "type" of a JSON object; empty when there is none.
std::string type_of_frame(std::string_view text);

}  // namespace windlass::conformance
