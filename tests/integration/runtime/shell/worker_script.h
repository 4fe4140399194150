// A language worker as a test plays it: what it answers to each message of a host. Knows no transport.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "schema/proto/function_rpc.pb.h"

namespace windlass::testing {

namespace rpc = AzureFunctionsRpcMessages;

// Functions: hello (GET hello/{name}), echo (POST), fail (throws), throw (throws its body), hang (never
// answers by itself), locked (wants its key), work (queue).
class WorkerScript {
 public:
  std::string start(const std::string& worker) const {
    rpc::StreamingMessage message;
    message.mutable_start_stream()->set_worker_id(worker);
    return message.SerializeAsString();
  }

  std::string specialized(const std::string& worker, const std::string& application) const {
    rpc::StreamingMessage message;
    rpc::WorkerSpecialized& body = *message.mutable_worker_specialized();
    body.set_worker_id(worker);
    body.set_application_id(application);
    body.set_metadata_version("m1");
    body.set_code_version("c1");
    body.set_functions_path("/app");
    body.set_language("test");
    body.set_correlation_id("corr-1");
    body.set_host_json(R"({"version":"2.0"})");
    body.mutable_reload()->mutable_result()->set_status(rpc::StatusResult::Success);
    return message.SerializeAsString();
  }

  // An answer to an invocation, as `hung` has them.
  std::string answered(const std::string& invocation, const std::string& status = "200") const {
    rpc::StreamingMessage message;
    rpc::InvocationResponse& response = *message.mutable_invocation_response();
    response.set_invocation_id(invocation);
    response.mutable_result()->set_status(rpc::StatusResult::Success);
    response.mutable_return_value()->mutable_http()->set_status_code(status);
    return message.SerializeAsString();
  }
  // The invocation that hangs last; empty: none does.
  std::string hung() {
    const std::lock_guard lock{mutex_};
    return hung_;
  }

  // What it says to a message, in order.
  std::vector<std::string> answer(std::string_view bytes) {
    rpc::StreamingMessage asked;
    asked.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
    rpc::StreamingMessage said;
    said.set_request_id(asked.request_id());
    switch (asked.content_case()) {
      case rpc::StreamingMessage::kWorkerInitRequest: {
        rpc::WorkerInitResponse& body = *said.mutable_worker_init_response();
        body.mutable_result()->set_status(rpc::StatusResult::Success);
        (*body.mutable_capabilities())["WorkerStatus"] = "true";
        (*body.mutable_capabilities())["RpcHttpBodyOnly"] = "true";
        (*body.mutable_capabilities())["RawHttpBodyBytes"] = "true";
        if (heeds_cancel) (*body.mutable_capabilities())["HandlesInvocationCancelMessage"] = "true";
        body.mutable_worker_metadata()->set_runtime_name("test");
        break;
      }
      case rpc::StreamingMessage::kFunctionsMetadataRequest:
        index(*said.mutable_function_metadata_response());
        break;
      case rpc::StreamingMessage::kFunctionLoadRequest:
        said.mutable_function_load_response()->set_function_id(asked.function_load_request().function_id());
        said.mutable_function_load_response()->mutable_result()->set_status(rpc::StatusResult::Success);
        break;
      case rpc::StreamingMessage::kWorkerStatusRequest:
        said.mutable_worker_status_response();
        break;
      case rpc::StreamingMessage::kWorkerSpecializedResponse:
        is_specialized = asked.worker_specialized_response().result().status() == rpc::StatusResult::Success;
        return {};
      case rpc::StreamingMessage::kWorkerTerminate:
        ++terminations;
        return {};
      case rpc::StreamingMessage::kInvocationCancel: {
        rpc::InvocationResponse& body = *said.mutable_invocation_response();
        body.set_invocation_id(asked.invocation_cancel().invocation_id());
        body.mutable_result()->set_status(rpc::StatusResult::Cancelled);
        break;
      }
      case rpc::StreamingMessage::kInvocationRequest:
        return invoke(asked.invocation_request());
      default:
        return {};
    }
    return {said.SerializeAsString()};
  }

  std::atomic<bool> is_specialized{false};
  std::atomic<int> terminations{0};
  std::atomic<bool> heeds_cancel{false};  // set before it starts
  std::atomic<int> hanging{0};

 private:
  static void add(rpc::FunctionMetadataResponse& to, const std::string& name,
                  const std::vector<std::string>& bindings) {
    rpc::RpcFunctionMetadata& function = *to.add_function_metadata_results();
    function.set_name(name);
    function.set_function_id("id-" + name);
    function.set_language("test");
    for (const std::string& each : bindings) function.add_raw_bindings(each);
  }
  static void index(rpc::FunctionMetadataResponse& response) {
    response.mutable_result()->set_status(rpc::StatusResult::Success);
    const std::string out = R"({"name":"$return","type":"http","direction":"out"})";
    const auto trigger = [](const std::string& more) {
      return R"({"name":"req","type":"httpTrigger","direction":"in","authLevel":"anonymous",)" + more + "}";
    };
    add(response, "hello", {trigger(R"("methods":["get"],"route":"hello/{name}")"), out});
    add(response, "echo", {trigger(R"("methods":["post"])"), out});
    add(response, "fail", {trigger(R"("methods":["get"])"), out});
    add(response, "throw", {trigger(R"("methods":["post"])"), out});
    add(response, "hang", {trigger(R"("methods":["get"])"), out});
    add(response, "locked",
        {R"({"name":"req","type":"httpTrigger","direction":"in","authLevel":"function"})", out});
    add(response, "work", {R"({"name":"item","type":"queueTrigger","direction":"in","queueName":"q"})"});
  }

  std::vector<std::string> invoke(const rpc::InvocationRequest& request) {
    std::vector<std::string> said;
    if (request.function_id() == "id-hang") {
      const std::lock_guard lock{mutex_};
      hung_ = request.invocation_id();
      ++hanging;
      return said;
    }
    rpc::StreamingMessage message;
    rpc::RpcLog& log = *message.mutable_rpc_log();
    log.set_invocation_id(request.invocation_id());
    log.set_message("working on " + request.function_id());
    log.set_level(rpc::RpcLog::Information);
    said.push_back(message.SerializeAsString());

    rpc::InvocationResponse& response = *message.mutable_invocation_response();
    response.set_invocation_id(request.invocation_id());
    response.mutable_result()->set_status(rpc::StatusResult::Success);
    const rpc::TypedData& input = request.input_data(0).data();
    if (request.function_id() == "id-fail") {
      response.mutable_result()->set_status(rpc::StatusResult::Failure);
      response.mutable_result()->mutable_exception()->set_message("boom");
    } else if (request.function_id() == "id-throw") {
      response.mutable_result()->set_status(rpc::StatusResult::Failure);
      response.mutable_result()->mutable_exception()->set_message(input.http().body().bytes());
    } else if (request.function_id() == "id-work") {
      response.mutable_return_value()->set_json(R"({"got":)" + input.json() + "}");
    } else {
      rpc::RpcHttp& http = *response.mutable_return_value()->mutable_http();
      http.set_status_code("200");
      (*http.mutable_headers())["x-trace"] = request.trace_context().trace_parent();
      if (request.function_id() == "id-hello") {
        const auto name = input.http().params().find("name");
        http.mutable_body()->set_string("hello " +
                                        (name == input.http().params().end() ? "?" : name->second));
      } else {
        *http.mutable_body() = input.http().body();
      }
    }
    said.push_back(message.SerializeAsString());
    return said;
  }

  std::mutex mutex_;
  std::string hung_;
};

}  // namespace windlass::testing
