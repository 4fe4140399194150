// What a peer of our server may put on the wire, byte by byte, and what it may not.
#include <gtest/gtest.h>

#include "protocol/websocket/writer.h"
#include "tests/integration/protocol/adapters/transport_world.h"
#include "tests/support/raw_peer.h"

namespace windlass::testing {
namespace {

using websocket::CloseCode;
using websocket::Opcode;

constexpr auto kKey = websocket::MaskKey::from(0xA1B2C3D4);

Bytes frame(Opcode opcode, BytesView payload, bool final = true) {
  Bytes out;
  websocket::append_frame({.opcode = opcode, .final = final, .mask = kKey}, payload, out);
  return out;
}

Bytes close_frame(CloseCode code, BytesView reason = {}) {
  Bytes out;
  websocket::append_close(code, reason, std::nullopt, out);
  return out;
}

class Frames : public TransportWorld, public ::testing::WithParamInterface<bool> {
 protected:
  Frames() {
    if (GetParam()) use_tls();
    server_events.echo();
  }

  // Connects and upgrades; `received` is then empty.
  RawPeer& upgraded() {
    start_server();
    peer_ = std::make_unique<RawPeer>(loop, server->port(), client_tls.get());
    EXPECT_TRUE(run_until([&] { return peer_->is_ready(); }));
    peer_->send(*websocket::upgrade_request({"127.0.0.1", "/v1"}, {}));
    EXPECT_TRUE(run_until([&] { return peer_->received.ends_with("\r\n\r\n"); }));
    EXPECT_TRUE(peer_->received.starts_with("HTTP/1.1 101 "));
    peer_->received.clear();
    return *peer_;
  }
  bool receives(const Bytes& expected) {
    return run_until([&] { return peer_->received.size() >= expected.size(); }) &&
           peer_->received == expected;
  }

