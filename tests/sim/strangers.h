// Connections that do not play by the rules: noise, half a handshake, somebody else's identity, too much at
// once. The fleet's sessions must not notice.
#pragma once

#include <string>

#include "protocol/messages/frame.h"
#include "tests/sim/network.h"

namespace windlass::sim {

class Stranger final : public SocketEvents {
 public:
  Stranger(Context& context, Network& network) : context_(context), network_(network) {}

  void attack();

  void on_message(Socket& socket, BytesView message, MessageKind kind) override;
  void on_input_used(Socket&) override {}
  void on_writable(Socket&) override {}
  void on_closed(Socket&, std::uint16_t, std::string_view) override { socket_ = nullptr; }
  Duration asleep_until() const override { return Duration{}; }

 private:
  void say(const Frame& frame, Revision revision = Revision::Two);
  void say_text(std::string_view text);
  std::string noise(std::size_t bytes_max);
  Frame frame();
  void send_handshake(std::uint64_t protocol, std::string_view bearer);
  void misbehave();

  Context& context_;
  Network& network_;
  Socket* socket_ = nullptr;
  std::string tenant_ = "acme";
  std::string instance_ = "i-stranger";
  bool registers_ = false;
  int answers_ = 0;
};

}  // namespace windlass::sim
