// The local end of a language worker's stream: a gRPC server in clear text on a free port of the loopback. It
// moves serialized messages and looks only at the first, which must be the StartStream of the one worker that
// is expected, from its own process under the worker's user; anybody else on this machine is turned away.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/base/result.h"
#include "worker-agent/adapters/rpc_stream.h"

namespace windlass::agent {

struct RpcServerOptions {
  std::size_t message_bytes_max = 128 * 1024 * 1024;
  std::optional<std::uint32_t> worker_user = std::nullopt;  // whose connections count; none: our own user's
  RpcStreamBounds bounds = {};
  std::size_t strangers_max = 8;  // streams that have not said who they are; the oldest goes for a newer one
  // The process that is expected, 0 while there is none; from the server's thread. Without it any of our own
  // user will do.
  std::function<int()> worker_process = {};
};

class FunctionRpcServer final {
 public:
  // `wake` is called on the server's thread: poll() has something new.
  static Result<std::unique_ptr<FunctionRpcServer>> listen(const RpcServerOptions& options,
                                                           std::function<void()> wake);
  ~FunctionRpcServer();
  FunctionRpcServer(const FunctionRpcServer&) = delete;
  FunctionRpcServer& operator=(const FunctionRpcServer&) = delete;

  std::uint16_t port() const;

  // From the loop. The stream of the worker before is ended.
  void expect(const std::string& worker_id);
  struct Polled {
    std::string worker_id;  // whose stream it is; empty: there is none
    std::vector<std::string> messages;
    bool is_over = false;                // after these; said once
    std::vector<std::string> unwritten;  // of one that is over: what was sent and never left
  };
  Polled poll();
  void consumed(std::size_t bytes);     // of polled messages: the stream is read on
  bool send(std::string_view message);  // leaves with flush(); false: there is no stream
  void flush();
  bool is_full() const;  // what the worker does not take piles up: give no more until it is woken
  std::size_t waiting_messages() const;

 private:
  struct Inside;
  explicit FunctionRpcServer(std::unique_ptr<Inside> inside);
  std::unique_ptr<Inside> inside_;
};

}  // namespace windlass::agent
