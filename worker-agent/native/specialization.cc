#include "worker-agent/native/specialization.h"

#include <unistd.h>
#include <cstdlib>
#include <filesystem>

#include "protocol/base/version.h"
#include "worker-agent/native/invocation.h"
#include "worker-agent/native/metadata.h"

namespace windlass::native {
namespace {

void put_metadata(rpc::WorkerMetadata* metadata) {
  metadata->set_runtime_name("native");
  metadata->set_runtime_version("c++20, gcc " __VERSION__);
  metadata->set_worker_version(std::string(version()));
#if defined(__x86_64__)
  metadata->set_worker_bitness("x64");
#elif defined(__aarch64__)
  metadata->set_worker_bitness("arm64");
#else
  metadata->set_worker_bitness(sizeof(void*) == 8 ? "64" : "32");
#endif
}

void set_outcome(const std::optional<std::string>& fault, rpc::StatusResult* result) {
  if (fault) {
    set_failure(*fault, "ApplicationLoadError", result);
  } else {
    result->set_status(rpc::StatusResult::Success);
  }
}

std::optional<std::string> replace_environment(
    const google::protobuf::Map<std::string, std::string>& variables) {
  for (const auto& [name, value] : variables) {
    if (name.empty() || name.find('=') != std::string::npos) {
      return "the environment has a variable named '" + name + "', which no environment can hold";
    }
  }
  clearenv();
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  return std::nullopt;
}

std::string names_of(const Application& application) {
  constexpr std::size_t kShownMax = 10;
  std::string names;
  for (std::size_t i = 0; i < application.functions().size() && i < kShownMax; ++i) {
    names += (i == 0 ? "" : ", ") + application.functions()[i]->function.name;
  }
  return application.functions().size() > kShownMax ? names + ", ..." : names;
}

}  // namespace

void put_capabilities(google::protobuf::Map<std::string, std::string>* capabilities) {
  for (const char* name :
       {"RpcHttpBodyOnly", "TypedDataCollection", "RawHttpBodyBytes", "RpcHttpTriggerMetadataRemoved",
        "UseNullableValueDictionaryForHttp", "WorkerStatus", "HandlesWorkerTerminateMessage",
        "HandlesInvocationCancelMessage", "SupportsLoadResponseCollection", "HandlesWorkerWarmupMessage"}) {
    (*capabilities)[name] = "true";
  }
}

// A folder that was loaded before is not loaded again: code cannot be taken out of a process.
std::optional<std::string> Specialization::load_application(const std::string& folder) {
  if (!folder_.empty()) {
    if (folder_ == folder) return fault_;
    return "this worker process already holds the application in " + folder_ +
           "; start a new worker process for the one in " + folder;
  }
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) {
    return "the application's folder '" + folder + "' does not exist or is no folder";
  }
  folder_ = folder;
  auto loaded = Application::load(folder);
  if (!loaded) {
    fault_ = loaded.error().reason;
    return fault_;
  }
  application_ = std::move(*loaded);
  for (const auto& function : application_->functions()) on_function_(function->function.name, *function);
  return std::nullopt;
}

void Specialization::init(const rpc::WorkerInitRequest& request, rpc::WorkerInitResponse* response) {
  response->set_worker_version(std::string(version()));
  put_capabilities(response->mutable_capabilities());
  put_metadata(response->mutable_worker_metadata());
  std::optional<std::string> fault;
  if (!request.function_app_directory().empty()) fault = load_application(request.function_app_directory());
  set_outcome(fault, response->mutable_result());
}

void Specialization::reload(const rpc::FunctionEnvironmentReloadRequest& request,
                            rpc::FunctionEnvironmentReloadResponse* response) {
  put_capabilities(response->mutable_capabilities());
  response->set_capabilities_update_strategy(rpc::FunctionEnvironmentReloadResponse::replace);
  put_metadata(response->mutable_worker_metadata());
  const std::string& folder = request.function_app_directory();
  std::optional<std::string> fault;
  if (!folder_.empty()) {
    fault = "this worker process already holds the application in " + folder_ +
            " and cannot be reloaded; start a new worker process";
  } else {
    fault = replace_environment(request.environment_variables());
    if (!fault && !folder.empty()) {
      std::error_code error;
      std::filesystem::current_path(folder, error);
      fault = error ? "the application's folder '" + folder + "' cannot be entered: " + error.message()
                    : load_application(folder);
    }
  }
  set_outcome(fault, response->mutable_result());
}

void Specialization::index(const rpc::FunctionsMetadataRequest& request,
                           rpc::FunctionMetadataResponse* response) {
  std::optional<std::string> fault = fault_;
  if (folder_.empty()) {
    fault =
        request.function_app_directory().empty()
            ? "no application is loaded: neither the init request nor an environment reload named its folder"
            : load_application(request.function_app_directory());
  }
  set_outcome(fault, response->mutable_result());
  if (fault) return;
  for (const auto& function : application_->functions()) {
    describe(function->function, function->library, application_->folder().string(),
             response->add_function_metadata_results());
  }
}

void Specialization::load(const rpc::FunctionLoadRequest& request, rpc::FunctionLoadResponse* response) {
  response->set_function_id(request.function_id());
  if (application_ == nullptr) {
    set_outcome(fault_.value_or("no application is loaded"), response->mutable_result());
    return;
  }
  const std::string& name =
      request.metadata().name().empty() ? request.function_id() : request.metadata().name();
  LoadedFunction* const function = application_->find(name);
  if (function == nullptr) {
    set_failure("function '" + name + "' is not in the application; it has " + names_of(*application_),
                "FunctionNotFound", response->mutable_result());
    return;
  }
  on_function_(request.function_id(), *function);
  response->mutable_result()->set_status(rpc::StatusResult::Success);
}

}  // namespace windlass::native
