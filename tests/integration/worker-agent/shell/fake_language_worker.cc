// A language worker for tests: speaks FunctionRpc with whoever started it and does what function ids say.
//   anything     answers with the request's whole bytes as the return value
//   crash        says so on standard error and exits with 3
//   leave        exits with 0
//   environment  answers with its settings' GREETING and its folder
// With --http HOW it takes HTTP at a port of its own, which it names in the capability Port too:
//   late         opened a while after it is named
//   never        never opened
//   strange      named beside a capability that is no UTF-8
//   port N       somebody else's, by its number
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>

#include "protocol/function_rpc/peek.h"
#include "schema/proto/function_rpc.pb.h"
#include "worker-agent/adapters/function_rpc_client.h"

namespace {

namespace rpc = AzureFunctionsRpcMessages;
using windlass::agent::FunctionRpcClient;

constexpr std::chrono::milliseconds kLate{400};

// On the loopback, and not opened yet; the number stays ours.
std::pair<int, std::uint16_t> reserved_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const plain = reinterpret_cast<sockaddr*>(&address);
  if (::bind(fd, plain, size) != 0 || ::getsockname(fd, plain, &size) != 0) std::abort();
  return {fd, ntohs(address.sin_port)};
}

class FakeWorker final {
 public:
  explicit FakeWorker(std::string http) : http_(std::move(http)) {}

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
      if (!http_.empty()) offer_http(*reply.mutable_worker_init_response()->mutable_capabilities());
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

  void offer_http(google::protobuf::Map<std::string, std::string>& capabilities) const {
    const auto [fd, port] = reserved_port();
    capabilities["Port"] = std::to_string(port);
    if (http_.starts_with("port ")) capabilities["Port"] = http_.substr(5);
    capabilities["HttpUri"] = "http://127.0.0.1:" + capabilities["Port"] + "/";
    if (http_ == "strange") capabilities["Strange"] = "\xff\xfe";
    if (http_ == "strange") ::listen(fd, 8);
    if (http_ != "late") return;
    std::thread{[listener = fd] {
      std::this_thread::sleep_for(kLate);
      ::listen(listener, 8);
    }}.detach();
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

  std::string http_;
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
  std::string http;
  int port = 0;
  for (int i = 1; i + 1 < count; ++i) {
    if (std::strcmp(arguments[i], "--host") == 0) host = arguments[i + 1];
    if (std::strcmp(arguments[i], "--port") == 0) port = std::atoi(arguments[i + 1]);
    if (std::strcmp(arguments[i], "--http") == 0) http = arguments[i + 1];
    if (std::strcmp(arguments[i], "--functions-worker-id") == 0) id = arguments[i + 1];
  }
  std::puts("hello from the fake worker");
  std::fflush(stdout);
  FakeWorker worker{http};
  return worker.run(host, static_cast<std::uint16_t>(port), id);
}
