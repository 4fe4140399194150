// Between FunctionRpc's bytes and the core's messages. Only the rpc_*.cc files see generated types.
#pragma once

#include <string>
#include <string_view>

#include "protocol/base/result.h"
#include "runtime/core/messages.h"

namespace windlass::runtime {

// An error is bytes that are no message: the channel they came on is of no use any more. Of an invocation's
// response only the result is decoded; the rest stays as it came.
Result<WorkerMessage> read_worker_message(std::string_view bytes);

// An invocation's prepared body is taken over as it is.
std::string write_host_message(const HostMessage& message);

}  // namespace windlass::runtime
