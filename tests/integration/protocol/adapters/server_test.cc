// What a server lets in: origins, paths, draining, clear text, limits, one port on several loops.
#include <gtest/gtest.h>

#include "tests/integration/protocol/adapters/transport_world.h"
#include "tests/support/raw_peer.h"

namespace windlass::testing {
namespace {

class Server : public TransportWorld {
 protected:
  RecordingEvents::Closed refused() {
    start();
    EXPECT_TRUE(run_until_client_closed());
    return client_events.closed.at(0);
  }
};

TEST_F(Server, RefusesAnOriginThatIsNotListed) {
  server_options.rules.origins_allowed = {"https://good.example"};
  client_options.origin = "https://evil.example";
  //= TRN-2
  EXPECT_EQ(refused().http_status, 403);
  EXPECT_TRUE(server_events.open.empty());
}

TEST_F(Server, AcceptsAnOriginThatIsListed) {
  server_options.rules.origins_allowed = {"https://good.example"};
  client_options.origin = "https://good.example";
  open();
}

TEST_F(Server, RefusesAPathThatIsNotServed) {
  server_options.rules.paths = {"/other"};
  EXPECT_EQ(refused().http_status, 404);
}

TEST_F(Server, WhileDrainingAnswers503WithTheTimeToComeBack) {
  server_events.echo();
  WebSocketConnection& before = open();
  server->drain(milliseconds{2500});
  client->dial(ConnectionId{2});
  ASSERT_TRUE(run_until_client_closed());
  EXPECT_EQ(client_events.closed[0].id, ConnectionId{2});
  EXPECT_EQ(client_events.closed[0].http_status, 503);
  EXPECT_EQ(client_events.closed[0].retry_after, Duration{seconds{3}});
  before.send("still here", MessageKind::Text);
  ASSERT_TRUE(run_until([&] { return client_events.messages.size() == 1; }));
}

TEST_F(Server, ClearTextIsForLoopbackUnlessAllowedExplicitly) {
  server_options.address = "0.0.0.0";
  const auto refused_server = WebSocketServer::listen(loop, server_options, server_events);
  ASSERT_FALSE(refused_server);
  EXPECT_EQ(refused_server.error().reason.find("clear text on 0.0.0.0:0 would show every token"), 0U);
  server_options.clear_text_anywhere = true;
  EXPECT_TRUE(WebSocketServer::listen(loop, server_options, server_events));
}

TEST_F(Server, AClientSendsNoClearTextBeyondTheLoopback) {
  client_options.address = {"192.0.2.1", 80};
  start_client();
  client->dial(ConnectionId{1});
  ASSERT_TRUE(run_until_client_closed());
  EXPECT_EQ(client_events.closed[0].reason,
            "clear text to 192.0.2.1:80 is not allowed; use wss://, or allow it explicitly");
}

TEST_F(Server, AnAddressThatIsTakenOrNoAddressIsOneSentence) {
  server_options.address = "localhost";
  const auto name = WebSocketServer::listen(loop, server_options, server_events);
  ASSERT_FALSE(name);
  EXPECT_EQ(name.error().reason,
            "'localhost' is not a numeric IPv4 or IPv6 address; give one such as 127.0.0.1");
  server_options.address = "192.0.2.1";
  server_options.clear_text_anywhere = true;
  const auto foreign = WebSocketServer::listen(loop, server_options, server_events);
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().reason, "cannot listen on 192.0.2.1:0: Cannot assign requested address");
}

TEST_F(Server, BeyondItsConnectionsTheNextIsTurnedAway) {
  server_options.connections_max = 1;
  open();
  client->dial(ConnectionId{2});
  ASSERT_TRUE(run_until_client_closed());
  EXPECT_EQ(client_events.closed[0].id, ConnectionId{2});
  EXPECT_EQ(server->counters().failed(OpeningFailure::Full), 1U);
  EXPECT_EQ(server_events.open.size(), 1U);
}

TEST_F(Server, BeyondItsConnectionsOneThatIsHalfOpenGivesWay) {
  server_options.connections_max = 1;
  start_server();
  RawPeer silent{loop, server->port()};
  ASSERT_TRUE(run_until([&] { return server->counters().accepted == 1; }));
  start_client();
  client->dial(ConnectionId{1});
  ASSERT_TRUE(run_until([&] { return !client_events.open.empty(); }));
  EXPECT_EQ(server->counters().failed(OpeningFailure::Displaced), 1U);
}

TEST_F(Server, HalfOpenConnectionsGiveWayToNewOnes) {
  server_options.opening_max = 4;
  start_server();
  std::vector<std::unique_ptr<RawPeer>> silent;
  silent.reserve(20);
  for (int i = 0; i < 20; ++i) silent.push_back(std::make_unique<RawPeer>(loop, server->port()));
  ASSERT_TRUE(run_until([&] { return server->counters().accepted == 20; }));
  start_client();
  client->dial(ConnectionId{1});
  ASSERT_TRUE(run_until([&] { return !client_events.open.empty(); }));
  EXPECT_GE(server->counters().failed(OpeningFailure::Displaced), 16U);
  // The oldest went, the newest stayed.
  ASSERT_TRUE(run_until([&] { return silent.front()->failed || silent.front()->ended; }));
  EXPECT_FALSE(silent.back()->failed || silent.back()->ended);
}

TEST_F(Server, AnotherFirstListenerOnTheSamePortIsRefused) {
  start_server();
  ServerOptions again = server_options;
  again.port = server->port();
  const auto second = WebSocketServer::listen(loop, again, server_events);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().reason, "cannot listen on 127.0.0.1:" + std::to_string(server->port()) +
                                       ": another process listens there; end it, or choose another address");
  EXPECT_EQ(second.error().code, ErrorCode::LimitCapacity);
}

TEST_F(Server, TwoListenersShareOnePort) {
  start_server();
  ServerOptions second_options = server_options;
  second_options.port = server->port();
  second_options.loop_index = 1;
  auto second = WebSocketServer::listen(loop, second_options, server_events);
  ASSERT_TRUE(second);
  start_client();
  for (std::uint64_t i = 1; i <= 32; ++i) {
    client->dial(ConnectionId{i});
    ASSERT_TRUE(run_until([&] { return client_events.open.size() == i && server_events.open.size() == i; }));
  }
  EXPECT_GT(server->counters().opened, 0U);
  EXPECT_GT((*second)->counters().opened, 0U);
  // Ids of the two do not collide.
  EXPECT_EQ(server_events.open.size(), 32U);
}

TEST_F(Server, StopsListeningAndKeepsWhatIsOpen) {
  server_events.echo();
  WebSocketConnection& connection = open();
  server->stop_listening();
  connection.send("hello", MessageKind::Text);
  ASSERT_TRUE(run_until([&] { return client_events.messages.size() == 1; }));
  client->dial(ConnectionId{2});
  ASSERT_TRUE(run_until_client_closed());
  EXPECT_NE(client_events.closed[0].reason.find("Connection refused"), std::string::npos);
}

TEST_F(Server, ClosesAllWithOneCode) {
  open();
  client->dial(ConnectionId{2});
  ASSERT_TRUE(run_until([&] { return server_events.open.size() == 2; }));
  server->close_all(1012, "restart");
  ASSERT_TRUE(
      run_until([&] { return client_events.closed.size() == 2 && server_events.closed.size() == 2; }));
  for (const auto& closed : client_events.closed) {
    EXPECT_EQ(closed.code, 1012);
    EXPECT_EQ(closed.reason, "restart");
    EXPECT_EQ(closed.initiator, CloseInitiator::Peer);
  }
}

}  // namespace
}  // namespace windlass::testing
