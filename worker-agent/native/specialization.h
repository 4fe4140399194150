// What this process has become: a placeholder, or the host of one application. Answers the requests about it.
// Used by one thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "schema/proto/function_rpc.pb.h"
#include "worker-agent/native/application.h"

namespace windlass::native {

namespace rpc = AzureFunctionsRpcMessages;

class Specialization final {
 public:
  // Told of each function that can be invoked, by the id the host will use.
  using OnFunction = std::function<void(const std::string& id, LoadedFunction& function)>;

  explicit Specialization(OnFunction on_function) : on_function_(std::move(on_function)) {}

  void init(const rpc::WorkerInitRequest& request, rpc::WorkerInitResponse* response);
  // The environment becomes exactly the given one, then the application is loaded. Works once per process.
  void reload(const rpc::FunctionEnvironmentReloadRequest& request,
              rpc::FunctionEnvironmentReloadResponse* response);
  void index(const rpc::FunctionsMetadataRequest& request, rpc::FunctionMetadataResponse* response);
  void load(const rpc::FunctionLoadRequest& request, rpc::FunctionLoadResponse* response);

  const Application* application() const { return application_.get(); }

 private:
  std::optional<std::string> load_application(const std::string& folder);

  OnFunction on_function_;
  std::unique_ptr<Application> application_;
  std::string folder_;                // that was asked for
  std::optional<std::string> fault_;  // why it is not there
};

// What this worker can do, by the names hosts know.
void put_capabilities(google::protobuf::Map<std::string, std::string>* capabilities);

}  // namespace windlass::native
