// The bare transport of protocol/adapters as an echo server.
#pragma once

#include <memory>
#include <unordered_map>

#include "protocol/adapters/websocket_server.h"
#include "protocol/base/check.h"
#include "tests/bench/beast/wss_beast.h"

namespace windlass::bench {

class EchoEvents final : public ConnectionEvents {
 public:
  void on_opened(ConnectionId id, WebSocketConnection& connection) override {
    open_.emplace(id, &connection);
  }
  void on_message(ConnectionId id, BytesView message, MessageKind kind) override {
    open_.find(id)->second->send(message, kind);
  }
  void on_idle(ConnectionId /*id*/) override {}
  void on_blocked(ConnectionId /*id*/) override {}
  void on_writable(ConnectionId /*id*/) override {}
  void on_closed(ConnectionId id, const CloseFacts& /*facts*/) override { open_.erase(id); }
  std::size_t open() const { return open_.size(); }

 private:
  std::unordered_map<ConnectionId, WebSocketConnection*> open_;
};

class OurEcho final : public EchoServer {
 public:
  explicit OurEcho(const TlsContext& tls) {
    ServerOptions options;
    options.tls = &tls;
    options.rules.paths = {"/v1"};
    auto made = WebSocketServer::listen(loop, options, events);
    CHECK(made.has_value());
    server_ = std::move(*made);
  }
  std::uint16_t port() const override { return server_->port(); }
  void run() override { loop.run(); }
  void stop() override { loop.stop(); }

  EventLoop loop;
  EchoEvents events;

 private:
  std::unique_ptr<WebSocketServer> server_;
};

}  // namespace windlass::bench
