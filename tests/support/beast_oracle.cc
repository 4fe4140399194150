#include "tests/support/beast_oracle.h"

#include <boost/asio/io_context.hpp>
#include <boost/beast/_experimental/test/stream.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket.hpp>
#include <utility>

#include "protocol/base/check.h"

namespace windlass::support {
namespace {

namespace beast = boost::beast;
using Stream = beast::websocket::stream<beast::test::stream, false>;

std::uint16_t two_bytes(std::string_view bytes, std::string_view key) {
  const auto byte = [&](std::size_t i) {
    return static_cast<unsigned>(static_cast<unsigned char>(bytes[i]) ^ static_cast<unsigned char>(key[i]));
  };
  return static_cast<std::uint16_t>(byte(0) << 8U | byte(1));
}

// The code of the close frame without reason that Beast sent last, read off the wire.
std::uint16_t sent_close_code(websocket::Side sender, std::string_view sent) {
  if (sender == websocket::Side::Server) {
    CHECK(sent.size() >= 4);
    const std::string_view frame = sent.substr(sent.size() - 4);
    CHECK(frame.substr(0, 2) == "\x88\x02");
    return two_bytes(frame.substr(2), std::string_view{"\0\0", 2});
  }
  CHECK(sent.size() >= 8);
  const std::string_view frame = sent.substr(sent.size() - 8);
  CHECK(frame.substr(0, 2) == "\x88\x82");
  return two_bytes(frame.substr(6), frame.substr(2, 2));
}

// Connects the two ends and lets them shake hands.
void open(boost::asio::io_context& loop, Stream& client, Stream& server) {
  client.next_layer().connect(server.next_layer());
  int opened = 0;
  const auto count = [&opened](beast::error_code failure) {
    CHECK(!failure);
    ++opened;
  };
  server.async_accept(count);
  client.async_handshake("oracle", "/", count);
  loop.restart();
  loop.run();
  CHECK(opened == 2);
}

}  // namespace

Outcome read_with_beast(websocket::Side side, std::string_view bytes, std::size_t message_bytes_max) {
  static boost::asio::io_context loop;  // making one costs system calls; fuzzing makes many runs
  Stream client{loop};
  Stream server{loop};
  open(loop, client, server);
  Stream& judged = side == websocket::Side::Client ? client : server;
  beast::test::stream& wire = (side == websocket::Side::Client ? server : client).next_layer();
  wire.clear();
  judged.next_layer().append({bytes.data(), bytes.size()});
  wire.close();

  Outcome outcome;
  judged.read_message_max(message_bytes_max);
  judged.control_callback([&outcome](beast::websocket::frame_type type, beast::string_view payload) {
    if (type == beast::websocket::frame_type::close) return;
    const bool ping = type == beast::websocket::frame_type::ping;
    outcome.events.push_back({ping ? Seen::Kind::Ping : Seen::Kind::Pong, {payload.data(), payload.size()}});
  });
  for (;;) {
    beast::flat_buffer message;
    beast::error_code failure;
    judged.read(message, failure);
    if (!failure) {
      const auto kind = judged.got_text() ? Seen::Kind::Text : Seen::Kind::Binary;
      outcome.events.push_back({kind, beast::buffers_to_string(message.data())});
    } else if (failure == beast::websocket::error::closed) {
      const auto& reason = judged.reason();
      const auto code = reason.code == beast::websocket::close_code::none
                            ? static_cast<std::uint16_t>(websocket::CloseCode::NoStatus)
                            : reason.code;
      outcome.events.push_back({Seen::Kind::Close, {reason.reason.data(), reason.reason.size()}, code});
      return outcome;
    } else if (failure == boost::asio::error::eof) {
      return outcome;
    } else {
      outcome.why = failure.message();
      outcome.failure = sent_close_code(side, {wire.str().data(), wire.str().size()});
      return outcome;
    }
  }
}

std::string beast_answer(std::string_view request) {
  boost::asio::io_context loop;
  Stream server{loop};
  beast::test::stream client{loop};
  client.connect(server.next_layer());
  server.next_layer().append({request.data(), request.size()});
  client.close();
  beast::error_code failure;
  server.accept(failure);
  return {client.str().data(), client.str().size()};
}

bool beast_takes_answer(const std::function<std::string(std::string request)>& answer) {
  boost::asio::io_context loop;
  Stream client{loop};
  beast::test::stream server{loop};
  server.connect(client.next_layer());
  bool taken = false;
  client.async_handshake("oracle", "/session", [&taken](beast::error_code failure) { taken = !failure; });
  loop.poll();
  client.next_layer().append(answer({server.str().data(), server.str().size()}));
  server.close();
  loop.restart();
  loop.run();
  return taken;
}

}  // namespace windlass::support
