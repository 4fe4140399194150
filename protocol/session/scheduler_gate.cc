// A connection before its accept: handshake, registration, resume, and the frames that answer them.
#include <array>
#include <charconv>
#include <utility>

#include "protocol/base/check.h"
#include "protocol/base/clip.h"
#include "protocol/base/mutant.h"
#include "protocol/session/scheduler_endpoint.h"
#include "protocol/session/scheduler_records.h"
#include "protocol/session/worker_profile.h"

namespace windlass {

void SchedulerEndpoint::handle_before_accept(Connection& connection, const Frame& frame, Now now) {
  // Until the handshake says otherwise, a refusal speaks to the tenant that the frame names.
  if (connection.tenant.empty()) connection.tenant = frame.tenant;
  const auto* resume = std::get_if<Resume>(&frame.body);
  if (connection.lifecycle.state() == SessionState::Handshaking) {
    if (const auto* handshake = std::get_if<Handshake>(&frame.body)) {
      return handle_handshake(connection, frame, *handshake, now);
    }
    //= REV-6
    if (resume != nullptr && frame.revision == Revision::One)
      return handle_resume(connection, frame, *resume, now);
    //= HSK-1
    return refuse(connection, ErrorCode::AuthHandshakeRequired, "the first frame must be control.handshake");
  }
  //= HSK-5
  if (frame.tenant != connection.tenant) {
    return refuse(connection, ErrorCode::SessionTenantMismatch, "the frame names another tenant");
  }
  //= ENV-12
  if (frame.sender_id != connection.instance_id || frame.sender_role != connection.role) {
    return refuse(connection, ErrorCode::SessionMismatch,
                  "the frame names another sender than the handshake");
  }
  if (const auto* body = std::get_if<Register>(&frame.body))
    return handle_register(connection, frame, *body, now);
  if (resume != nullptr) return handle_resume(connection, frame, *resume, now);
  //= HSK-9
  if (frame.is_data()) {
    return refuse(connection, ErrorCode::SessionNotRegistered,
                  "control.register or control.resume comes first");
  }
  //= ENV-11
  if (std::holds_alternative<UnknownControl>(frame.body)) return;
  if (std::holds_alternative<Handshake>(frame.body) && connection.revision == Revision::One &&
      connection.gate().greetings.size() < config_.control_queue_max) {
    //= REV-12
    connection.gate().greetings.push_back({.for_id = std::string{frame.id}});
    return mark_dirty(connection);
  }
  if (std::holds_alternative<Reset>(frame.body)) {
    // Only this connection: a session that the worker may resume on another one is bound to none of this.
    //= RST-1
    connection.close = CloseRequest{kCloseNormal, "reset received"};
    end_pending(connection);
    timers_.clear(connection.timed.node);
    return mark_dirty(connection);
  }
  //= HSK-13
  refuse(connection, ErrorCode::ProtoState, "this frame may not come before the accept");
}

void SchedulerEndpoint::handle_handshake(Connection& connection, const Frame& frame,
                                         const Handshake& handshake, Now now) {
  connection.tenant = frame.tenant;
  //= HSK-2
  if (handshake.protocol != 1 && handshake.protocol != 2) {
    return refuse(connection, ErrorCode::ProtoVersion, "protocol 1 and 2 are spoken here");
  }
  connection.revision = static_cast<Revision>(handshake.protocol);
  if (restarting_) return refuse_restarting(connection);
  //= REV-15
  const bool named = !handshake.worker_instance_id.empty();
  //= HSK-3
  if (frame.sender_role == Role::Scheduler || (named && handshake.worker_instance_id != frame.sender_id)) {
    return refuse(connection, ErrorCode::SessionMismatch,
                  "sender and worker_instance_id must be the worker's own");
  }
  //= HSK-4
  const auto admitted =
      admission_.admit({handshake, frame.tenant, frame.sender_id, frame.sender_role, connection.peer});
  if (!admitted) return refuse(connection, admitted.error().code, admitted.error().reason);
  // Only now: strangers that name a tenant must take nothing of its account.
  connection.account = admission_.account(frame.tenant);
  if (connection.account != nullptr) {
    //= LIM-9
    auto waiting = connection.account->take_pending();
    if (!waiting) {
      return refuse(connection, ErrorCode::LimitCapacity,
                    "too many connections of this tenant are waiting for their accept",
                    config_.handshake_stage);
    }
    connection.waiting = std::move(*waiting);
  }
  connection.instance_id = frame.sender_id;
  connection.role = frame.sender_role;
  connection.gate().profile.worker_name = handshake.worker_name;
  connection.gate().profile.version = handshake.version;
  connection.gate().profile.hostname = handshake.hostname;
  CHECK(connection.lifecycle.apply(SessionTrigger::HandshakeAccepted));
  //= HSK-6
  connection.gate().greetings.push_back({.for_id = std::string{frame.id}});
  timers_.set(connection.timed.node, now.steady + config_.handshake_stage);
  mark_dirty(connection);
}

void SchedulerEndpoint::handle_register(Connection& connection, const Frame& frame, const Register& body,
                                        Now now) {
  if (restarting_) return refuse_restarting(connection);
  const auto earlier = find(connection.tenant, connection.instance_id);
  TenantAccount::Place place;
  if (!earlier) {
    auto taken = take_place(connection);
    if (!taken) return;
    place = std::move(*taken);
  }
  bool takes_over = false;
  bool is_twin = false;
  if (earlier) {
    //= FEN-3
    Record& old = *records_.find(*earlier);
    //= FEN-6
    takes_over = old.connection != nullptr && !old.connection->closed;
    is_twin = takes_over && old.took_over_at && now.steady - *old.took_over_at < config_.resume_ttl;
    supersede(old, now);
    place = std::move(old.place);
    old.session.end(ErrorCode::SessionSuperseded, "the worker registered anew", Blame::Peer);
    settle(old);
  }
  const SessionHandle handle{next_handle_++};
  SessionIdentity identity{.session_id = new_session_id(),
                           .tenant = connection.tenant,
                           .self_role = options_.role,
                           .self_id = options_.scheduler_id,
                           .peer_role = connection.role,
                           .peer_id = connection.instance_id,
                           .revision = *connection.revision};
  Record& record = records_.insert(handle, std::make_unique<Record>(handle, std::move(identity), config_,
                                                                    random_.next(), connection.account));
  record.place = std::move(place);
  describe(body, connection.gate().profile);
  bind(connection, record);
  //= HSK-7
  connection.gate().greetings.push_back({.for_id = std::string{frame.id}});
  send_accept(connection, record, false, now);
  // Revision 2 announces its credit with the ack of the accept; revision 1 has a fixed window.
  //= REV-11
  const Credit credit = *connection.revision == Revision::One
                            ? Credit{limits::kWindowFramesRevision1Max, limits::kWindowBytes}
                            : Credit{};
  record.profile = std::make_shared<WorkerProfile>(std::exchange(connection.gate().profile, {}));
  events_.push_back({handle, Registered{record.profile}});
  if (takes_over) record.took_over_at = now.steady;
  if (is_twin) report_twin(record, "it is registered in turns, while its connection stands");
  record.session.connect(credit, now);
  record.session.set_transport_busy(connection.busy, now);
  CHECK(connection.lifecycle.apply(SessionTrigger::Accepted));
  ++counters_.sessions_opened;
  settle(record);
}

// Nothing after a refusal. A session that has no connection gives its place first.
std::optional<TenantAccount::Place> SchedulerEndpoint::take_place(Connection& connection) {
  TenantAccount* const account = connection.account;
  std::optional<TenantAccount::Place> place{TenantAccount::Place{}};
  if (account != nullptr) {
    //= LIM-9
    place = account->take_session();
    while (!place && make_room(detached_.youngest_of(connection.tenant))) place = account->take_session();
    if (!place) {
      refuse(connection, ErrorCode::LimitCapacity, "the tenant has all the sessions it may have",
             config_.backoff_cap);
      return std::nullopt;
    }
  }
  //= LIM-5
  if (by_instance_.size() >= config_.sessions_max && !make_room(detached_.youngest_of_largest())) {
    refuse(connection, ErrorCode::LimitCapacity, "no more sessions fit here", config_.backoff_cap);
    return std::nullopt;
  }
  return place;
}

bool SchedulerEndpoint::make_room(std::optional<SessionHandle> session) {
  if (!session) return false;
  Record& record = *records_.find(*session);
  ++counters_.made_room;
  record.session.end(ErrorCode::LimitCapacity, "another worker needed its place while it was away",
                     Blame::Local);
  settle(record);
  return true;
}

Result<SchedulerEndpoint::Record*> SchedulerEndpoint::find_resumable(Connection& connection,
                                                                     const Frame& frame, const Resume& resume,
                                                                     Now now) {
  //= RES-8
  const auto claims = tokens_.verify(resume.session_token, now.wall);
  if (!claims) return claims.error();
  if (claims->sid != resume.session_id || claims->wid != frame.sender_id || claims->tenant != frame.tenant) {
    return Error{ErrorCode::SessionInvalidToken, Blame::Peer,
                 "the token is of another session, worker or tenant"};
  }
  const auto found = by_session_id_.find(claims->sid);
  if (found == by_session_id_.end()) return unknown_session(connection, *claims);
  Record& record = *found->second;
  //= REV-6
  if (connection.lifecycle.state() == SessionState::Handshaking &&
      record.session.identity().revision != Revision::One) {
    return Error{ErrorCode::AuthHandshakeRequired, Blame::Peer, "the first frame must be control.handshake"};
  }
  //= FEN-4
  if (claims->gen < record.token_gen_proved && !MUTANT(fence_takes_old_tokens)) {
    report_twin(record, "a token was used that its session had replaced");
    return Error{ErrorCode::SessionInvalidToken, Blame::Peer, "the token was replaced by a newer one"};
  }
  // The worker gave that connection up before it opened the one on which it went on.
  //= FEN-1
  if (connection.number < record.connection_number) {
    return Error{ErrorCode::SessionInvalidToken, Blame::Peer,
                 "the session went on on a connection that was opened later"};
  }
  // A worker that was upgraded: it can have a session at once, only not this one.
  //= RES-7
  if (*connection.revision != record.session.identity().revision) return stale_session(connection);
  //= TOK-2
  record.token_gen_proved = claims->gen;
  return &record;
}

Error SchedulerEndpoint::unknown_session(const Connection& connection, const TokenClaims& claims) {
  // Who registered the identity anew has forgotten the session before: whoever remembers it is somebody else.
  //= FEN-4
  const auto newer = find(claims.tenant, claims.wid);
  if (newer)
    report_twin(*records_.find(*newer), "a session that a new registration replaced was asked for again");
  //= FEN-4
  if (newer && *connection.revision != Revision::One)
    return {ErrorCode::SessionSuperseded, Blame::Peer, "another connection registered this identity"};
  return stale_session(connection);
}

Error SchedulerEndpoint::stale_session(const Connection& connection) {
  //= REV-10
  if (*connection.revision == Revision::One) {
    return {ErrorCode::SessionUnknown, Blame::Peer, "Unknown session"};
  }
  //= RES-7
  return {ErrorCode::SessionStaleBinding, Blame::Peer, "the session is not known here; register afresh"};
}

void SchedulerEndpoint::handle_resume(Connection& connection, const Frame& frame, const Resume& resume,
                                      Now now) {
  const bool unannounced = connection.lifecycle.state() == SessionState::Handshaking;
  // An answer, a refusal too, speaks the revision of the question.
  if (unannounced) connection.revision = frame.revision;
  if (restarting_) return refuse_restarting(connection);
  if (unannounced) {
    // Else a stolen session token would do where policy asks for a certificate.
    //= REV-6
    const auto admitted = admission_.admit_resume({frame.tenant, frame.sender_id, connection.peer});
    if (!admitted) return refuse(connection, admitted.error().code, admitted.error().reason);
  }
  auto found = find_resumable(connection, frame, resume, now);
  if (!found) {
    ++counters_.resumes_refused;
    return refuse(connection, found.error().code, found.error().reason);
  }
  Record& record = **found;
  if (unannounced) {
    connection.tenant = frame.tenant;
    connection.instance_id = frame.sender_id;
    CHECK(connection.lifecycle.apply(SessionTrigger::HandshakeAccepted));
  }
  //= RES-5
  supersede(record, now);
  const bool revision1 = *connection.revision == Revision::One;
  PeerPosition peer{resume.received_next, resume.earliest_retained, resume.credit};
  // Its credit is what it said last.
  //= REV-11
  if (revision1) peer = {resume.received_next, 0, {}};
  const bool draining = record.session.is_draining();
  const auto resumed = record.session.resume(peer, now);
  if (!resumed) {
    ++counters_.resumes_refused;
    //= RES-3
    record.session.end(resumed.error().code, resumed.error().reason, Blame::Local);
    settle(record);
    return refuse(connection, resumed.error().code, resumed.error().reason);
  }
  bind(connection, record);
  record.session.set_transport_busy(connection.busy, now);
  //= REV-6
  if (revision1) connection.gate().greetings.push_back({.for_id = std::string{frame.id}});
  send_accept(connection, record, true, now);
  CHECK(connection.lifecycle.apply(draining ? SessionTrigger::AcceptedDraining : SessionTrigger::Accepted));
  ++counters_.resumes_accepted;
  settle(record);
}

void SchedulerEndpoint::supersede(Record& record, Now now) {
  Connection* const old = record.connection;
  unlink(record);
  if (old != nullptr && !old->closed) {
    ++counters_.superseded;
    // An accept that a busy transport kept waiting speaks of a session this connection has lost.
    if (old->gate_or_none) old->gate_or_none->greetings.clear();
    //= REV-9
    if (old->revision != Revision::One) {
      //= FEN-2
      old->gate().greetings.push_back({.kind = Connection::Greeting::Kind::Reset,
                                       .code = std::string{to_string(ErrorCode::SessionSuperseded)},
                                       .reason = "superseded session"});
    }
    old->close = CloseRequest{kCloseInternal, "superseded session"};
    mark_dirty(*old);
  }
  record.session.disconnect(now);
}

void SchedulerEndpoint::report_twin(Record& record, std::string_view reason) {
  ++counters_.twins_suspected;
  events_.push_back({record.handle, TwinSuspected{std::string{reason}}});
}

void SchedulerEndpoint::refuse(Connection& connection, ErrorCode code, std::string_view reason,
                               std::optional<Duration> retry_after) {
  ++counters_.handshakes_refused;
  note_refusal(connection, code, reason);
  ++counters_.refused_by_code[static_cast<std::size_t>(code)];
  end_pending(connection);
  timers_.clear(connection.timed.node);
  connection.gate().greetings.push_back({.kind = Connection::Greeting::Kind::Reset,
                                         .code = std::string{to_string(code)},
                                         .reason = std::string{clip(reason, limits::kReasonBytesMax)},
                                         .retry_after = retry_after});
  //= RST-1
  connection.close = CloseRequest{code == ErrorCode::SessionRestarting ? kCloseRestart : kCloseInternal,
                                  std::string{clip(reason, limits::kCloseReasonBytesMax)}};
  mark_dirty(connection);
}

// Strangers cause these, so only the last ones are kept for whoever looks.
void SchedulerEndpoint::note_refusal(const Connection& connection, ErrorCode code, std::string_view reason) {
  if (refusals_.size() == limits::kRefusalsKept) {
    refusals_.drop_front();
    ++counters_.refusals_forgotten;
  }
  const std::string_view sender =
      asked_.sender_id.empty() ? std::string_view{connection.instance_id} : asked_.sender_id;
  refusals_.push_back({connection.id, connection.tenant, std::string{sender},
                       std::string{clip(asked_.frame_type, limits::kTypeBytesMax)},
                       std::string{clip(asked_.frame_id, limits::kIdBytesMax)}, code,
                       std::string{clip(reason, limits::kReasonBytesMax)}, asked_.was_resume,
                       asked_.was_unreadable});
}

//= DRN-6
void SchedulerEndpoint::refuse_restarting(Connection& connection) {
  refuse(connection, ErrorCode::SessionRestarting, "service restart", restart_window_);
}

void SchedulerEndpoint::send_accept(Connection& connection, Record& record, bool resumed, Now now) {
  const SessionIdentity& identity = record.session.identity();
  ++record.token_gen;
  //= TOK-2
  connection.gate().token =
      tokens_.issue({identity.session_id, identity.peer_id, identity.tenant, record.token_gen}, now.wall);
  connection.gate().greetings.push_back({.kind = Connection::Greeting::Kind::Accept, .resumed = resumed});
  if (MUTANT(token_drops_old_at_once)) record.token_gen_proved = record.token_gen;
  record.rotate_at = now.steady + config_.token_rotation;
  mark_dirty(connection);
}

Frame SchedulerEndpoint::greeting(Connection& connection, Now now) {
  connection.gate().current = connection.gate().greetings.pop_front();
  const Connection::Greeting& current = connection.gate().current;
  connection.gate().frame_id = "~g";
  connection.gate().frame_id.append(std::to_string(connection.id.value())).append("-");
  connection.gate().frame_id.append(std::to_string(connection.frame_counter++));
  Frame frame;
  frame.id = connection.gate().frame_id;
  frame.ts = now.wall;
  frame.tenant =
      connection.tenant.empty() ? std::string_view{"unknown"} : std::string_view{connection.tenant};
  frame.sender_role = options_.role;
  frame.sender_id = options_.scheduler_id;
  if (current.kind == Connection::Greeting::Kind::Ack) {
    frame.ack_for = current.for_id;
    frame.body = Ack{.ok = true, .for_id = current.for_id, .info = {}, .state = {}};
  } else if (current.kind == Connection::Greeting::Kind::Reset) {
    frame.body = Reset{current.code, current.reason, current.retry_after};
  } else {
    CHECK(connection.record != nullptr);
    Record& record = *connection.record;
    const SessionIdentity& identity = record.session.identity();
    const PeerPosition position = record.session.position();
    //= HSK-11
    frame.ack_request = identity.revision == Revision::Two;
    // A peer that acknowledges none of many is judged by the newest.
    if (record.accepts.size() == limits::kAcceptsUnproved) record.accepts.erase(record.accepts.begin());
    record.accepts.push_back({std::string{frame.id}, record.token_gen});
    //= RES-3
    frame.body = SessionAccept{.session_id = identity.session_id,
                               .session_token = connection.gate().token,
                               .worker_instance_id = identity.peer_id,
                               .expires_at = {},
                               .resumed = current.resumed,
                               .received_next = position.received_next,
                               .earliest_retained = position.earliest_retained,
                               .credit = position.credit,
                               .heartbeat_interval = record.session.heartbeat_interval(),
                               .resume_ttl = config_.resume_ttl,
                               .frame_bytes_max = config_.frame_bytes_max};
  }
  return frame;
}

std::string SchedulerEndpoint::new_session_id() {
  std::array<char, 16> digits{};
  std::string id = "s-";
  for (int half = 0; half < 2; ++half) {
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), random_.next(), 16).ptr;
    id.append(digits.data(), end);
  }
  return id;
}

}  // namespace windlass
