// The agent's stream to a runtime's gRPC server, for agents that are told to use one instead of a session. A
// stream that is lost takes what was under way with it; a session would not.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/base/result.h"
#include "worker-agent/adapters/rpc_stream.h"

namespace windlass::agent {

struct RpcClientTls {
  std::string authority_file;    // PEM; empty: the system's authorities
  std::string certificate_file;  // PEM; empty: none is shown
  std::string key_file;
};

struct RpcClientOptions {
  std::string host;
  std::uint16_t port = 0;
  std::optional<RpcClientTls> tls;  // none: clear text
  std::size_t message_bytes_max = 128 * 1024 * 1024;
  RpcStreamBounds bounds = {};
};

class FunctionRpcClient final {
 public:
  // `wake` is called on the client's thread: poll() has something new.
  static Result<std::unique_ptr<FunctionRpcClient>> create(const RpcClientOptions& options,
                                                           std::function<void()> wake);
  ~FunctionRpcClient();
  FunctionRpcClient(const FunctionRpcClient&) = delete;
  FunctionRpcClient& operator=(const FunctionRpcClient&) = delete;

  // From the loop.
  // When there is no stream, or the last one is over. The token, if any, is shown; it is secret.
  void dial(const std::string& token = {});
  struct Polled {
    bool is_open = false;
    std::vector<std::string> messages;
    std::optional<std::string> over;  // why; said once
  };
  Polled poll();
  void consumed(std::size_t bytes);
  bool send(std::string_view message);
  void flush();  // what was sent leaves
  bool is_full() const;
  std::size_t waiting_messages() const;

 private:
  struct Inside;
  explicit FunctionRpcClient(std::unique_ptr<Inside> inside);
  std::unique_ptr<Inside> inside_;
};

}  // namespace windlass::agent
