// A connection accepted on one loop and carried to another, on another thread, with its first message and
// whatever had been read after it.
#include <gtest/gtest.h>

#include <thread>

#include "tests/integration/protocol/adapters/transport_world.h"

namespace windlass::testing {
namespace {

class Handover : public TransportWorld, public ::testing::WithParamInterface<bool> {
 protected:
  Handover() {
    if (GetParam()) use_tls();
    other_events.echo();
    // The first message that comes to this loop sends its connection to the other one.
    server_events.when_message = [this](WebSocketConnection& connection, BytesView message,
                                        MessageKind kind) {
      auto detached = connection.detach(message, kind);
      other_loop.post([this, carried = std::move(detached)]() mutable { other->attach(std::move(carried)); });
    };
  }
  ~Handover() override {
    other_loop.stop();
    if (thread.joinable()) thread.join();
  }

  void start_both() {
    start_server();
    ServerOptions options = server_options;
    options.loop_index = 1;
    auto made = WebSocketServer::listen(other_loop, options, other_events);
    ASSERT_TRUE(made) << made.error().reason;
    other = std::move(*made);
    thread = std::thread{[this] { other_loop.run(); }};
    start_client();
    client->dial(ConnectionId{1});
    ASSERT_TRUE(run_until([&] { return !client_events.open.empty(); }));
  }
  void stop_other() {
    other_loop.stop();
    thread.join();
  }

  EventLoop other_loop;
  RecordingEvents other_events;
  std::unique_ptr<WebSocketServer> other;
  std::thread thread;
};

TEST_P(Handover, CarriesTheFirstMessageAndUnreadInputInOrder) {
  start_both();
  WebSocketConnection& connection = *client_events.open.at(ConnectionId{1});
  // All leave in one write, so the first loop reads them together.
  for (int i = 0; i < 50; ++i) connection.send("message " + std::to_string(i), MessageKind::Text);
  ASSERT_TRUE(run_until([&] { return client_events.messages.size() == 50; }));
  for (std::size_t i = 0; i < 50; ++i)
    EXPECT_EQ(client_events.messages[i].text, "message " + std::to_string(i));
  EXPECT_EQ(server_events.messages.size(), 1U);
  EXPECT_TRUE(server_events.closed.empty()) << "the first loop has nothing more to say of it";
  EXPECT_EQ(server->connections(), 0U);

  connection.send("and on", MessageKind::Binary);
  ASSERT_TRUE(run_until([&] { return client_events.messages.size() == 51; }));
  connection.close(1000, "bye");
  ASSERT_TRUE(run_until_client_closed());
  ASSERT_TRUE(run_until([&] { return client->connections() == 0; }));
  stop_other();
  EXPECT_EQ(other_events.messages.size(), 51U);
  ASSERT_EQ(other_events.closed.size(), 1U);
  EXPECT_EQ(other_events.closed[0].code, 1000);
  ASSERT_EQ(other_events.peers.size(), 1U);
  EXPECT_EQ(other_events.peers[0].address, server_events.peers[0].address);
}

TEST_P(Handover, CarriesAMessageThatIsHalfRead) {
  server_options.connection.message_bytes_max = limits::kFrameBytesMax;
  start_both();
  WebSocketConnection& connection = *client_events.open.at(ConnectionId{1});
  // The second message is longer than one read, so the first loop holds a part of it.
  const std::string large(300'000, 'y');
  connection.send("first", MessageKind::Text);
  connection.send(large, MessageKind::Text);
  ASSERT_TRUE(run_until([&] { return client_events.messages.size() == 2; }));
  EXPECT_EQ(client_events.messages[1].text, large);
}

TEST_P(Handover, AConnectionThatIsNeverAttachedIsClosed) {
  server_events.when_message = [](WebSocketConnection& connection, BytesView message, MessageKind kind) {
    const auto dropped = connection.detach(message, kind);
  };
  start_both();
  client_events.open.at(ConnectionId{1})->send("first", MessageKind::Text);
  ASSERT_TRUE(run_until_client_closed());
  EXPECT_EQ(client_events.closed[0].code, 1006);
  EXPECT_TRUE(server_events.closed.empty());
}

INSTANTIATE_TEST_SUITE_P(Transport, Handover, ::testing::Bool(),
                         [](const auto& variant) { return variant.param ? "Tls" : "ClearText"; });

}  // namespace
}  // namespace windlass::testing
