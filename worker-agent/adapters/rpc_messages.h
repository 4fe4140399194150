// The few FunctionRpc messages that the agent writes or reads itself. The only file of the agent beside the
// server that sees the generated types.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/base/time.h"
#include "worker-agent/core/worker_command.h"

namespace windlass::agent {

struct RpcVerdict {
  bool is_good = false;
  std::string reason;
};

std::string terminate_message(Duration grace);
std::string reload_message(const std::map<std::string, std::string>& environment, const std::string& folder,
                           const std::string& request_id);

struct SpecializedParts {
  const Application& application;
  std::string folder;
  std::string worker_id;
  std::string correlation_id;
  std::string reload;  // the content of the worker's answer
  std::string host_json;
  std::map<std::string, std::string> function_json;  // by function
};
std::string specialized_message(const SpecializedParts& parts);

// Where the worker takes streamed requests, by a WorkerInitResponse or the answer to a reload; empty:
// nowhere.
std::string http_uri_of(std::string_view message);
// The same message with another address; with a problem it says that the worker failed, and why.
std::string with_http_uri(std::string_view message, std::string_view uri, const std::string& problem);
// A WorkerInitRequest that says where the worker's own files are, which only its agent knows.
std::string with_worker_directory(std::string_view message, const std::string& folder);

// Of the contents' bytes.
RpcVerdict reload_verdict(std::string_view body);
RpcVerdict specialized_verdict(std::string_view body);
std::vector<std::string> functions_to_load(
    std::string_view message);  // the whole one, of a load or a collection

}  // namespace windlass::agent
