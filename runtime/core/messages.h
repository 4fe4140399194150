// FunctionRpc messages as the core sees them: only what it decides by. What it merely passes on (inputs,
// results, a function's metadata) travels as the bytes it came in; rpc_mapping translates, and nothing else
// knows both sides.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "protocol/base/time.h"
#include "runtime/core/values.h"

namespace windlass::runtime {

using TextMap = std::map<std::string, std::string, std::less<>>;

enum class RpcStatus : std::uint8_t { Failure, Success, Cancelled };

// StatusResult. A missing one reads as a failure that says so.
struct RpcResult {
  RpcStatus status = RpcStatus::Failure;
  std::string reason = {};  // the exception's message, or the result's text
  std::string stack_trace = {};
  std::string exception_type = {};
  bool is_ok() const { return status == RpcStatus::Success; }
};

struct RetryOptions {
  enum class Strategy : std::uint8_t { ExponentialBackoff, FixedDelay };
  Strategy strategy = Strategy::FixedDelay;
  std::int32_t retries_max = 0;  // -1: without end
  Duration delay{};
  Duration delay_least{};
  Duration delay_most{};
};

struct Binding {
  std::string name;
  std::string type;       // queueTrigger, http, ...
  std::string direction;  // in, out, inout
  std::string json;       // the whole raw binding
  bool is_trigger() const;
};

// One function of an application. Immutable once indexed, shared by everyone who holds it.
struct Function {
  FunctionId id;
  std::string name;
  std::string language;
  std::string script_file;
  std::string entry_point;
  std::string directory;
  std::vector<Binding> bindings;
  RetryOptions retry;
  bool has_retry = false;
  bool is_idempotent = false;  // it may run again after its worker was lost
  bool is_disabled = false;
  RpcResult status{RpcStatus::Success};  // as indexing said; a failure is remembered like a failed load
  std::string metadata;                  // RpcFunctionMetadata, serialized, for load requests
  const Binding* trigger() const;        // none: it cannot be triggered
  bool may_run_again() const { return is_idempotent || (has_retry && retry.retries_max != 0); }
};
using FunctionRef =
    std::shared_ptr<const Function>;  // shared: JobHosts, loads and routes outlive one another

// Whether settings say yes to a name: true, in any case, or 1.
bool is_set(const TextMap& settings, std::string_view name);
// Whether they switch a function off, however it was registered.
bool is_switched_off(const TextMap& settings, std::string_view function);

enum class LogLevel : std::uint8_t { Trace, Debug, Information, Warning, Error, Critical, None };
enum class LogSource : std::uint8_t { User, System, CustomMetric };

// ---- worker to host

struct StartStream {
  WorkerId worker;
};
struct InitResponse {
  RpcResult result;
  TextMap capabilities;
  std::string runtime_name;
  std::string runtime_version;
  std::string worker_version;
};
struct MetadataResponse {
  RpcResult result;
  bool use_default_indexing = false;
  std::vector<FunctionRef> functions;
};
struct LoadResponse {
  FunctionId function;
  RpcResult result;
};
struct LoadResponses {
  std::vector<LoadResponse> responses;
};
struct InvocationResponse {
  InvocationId invocation;
  RpcResult result;
  std::string body;  // InvocationResponse, serialized
};
struct Log {
  InvocationId invocation;  // empty: of no invocation
  LogSource source = LogSource::User;
  LogLevel level = LogLevel::Information;
  std::string category;
  std::string message;
  std::string exception;
};
struct StatusResponse {
  std::string request_id;
};
struct ReloadResponse {
  RpcResult result;
  TextMap capabilities;
  bool replaces_capabilities = false;
};
struct WarmupResponse {
  RpcResult result;
};
// From our own agent: the worker behind it holds an application now.
struct WorkerSpecialized {
  WorkerId worker;
  ApplicationVersion application;
  TextMap settings;       // app settings and connection strings: secret
  std::string directory;  // of the application, as the worker sees it
  std::string language;
  std::string correlation_id;
  TextMap function_json;               // by function name
  std::vector<FunctionRef> functions;  // the same, read; used when the worker does not index
  std::string host_json;
  ReloadResponse reload;
};
// From our own agent: the process of a worker is gone, or could not be started.
struct WorkerEnded {
  WorkerId worker;
  std::string reason;
  std::vector<InvocationId> running;  // those that the process was given and did not answer
  std::uint32_t failures = 0;         // ends and failed starts in a row
};
struct ActionResponse {
  bool wants_restart = false;
  std::string reason;
};
// Something that needs nothing done: heartbeat, shared memory's answer, a content we do not know.
struct Ignorable {
  std::string what;
};

using WorkerMessage = std::variant<StartStream, InitResponse, MetadataResponse, LoadResponse, LoadResponses,
                                   InvocationResponse, Log, StatusResponse, ReloadResponse, WarmupResponse,
                                   WorkerSpecialized, WorkerEnded, ActionResponse, Ignorable>;

// ---- host to worker

struct InitRequest {
  std::string function_app_directory;  // empty: none yet, a placeholder
};
struct MetadataRequest {
  std::string function_app_directory;
};
struct LoadRequest {
  FunctionRef function;
};
struct LoadRequests {
  std::vector<FunctionRef> functions;
};
struct InvocationRequest {
  InvocationId invocation;
  FunctionId function;
  std::shared_ptr<const std::string>
      body;  // input_data, trigger_metadata and trace_context, serialized; shared with the retries
  std::int32_t retry_count = 0;
  std::int32_t retries_max = 0;  // both 0: no retry context
  std::string last_failure = {};
  std::uint64_t owner = 0;  // the invocation's
};
struct InvocationCancel {
  InvocationId invocation;
  Duration grace{};
};
struct EnvironmentReload {
  std::string function_app_directory;
  TextMap environment;  // complete; secret
};
struct StatusRequest {
  std::string request_id;
};
struct WarmupRequest {};
struct Terminate {
  Duration grace{};
};
// To our own agent, before the Terminate: start no other worker until the scheduler or an operator says so.
struct StayDown {
  std::string reason;
  bool is_for_memory = false;  // else it was ordered
};
struct SpecializedResponse {
  RpcResult result;
  std::string job_host_id;
  std::string correlation_id;
};

using HostMessage =
    std::variant<InitRequest, MetadataRequest, LoadRequest, LoadRequests, InvocationRequest, InvocationCancel,
                 EnvironmentReload, StatusRequest, WarmupRequest, Terminate, StayDown, SpecializedResponse>;

}  // namespace windlass::runtime
