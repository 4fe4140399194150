#include "scheduler/shell/session_loop.h"

#include <algorithm>
#include <utility>

#include "protocol/base/check.h"

namespace windlass {
namespace {

// Where a worker's sessions live. Stable for a process, which is all that it must be.
std::size_t home_of(std::string_view tenant, std::string_view instance, std::size_t loops) {
  const std::size_t hash = std::hash<std::string_view>{}(tenant)*31 + std::hash<std::string_view>{}(instance);
  return (hash ^ (hash >> 17U)) % loops;
}

// What the core and the operators want to know; the rest is the session's own business.
bool concerns_core(const SessionEvent& event) {
  return !std::holds_alternative<Acknowledged>(event) && !std::holds_alternative<Writable>(event) &&
         !std::holds_alternative<TokenRotated>(event) && !std::holds_alternative<BackingOff>(event);
}

// Messages that answer no command of ours and are of the moment, as parts of packages.
constexpr std::ptrdiff_t kTellsWaitingMax = 4;
bool is_told(const Send& order) {
  return order.command.id.empty() && order.message.type() == "biz.package.part";
}

// What nobody asks for again. A runtime that takes none for so long begins anew, and hears all of it then.
constexpr std::size_t kWaitingMax = 4096;

}  // namespace

Result<std::unique_ptr<SessionLoop>> SessionLoop::create(SessionLoopOptions options,
                                                         const Admission& admission, ControlInbox& control,
                                                         Metrics& metrics) {
  // The constructor relies on keys that verify.
  if (auto tokens = TokenAuthority::with_keys(options.keys, options.token_lifetime); !tokens) {
    return tokens.error();
  }
  std::unique_ptr<SessionLoop> made{new SessionLoop(std::move(options), admission, control, metrics)};
  ServerOptions server = made->options_.server;
  server.loop_index = static_cast<std::uint16_t>(made->options_.index);
  auto listening = WebSocketServer::listen(made->loop_, std::move(server), *made);
  if (!listening) return listening.error();
  made->server_ = std::move(*listening);
  return made;
}

SessionLoop::SessionLoop(SessionLoopOptions options, const Admission& admission, ControlInbox& control,
                         Metrics& metrics)
    : options_(std::move(options)),
      control_(control),
      metrics_(metrics),
      report_(metrics, options_.log),
      tokens_(TokenAuthority::with_keys(options_.keys, options_.token_lifetime).value()),
      endpoint_(options_.scheduler, options_.session, admission, tokens_, options_.seed),
      alarm_(loop_, [this] { driver_.on_alarm(); }),
      driver_(endpoint_, decoder_, loop_.clock(), alarm_) {
  for (std::size_t i = 0; i < OpeningFailures{}.size(); ++i) {
    metrics_.openings_failed(to_string(static_cast<OpeningFailure>(i)), 0);
  }
  loop_.add_turn_end(TurnPhase::Decide, *this);
}

SessionLoop::~SessionLoop() {
  loop_.remove_turn_end(TurnPhase::Decide, *this);
}

void SessionLoop::revoke_tokens(const Revocation& revocation) {
  tokens_.revoke(revocation.worker.tenant.value(), revocation.worker.instance.value(), revocation.until);
}

void SessionLoop::post_orders(LoopOrders orders) {
  loop_.post([this, orders = std::move(orders)]() mutable { execute(std::move(orders)); });
}

void SessionLoop::post_keys(std::vector<SigningKey> keys) {
  // Checked by whoever read them.
  loop_.post([this, keys = std::move(keys)]() mutable { CHECK(tokens_.set_keys(std::move(keys))); });
}

void SessionLoop::post_drain(Duration window, std::function<void()> done) {
  loop_.post([this, window, done = std::move(done)]() mutable {
    drained_ = std::move(done);
    server_->drain(window);
    endpoint_.drain_all(window, loop_.now());
  });
}

void SessionLoop::on_opened(ConnectionId id, WebSocketConnection& connection) {
  const PeerInfo& peer = connection.peer();
  Link& link = links_.emplace(id, connection).first->second;
  driver_.on_opened(
      id, link,
      {peer.address, peer.certificate_fingerprint, peer.certificate_subject, peer.certificate_sans});
}

void SessionLoop::on_message(ConnectionId id, BytesView message, MessageKind kind) {
  Link& link = links_.at(id);
  if (!std::exchange(link.has_spoken, true) && moves_on(id, message, kind)) return;
  if (link.meter != nullptr) link.meter->count_frame(Direction::In, message.size());
  driver_.on_message(id, message, kind);
  poll_events(id);
}

// The first frame names the worker. One that cannot be read is answered here.
bool SessionLoop::moves_on(ConnectionId id, BytesView message, MessageKind kind) {
  if (siblings_.size() < 2 || message.size() > limits::kFrameBytesBeforeAuthMax) return false;
  const Frame* const frame = decoder_.decode(message, kind, Expect::Any);
  if (frame == nullptr) return false;
  SessionLoop* const home = siblings_[home_of(frame->tenant, frame->sender_id, siblings_.size())];
  if (home == this) return false;
  driver_.on_closed(id);
  auto detached = links_.at(id).connection.detach(message, kind);
  links_.erase(id);
  home->loop_.post(
      [home, moving = std::move(detached)]() mutable { home->server_->attach(std::move(moving)); });
  return true;
}

void SessionLoop::on_closed(ConnectionId id, const CloseFacts& facts) {
  tell_refusals();
  const auto link = links_.find(id);
  const auto known = known_.find(link->second.session);
  ReportedPeer peer = known == known_.end() ? ReportedPeer{} : peer_of(known->second);
  peer.address = link->second.connection.peer().address;
  report_.tell_closed(peer, facts, loop_.now().steady);
  driver_.on_closed(id);
  if (link->second.meter != nullptr) link->second.meter->add_active(-1);
  links_.erase(link);
}

void SessionLoop::on_turn_end(TurnPhase) {
  poll_events(ConnectionId{0});
  driver_.flush();
  poll_events(ConnectionId{0});  // a flush may have ended something
  tell_refusals();
  report_.count(endpoint_.counters());
  if (!inputs_.empty()) control_.post_inputs(std::exchange(inputs_, {}));
  count_refusals();
  check_drained();
}

void SessionLoop::tell_refusals() {
  while (const auto refusal = endpoint_.poll_refusal()) {
    const auto link = links_.find(refusal->connection);
    const std::string_view address =
        link == links_.end() ? std::string_view{} : link->second.connection.peer().address;
    report_.tell_refused(*refusal, address, loop_.now().steady);
  }
}

ReportedPeer SessionLoop::peer_of(const Known& known) const {
  const auto link = links_.find(known.connection);
  return {known.tenant, known.instance, known.session_id,
          link == links_.end() ? std::string_view{} : link->second.connection.peer().address};
}

// `source` is the connection whose message was just handled, if any.
void SessionLoop::poll_events(ConnectionId source) {
  while (auto event = driver_.poll_event()) handle_event(std::move(*event), source);
}

void SessionLoop::handle_event(OwnerEvent owner_event, ConnectionId source) {
  const SessionHandle session = owner_event.session;
  auto known = known_.find(session);
  if (known == known_.end()) {
    // Its first event, polled right after the frame that opened it: the endpoint still has it.
    const SessionIdentity& identity = endpoint_.session(session)->identity();
    known =
        known_.emplace(session, Known{identity.tenant, identity.peer_id, identity.session_id, source, {}, {}})
            .first;
    inputs_.emplace_back(
        SessionOpened{.session = ref(session),
                      .worker = {TenantId{identity.tenant}, InstanceId{identity.peer_id}},
                      .session_id = identity.session_id,
                      .role = identity.peer_role,
                      .revision = identity.revision,
                      .address = links_.at(source).connection.peer().address,
                      .certificate_names = links_.at(source).connection.peer().certificate_sans});
  }
  SessionEvent& event = owner_event.event;
  if (std::holds_alternative<Established>(event)) establish(session, known->second, source);
  if (report_.wants(event)) report_.tell(peer_of(known->second), event, loop_.now().steady);
  if (std::holds_alternative<Writable>(event)) send_waiting(session);
  if (std::holds_alternative<Ended>(event)) known_.erase(known);
  if (concerns_core(event)) inputs_.emplace_back(SessionSaid{ref(session), std::move(event)});
}

void SessionLoop::establish(SessionHandle session, Known& known, ConnectionId connection) {
  const bool is_taken_over = known.connection != connection && links_.contains(known.connection);
  known.connection = connection;
  Link& link = links_.at(connection);
  link.session = session;
  link.meter = &metrics_.tenant(known.tenant);
  link.meter->add_active(1);
  if (is_taken_over) report_.tell_moved(peer_of(known), loop_.now().steady);
}

void SessionLoop::count_refusals() {
  const OpeningFailures failed = server_->counters().failed_opening;
  const auto& refused = endpoint_.counters().refused_by_code;
  if (failed == failed_counted_ && refused == refused_counted_) return;
  for (std::size_t i = 0; i < failed.size(); ++i) {
    if (failed[i] == failed_counted_[i]) continue;
    metrics_.openings_failed(to_string(static_cast<OpeningFailure>(i)), failed[i] - failed_counted_[i]);
  }
  for (std::size_t i = 0; i < refused.size(); ++i) {
    if (refused[i] == refused_counted_[i]) continue;
    metrics_.connections_refused(to_string(static_cast<ErrorCode>(i)), refused[i] - refused_counted_[i]);
  }
  failed_counted_ = failed;
  refused_counted_ = refused;
}

void SessionLoop::execute(LoopOrders orders) {
  const Now now = loop_.now();
  for (const Own& own : orders.owns) endpoint_.own(SessionHandle{own.session.handle}, own.next, now);
  for (Send& order : orders.sends) send(std::move(order));
  for (SessionCommand& command : orders.commands) execute(command);
}

void SessionLoop::execute(SessionCommand& command) {
  const Now now = loop_.now();
  const auto handle = [](const SessionRef& session) { return SessionHandle{session.handle}; };
  if (auto* drain = std::get_if<DrainSession>(&command)) {
    endpoint_.drain(handle(drain->session), drain->reason, drain->deadline, now);
  } else if (auto* reset = std::get_if<ResetSession>(&command)) {
    endpoint_.reset(handle(reset->session), reset->code, reset->reason, now);
  } else if (auto* rotate = std::get_if<RotateSession>(&command)) {
    endpoint_.rotate_token(handle(rotate->session), now);
  } else if (auto* revoke = std::get_if<RevokeTokens>(&command)) {
    revoke_tokens(revoke->revocation);
    if (!revoke->session || revoke->session->loop != options_.index) return;
    endpoint_.reset(handle(*revoke->session), ErrorCode::AuthInvalidToken, "the worker was revoked", now);
  }
}

void SessionLoop::send(Send order) {
  const auto known = known_.find(SessionHandle{order.session.handle});
  if (known == known_.end()) return;  // it ended meanwhile, and the core was told
  auto& waiting = known->second.waiting;
  // What is kept nowhere is asked for again, so an agent that asks without taking fills nobody's memory.
  if (is_told(order) && std::ranges::count_if(waiting, is_told) >= kTellsWaitingMax) return;
  if (waiting.empty() && try_send(order)) return;
  if (waiting.size() >= kWaitingMax) {
    endpoint_.reset(known->first, ErrorCode::LimitCapacity, "it takes nothing of what it is sent",
                    loop_.now());
    return;
  }
  if (waiting.empty()) known->second.waiting_since = loop_.now().steady;
  waiting.push_back(std::move(order));
}

void SessionLoop::send_waiting(SessionHandle session) {
  Known& known = known_.at(session);
  if (known.waiting.empty()) return;
  metrics_.blocked(loop_.now().steady - known.waiting_since);
  known.waiting_since = loop_.now().steady;
  while (!known.waiting.empty() && try_send(known.waiting.front())) known.waiting.pop_front();
}

// False when it must wait for credit.
bool SessionLoop::try_send(Send& order) {
  const SessionHandle session{order.session.handle};
  const std::string type{report_.wants_sent() ? order.message.type() : std::string_view{}};
  const auto sent = endpoint_.send(session, std::move(order.message), loop_.now());
  if (sent && report_.wants_sent()) {
    report_.tell_sent(peer_of(known_.at(session)), order.command, type, *sent, loop_.now().steady);
  }
  if (sent) return true;
  if (sent.error().code == ErrorCode::SessionWouldBlock) return false;
  inputs_.emplace_back(SendRefused{order.session, order.command, sent.error()});
  return true;
}

void SessionLoop::check_drained() {
  if (drained_ && endpoint_.sessions() == 0) std::exchange(drained_, nullptr)();
}

}  // namespace windlass
