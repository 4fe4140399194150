// What the runtime, its session and the agent are measured against: a gRPC host with TLS, a relay, and the
// same native worker, with as little in between as gRPC allows.
//
//   BareHost (this process) <-- gRPC, TLS --> relay (a process) <-- gRPC, clear text -->
//   windlass-native-worker
//
// Both forward serialized FunctionRpc messages through the generic byte buffer interface of the completion
// queues and decode nothing: the host reads only the id of an answer, to know whose it is, and copies a
// request once, into the buffer that is sent. Each has one queue and one thread. Everything that is there is
// read before what follows from it is written, so that messages leave together (buffer hint): written at
// once, it manages half as many. Channels are set up as the native worker
// sets up its own. There is no acknowledgement, no resume,
// no tracking, no timeout, no metric.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>

#include "tests/bench/bare_stream.h"
#include "tests/bench/child_process.h"
#include "tests/bench/identity.h"
#include "tests/bench/rpc_load.h"

namespace windlass::bench {

class BareHost final : public RpcHost {
 public:
  // The worker is ready when it returns.
  explicit BareHost(const Identity& identity);
  ~BareHost() override;

  std::string name() const override { return "bare_grpc_relay"; }
  void perform(std::function<void()> work) override;
  void invoke(std::uint64_t tag) override;
  double relay_nanoseconds() const { return relay_->nanoseconds(); }
  double worker_nanoseconds() const { return worker_->nanoseconds(); }

 private:
  void serve();
  void handle(const BareStream::Tag& tag, bool ok);
  void take(const grpc::ByteBuffer& message);

  std::string body_ = echo_body();
  grpc::AsyncGenericService service_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter call_{&context_};
  BareStream stream_{call_};
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  std::mutex mutex_;  // of the stream: invocations begin on a thread of the load's
  std::atomic<bool> is_ready_{false};
  std::thread thread_;
  std::unique_ptr<ChildProcess> relay_;
  std::unique_ptr<ChildProcess> worker_;
};

// This program was started to be the relay.
bool plays_bare_relay(int argc, char** argv);
// For both.
std::string read_pem_file(const std::string& path);
std::vector<std::string> native_worker_command(std::uint16_t port);

}  // namespace windlass::bench
