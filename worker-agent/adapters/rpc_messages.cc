#include "worker-agent/adapters/rpc_messages.h"

#include "protocol/base/clip.h"
#include "protocol/rpc_parse/rpc_parse.h"
#include "schema/proto/function_rpc.pb.h"

namespace windlass::agent {
namespace {

namespace rpc = AzureFunctionsRpcMessages;
using function_rpc::parse_mended;

constexpr std::size_t kRpcReasonBytesMax = 900;

RpcVerdict verdict_of(bool has_result, const rpc::StatusResult& result) {
  // A result that is not there reads as a failure, which it is not meant to be by those that leave it out.
  if (!has_result || result.status() == rpc::StatusResult::Success) return {.is_good = true, .reason = {}};
  std::string reason = result.exception().message();
  if (reason.empty()) reason = result.result();
  if (reason.empty()) reason = "it gave no reason";
  return {.is_good = false, .reason = std::string{sayable(reason, kRpcReasonBytesMax)}};
}

constexpr const char* kHttpUri = "HttpUri";

template <class Answer>
void put_http_uri(Answer& answer, std::string_view uri, const std::string& problem) {
  (*answer.mutable_capabilities())[kHttpUri] = std::string{uri};
  if (problem.empty()) return;
  answer.mutable_result()->set_status(rpc::StatusResult::Failure);
  answer.mutable_result()->mutable_exception()->set_message(problem);
}

}  // namespace

std::string terminate_message(Duration grace) {
  rpc::StreamingMessage message;
  message.mutable_worker_terminate()->mutable_grace_period()->set_seconds(grace / seconds{1});
  return message.SerializeAsString();
}

std::string reload_message(const std::map<std::string, std::string>& environment, const std::string& folder,
                           const std::string& request_id) {
  rpc::StreamingMessage message;
  message.set_request_id(request_id);
  auto& reload = *message.mutable_function_environment_reload_request();
  for (const auto& [name, value] : environment) (*reload.mutable_environment_variables())[name] = value;
  reload.set_function_app_directory(folder);
  return message.SerializeAsString();
}

std::string specialized_message(const SpecializedParts& parts) {
  rpc::StreamingMessage message;
  message.set_request_id(parts.correlation_id);
  auto& specialized = *message.mutable_worker_specialized();
  const Application& application = parts.application;
  specialized.set_application_id(application.application_id);
  specialized.set_metadata_version(application.metadata_version);
  specialized.set_code_version(application.code_version);
  specialized.set_language(application.language);
  for (const auto& [name, value] : application.settings) (*specialized.mutable_app_settings())[name] = value;
  specialized.set_functions_path(parts.folder);
  specialized.set_worker_id(parts.worker_id);
  specialized.set_correlation_id(parts.correlation_id);
  for (const auto& [name, text] : parts.function_json) (*specialized.mutable_function_json())[name] = text;
  specialized.set_host_json(parts.host_json);
  static_cast<void>(parse_mended(*specialized.mutable_reload(), parts.reload));
  return message.SerializeAsString();
}

std::string http_uri_of(std::string_view bytes) {
  rpc::StreamingMessage message;
  if (!parse_mended(message, bytes)) return {};
  const auto& all = message.has_worker_init_response()
                        ? message.worker_init_response().capabilities()
                        : message.function_environment_reload_response().capabilities();
  const auto found = all.find(kHttpUri);
  return found == all.end() ? std::string{} : found->second;
}

std::string with_http_uri(std::string_view bytes, std::string_view uri, const std::string& problem) {
  rpc::StreamingMessage message;
  if (!parse_mended(message, bytes)) return std::string{bytes};
  if (message.has_worker_init_response()) put_http_uri(*message.mutable_worker_init_response(), uri, problem);
  if (message.has_function_environment_reload_response()) {
    put_http_uri(*message.mutable_function_environment_reload_response(), uri, problem);
  }
  return message.SerializeAsString();
}

std::string with_worker_directory(std::string_view bytes, const std::string& folder) {
  rpc::StreamingMessage message;
  if (!parse_mended(message, bytes)) return std::string{bytes};
  message.mutable_worker_init_request()->set_worker_directory(folder);
  return message.SerializeAsString();
}

RpcVerdict reload_verdict(std::string_view body) {
  rpc::FunctionEnvironmentReloadResponse response;
  if (!parse_mended(response, body)) {
    return {.is_good = false, .reason = "its answer is no FunctionEnvironmentReloadResponse"};
  }
  return verdict_of(response.has_result(), response.result());
}

RpcVerdict specialized_verdict(std::string_view body) {
  rpc::WorkerSpecializedResponse response;
  if (!parse_mended(response, body)) {
    return {.is_good = false, .reason = "its answer is no WorkerSpecializedResponse"};
  }
  return verdict_of(response.has_result(), response.result());
}

std::vector<std::string> functions_to_load(std::string_view bytes) {
  rpc::StreamingMessage message;
  std::vector<std::string> names;
  if (!parse_mended(message, bytes)) return names;
  if (message.has_function_load_request()) names.push_back(message.function_load_request().metadata().name());
  for (const auto& each : message.function_load_request_collection().function_load_requests()) {
    names.push_back(each.metadata().name());
  }
  return names;
}

}  // namespace windlass::agent
