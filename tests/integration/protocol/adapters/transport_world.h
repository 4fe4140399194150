// A server and a client of the real transport with certificates of a test authority, on one loop.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "tests/support/certificates.h"
#include "tests/support/loop_world.h"

namespace windlass::testing {

// Made once per test binary: keys cost time.
inline TestAuthority& shared_authority() {
  static TestAuthority authority;
  return authority;
}

inline const IssuedFiles& shared_server_files() {
  static const IssuedFiles files = shared_authority().issue("server");
  return files;
}

class TransportWorld : public ::testing::Test {
 protected:
  TransportWorld() { server_options.rules.paths = {"/v1"}; }

  void use_tls(TlsServerOptions server_tls_options = {}, TlsClientOptions client_tls_options = {}) {
    if (server_tls_options.identity.certificate_file.empty()) {
      server_tls_options.identity = {shared_server_files().certificate, shared_server_files().key};
    }
    if (client_tls_options.authority_file.empty()) {
      client_tls_options.authority_file = shared_authority().certificate_file();
    }
    auto server_made = TlsContext::server(std::move(server_tls_options));
    ASSERT_TRUE(server_made) << server_made.error().reason;
    auto client_made = TlsContext::client(std::move(client_tls_options));
    ASSERT_TRUE(client_made) << client_made.error().reason;
    server_tls = std::move(*server_made);
    client_tls = std::move(*client_made);
  }

  // With TLS if use_tls was called.
  void start_server() {
    server_options.tls = server_tls.get();
    auto made = WebSocketServer::listen(loop, server_options, server_events);
    ASSERT_TRUE(made) << made.error().reason;
    server = std::move(*made);
  }

  void start_client() {
    client_options.tls = client_tls.get();
    if (client_options.address.host.empty()) client_options.address.host = "127.0.0.1";
    if (client_options.address.port == 0) client_options.address.port = server->port();
    client_options.address.target = "/v1";
    client_options.address.secure = client_tls != nullptr;
    auto made = WebSocketClient::create(loop, client_options, client_events);
    ASSERT_TRUE(made) << made.error().reason;
    client = std::move(*made);
  }

  void start() {
    start_server();
    start_client();
    client->dial(ConnectionId{1});
  }

  // Both ends are open; returns the client's.
  WebSocketConnection& open() {
    start();
    EXPECT_TRUE(runner.run_until([&] { return !client_events.open.empty() && !server_events.open.empty(); }));
    return *client_events.open.at(ConnectionId{1});
  }

  bool run_until(std::function<bool()> condition) { return runner.run_until(std::move(condition)); }
  bool run_until_client_closed() {
    return run_until([&] { return !client_events.closed.empty(); });
  }
  bool run_until_both_closed() {
    return run_until([&] { return !client_events.closed.empty() && !server_events.closed.empty(); });
  }

  EventLoop loop;
  LoopRunner runner{loop};
  RecordingEvents server_events;
  RecordingEvents client_events;
  std::unique_ptr<TlsContext> server_tls;
  std::unique_ptr<TlsContext> client_tls;
  ServerOptions server_options;
  ClientOptions client_options;
  std::unique_ptr<WebSocketServer> server;
  std::unique_ptr<WebSocketClient> client;
};

}  // namespace windlass::testing
