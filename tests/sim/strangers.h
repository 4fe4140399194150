// Connections that do not play by the rules: noise, half a handshake, somebody else's identity, too much at
// once. The fleet's sessions must not notice.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "protocol/messages/frame.h"
#include "tests/sim/network.h"
#include "tests/sim/session_checker.h"

namespace windlass::sim {

class Stranger final : public SocketEvents {
 public:
  Stranger(Context& context, Network& network) : context_(context), network_(network) {}

  void attack();
  // Resumes somebody's session with a token that was replaced; it must not work.
  void use(const StolenToken& stolen, std::string_view bearer);

  void on_message(Socket& socket, BytesView message, MessageKind kind) override;
  void on_input_used(Socket&) override {}
  void on_writable(Socket&) override {}
  void on_closed(Socket&, std::uint16_t, std::string_view) override { socket_ = nullptr; }
  Duration asleep_until() const override { return Duration{}; }

 private:
  void connect();
  void say(const Frame& frame);
  void resume();
  void say_text(std::string_view text);
  bool is_accept(BytesView message) const;
  std::string noise(std::size_t bytes_max);
  Frame frame();
  void send_handshake(std::uint64_t protocol, std::string_view bearer);
  void misbehave();
  void overrun();

  Context& context_;
  Network& network_;
  Socket* socket_ = nullptr;
  std::string tenant_ = "acme";
  std::string instance_ = "i-stranger";
  Revision revision_ = Revision::Two;
  std::optional<StolenToken> stolen_;
  bool registers_ = false;
  std::optional<std::uint64_t> habit_;  // the rule that it breaks
  int answers_ = 0;
  int violations_ = 0;
  Seq next_seq_ = 0;
};

}  // namespace windlass::sim