 private:
  std::unique_ptr<RawPeer> peer_;
};

TEST_P(Frames, AFragmentedMessageArrivesWholeAndAPingAmongItsPartsIsAnsweredFirst) {
  RawPeer& peer = upgraded();
  peer.send(frame(Opcode::Text, "one ", false));
  peer.send(frame(Opcode::Ping, "are you there"));
  Bytes pong;
  websocket::append_pong("are you there", std::nullopt, pong);
  ASSERT_TRUE(receives(pong));
  EXPECT_TRUE(server_events.messages.empty());
  peer.received.clear();
  peer.send(frame(Opcode::Continuation, "message", false));
  peer.send(frame(Opcode::Continuation, ""));
  Bytes echo;
  websocket::append_text("one message", std::nullopt, echo);
  EXPECT_TRUE(receives(echo));
}

TEST_P(Frames, InputCutAtEveryByteReadsTheSame) {
  RawPeer& peer = upgraded();
  const Bytes bytes = frame(Opcode::Text, std::string(200, 'x')) + frame(Opcode::Binary, "tail");
  for (const char byte : bytes) {
    peer.send({&byte, 1});
    const std::size_t idle = server_events.idle_count;
    ASSERT_TRUE(run_until([&] { return server_events.idle_count > idle; }));
  }
  ASSERT_EQ(server_events.messages.size(), 2U);
  EXPECT_EQ(server_events.messages[0].text, std::string(200, 'x'));
  EXPECT_EQ(server_events.messages[1].text, "tail");
}

TEST_P(Frames, AMessageThatIsTooLargeIsRefusedFromItsHeader) {
  server_options.connection.message_bytes_max = 1000;
  RawPeer& peer = upgraded();
  Bytes header;
  websocket::append_header({.opcode = Opcode::Binary, .mask = kKey, .length = 1001}, 0, header);
  peer.send(header);
  //= TRN-5
  ASSERT_TRUE(receives(close_frame(CloseCode::TooBig, "message is larger than allowed")));
  ASSERT_EQ(server_events.closed.size(), 1U);
  EXPECT_EQ(server_events.closed[0].code, 1009);
  EXPECT_EQ(server_events.closed[0].initiator, CloseInitiator::Local);
  // The end comes after the frame, not instead of it, though the peer goes on sending.
  peer.send(std::string(1001, 'x'));
  ASSERT_TRUE(run_until([&] { return peer.ended; }));
}

TEST_P(Frames, ALimitRaisedWhileAMessageIsHandledCountsForTheNext) {
  server_options.connection.message_bytes_max = 100;
  server_events.when_message = [](WebSocketConnection& connection, BytesView message, MessageKind kind) {
    connection.set_message_bytes_max(1000);
    connection.send(message, kind);
  };
  RawPeer& peer = upgraded();
  peer.send(frame(Opcode::Text, std::string(100, 'a')) + frame(Opcode::Text, std::string(1000, 'b')));
  ASSERT_TRUE(run_until([&] { return server_events.messages.size() == 2; }));
}

TEST_P(Frames, WhatIsNotWebSocketIsClosedWithItsCode) {
  struct Wrong {
    Bytes bytes;
    CloseCode code;
    const char* reason;
  };
  Bytes unmasked;
  websocket::append_text("hello", std::nullopt, unmasked);
  Bytes reserved;
  websocket::append_frame({.opcode = Opcode::Text, .reserved_bits = 4, .mask = kKey}, "hello", reserved);
  const Wrong wrongs[] = {
      {unmasked, CloseCode::ProtocolError, "client frame is not masked"},
      {reserved, CloseCode::ProtocolError, "reserved bits are set"},
      {frame(Opcode::Text, "\xC0\xAF"), CloseCode::InvalidPayload, "text is not UTF-8"},
      {frame(Opcode::Continuation, "x"), CloseCode::ProtocolError,
       "continuation without a message to continue"},
  };
  for (const Wrong& wrong : wrongs) {
    SCOPED_TRACE(wrong.reason);
    RawPeer& peer = upgraded();
    peer.send(wrong.bytes);
    EXPECT_TRUE(receives(close_frame(wrong.code, wrong.reason)));
    ASSERT_TRUE(run_until([&] { return peer.ended; }));
  }
}

TEST_P(Frames, AnEmptyCloseIsAnsweredWithOneAndReportedAsSuch) {
  RawPeer& peer = upgraded();
  peer.send(frame(Opcode::Close, {}));
  ASSERT_TRUE(receives(close_frame(CloseCode::NoStatus)));
  ASSERT_TRUE(run_until([&] { return peer.ended; }));
  ASSERT_EQ(server_events.closed.size(), 1U);
  EXPECT_EQ(server_events.closed[0].code, 1005);
  EXPECT_EQ(server_events.closed[0].initiator, CloseInitiator::Peer);
}

TEST_P(Frames, MessagesAfterOurCloseAreNotDelivered) {
  server_events.when_message = [](WebSocketConnection& connection, BytesView, MessageKind) {
    connection.close(1000, "done");
  };
  RawPeer& peer = upgraded();
  peer.send(frame(Opcode::Text, "first") + frame(Opcode::Text, "second"));
  ASSERT_TRUE(receives(close_frame(CloseCode::Normal, "done")));
  EXPECT_EQ(server_events.messages.size(), 1U);
  EXPECT_TRUE(server_events.closed.empty()) << "the peer has not answered yet";
  peer.send(frame(Opcode::Close, {}));
  ASSERT_TRUE(run_until([&] { return peer.ended && !server_events.closed.empty(); }));
  EXPECT_EQ(server_events.closed[0].code, 1000);
}

TEST_P(Frames, APeerThatHangsUpWithoutAWordIsReportedAsAbnormal) {
  RawPeer& peer = upgraded();
  peer.finish();
  ASSERT_TRUE(run_until([&] { return !server_events.closed.empty(); }));
  EXPECT_EQ(server_events.closed[0].code, 1006);
  EXPECT_EQ(server_events.closed[0].initiator, CloseInitiator::Network);
}

INSTANTIATE_TEST_SUITE_P(Transport, Frames, ::testing::Bool(),
                         [](const auto& variant) { return variant.param ? "Tls" : "ClearText"; });

}  // namespace
}  // namespace windlass::testing
