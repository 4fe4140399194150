#include "protocol/adapters/connection_table.h"

#include <malloc.h>

#include <algorithm>
#include <utility>

#include "protocol/base/check.h"
#include "protocol/base/limits.h"

namespace windlass {

ConnectionTable::ConnectionTable(EventLoop& loop, ConnectionEvents& events) : loop_(loop), events_(events) {
  loop_.add_turn_end(TurnPhase::Write, *this);
  loop_.add_turn_end(TurnPhase::Reap, *this);
}

ConnectionTable::~ConnectionTable() {
  loop_.remove_turn_end(TurnPhase::Write, *this);
  loop_.remove_turn_end(TurnPhase::Reap, *this);
}

WebSocketConnection& ConnectionTable::add(WebSocketConnection::Start start,
                                          const ConnectionOptions& options) {
  const ConnectionId id = start.id;
  auto [at, fresh] =
      connections_.emplace(id, std::make_unique<WebSocketConnection>(std::move(start), options, *this));
  CHECK(fresh);
  while (!opening_order_.empty()) {
    const WebSocketConnection* const oldest = find(opening_order_.front().id);
    if (oldest != nullptr && oldest->is_opening()) break;
    opening_order_.pop_front();
  }
  opening_order_.push_back({id, loop_.now().steady});
  ++opening_count_;
  at->second->start();
  return *at->second;
}

void ConnectionTable::attach(std::unique_ptr<DetachedConnection> detached, const ConnectionOptions& options) {
  const ConnectionId id = detached->id;
  const bool fresh =
      connections_.emplace(id, std::make_unique<WebSocketConnection>(std::move(detached), options, *this))
          .second;
  CHECK(fresh);
  arrived_.push_back(id);
  loop_.turn_again();
}

WebSocketConnection* ConnectionTable::find(ConnectionId id) {
  const auto at = connections_.find(id);
  return at == connections_.end() ? nullptr : at->second.get();
}

std::size_t ConnectionTable::handshaking() {
  const Instant now = loop_.now().steady;
  std::size_t count = 0;
  for (auto at = opening_order_.rbegin(); at != opening_order_.rend(); ++at) {
    const Duration age = now - at->since;
    if (age >= limits::kHandshakePace) break;
    const WebSocketConnection* const connection = find(at->id);
    if (connection == nullptr || !connection->is_opening()) continue;
    if (age < limits::kSilencePace || connection->was_answered()) ++count;
  }
  return count;
}

bool ConnectionTable::drop_opening() {
  const Instant patient_since = loop_.now().steady - limits::kHandshakePatience;
  for (auto at = opening_order_.begin(); at != opening_order_.end();) {
    WebSocketConnection* const connection = find(at->id);
    if (connection == nullptr || !connection->is_opening()) {
      at = opening_order_.erase(at);
      continue;
    }
    if (!connection->was_answered() || at->since <= patient_since) {
      opening_order_.erase(at);
      connection->abandon("too many connections are opening");
      return true;
    }
    ++at;
  }
  return false;
}

void ConnectionTable::close_all(std::uint16_t code, std::string_view reason) {
  for (const auto& [id, connection] : connections_) {
    if (connection->is_opening()) {
      connection->abandon(reason);
    } else {
      connection->close(code, reason);
    }
  }
}

void ConnectionTable::opening_done() {
  CHECK(opening_count_ > 0);
  --opening_count_;
  ++opened_;
}

void ConnectionTable::opening_failed(OpeningFailure failure) {
  CHECK(opening_count_ > 0);
  --opening_count_;
  ++failed_opening_[static_cast<std::size_t>(failure)];
}

void ConnectionTable::on_turn_end(TurnPhase phase) {
  if (phase == TurnPhase::Write) return write();
  begin_arrived();
  reap();
}

void ConnectionTable::write() {
  for (WebSocketConnection* const connection : corked_) connection->flush();
  corked_.clear();
}

void ConnectionTable::begin_arrived() {
  if (arrived_.empty()) return;
  loop_.turn_again();
  for (const ConnectionId id : std::exchange(arrived_, {})) {
    if (WebSocketConnection* const connection = find(id)) connection->start();
  }
}

// Whoever is told of an end may cause others, so the list may grow while it is read.
void ConnectionTable::reap() {
  if (changed_.empty()) return;
  loop_.turn_again();
  for (std::size_t i = 0; i < changed_.size(); ++i) {
    WebSocketConnection& connection = *changed_[i];
    if (!connection.take_report()) continue;
    events_.on_closed(connection.id(), connection.facts());
  }
  std::vector<WebSocketConnection*> ended;
  std::copy_if(changed_.begin(), changed_.end(), std::back_inserter(ended),
               [](const WebSocketConnection* connection) { return connection->is_ended(); });
  changed_.clear();
  std::sort(ended.begin(), ended.end());
  ended.erase(std::unique(ended.begin(), ended.end()), ended.end());
  peak_ = std::max(peak_, connections_.size());
  for (WebSocketConnection* const connection : ended) destroy(*connection);
  trim();
}

// The allocator keeps what it gets back, some 50 KiB for each that was in its TLS handshake: after a flood of
// strangers the process would stay as large as it ever was. Asked for each time that half have gone, which is
// rare.
void ConnectionTable::trim() {
  const std::size_t gone = peak_ - connections_.size();
  if (gone < limits::kTrimConnections || gone < peak_ / 2) return;
  peak_ = connections_.size();
  static_cast<void>(::malloc_trim(0));
}

void ConnectionTable::destroy(WebSocketConnection& connection) {
  if (connection.is_corked()) std::erase(corked_, &connection);
  connections_.erase(connection.id());
}

}  // namespace windlass
