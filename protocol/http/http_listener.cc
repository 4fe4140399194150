#include "protocol/http/http_listener.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "protocol/adapters/socket.h"
#include "protocol/http/http_connection.h"

namespace windlass {

Result<std::unique_ptr<HttpListener>> HttpListener::listen(EventLoop& loop, HttpListenerOptions options,
                                                           HttpHandler& handler) {
  auto address = numeric_address(options.address, options.port);
  if (!address) return address.error();
  if (options.tls == nullptr && !options.clear_text_anywhere && !address->is_loopback()) {
    return Error{ErrorCode::Internal, Blame::Local,
                 options.what + " in clear text on " + address->text() +
                     "; configure a certificate, listen on 127.0.0.1, or allow clear text explicitly"};
  }
  auto listener = listen_on(*address);
  if (!listener) return listener.error();
  return std::unique_ptr<HttpListener>{
      new HttpListener{loop, std::move(options), handler, std::move(*listener)}};
}

HttpListener::HttpListener(EventLoop& loop, HttpListenerOptions options, HttpHandler& handler,
                           Socket listener)
    : loop_(loop),
      options_(std::move(options)),
      handler_(handler),
      pause_(loop, *this),
      port_(local_address(listener.fd()).port()),
      listener_(std::make_unique<Readiness>(loop, std::move(listener), static_cast<ReadinessEvents&>(*this))),
      held_(std::make_shared<HttpHeld::Total>()) {
  held_->bytes_max = std::max(options_.bodies_bytes_max, options_.body_bytes_max);
  loop_.add_turn_end(TurnPhase::Reap, *this);
  listener_->wait_readable();
}

HttpListener::~HttpListener() {
  loop_.remove_turn_end(TurnPhase::Reap, *this);
}

void HttpListener::stop_listening() {
  listener_.reset();
  pause_.set(std::nullopt);
}

void HttpListener::on_readable() {
  for (std::size_t i = 0; i < limits::kAcceptsPerTurnMax; ++i) {
    if (!accept()) break;
  }
  if (!pause_.is_set()) listener_->wait_readable();
}

// False when nobody else can be accepted now.
bool HttpListener::accept() {
  Accepted accepted = accept_one(listener_->fd());
  if (!accepted.socket.is_open()) {
    if (accepted.error == EMFILE || accepted.error == ENFILE || accepted.error == ENOBUFS ||
        accepted.error == ENOMEM) {
      make_room();
      pause_.set(loop_.now().steady + limits::kAcceptPause);
      return false;
    }
    return accepted.error == ECONNABORTED || accepted.error == EINTR || accepted.error == EPROTO;
  }
  ++counters_.accepted;
  // The newest may be the operator: whoever fills the house without asking anything is older.
  const std::size_t open = connections_.size() - over_.size();
  if (open >= options_.connections_max && !make_room() &&
      open >= options_.connections_max + limits::kHttpSparePlaces) {
    return true;
  }

  SocketStream::Parts parts{std::move(accepted.socket), nullptr, {}};
  if (options_.tls != nullptr) {
    SslPointer ssl = options_.tls->accept();
    if (!ssl) return true;
    parts.tls = std::make_unique<TlsPump>(std::move(ssl));
  }
  const std::uint64_t id = next_id_++;
  const auto connection = std::make_shared<HttpConnection>(*this, id, std::move(parts), accepted.peer.text());
  connections_.emplace(id, connection);
  connection->begin();
  return true;
}

std::size_t HttpListener::busy() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(connections_, [](const auto& each) { return each.second->is_busy(); }));
}

// Ends the oldest connection that nobody owes an answer.
bool HttpListener::make_room() {
  for (const auto& [id, connection] : connections_) {
    if (!connection->is_idle_or_slow()) continue;
    connection->close();
    ++counters_.evicted;
    return true;
  }
  return false;
}

std::string_view HttpListener::date() {
  const std::int64_t at = std::chrono::floor<seconds>(loop_.now().wall).time_since_epoch().count();
  if (at != date_at_) {
    date_ = http_date(at);
    date_at_ = at;
  }
  return date_;
}

void HttpListener::on_timer() {
  if (listener_) listener_->wait_readable();
}

void HttpListener::on_turn_end(TurnPhase) {
  for (const std::uint64_t id : over_) connections_.erase(id);
  over_.clear();
}

const AccessToken* HttpListener::find_token(std::string_view token) const {
  const Digest digest = sha256(token);
  const AccessToken* found = nullptr;
  // All are compared, so that the time taken tells nothing of which one it was.
  for (const AccessToken& each : options_.tokens) {
    if (constant_time_equal(view_of(each.sha256), view_of(digest))) found = &each;
  }
  return found != nullptr && found->expires && *found->expires <= loop_.now().wall ? nullptr : found;
}

}  // namespace windlass
