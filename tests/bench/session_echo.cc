#include "tests/bench/session_echo.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "protocol/base/check.h"

namespace windlass::bench {

SessionEcho::SessionEcho(const TlsContext& tls, SessionConfig config)
    : config_(config),
      tokens_(TokenAuthority::with_keys({{"k1", std::string(32, 'k')}}).value()),
      endpoint_({.scheduler_id = "bench"}, config_, admission_, tokens_, 1),
      alarm_(loop_, [this] { driver_.on_alarm(); }),
      driver_(endpoint_, decoder_, loop_.clock(), alarm_) {
  ServerOptions options;
  options.tls = &tls;
  options.rules.paths = {"/v1"};
  auto made = WebSocketServer::listen(loop_, options, *this);
  CHECK(made.has_value());
  server_ = std::move(*made);
  loop_.add_turn_end(TurnPhase::Decide, *this);
}

SessionEcho::~SessionEcho() {
  loop_.remove_turn_end(TurnPhase::Decide, *this);
}

void SessionEcho::on_opened(ConnectionId id, WebSocketConnection& connection) {
  driver_.on_opened(id, connection, {connection.peer().address, {}, {}, {}});
}

void SessionEcho::on_message(ConnectionId id, BytesView message, MessageKind kind) {
  driver_.on_message(id, message, kind);
  poll_events();
}

void SessionEcho::on_turn_end(TurnPhase /*phase*/) {
  poll_events();
  driver_.flush();
  poll_events();
}

void SessionEcho::poll_events() {
  while (auto event = driver_.poll_event()) {
    if (const auto* delivered = std::get_if<Delivered>(&event->event)) answer(event->session, *delivered);
    // A load client that breaks a rule would be measured doing nothing.
    CHECK(!std::holds_alternative<Refused>(event->event));
    if (std::holds_alternative<Established>(event->event)) established_.push_back(loop_.now().steady);
  }
}

void SessionEcho::answer(SessionHandle session, const Delivered& delivered) {
  const Now now = loop_.now();
  endpoint_.own(session, delivered.seq + 1, now);
  char id[24] = "r";
  const char* const end = std::to_chars(id + 1, id + sizeof id, ++answers_).ptr;
  Message echo{{.type = "biz.echo",
                .id = {id, static_cast<std::size_t>(end - id)},
                .payload = delivered.message.payload(),
                .corr = delivered.message.id()}};
  const auto sent = endpoint_.send(session, std::move(echo), now);
  if (sent) return;
  std::fprintf(stderr, "an answer cannot be sent: %s\n", sent.error().reason.c_str());
  std::abort();
}

}  // namespace windlass::bench
