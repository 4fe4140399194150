// W3C trace context: taken from whoever asks, or begun here. Pure.
#pragma once

#include <string>
#include <string_view>

#include "protocol/base/random.h"
#include "runtime/adapters/rpc_values.h"

namespace windlass::runtime {

// Whether it is a traceparent of version 00, or of a later one that begins the same.
bool is_trace_parent(std::string_view text);
// The same trace with a span of ours; a new trace where there is none to go on with. The state goes along
// with its trace only.
TraceContext continue_trace(std::string_view parent, std::string_view state, Random& random);
// As the versions of GUIDs that are random: 8-4-4-4-12 hexadecimal digits.
std::string random_guid(Random& random);

}  // namespace windlass::runtime
