#include "protocol/session/scheduler_endpoint.h"

#include <algorithm>
#include <utility>

#include "protocol/base/check.h"
#include "protocol/base/mutant.h"
#include "protocol/session/scheduler_records.h"

namespace windlass {

SchedulerEndpoint::SchedulerEndpoint(SchedulerOptions options, const SessionConfig& config,
                                     const Admission& admission, TokenAuthority& tokens, std::uint64_t seed)
    : options_(std::move(options)), config_(config), admission_(admission), tokens_(tokens), random_(seed) {}

SchedulerEndpoint::~SchedulerEndpoint() {
  connections_.for_each([this](Connection& connection) { timers_.clear(connection.timed.node); });
  records_.for_each([this](Record& record) { timers_.clear(record.timed.node); });
}

void SchedulerEndpoint::handle_opened(ConnectionId id, PeerFacts peer, Now now) {
  Connection& fresh = connections_.insert(id, std::make_unique<Connection>(id, std::move(peer)));
  CHECK(fresh.lifecycle.apply(SessionTrigger::ChannelOpened));
  fresh.number = ++opened_;
  ++pending_;
  //= HSK-10
  timers_.set(fresh.timed.node, now.steady + config_.handshake_stage);
  unproved_.push_back(id);
  // The newest may be the good one: silent connections that fill the house are the older ones.
  //= LIM-5
  Connection* const oldest = oldest_unproved();
  if (pending_ > config_.pending_handshakes_max) {
    refuse(*oldest, ErrorCode::LimitCapacity, "too many connections are waiting for their accept",
           config_.handshake_stage);
  }
}

// Never none just after a connection opened: that one is without a handshake.
SchedulerEndpoint::Connection* SchedulerEndpoint::oldest_unproved() {
  while (!unproved_.empty()) {
    Connection* const oldest = connections_.find(unproved_.front());
    const bool waits =
        oldest != nullptr && oldest->pending && oldest->lifecycle.state() == SessionState::Handshaking;
    if (waits) return oldest;
    unproved_.drop_front();
  }
  return nullptr;
}

void SchedulerEndpoint::end_pending(Connection& connection) {
  if (std::exchange(connection.pending, false)) --pending_;
  connection.waiting.release();
}

void SchedulerEndpoint::handle_frame(ConnectionId id, const Frame& frame, Now now) {
  Connection* const connection = connections_.find(id);
  if (connection == nullptr) return;
  const bool is_over = connection->closed || connection->close;
  if (is_over && !(connection->accepted && MUTANT(fence_hears_old_connection))) return;
  if (!connection->accepted) {
    asked_ = {frame.sender_id, type_of(frame), frame.id, std::holds_alternative<Resume>(frame.body)};
    handle_before_accept(*connection, frame, now);
    asked_ = {};
    return;
  }
  Record* const record = heard_on(*connection);
  if (record == nullptr) return;
  if (!record->accepts.empty()) {
    if (const auto* ack = std::get_if<Ack>(&frame.body); ack != nullptr && ack->ok)
      note_proof(*record, ack->for_id);
  }
  record->session.handle_frame(frame, now);
  settle(*record);
}

//= TOK-2
void SchedulerEndpoint::note_proof(Record& record, std::string_view accept_frame_id) {
  const auto found = std::ranges::find(record.accepts, accept_frame_id, &Record::SentAccept::frame_id);
  if (found == record.accepts.end()) return;
  record.token_gen_proved = std::max(record.token_gen_proved, found->token_gen);
  record.accepts.erase(record.accepts.begin(), found + 1);
  if (record.accepts.empty()) record.accepts.shrink_to_fit();
}

void SchedulerEndpoint::handle_bad_frame(ConnectionId id, const BadFrame& bad, Now now) {
  Connection* const connection = connections_.find(id);
  if (connection == nullptr || connection->closed || connection->close) return;
  if (!connection->accepted) {
    ++counters_.violations_before_accept;
    asked_ = {{}, bad.frame_type, bad.frame_id, false, true};
    //= LIM-3
    refuse(*connection, bad.code, bad.info);
    asked_ = {};
    return;
  }
  Record* const record = connection->record;
  if (record == nullptr) return;
  record->session.handle_bad_frame(bad, now);
  settle(*record);
}

void SchedulerEndpoint::handle_closed(ConnectionId id, Now now) {
  Connection* const found = connections_.find(id);
  if (found == nullptr) return;
  Connection& connection = *found;
  //= FEN-1
  Record* const record =
      MUTANT(fence_heeds_old_close) ? records_.find(connection.session) : connection.record;
  timers_.clear(connection.timed.node);
  end_pending(connection);
  if (record != nullptr) unlink(*record);
  connections_.erase(id);
  if (record == nullptr) return;
  detach(*record, now);
}

void SchedulerEndpoint::detach(Record& record, Now now) {
  record.session.disconnect(now);
  //= RES-1
  record.expire_at = now.steady + config_.resume_ttl;
  const SessionIdentity& identity = record.session.identity();
  if (!record.session.is_ended()) detached_.add(identity.tenant, record.handle);
  settle(record);
}

void SchedulerEndpoint::handle_timeout(Now now) {
  while (Timed* const due = timers_.pop_due(now.steady)) {
    if (due->record != nullptr) {
      run(*due->record, now);
    } else if (!due->connection->accepted && !due->connection->close && !due->connection->closed) {
      //= HSK-10
      refuse(*due->connection, ErrorCode::Timeout, "the stage's deadline passed");
    }
  }
}

void SchedulerEndpoint::run(Record& record, Now now) {
  const auto is_due = [&](std::optional<Instant>& at) {
    if (!at || *at > now.steady) return false;
    at.reset();
    return true;
  };
  if (is_due(record.restart_at)) {
    //= DRN-6
    record.session.reset(ErrorCode::SessionRestarting, "service restart", now,
                         random_.below(restart_window_ + Duration{1}));
  }
  if (is_due(record.rotate_at)) static_cast<void>(rotate_token(record.handle, now));
  const auto expire_at = record.expire_at;
  if (is_due(record.expire_at)) {
    // One that comes late was not waited for: this machine stood still, and the worker had no chance.
    //= LIV-6
    if (now.steady - *expire_at >= config_.clock_jump) {
      record.expire_at = now.steady + config_.resume_ttl;
      return settle(record);
    }
    record.session.end(ErrorCode::SessionStaleBinding, "the resume window passed", Blame::Local);
  }
  record.session.handle_timeout(now);
  settle(record);
}

std::optional<Instant> SchedulerEndpoint::next_of(const Record& record) const {
  if (record.session.is_ended()) return std::nullopt;
  std::optional<Instant> next = record.session.poll_timeout();
  for (const auto& at : {record.rotate_at, record.expire_at, record.restart_at}) {
    if (at && (!next || *at < *next)) next = at;
  }
  return next;
}

void SchedulerEndpoint::handle_idle(ConnectionId id) {
  Connection* const connection = connections_.find(id);
  if (connection == nullptr || connection->record == nullptr) return;
  connection->record->session.handle_idle();
  mark_dirty(*connection);
}

void SchedulerEndpoint::set_transport_busy(ConnectionId id, bool busy, Now now) {
  Connection* const connection = connections_.find(id);
  if (connection == nullptr) return;
  connection->busy = busy;
  if (Record* const record = connection->record) {
    record->session.set_transport_busy(busy, now);
    settle(*record);
  }
  if (!busy) mark_dirty(*connection);
}

Result<Seq> SchedulerEndpoint::send(SessionHandle session, Message&& message, Now now) {
  Record* const record = records_.find(session);
  if (record == nullptr || record->session.is_ended()) {
    return Error{ErrorCode::SessionStaleBinding, Blame::Local,
                 "the session is over; use the worker's next one"};
  }
  auto sent = record->session.send(std::move(message), now);
  settle(*record);
  return sent;
}

void SchedulerEndpoint::own(SessionHandle session, Seq next, Now now) {
  Record* const record = records_.find(session);
  if (record == nullptr) return;
  record->session.own(next, now);
  settle(*record);
}

void SchedulerEndpoint::set_receive_credit(SessionHandle session, Credit credit, Now now) {
  Record* const record = records_.find(session);
  if (record == nullptr) return;
  record->session.set_receive_credit(credit, now);
  settle(*record);
}

bool SchedulerEndpoint::drain(SessionHandle session, std::string_view reason, Duration deadline, Now now) {
  Record* const record = records_.find(session);
  if (record == nullptr || record->session.is_ended()) return false;
  record->session.drain(reason, deadline, now);
  settle(*record);
  return true;
}

bool SchedulerEndpoint::reset(SessionHandle session, ErrorCode code, std::string_view reason, Now now) {
  Record* const record = records_.find(session);
  if (record == nullptr || record->session.is_ended()) return false;
  record->session.reset(code, reason, now);
  settle(*record);
  return true;
}

bool SchedulerEndpoint::rotate_token(SessionHandle session, Now now) {
  Record* const record = records_.find(session);
  if (record == nullptr || record->session.is_ended()) return false;
  Connection* const connection = record->connection;
  if (connection == nullptr) return false;
  record->rotate_at = now.steady + config_.token_rotation;
  // While a greeting waits to be sent, so does the newest token.
  //= TOK-6
  if (!connection->is_greeting()) send_accept(*connection, *record, true, now);
  settle(*record);
  return true;
}

void SchedulerEndpoint::revoke(std::string_view tenant, std::string_view instance_id, Now now) {
  //= TOK-7
  tokens_.revoke(tenant, instance_id, now.wall);
  if (const auto handle = find(tenant, instance_id)) {
    reset(*handle, ErrorCode::AuthInvalidToken, "the worker was revoked", now);
  }
}

void SchedulerEndpoint::drain_all(Duration window_max, Now now) {
  restarting_ = true;
  //= DRN-6
  const Duration window =
      std::min(window_max, limits::kRestartPace * static_cast<Duration::rep>(by_instance_.size()));
  restart_window_ = window;
  for (auto& [key, record] : by_instance_) {
    //= DRN-6
    record->restart_at = now.steady + random_.below(window + Duration{1});
    timers_.set(record->timed.node, next_of(*record));
  }
}

// Once per turn of a session with a connection, when its frames have left, and not after every call.
void SchedulerEndpoint::note_standing(Record& record) {
  const StreamCounters& stream = record.session.stream().counters();
  const auto add = [](std::uint64_t& total, std::uint64_t& counted, std::uint64_t now) {
    total += now - std::exchange(counted, now);
  };
  add(counters_.duplicates, record.duplicates, stream.duplicates);
  add(counters_.retransmits, record.retransmits, stream.retransmits);
  add(counters_.spurious_retransmits, record.spurious_retransmits, stream.spurious_retransmits);
  add(counters_.outside_window, record.outside_window, stream.outside_window);
  timers_.set(record.timed.node, next_of(record));
}

void SchedulerEndpoint::settle(Record& record) {
  while (auto event = record.session.poll_event()) {
    if (auto* registered = std::get_if<Registered>(&*event)) complete_profile(record, *registered);
    events_.push_back({record.handle, std::move(*event)});
  }
  if (record.connection != nullptr) mark_dirty(*record.connection);
  if (record.session.is_ended()) unbind(record);
  if (record.connection != nullptr) return;
  note_standing(record);
  if (record.session.is_ended()) erase(record);
}

//= HSK-8
void SchedulerEndpoint::complete_profile(Record& record, Registered& registered) {
  auto profile = std::make_shared<WorkerProfile>(*registered.profile);
  profile->worker_name = record.profile->worker_name;
  profile->version = record.profile->version;
  profile->hostname = record.profile->hostname;
  record.profile = registered.profile = std::move(profile);
}

void SchedulerEndpoint::unbind(Record& record) {
  if (!std::exchange(record.bound, false)) return;
  const SessionIdentity& identity = record.session.identity();
  by_session_id_.erase(identity.session_id);
  by_instance_.erase({identity.tenant, identity.peer_id});
  detached_.remove(identity.tenant, record.handle);
  record.place.release();
}

void SchedulerEndpoint::erase(Record& record) {
  timers_.clear(record.timed.node);
  records_.erase(record.handle);
}

void SchedulerEndpoint::bind(Connection& connection, Record& record) {
  CHECK(record.connection == nullptr);
  record.connection = &connection;
  record.connection_number = connection.number;
  connection.record = &record;
  record.accepts.clear();
  record.expire_at.reset();
  connection.session = record.handle;
  connection.accepted = true;
  end_pending(connection);
  timers_.clear(connection.timed.node);
  const SessionIdentity& identity = record.session.identity();
  detached_.remove(identity.tenant, record.handle);
  by_session_id_.emplace(identity.session_id, &record);
  by_instance_.emplace(TextPairView{identity.tenant, identity.peer_id}, &record);
}

void SchedulerEndpoint::unlink(Record& record) {
  if (record.connection != nullptr) record.connection->record = nullptr;
  record.connection = nullptr;
}

void SchedulerEndpoint::mark_dirty(Connection& connection) {
  if (connection.closed || std::exchange(connection.dirty, true)) return;
  dirty_.push_back(connection.id);
}

std::optional<Transmit> SchedulerEndpoint::poll_transmit(Now now) {
  while (!dirty_.empty()) {
    Connection* const connection = connections_.find(dirty_.front());
    if (connection != nullptr && !connection->closed) {
      // A peer that does not read is closed all the same, and what ends its session is said.
      const bool waits = connection->busy && !is_closing(*connection);
      if (auto frame = waits ? std::nullopt : next_frame(*connection, now)) {
        return Transmit{connection->id, connection->revision.value_or(Revision::Two), std::move(*frame)};
      }
      closing_.push_back(connection->id);
    }
    if (connection != nullptr) {
      connection->dirty = false;
      if (connection->accepted && !connection->is_greeting()) connection->gate_or_none.reset();
      if (connection->record != nullptr) note_standing(*connection->record);
    }
    dirty_.drop_front();
  }
  return std::nullopt;
}

std::optional<Frame> SchedulerEndpoint::next_frame(Connection& connection, Now now) {
  if (connection.is_greeting()) return greeting(connection, now);
  return connection.record == nullptr ? std::nullopt : connection.record->session.poll_transmit(now);
}

bool SchedulerEndpoint::is_closing(const Connection& connection) const {
  return connection.close || (connection.record != nullptr && connection.record->session.is_closing());
}

std::optional<CloseConnection> SchedulerEndpoint::poll_close(Now now) {
  while (!closing_.empty()) {
    Connection* const connection = connections_.find(closing_.pop_front());
    if (connection == nullptr || connection->closed || connection->dirty) continue;
    Record* const record = connection->record;
    std::optional<CloseRequest> request = std::exchange(connection->close, std::nullopt);
    if (!request && record != nullptr) request = record->session.poll_close();
    if (!request) continue;
    connection->closed = true;
    if (record != nullptr) {
      unlink(*record);
      detach(*record, now);
    }
    return CloseConnection{connection->id, std::move(*request)};
  }
  return std::nullopt;
}

std::optional<OwnerEvent> SchedulerEndpoint::poll_event() {
  if (events_.empty()) return std::nullopt;
  return events_.pop_front();
}

std::optional<Refusal> SchedulerEndpoint::poll_refusal() {
  if (refusals_.empty()) return std::nullopt;
  return refusals_.pop_front();
}

//= FEN-1
SchedulerEndpoint::Record* SchedulerEndpoint::heard_on(const Connection& connection) const {
  return MUTANT(fence_hears_old_connection) ? records_.find(connection.session) : connection.record;
}

std::optional<Revision> SchedulerEndpoint::revision(ConnectionId id) const {
  const Connection* const connection = connections_.find(id);
  return connection == nullptr ? std::nullopt : connection->revision;
}

bool SchedulerEndpoint::is_authenticated(ConnectionId id) const {
  const Connection* const connection = connections_.find(id);
  return connection != nullptr && connection->lifecycle.state() != SessionState::Handshaking;
}

const Session* SchedulerEndpoint::session(SessionHandle handle) const {
  const Record* const record = records_.find(handle);
  return record == nullptr ? nullptr : &record->session;
}

std::optional<SessionHandle> SchedulerEndpoint::find(std::string_view tenant,
                                                     std::string_view instance_id) const {
  const auto found = by_instance_.find({tenant, instance_id});
  return found == by_instance_.end() ? std::nullopt : std::optional(found->second->handle);
}

}  // namespace windlass
