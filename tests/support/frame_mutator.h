// Makes wrong frames out of right ones: one to three edits at random places, chosen to land on the edges of
// rules (a member dropped, added, doubled, renamed, retyped, a bound crossed, nesting, a number spelled
// otherwise, a byte of the text changed).
#pragma once

#include <string>
#include <string_view>

#include "protocol/base/random.h"

namespace windlass::support {

// `text` is one JSON object; the result need not be JSON.
std::string mutated_frame(std::string_view text, Random& random);

}  // namespace windlass::support
