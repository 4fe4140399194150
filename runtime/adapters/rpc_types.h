// What the rpc_*.cc files share. Not for anybody else: it shows generated types.
#pragma once

#include <string>
#include <string_view>

#include "protocol/base/result.h"
#include "protocol/rpc_parse/rpc_parse.h"
#include "runtime/core/messages.h"
#include "schema/proto/function_rpc.pb.h"

namespace windlass::runtime {

namespace rpc = AzureFunctionsRpcMessages;

template <class Parsed>
Result<Parsed> parse_rpc(std::string_view bytes) {
  Parsed parsed;
  if (function_rpc::parse_mended(parsed, bytes)) return parsed;
  return Error{ErrorCode::ProtoSchema, Blame::Peer,
               "the bytes are no " + Parsed::descriptor()->name() + " of FunctionRpc"};
}

RpcResult result_of(const rpc::StatusResult* result);
FunctionRef function_of(const rpc::RpcFunctionMetadata& metadata);
// One sentence that says why the function cannot be used; empty: it can.
std::string problem_of(const Function& function);
// What a custom metric says: a JSON object of its properties, by name.
std::string read_properties(const rpc::RpcLog& log);
RetryOptions retry_of(const rpc::RpcRetryOptions& options);

}  // namespace windlass::runtime
