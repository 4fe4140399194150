#include "protocol/adapters/websocket_server.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "protocol/base/limits.h"

namespace windlass {

Result<std::unique_ptr<WebSocketServer>> WebSocketServer::listen(EventLoop& loop, ServerOptions options,
                                                                 ConnectionEvents& events) {
  auto address = numeric_address(options.address, options.port);
  if (!address) return address.error();
  if (options.tls == nullptr && !options.clear_text_anywhere && !address->is_loopback()) {
    return Error{ErrorCode::Internal, Blame::Local,
                 "clear text on " + address->text() +
                     " would show every token to the network; configure a certificate, listen on 127.0.0.1, "
                     "or allow clear text explicitly"};
  }
  auto listener = listen_on(*address, options.loop_index == 0 ? PortUse::First : PortUse::Joins);
  if (!listener) return listener.error();
  return std::unique_ptr<WebSocketServer>{
      new WebSocketServer{loop, std::move(options), events, std::move(*listener)}};
}

WebSocketServer::WebSocketServer(EventLoop& loop, ServerOptions options, ConnectionEvents& events,
                                 Socket listener)
    : loop_(loop),
      options_(std::move(options)),
      gate_{std::move(options_.rules)},
      table_(loop, events),
      pause_(loop, *this),
      port_(local_address(listener.fd()).port()),
      next_id_((static_cast<std::uint64_t>(options_.loop_index) << 48U) + 1),
      listener_(
          std::make_unique<Readiness>(loop, std::move(listener), static_cast<ReadinessEvents&>(*this))) {
  listener_->wait_readable();
}

WebSocketServer::~WebSocketServer() = default;

void WebSocketServer::drain(Duration retry_after) {
  gate_.retry_after = retry_after;
}

void WebSocketServer::stop_listening() {
  listener_.reset();
  pause_.set(std::nullopt);
}

void WebSocketServer::attach(std::unique_ptr<DetachedConnection> detached) {
  table_.attach(std::move(detached), options_.connection);
}

ServerCounters WebSocketServer::counters() const {
  ServerCounters counters;
  counters.accepted = accepted_;
  counters.opened = table_.opened();
  counters.failed_opening = table_.failed_opening();
  counters.failed_opening[static_cast<std::size_t>(OpeningFailure::Full)] = refused_full_;
  return counters;
}

// In a storm whoever waits is better off in the kernel's queue: it costs nothing there, and its first words
// are at hand when its turn comes.
void WebSocketServer::on_readable() {
  const std::size_t under_way = table_.handshaking();
  const std::size_t room = limits::kHandshakesAtOnce - std::min(limits::kHandshakesAtOnce, under_way);
  for (std::size_t i = 0; i < std::min(room, limits::kAcceptsPerTurnMax); ++i) {
    if (!accept()) break;
  }
  if (room == 0) pause_.set(loop_.now().steady + limits::kAcceptBreath);
  if (!pause_.is_set()) listener_->wait_readable();
}

// False when nobody else can be accepted now.
bool WebSocketServer::accept() {
  // Whoever waits to be accepted may be the good one, and half-open connections that fill the house are the
  // others.
  const bool is_full = table_.opening() >= options_.opening_max;
  if (is_full && !is_readable(listener_->fd())) return false;
  if (is_full && !table_.drop_opening()) {
    pause_.set(loop_.now().steady + limits::kAcceptBreath);
    return false;
  }
  Accepted accepted = accept_one(listener_->fd());
  if (!accepted.socket.is_open()) {
    if (accepted.error == EMFILE || accepted.error == ENFILE || accepted.error == ENOBUFS ||
        accepted.error == ENOMEM) {
      // Without descriptors the kernel says so whether or not anybody waits.
      if (!is_readable(listener_->fd())) return false;
      // Accepting again at once would only fail again. The older half of those that are still opening makes
      // room, at this turn's end: the younger ones may just not have been heard yet. Where there are none,
      // somebody else must.
      const std::size_t most = std::min(limits::kAcceptsPerTurnMax, (table_.opening() + 1) / 2);
      std::size_t dropped = 0;
      while (dropped < most && table_.drop_opening()) ++dropped;
      if (dropped == 0) pause_.set(loop_.now().steady + limits::kAcceptPause);
      return false;
    }
    return accepted.error == ECONNABORTED || accepted.error == EINTR || accepted.error == EPROTO;
  }
  ++accepted_;
  if (table_.size() >= options_.connections_max && !table_.drop_opening()) {
    ++refused_full_;
    return true;
  }
  end_when_silent(accepted.socket.fd(), options_.connection.dead_link_after);
  SocketStream::Parts parts{std::move(accepted.socket), nullptr, {}};
  if (options_.tls != nullptr) {
    SslPointer ssl = options_.tls->accept();
    if (!ssl) return true;
    parts.tls = std::make_unique<TlsPump>(std::move(ssl));
  }
  table_.add({ConnectionId{next_id_++}, websocket::Side::Server, std::move(parts),
              std::make_unique<ServerOpening>(gate_), PeerInfo{accepted.peer.text(), {}, {}, {}}},
             options_.connection);
  return true;
}

void WebSocketServer::on_timer() {
  if (listener_) listener_->wait_readable();
}

}  // namespace windlass
