// What workers say.
#include <map>
#include <utility>

#include "protocol/function_rpc/peek.h"
#include "runtime/adapters/function_json.h"
#include "runtime/adapters/rpc_mapping.h"
#include "runtime/adapters/rpc_types.h"

namespace windlass::runtime {
namespace {

using function_rpc::Content;

TextMap text_map(const google::protobuf::Map<std::string, std::string>& from) {
  return {from.begin(), from.end()};
}

template <class Wire>
RpcResult result_in(const Wire& wire) {
  return result_of(wire.has_result() ? &wire.result() : nullptr);
}

Result<WorkerMessage> read_init(std::string_view body) {
  auto wire = parse_rpc<rpc::WorkerInitResponse>(body);
  if (!wire) return wire.error();
  InitResponse init{result_in(*wire), text_map(wire->capabilities()), wire->worker_metadata().runtime_name(),
                    wire->worker_metadata().runtime_version(), wire->worker_metadata().worker_version()};
  if (init.worker_version.empty()) init.worker_version = wire->worker_version();
  return WorkerMessage{std::move(init)};
}

// Two functions of one name cannot be told apart by anybody who invokes them.
std::string duplicate_in(const std::vector<FunctionRef>& functions) {
  std::map<std::string_view, const Function*> seen;
  for (const FunctionRef& each : functions) {
    const auto [other, is_new] = seen.try_emplace(each->name, each.get());
    if (is_new) continue;
    const auto place = [](const Function& function) {
      const std::string& file = function.script_file;
      return (file.empty() ? "id " + function.id.value() : file) +
             (function.entry_point.empty() ? "" : " (" + function.entry_point + ")");
    };
    return "two functions are named '" + each->name + "': " + place(*other->second) + " and " + place(*each) +
           "; rename one";
  }
  return {};
}

Result<WorkerMessage> read_metadata(std::string_view body) {
  auto wire = parse_rpc<rpc::FunctionMetadataResponse>(body);
  if (!wire) return wire.error();
  MetadataResponse response{result_in(*wire), wire->use_default_metadata_indexing(), {}};
  for (const auto& each : wire->function_metadata_results()) response.functions.push_back(function_of(each));
  if (const std::string duplicate = duplicate_in(response.functions); !duplicate.empty()) {
    response.result = {RpcStatus::Failure, duplicate};
    response.functions.clear();
  }
  return WorkerMessage{std::move(response)};
}

LoadResponse load_of(const rpc::FunctionLoadResponse& wire) {
  return {FunctionId{wire.function_id()}, result_in(wire)};
}

Result<WorkerMessage> read_load(std::string_view body) {
  auto wire = parse_rpc<rpc::FunctionLoadResponse>(body);
  if (!wire) return wire.error();
  return WorkerMessage{load_of(*wire)};
}

Result<WorkerMessage> read_loads(std::string_view body) {
  auto wire = parse_rpc<rpc::FunctionLoadResponseCollection>(body);
  if (!wire) return wire.error();
  LoadResponses all;
  for (const auto& each : wire->function_load_responses()) all.responses.push_back(load_of(each));
  return WorkerMessage{std::move(all)};
}

// An answer that cannot be read is one all the same: it ends its own invocation and nothing else.
InvocationResponse unreadable_response(const function_rpc::Peeked& peeked, const std::string& reason) {
  return {InvocationId{std::string{peeked.invocation_id}},
          {RpcStatus::Failure, "the worker's answer cannot be read: " + reason},
          {}};
}

// Hot: outputs and return value stay undecoded until somebody wants them.
Result<WorkerMessage> read_response(const function_rpc::Peeked& peeked) {
  constexpr std::uint32_t kResult = 3;
  const auto found = function_rpc::find_bytes(peeked.body, kResult);
  if (!found) return WorkerMessage{unreadable_response(peeked, found.error().reason)};
  InvocationResponse response{InvocationId{std::string{peeked.invocation_id}}, {}, std::string{peeked.body}};
  if (!*found) {
    response.result = result_of(nullptr);
    return WorkerMessage{std::move(response)};
  }
  // Nothing but a status of Success, which is what nearly all say.
  if (**found == "\x20\x01") {
    response.result.status = RpcStatus::Success;
    return WorkerMessage{std::move(response)};
  }
  auto result = parse_rpc<rpc::StatusResult>(**found);
  if (!result) return WorkerMessage{unreadable_response(peeked, result.error().reason)};
  response.result = result_of(&*result);
  return WorkerMessage{std::move(response)};
}

Result<WorkerMessage> read_log(std::string_view body) {
  auto wire = parse_rpc<rpc::RpcLog>(body);
  if (!wire) return wire.error();
  Log log;
  log.invocation = InvocationId{wire->invocation_id()};
  // Numbers that we do not know are taken for the nearest that we do.
  if (wire->log_category() == rpc::RpcLog::System) log.source = LogSource::System;
  if (wire->log_category() == rpc::RpcLog::CustomMetric) log.source = LogSource::CustomMetric;
  const int level = wire->level();
  log.level = level >= 0 && level <= static_cast<int>(LogLevel::None) ? static_cast<LogLevel>(level)
                                                                      : LogLevel::Information;
  log.category = wire->category();
  log.message = wire->message();
  if (log.source == LogSource::CustomMetric) log.message = read_properties(*wire);
  if (wire->has_exception()) {
    log.exception = wire->exception().message();
    if (!wire->exception().stack_trace().empty()) log.exception += "\n" + wire->exception().stack_trace();
  }
  return WorkerMessage{std::move(log)};
}

ReloadResponse reload_of(const rpc::FunctionEnvironmentReloadResponse& wire) {
  return {result_in(wire), text_map(wire.capabilities()),
          wire.capabilities_update_strategy() == rpc::FunctionEnvironmentReloadResponse::replace};
}

Result<WorkerMessage> read_reload(std::string_view body) {
  auto wire = parse_rpc<rpc::FunctionEnvironmentReloadResponse>(body);
  if (!wire) return wire.error();
  return WorkerMessage{reload_of(*wire)};
}

Result<WorkerMessage> read_specialized(std::string_view body) {
  auto wire = parse_rpc<rpc::WorkerSpecialized>(body);
  if (!wire) return wire.error();
  WorkerSpecialized told;
  told.worker = WorkerId{wire->worker_id()};
  told.application = {{wire->application_id(), wire->metadata_version()}, wire->code_version()};
  told.settings = text_map(wire->app_settings());
  told.settings.insert(wire->connection_strings().begin(), wire->connection_strings().end());
  told.directory = wire->functions_path();
  told.language = wire->language();
  told.correlation_id = wire->correlation_id();
  told.function_json = text_map(wire->function_json());
  told.host_json = wire->host_json();
  told.functions = read_function_jsons(told.function_json, {told.directory, told.language, &told.settings});
  told.reload =
      wire->has_reload() ? reload_of(wire->reload()) : ReloadResponse{{RpcStatus::Success}, {}, false};
  return WorkerMessage{std::move(told)};
}

Result<WorkerMessage> read_action(std::string_view body) {
  auto wire = parse_rpc<rpc::WorkerActionResponse>(body);
  if (!wire) return wire.error();
  return WorkerMessage{ActionResponse{wire->action() == rpc::WorkerActionResponse::Restart, wire->reason()}};
}

Result<WorkerMessage> read_ended(std::string_view body) {
  auto wire = parse_rpc<rpc::WorkerEnded>(body);
  if (!wire) return wire.error();
  WorkerEnded ended{WorkerId{wire->worker_id()}, wire->reason(), {}, wire->failures()};
  for (const std::string& id : wire->running_invocation_ids()) ended.running.emplace_back(id);
  return WorkerMessage{std::move(ended)};
}

Result<WorkerMessage> read_start(std::string_view body) {
  auto wire = parse_rpc<rpc::StartStream>(body);
  if (!wire) return wire.error();
  return WorkerMessage{StartStream{WorkerId{wire->worker_id()}}};
}

Result<WorkerMessage> read_warmup(std::string_view body) {
  auto wire = parse_rpc<rpc::WorkerWarmupResponse>(body);
  if (!wire) return wire.error();
  return WorkerMessage{WarmupResponse{result_in(*wire)}};
}

}  // namespace

RpcResult result_of(const rpc::StatusResult* wire) {
  if (wire == nullptr) return {RpcStatus::Failure, "the worker gave no result"};
  RpcResult result;
  if (wire->status() == rpc::StatusResult::Success) result.status = RpcStatus::Success;
  if (wire->status() == rpc::StatusResult::Cancelled) result.status = RpcStatus::Cancelled;
  result.reason = wire->result();
  if (!wire->has_exception()) return result;
  if (!wire->exception().message().empty()) result.reason = wire->exception().message();
  result.stack_trace = wire->exception().stack_trace();
  result.exception_type = wire->exception().type();
  return result;
}

Result<WorkerMessage> read_worker_message(std::string_view bytes) {
  const Result<function_rpc::Peeked> peeked = function_rpc::peek(bytes);
  if (!peeked) return peeked.error();
  switch (peeked->content) {
    case Content::InvocationResponse:
      return read_response(*peeked);
    case Content::RpcLog:
      return read_log(peeked->body);
    case Content::StartStream:
      return read_start(peeked->body);
    case Content::WorkerInitResponse:
      return read_init(peeked->body);
    case Content::FunctionMetadataResponse:
      return read_metadata(peeked->body);
    case Content::FunctionLoadResponse:
      return read_load(peeked->body);
    case Content::FunctionLoadResponseCollection:
      return read_loads(peeked->body);
    case Content::WorkerStatusResponse:
      return WorkerMessage{StatusResponse{std::string{peeked->request_id}}};
    case Content::FunctionEnvironmentReloadResponse:
      return read_reload(peeked->body);
    case Content::WorkerWarmupResponse:
      return read_warmup(peeked->body);
    case Content::WorkerSpecialized:
      return read_specialized(peeked->body);
    case Content::WorkerEnded:
      return read_ended(peeked->body);
    case Content::WorkerActionResponse:
      return read_action(peeked->body);
    default:
      return WorkerMessage{
          Ignorable{"content " + std::to_string(static_cast<std::uint32_t>(peeked->content))}};
  }
}

}  // namespace windlass::runtime
