// One message of the judged, held against what schema/README.md says of every message: the published schemas,
// and the few rules that a schema cannot say. Knows nothing of what a frame is for.
#pragma once

#include <boost/json.hpp>
#include <optional>
#include <string_view>

#include "conformance/runner/schema.h"
#include "protocol/base/bytes.h"
#include "protocol/base/result.h"

namespace windlass::conformance {

struct MessageParts {
  std::string_view envelope;
  std::optional<std::string_view> attached;  // of a binary message
};

// E.PROTO.JSON: a binary message without a whole envelope.
Result<MessageParts> parts_of(BytesView message, MessageKind kind);

// The frame as it is on the wire. E.PROTO.JSON or E.PROTO.SCHEMA, and a sentence for the report.
Result<json::object> read_frame(const MessageParts& parts, const WireSchemas& schemas, int revision);

}  // namespace windlass::conformance
