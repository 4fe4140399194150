// The EventStream server for workers that dial in by themselves: gRPC's completion queues, one thread each,
// beside the runtime's loop. What streams say is posted to the loop in batches.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "protocol/adapters/event_loop.h"
#include "protocol/adapters/tls_context.h"
#include "runtime/adapters/grpc_stream.h"
#include "runtime/seams/worker_channel.h"

namespace windlass::runtime {

struct GrpcServerOptions {
  std::string address = "127.0.0.1";         // numeric
  std::uint16_t port = 0;                    // 0: the system chooses
  std::optional<TlsServerOptions> tls = {};  // none: clear text, on loopback addresses only
  std::uint32_t queues = 1;
  std::size_t message_bytes_max = 128 * 1024 * 1024;
  std::size_t queue_messages_max = 1'000;
  std::size_t queue_bytes_max = 256 * 1024 * 1024;
  std::size_t streams_max = 10'000;
  // Who a caller is; on gRPC's threads, at once. Without it nobody is let in.
  std::function<Result<StreamIdentity>(const GrpcCaller& caller)> identify = {};
  // Somebody was not let in; on the loop.
  std::function<void(const std::string& peer, const std::string& reason)> refused = {};
};

class GrpcServer final {
 public:
  // Listens at once. `loop` and `events` must outlive the server. Errors are one sentence.
  static Result<std::unique_ptr<GrpcServer>> listen(EventLoop& loop, GrpcServerOptions options,
                                                    ChannelEvents& events);
  // Ends what streams there are, without a word to the events. Not on the loop's turn of one of its channels.
  ~GrpcServer();
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;

  std::uint16_t port() const;
  std::size_t streams() const;  // from any thread

 private:
  struct Inside;
  explicit GrpcServer(std::unique_ptr<Inside> inside);
  std::unique_ptr<Inside> inside_;
};

}  // namespace windlass::runtime
