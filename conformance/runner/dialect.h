// Frames as revision 2 writes them, which is how cases are written, to and from what a revision carries.
#pragma once

#include <boost/json.hpp>

namespace windlass::conformance {

namespace json = boost::json;

json::object to_wire(json::object frame, int revision);
json::object from_wire(json::object frame, int revision);

}  // namespace windlass::conformance
