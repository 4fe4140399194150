// Says where two frames differ. Frames are views and have no == of their own: which fields a wire revision
// carries is the codec's business, and its tests' to compare.
#pragma once

#include <string>

#include "protocol/messages/frame.h"

namespace windlass::support {

// Empty if they are the same; otherwise the name of a field that differs. A heartbeat's metrics are compared
// only where `expected` has them as text.
std::string difference(const Frame& expected, const Frame& actual);

}  // namespace windlass::support
