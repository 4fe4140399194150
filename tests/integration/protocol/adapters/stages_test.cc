// Connections that stop half way: every stage has a deadline, on both sides, and an attempt that was given up
// says nothing more.
#include <gtest/gtest.h>

#include "tests/integration/protocol/adapters/transport_world.h"
#include "tests/support/raw_peer.h"

namespace windlass::testing {
namespace {

class Stages : public TransportWorld {
 protected:
  // Only the deadline in question is short: on a busy machine any other might run out first.
  static constexpr Duration kShort = milliseconds{40};
  ConnectionOptions& ours = server_options.connection;
  ConnectionOptions& theirs = client_options.connection;

  // A client of a listener that does what the test says.
  void start_against(RawListener& listener) {
    client_options.address.port = listener.port();
    start_client();
    client->dial(ConnectionId{1});
  }
  bool ends(RawPeer& peer) {
    return run_until([&] { return peer.ended || peer.failed; });
  }
};

TEST_F(Stages, AServerDropsAPeerThatIsSilentBeforeTls) {
  ours.tls_deadline = kShort;
  use_tls();
  start_server();
  RawPeer peer{loop, server->port()};
  EXPECT_TRUE(ends(peer));
  EXPECT_EQ(server->counters().failed(OpeningFailure::TlsDeadline), 1U);
  EXPECT_TRUE(server_events.closed.empty()) << "it had never opened";
}

TEST_F(Stages, AServerDropsAPeerThatIsSilentAfterTls) {
  ours.head_deadline = kShort;
  use_tls();
  start_server();
  RawPeer peer{loop, server->port(), client_tls.get()};
  EXPECT_TRUE(ends(peer));
  EXPECT_EQ(server->counters().failed(OpeningFailure::HttpDeadline), 1U);
}

TEST_F(Stages, AServerDropsAPeerThatNeverFinishesItsRequest) {
  ours.head_deadline = kShort;
  start_server();
  RawPeer peer{loop, server->port()};
  peer.send("GET /v1 HTTP/1.1\r\nHost: x\r\n");
  EXPECT_TRUE(ends(peer));
}

TEST_F(Stages, AServerDropsAPeerThatSpeaksNoTls) {
  use_tls();
  start_server();
  RawPeer peer{loop, server->port()};
  peer.send("GET /v1 HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(ends(peer));
  EXPECT_EQ(server->counters().failed(OpeningFailure::Tls), 1U);
}

TEST_F(Stages, AServerDoesNotWaitForeverForTheAnswerToItsClose) {
  ours.close_deadline = kShort;
  server_events.when_opened = [](WebSocketConnection& connection) { connection.close(1001, "going"); };
  start_server();
  RawPeer peer{loop, server->port()};
  peer.send(*websocket::upgrade_request({"127.0.0.1", "/v1"}, {}));
  ASSERT_TRUE(run_until([&] { return !server_events.closed.empty(); }));
  EXPECT_EQ(server_events.closed[0].code, 1001);
  EXPECT_EQ(server_events.closed[0].initiator, CloseInitiator::Local);
  ASSERT_TRUE(run_until([&] { return server->connections() == 0; }));
}

TEST_F(Stages, AClientGivesUpOnAServerThatIsSilentBeforeTls) {
  theirs.tls_deadline = kShort;
  use_tls();
  RawListener listener{loop};
  start_against(listener);
  ASSERT_TRUE(run_until_client_closed());
  EXPECT_EQ(client_events.closed[0].id, ConnectionId{1});
  EXPECT_EQ(client_events.closed[0].code, 1006);
  EXPECT_EQ(client_events.closed[0].reason, "the TLS handshake took too long");
}

TEST_F(Stages, AClientGivesUpOnAServerThatIsSilentAfterTls) {
  theirs.head_deadline = kShort;
  use_tls();
  RawListener listener{loop};
  listener.tls = server_tls.get();
  start_against(listener);
  ASSERT_TRUE(run_until_client_closed());
  EXPECT_EQ(client_events.closed[0].reason, "the HTTP upgrade took too long");
}

TEST_F(Stages, AClientTellsAServerThatIsNoWebSocketServer) {
  RawListener listener{loop};
  start_against(listener);
  ASSERT_TRUE(run_until([&] { return listener.peer && listener.peer->received.ends_with("\r\n\r\n"); }));
  listener.peer->send("220 mail.example ESMTP\r\n");
  ASSERT_TRUE(run_until_client_closed());
  EXPECT_EQ(client_events.closed[0].reason, "the peer does not answer in HTTP/1.1");
}

TEST_F(Stages, ARefusedConnectionIsReportedWithItsAddress) {
  std::uint16_t port = 0;
  {
    RawListener listener{loop};
    port = listener.port();
  }
  client_options.address.port = port;
  start_client();
  client->dial(ConnectionId{1});
  EXPECT_TRUE(client_events.closed.empty()) << "on_closed came from inside dial()";
  ASSERT_TRUE(run_until_client_closed());
  EXPECT_EQ(client_events.closed[0].reason,
            "cannot connect to 127.0.0.1:" + std::to_string(port) + ": Connection refused");
  EXPECT_EQ(client_events.closed[0].initiator, CloseInitiator::Network);
}

TEST_F(Stages, ANameIsResolvedAndItsAddressesTriedInTurn) {
  start_server();
  client_options.address.host = "localhost";  // may be ::1 first, where nobody listens
  start_client();
  client->dial(ConnectionId{1});
  ASSERT_TRUE(run_until([&] { return !client_events.open.empty(); }));
}

TEST_F(Stages, ANameThatDoesNotExistIsReported) {
  client_options.address = {"name.invalid", 1};
  client_options.resolve_deadline = seconds{10};
  start_client();
  client->dial(ConnectionId{1});
  ASSERT_TRUE(run_until_client_closed());
  EXPECT_EQ(client_events.closed[0].reason.find("the name 'name.invalid' has no address: "), 0U)
      << client_events.closed[0].reason;
}

TEST_F(Stages, AnAbandonedDialSaysNothingMore) {
  RawListener silent{loop};
  start_against(silent);
  ASSERT_TRUE(run_until([&] { return silent.peer && !silent.peer->received.empty(); }));
  const auto first = std::move(silent.peer);
  client->dial(ConnectionId{2});
  // The first attempt's socket ends, without a word to the owner; the second goes on.
  ASSERT_TRUE(ends(*first));
  EXPECT_TRUE(client_events.closed.empty());
  EXPECT_TRUE(client_events.open.empty());
  EXPECT_EQ(client->connections(), 1U);
}

TEST_F(Stages, ADialWhileConnectingReplacesTheOneBefore) {
  start_server();
  start_client();
  client->dial(ConnectionId{1});
  client->dial(ConnectionId{2});
  ASSERT_TRUE(run_until([&] { return !client_events.open.empty(); }));
  EXPECT_EQ(client_events.open.begin()->first, ConnectionId{2});
  EXPECT_TRUE(client_events.closed.empty());
}

TEST_F(Stages, AnOpenConnectionSurvivesTheNextDial) {
  server_events.echo();
  WebSocketConnection& first = open();
  client->dial(ConnectionId{2});
  ASSERT_TRUE(run_until([&] { return client_events.open.size() == 2; }));
  first.send("still here", MessageKind::Text);
  ASSERT_TRUE(run_until([&] { return client_events.messages.size() == 1; }));
}

TEST(ClientAddress, IsReadFromAUrl) {
  const auto full = parse_address("wss://[::1]:8443/v1?x=1");
  ASSERT_TRUE(full);
  EXPECT_EQ(full->host, "::1");
  EXPECT_EQ(full->port, 8443);
  EXPECT_EQ(full->target, "/v1?x=1");
  EXPECT_TRUE(full->secure);
  const auto bare = parse_address("ws://host.example");
  ASSERT_TRUE(bare);
  EXPECT_EQ(bare->port, 80);
  EXPECT_EQ(bare->target, "/");
  for (const char* const wrong : {"", "http://x", "wss://", "wss://:1/", "wss://h:0/", "wss://h:65536/",
                                  "wss://h:1x/", "wss://user@h/", "wss://h/#f", "wss://[::1/", "wss://h /"}) {
    EXPECT_FALSE(parse_address(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace windlass::testing
