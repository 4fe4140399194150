// A language worker for tests: speaks FunctionRpc with whoever started it and does what function ids say.
//   anything     answers with the request's whole bytes as the return value
//   crash        says so on standard error and exits with 3
//   leave        exits with 0
//   environment  answers with its settings' GREETING and its folder
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "protocol/function_rpc/peek.h"
#include "schema/proto/function_rpc.pb.h"
#include "worker-agent/adapters/function_rpc_client.h"

namespace {

namespace rpc = AzureFunctionsRpcMessages;
using windlass::agent::FunctionRpcClient;

class FakeWorker final {
 public:
  int run(const std::string& host, std::uint16_t port, const std::string& worker_id) {
    windlass::agent::RpcClientOptions options;
    options.host = host;
    options.port = port;
    auto client = FunctionRpcClient::create(options, [this] {
      const std::lock_guard lock{mutex_};
      is_woken_ = true;
      woken_.notify_one();
    });
    if (!client) return 1;
    client_ = *std::move(client);
    client_->dial();
    bool was_open = false;
    while (true) {
      FunctionRpcClient::Polled polled = client_->poll();
      if (polled.is_open && !std::exchange(was_open, true)) {
        rpc::StreamingMessage start;
        start.mutable_start_stream()->set_worker_id(worker_id);
        client_->send(start.SerializeAsString());
      }
      std::size_t bytes = 0;
      for (const std::string& message : polled.messages) {
        bytes += message.size();
        if (!answer(message)) return 0;
      }
      client_->flush();
      if (bytes > 0) client_->consumed(bytes);
      if (polled.over) return 1;
      std::unique_lock lock{mutex_};
      woken_.wait(lock, [this] { return is_woken_; });
      is_woken_ = false;
    }
  }

 private:
  // False: it is to end.
  bool answer(const std::string& bytes) {
    rpc::StreamingMessage message;
    if (!message.ParseFromString(bytes)) std::abort();
    rpc::StreamingMessage reply;
    reply.set_request_id(message.request_id());
    if (message.has_worker_init_request()) {
      reply.mutable_worker_init_response()->set_worker_version("fake");
      reply.mutable_worker_init_response()->mutable_result()->set_status(rpc::StatusResult::Success);
    } else if (message.has_function_environment_reload_request()) {
      const auto& reload = message.function_environment_reload_request();
      const auto greeting = reload.environment_variables().find("GREETING");
      if (greeting != reload.environment_variables().end()) greeting_ = greeting->second;
      folder_ = reload.function_app_directory();
      reply.mutable_function_environment_reload_response()->mutable_result()->set_status(
          rpc::StatusResult::Success);
    } else if (message.has_functions_metadata_request()) {
      reply.mutable_function_metadata_response()->set_use_default_metadata_indexing(true);
      reply.mutable_function_metadata_response()->mutable_result()->set_status(rpc::StatusResult::Success);
    } else if (message.has_function_load_request()) {
      reply.mutable_function_load_response()->set_function_id(message.function_load_request().function_id());
      reply.mutable_function_load_response()->mutable_result()->set_status(rpc::StatusResult::Success);
    } else if (message.has_invocation_request()) {
      invoke(message.invocation_request(), bytes, *reply.mutable_invocation_response());
    } else {
      return !message.has_worker_terminate();
    }
    client_->send(reply.SerializeAsString());
    return true;
  }

  void invoke(const rpc::InvocationRequest& request, const std::string& bytes,
              rpc::InvocationResponse& response) {
    if (request.function_id() == "leave") ::_exit(0);
    if (request.function_id() == "crash") {
      std::fputs("it cannot go on \xff like this\n", stderr);
      std::fflush(stderr);
      ::_exit(3);
    }
    response.set_invocation_id(request.invocation_id());
    response.mutable_result()->set_status(rpc::StatusResult::Success);
    if (request.function_id() == "environment") {
      response.mutable_return_value()->set_string(greeting_ + " " + folder_);
    } else {
      response.mutable_return_value()->set_bytes(bytes);
    }
  }

  std::unique_ptr<FunctionRpcClient> client_;
  std::mutex mutex_;
  std::condition_variable woken_;
  bool is_woken_ = false;
  std::string greeting_;
  std::string folder_;
};

}  // namespace

int main(int count, char** arguments) {
  std::string host;
  std::string id;
  int port = 0;
  for (int i = 1; i + 1 < count; ++i) {
    if (std::strcmp(arguments[i], "--host") == 0) host = arguments[i + 1];
    if (std::strcmp(arguments[i], "--port") == 0) port = std::atoi(arguments[i + 1]);
    if (std::strcmp(arguments[i], "--functions-worker-id") == 0) id = arguments[i + 1];
  }
  std::puts("hello from the fake worker");
  std::fflush(stdout);
  FakeWorker worker;
  return worker.run(host, static_cast<std::uint16_t>(port), id);
}
