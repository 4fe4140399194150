// A FunctionRpc host for tests: listens on a free port, starts the worker, sends what a test says and shows
// what comes back, in order. Knows no rule of the protocol.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <sys/types.h>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "schema/proto/function_rpc.pb.h"

namespace windlass::native {

namespace rpc = AzureFunctionsRpcMessages;

class ScriptedHost final {
 public:
  ScriptedHost();
  ScriptedHost(const ScriptedHost&) = delete;
  ScriptedHost& operator=(const ScriptedHost&) = delete;
  ~ScriptedHost();

  int port() const { return port_; }
  // With both sets of arguments and `more`.
  void spawn(std::vector<std::string> more = {});
  void spawn_with(std::vector<std::string> arguments);

  void send(const rpc::StreamingMessage& message);
  void send_bytes(const std::string& bytes);
  void end_stream(const grpc::Status& status);

  // The next message with that content; what comes before it is passed over, logs are kept in logs().
  // Nothing: it did not come in time.
  std::optional<rpc::StreamingMessage> expect(rpc::StreamingMessage::ContentCase content);
  std::optional<rpc::StreamingMessage> next();  // of any content
  std::vector<rpc::RpcLog> logs() const { return logs_; }
  // Sends and expects, with a request id of its own.
  rpc::StreamingMessage ask(rpc::StreamingMessage message, rpc::StreamingMessage::ContentCase answer);

  // The exit code; minus the signal when one ended it. Nothing: it still runs after ten seconds.
  std::optional<int> wait_for_exit();

 private:
  void serve();
  void write_next_locked();

  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
  grpc::ByteBuffer incoming_;
  int port_ = 0;
  pid_t worker_ = -1;
  int requests_ = 0;
  std::vector<rpc::RpcLog> logs_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<rpc::StreamingMessage> inbox_;
  std::deque<grpc::ByteBuffer> outbox_;
  std::optional<grpc::Status> end_;
  bool open_ = false;
  bool writing_ = false;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace windlass::native
