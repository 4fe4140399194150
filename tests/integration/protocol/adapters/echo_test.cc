// Messages both ways between our own server and our own client, in clear text and over TLS.
#include <gtest/gtest.h>

#include "tests/integration/protocol/adapters/transport_world.h"

namespace windlass::testing {
namespace {

class Echo : public TransportWorld, public ::testing::WithParamInterface<bool> {
 protected:
  Echo() {
    if (GetParam()) use_tls();
    server_events.echo();
  }
};

TEST_P(Echo, ReturnsTextAndBinaryInOrder) {
  WebSocketConnection& connection = open();
  EXPECT_EQ(connection.send("one", MessageKind::Text), SendStatus::Sent);
  EXPECT_EQ(connection.send(std::string("t\0wo", 4), MessageKind::Binary), SendStatus::Sent);
  EXPECT_EQ(connection.send("", MessageKind::Text), SendStatus::Sent);
  ASSERT_TRUE(run_until([&] { return client_events.messages.size() == 3; }));
  EXPECT_EQ(client_events.messages[0].text, "one");
  EXPECT_EQ(client_events.messages[1].text, std::string("t\0wo", 4));
  EXPECT_EQ(client_events.messages[1].kind, MessageKind::Binary);
  EXPECT_EQ(client_events.messages[2].text, "");
}

TEST_P(Echo, CarriesMessagesOfEverySizeUpToTheLimit) {
  server_options.connection.message_bytes_max = limits::kFrameBytesMax;
  WebSocketConnection& connection = open();
  std::size_t count = 0;
  for (const std::size_t size : {125U, 126U, 65535U, 65536U, 100000U, 1024U * 1024U}) {
    const std::string text(size, static_cast<char>('a' + count));
    connection.send(text, MessageKind::Text);
    ASSERT_TRUE(run_until([&] { return client_events.messages.size() == count + 1; })) << size;
    EXPECT_EQ(client_events.messages.back().text, text);
    ++count;
  }
}

TEST_P(Echo, ClosesWithTheCodeAndReasonOfWhoSpokeFirst) {
  WebSocketConnection& connection = open();
  connection.send("last", MessageKind::Text);
  connection.close(4001, "enough");
  EXPECT_EQ(connection.send("late", MessageKind::Text), SendStatus::Closed);
  EXPECT_TRUE(client_events.closed.empty()) << "on_closed came from inside close()";
  ASSERT_TRUE(run_until_both_closed());
  ASSERT_EQ(server_events.messages.size(), 1U);
  EXPECT_EQ(client_events.closed[0].code, 4001);
  EXPECT_EQ(client_events.closed[0].initiator, CloseInitiator::Local);
  EXPECT_EQ(server_events.closed[0].code, 4001);
  EXPECT_EQ(server_events.closed[0].reason, "enough");
  EXPECT_EQ(server_events.closed[0].initiator, CloseInitiator::Peer);
  ASSERT_TRUE(run_until([&] { return server->connections() == 0 && client->connections() == 0; }));
}

INSTANTIATE_TEST_SUITE_P(Transport, Echo, ::testing::Bool(),
                         [](const auto& variant) { return variant.param ? "Tls" : "ClearText"; });

}  // namespace
}  // namespace windlass::testing
