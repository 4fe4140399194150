// The invalid golden vectors of schema/examples as messages, which a case may have the runner send.
#pragma once

#include <boost/json.hpp>
#include <string>
#include <vector>

#include "protocol/base/bytes.h"

namespace windlass::conformance {

namespace json = boost::json;

struct InvalidExample {
  std::string name;  // of the file, without .json
  std::string code;
  MessageKind kind = MessageKind::Text;
  std::string message;
  bool is_answered = true;  // LIM-2: a malformed ack or reset is not
};

// Those of a revision whose names begin with one of these, with this tenant and sender unless they are what
// is wrong: each has one flaw, whatever the judged looks at first. Text that is not UTF-8 is left out:
// WebSocket refuses it before anybody reads it.
std::vector<InvalidExample> invalid_examples(const json::array& beginnings, int revision,
                                             const json::value& tenant, const json::value& sender);

}  // namespace windlass::conformance
