// A peer that reads slowly, or not at all.
#include <gtest/gtest.h>

#include "tests/integration/protocol/adapters/transport_world.h"
#include "tests/support/raw_peer.h"

namespace windlass::testing {
namespace {

class Backpressure : public TransportWorld, public ::testing::WithParamInterface<bool> {
 protected:
  Backpressure() {
    if (GetParam()) use_tls();
  }

  // A peer that does not read from now on, and the server's end of its connection.
  WebSocketConnection& deaf() {
    start_server();
    peer = std::make_unique<RawPeer>(loop, server->port(), client_tls.get());
    EXPECT_TRUE(run_until([&] { return peer->is_ready(); }));
    peer->send(*websocket::upgrade_request({"127.0.0.1", "/v1"}, {}));
    EXPECT_TRUE(run_until([&] { return peer->received.ends_with("\r\n\r\n"); }));
    peer->received.clear();
    peer->stop_reading();
    return *server_events.open.begin()->second;
  }

  // Sends until the socket is full.
  void fill(WebSocketConnection& connection) {
    for (int i = 0; i < 1000; ++i) {
      if (connection.send(kPart, MessageKind::Binary) == SendStatus::Blocked) return;
      sent_bytes += kPart.size();
    }
    FAIL() << "the socket never filled";
  }

  const std::string kPart = std::string(64 * 1024, 'x');
  std::size_t sent_bytes = 0;
  std::unique_ptr<RawPeer> peer;
};

TEST_P(Backpressure, BlocksUntilTheReaderCatchesUpThenSaysWritable) {
  WebSocketConnection& connection = deaf();
  fill(connection);
  EXPECT_GT(connection.unsent_bytes(), 0U);
  EXPECT_EQ(server_events.writable_count, 0U);
  peer->read_on();
  ASSERT_TRUE(run_until([&] { return server_events.writable_count == 1; }));
  EXPECT_EQ(connection.unsent_bytes(), 0U);
  EXPECT_EQ(connection.send("more", MessageKind::Text), SendStatus::Sent);
  ASSERT_TRUE(run_until([&] { return peer->received.ends_with("more"); }));
  EXPECT_GT(peer->received.size(), sent_bytes + kPart.size());
  EXPECT_TRUE(server_events.closed.empty());
}

// Small sends are gathered until their turn ends, and answered before anybody knows that the socket is full.
TEST_P(Backpressure, SaysBlockedWhenATurnCouldNotBeWrittenThenWritable) {
  WebSocketConnection& connection = deaf();
  const std::string part(16 * 1024, 'x');
  ASSERT_TRUE(run_until([&] {
    if (server_events.blocked_count > 0) return true;
    loop.turn_again();
    return connection.send(part, MessageKind::Binary) != SendStatus::Sent;
  }));
  ASSERT_EQ(server_events.blocked_count, 1U);
  EXPECT_GT(connection.unsent_bytes(), 0U);
  EXPECT_EQ(connection.send(part, MessageKind::Binary), SendStatus::Blocked);
  peer->read_on();
  ASSERT_TRUE(run_until([&] { return server_events.writable_count == 1; }));
  EXPECT_EQ(connection.unsent_bytes(), 0U);
  EXPECT_EQ(server_events.blocked_count, 1U) << "it was told once";
}

TEST_P(Backpressure, AReaderThatStandsStillIsClosed) {
  server_options.connection.stall_deadline = milliseconds{30};
  fill(deaf());
  ASSERT_TRUE(run_until([&] { return !server_events.closed.empty(); }));
  EXPECT_EQ(server_events.closed[0].code, 1008);
  EXPECT_EQ(server_events.closed[0].reason, "the peer does not read");
  EXPECT_EQ(server_events.closed[0].initiator, CloseInitiator::Local);
  ASSERT_TRUE(run_until([&] { return server->connections() == 0; }));
}

TEST_P(Backpressure, AReaderThatFallsTooFarBehindIsClosed) {
  server_options.connection.send_buffer_bytes_max = 256 * 1024;
  WebSocketConnection& connection = deaf();
  fill(connection);
  SendStatus status = SendStatus::Blocked;
  int more = 0;
  for (; status == SendStatus::Blocked && more < 100; ++more)
    status = connection.send(kPart, MessageKind::Binary);
  EXPECT_EQ(status, SendStatus::Closed);
  EXPECT_LE(more, 5);
  EXPECT_TRUE(server_events.closed.empty()) << "on_closed came from inside send()";
  ASSERT_TRUE(run_until([&] { return !server_events.closed.empty(); }));
  EXPECT_EQ(server_events.closed[0].code, 1008);
}

TEST_P(Backpressure, AFloodOfPingsFromADeafPeerEndsTheConnection) {
  server_options.connection.send_buffer_bytes_max = 64 * 1024;
  WebSocketConnection& connection = deaf();
  fill(connection);
  Bytes pings;
  for (int i = 0; i < 400; ++i) {
    websocket::append_ping(std::string(125, 'p'), websocket::MaskKey{}, pings);
  }
  for (int i = 0; i < 10 && server_events.closed.empty(); ++i) {
    peer->send(pings);
    const std::size_t idle = server_events.idle_count;
    ASSERT_TRUE(run_until([&] { return server_events.idle_count > idle || !server_events.closed.empty(); }));
  }
  ASSERT_EQ(server_events.closed.size(), 1U);
  EXPECT_EQ(server_events.closed[0].reason, "the peer reads too slowly");
}

TEST_P(Backpressure, OneDeafPeerDoesNotHoldUpAnother) {
  server_events.echo();
  fill(deaf());
  start_client();
  client->dial(ConnectionId{1});
  ASSERT_TRUE(run_until([&] { return !client_events.open.empty(); }));
  client_events.open.at(ConnectionId{1})->send("hello", MessageKind::Text);
  ASSERT_TRUE(run_until([&] { return client_events.messages.size() == 1; }));
}

INSTANTIATE_TEST_SUITE_P(Transport, Backpressure, ::testing::Bool(),
                         [](const auto& variant) { return variant.param ? "Tls" : "ClearText"; });

}  // namespace
}  // namespace windlass::testing
