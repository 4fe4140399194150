// What the host says.
#include <string>
#include <variant>

#include "protocol/function_rpc/peek.h"
#include "runtime/adapters/rpc_mapping.h"
#include "runtime/adapters/rpc_types.h"

namespace windlass::runtime {
namespace {

using function_rpc::append_bytes;
using function_rpc::compose;
using function_rpc::Content;

// The host whose behaviour towards workers this one keeps: some workers look at it.
constexpr std::string_view kHostVersion = "4.1037.0";

void set_duration(google::protobuf::Duration& to, Duration from) {
  const auto whole = std::chrono::duration_cast<seconds>(from);
  to.set_seconds(whole.count());
  to.set_nanos(static_cast<std::int32_t>((from - whole).count()));
}

std::string write(const InitRequest& request) {
  rpc::WorkerInitRequest wire;
  wire.set_host_version(std::string{kHostVersion});
  wire.set_function_app_directory(request.function_app_directory);
  // What the reference host offers and we do not is said to be off; several streams of one worker are not
  // offered, because an agent has one.
  (*wire.mutable_capabilities())["FunctionDataCache"] = "false";
  for (const char* category : {"Default", "Function", "Host", "Worker"}) {
    (*wire.mutable_log_categories())[category] = rpc::RpcLog::Debug;
  }
  return compose("init", Content::WorkerInitRequest, wire.SerializeAsString());
}

std::string write(const MetadataRequest& request) {
  rpc::FunctionsMetadataRequest wire;
  wire.set_function_app_directory(request.function_app_directory);
  return compose("metadata", Content::FunctionsMetadataRequest, wire.SerializeAsString());
}

std::string load_body(const Function& function) {
  std::string body;
  append_bytes(body, 1, function.id.value());
  append_bytes(body, 2, function.metadata);
  return body;
}

std::string write(const LoadRequest& request) {
  return compose("load." + request.function->id.value(), Content::FunctionLoadRequest,
                 load_body(*request.function));
}

std::string write(const LoadRequests& request) {
  std::string body;
  for (const FunctionRef& each : request.functions) append_bytes(body, 1, load_body(*each));
  return compose("load", Content::FunctionLoadRequestCollection, body);
}

std::string retry_body(const InvocationRequest& request) {
  rpc::RetryContext wire;
  wire.set_retry_count(request.retry_count);
  wire.set_max_retry_count(request.retries_max);
  if (!request.last_failure.empty()) wire.mutable_exception()->set_message(request.last_failure);
  return wire.SerializeAsString();
}

// Hot: the prepared body is copied once, into a message that is allocated once. The id goes first, where
// whoever passes the message on looks for it.
std::string write(const InvocationRequest& request) {
  constexpr std::size_t kHeads = 32;
  const bool is_retried = request.retry_count != 0 || request.retries_max != 0;
  const std::string retry = is_retried ? retry_body(request) : std::string{};
  const std::string_view body = request.body ? std::string_view{*request.body} : std::string_view{};
  std::string ids;
  append_bytes(ids, 1, request.invocation.value());
  append_bytes(ids, 2, request.function.value());
  std::string tail;
  if (is_retried) append_bytes(tail, 6, retry);
  std::string message;
  message.reserve(ids.size() + body.size() + tail.size() + kHeads);
  function_rpc::append_head(message, static_cast<std::uint32_t>(Content::InvocationRequest),
                            ids.size() + body.size() + tail.size());
  message.append(ids).append(body).append(tail);
  return message;
}

std::string write(const InvocationCancel& cancel) {
  rpc::InvocationCancel wire;
  wire.set_invocation_id(cancel.invocation.value());
  set_duration(*wire.mutable_grace_period(), cancel.grace);
  return compose("", Content::InvocationCancel, wire.SerializeAsString());
}

std::string write(const EnvironmentReload& reload) {
  rpc::FunctionEnvironmentReloadRequest wire;
  wire.set_function_app_directory(reload.function_app_directory);
  wire.mutable_environment_variables()->insert(reload.environment.begin(), reload.environment.end());
  return compose("reload", Content::FunctionEnvironmentReloadRequest, wire.SerializeAsString());
}

std::string write(const StatusRequest& request) {
  return compose(request.request_id, Content::WorkerStatusRequest, "");
}

std::string write(const WarmupRequest&) {
  return compose("warmup", Content::WorkerWarmupRequest, "");
}

std::string write(const Terminate& terminate) {
  rpc::WorkerTerminate wire;
  set_duration(*wire.mutable_grace_period(), terminate.grace);
  return compose("", Content::WorkerTerminate, wire.SerializeAsString());
}

std::string write(const StayDown& stay) {
  rpc::WorkerStayDown wire;
  wire.set_reason(stay.reason);
  if (stay.is_for_memory) wire.set_cause("memory");
  return compose("", Content::WorkerStayDown, wire.SerializeAsString());
}

std::string write(const SpecializedResponse& response) {
  rpc::WorkerSpecializedResponse wire;
  auto& result = *wire.mutable_result();
  result.set_status(response.result.is_ok() ? rpc::StatusResult::Success : rpc::StatusResult::Failure);
  if (!response.result.is_ok()) {
    result.set_result(response.result.reason);
    result.mutable_exception()->set_message(response.result.reason);
    result.mutable_exception()->set_stack_trace(response.result.stack_trace);
  }
  wire.set_job_host_id(response.job_host_id);
  wire.set_correlation_id(response.correlation_id);
  return compose("", Content::WorkerSpecializedResponse, wire.SerializeAsString());
}

}  // namespace

std::string write_host_message(const HostMessage& message) {
  return std::visit([](const auto& each) { return write(each); }, message);
}

}  // namespace windlass::runtime
