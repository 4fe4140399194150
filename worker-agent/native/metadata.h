// What a registered function looks like to a host: checked, and as the metadata of worker indexing.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "schema/proto/function_rpc.pb.h"
#include "worker-agent/native/include/windlass/function.h"

namespace windlass::native {

namespace rpc = AzureFunctionsRpcMessages;

// One sentence on what is wrong with it, if anything.
std::optional<std::string> fault_of(const Function& function);

// The binding as function.json would have it, on one line.
std::string raw_binding(const Binding& binding);

// `library` is the file the function is in, `directory` the application's.
void describe(const Function& function, std::string_view library, std::string_view directory,
              rpc::RpcFunctionMetadata* metadata);

bool is_http(const Function& function);

}  // namespace windlass::native
