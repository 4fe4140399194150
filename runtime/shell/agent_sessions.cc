#include "runtime/shell/agent_sessions.h"

#include <algorithm>
#include <utility>

#include "protocol/base/check.h"
#include "protocol/function_rpc/peek.h"

namespace windlass::runtime {
namespace {

constexpr std::string_view kBegunBefore = "begun-before-the-drain";

bool is_content(std::string_view bytes, function_rpc::Content content) {
  const auto peeked = function_rpc::peek(bytes);
  return peeked && peeked->content == content;
}

}  // namespace

class AgentSessions::Channel final : public WorkerChannel {
 public:
  Channel(AgentSessions& owner, Known& known, const std::string& prefix)
      : sender(owner.options_.limits, prefix), owner_(owner), known_(known) {}
  ~Channel() override { owner_.queued_bytes_ -= sender.bytes(); }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  SendStatus send(std::string bytes) override;
  void close(bool is_clean, std::string_view reason) override;

  function_rpc::ChannelSender sender;
  ChannelId id{0};
  bool is_closed = false;
  bool is_terminated = false;  // its agent was told to end the worker
  bool is_blocked = false;     // told so

 private:
  AgentSessions& owner_;
  Known& known_;
};

struct AgentSessions::Known {
  Known(SessionHandle h, const function_rpc::ChannelLimits& limits) : handle(h), receiver(limits) {}
  SessionHandle handle;
  std::string tenant = {};
  std::string instance = {};
  function_rpc::ChannelReceiver receiver;
  std::unique_ptr<Channel> channel = {};
  bool is_dirty = false;
  bool is_refused = false;   // to be reset once what was sent before has left
  bool is_reset = false;     // its end is on its way
  bool is_draining = false;  // its agent takes no new work
  bool is_unfit = false;     // its agent is short of memory or disk, or not well by its own word
  std::string refusal = {};
};

SendStatus AgentSessions::Channel::send(std::string bytes) {
  if (is_closed) return SendStatus::Closed;
  // Small, so that looking costs nothing where it matters.
  const bool is_end = bytes.size() < 64 && is_content(bytes, function_rpc::Content::WorkerTerminate);
  const std::size_t size = bytes.size();
  const Result<Done> pushed = sender.push(std::move(bytes));
  if (!pushed) return pushed.error().code == ErrorCode::LimitFrame ? SendStatus::TooLarge : SendStatus::Full;
  owner_.queued_bytes_ += size;
  // Only what the queue took: an agent that will never hear of it keeps its worker.
  is_terminated = is_terminated || is_end;
  if (!std::exchange(known_.is_dirty, true)) owner_.dirty_.push_back(known_.handle);
  if (!sender.is_full()) return SendStatus::Sent;
  is_blocked = true;
  return SendStatus::Blocked;
}

void AgentSessions::Channel::close(bool, std::string_view reason) {
  is_closed = true;
  if (!is_terminated) {
    known_.is_refused = true;
    known_.refusal = std::string{reason};
  }
  if (!std::exchange(known_.is_dirty, true)) owner_.dirty_.push_back(known_.handle);
}

Result<std::unique_ptr<AgentSessions>> AgentSessions::listen(EventLoop& loop, AgentSessionsOptions options,
                                                             const Admission& admission,
                                                             ChannelEvents& events, RuntimeMetrics& metrics,
                                                             JsonLog& log) {
  // The constructor relies on keys that verify.
  if (auto tokens = TokenAuthority::with_keys(options.keys, token_lifetime(options.session)); !tokens)
    return tokens.error();
  std::unique_ptr<AgentSessions> made{
      new AgentSessions(loop, std::move(options), admission, events, metrics, log)};
  auto listening = WebSocketServer::listen(loop, made->options_.server, *made);
  if (!listening) return listening.error();
  made->server_ = *std::move(listening);
  return made;
}

AgentSessions::AgentSessions(EventLoop& loop, AgentSessionsOptions options, const Admission& admission,
                             ChannelEvents& events, RuntimeMetrics& metrics, JsonLog& log)
    : options_(std::move(options)),
      loop_(loop),
      events_(events),
      metrics_(metrics),
      log_(log),
      tokens_(TokenAuthority::with_keys(options_.keys, token_lifetime(options_.session)).value()),
      endpoint_({.scheduler_id = options_.id, .role = Role::Runtime}, options_.session, admission, tokens_,
                options_.seed),
      alarm_(loop, [this] { driver_.on_alarm(); }),
      driver_(endpoint_, decoder_, loop.clock(), alarm_) {}

AgentSessions::~AgentSessions() = default;

void AgentSessions::set_keys(std::vector<SigningKey> keys) {
  CHECK(tokens_.set_keys(std::move(keys)));  // checked by whoever read them
}

void AgentSessions::drain(Duration window) {
  server_->drain(window);
  endpoint_.drain_all(window, loop_.now());
}

void AgentSessions::on_opened(ConnectionId id, WebSocketConnection& connection) {
  const PeerInfo& peer = connection.peer();
  driver_.on_opened(
      id, connection,
      {peer.address, peer.certificate_fingerprint, peer.certificate_subject, peer.certificate_sans});
}

void AgentSessions::on_message(ConnectionId id, BytesView message, MessageKind kind) {
  driver_.on_message(id, message, kind);
  take_events();  // while its session is sure to be there
}

void AgentSessions::on_closed(ConnectionId id, const CloseFacts&) {
  driver_.on_closed(id);
}

bool AgentSessions::take_events() {
  bool is_any = false;
  while (auto event = driver_.poll_event()) {
    is_any = true;
    handle(*event);
  }
  return is_any;
}

void AgentSessions::handle(OwnerEvent& owner_event) {
  const SessionHandle session = owner_event.session;
  if (const auto* established = std::get_if<Established>(&owner_event.event)) {
    return handle_established(session, *established);
  }
  const auto found = known_.find(session);
  if (found == known_.end()) return;
  Known& known = *found->second;
  const bool has_channel = known.channel && !known.channel->is_closed;
  if (const auto* delivered = std::get_if<Delivered>(&owner_event.event)) {
    handle_delivered(session, known, *delivered);
  } else if (std::holds_alternative<Writable>(owner_event.event)) {
    pump(session, known);
  } else if (std::holds_alternative<Detached>(owner_event.event)) {
    metrics_.count_session("detached");
    log_.info("an agent's connection is gone; its session waits for a resume",
              {{"tenant", said_tenant(known)}, {"sender.id", known.instance}});
    if (has_channel) events_.on_channel_news(known.channel->id, ChannelNews::Detached, {});
  } else if (std::holds_alternative<DrainRequested>(owner_event.event)) {
    // It finishes what it has; to the core that is a worker that gets nothing new.
    known.is_draining = true;
    log_.info("an agent drains", {{"tenant", said_tenant(known)}, {"sender.id", known.instance}});
    if (has_channel) events_.on_channel_news(known.channel->id, ChannelNews::Leaving, {});
    pump(session, known);
  } else if (const auto* liveness = std::get_if<LivenessChanged>(&owner_event.event)) {
    if (has_channel) handle_liveness(*known.channel, liveness->level);
  } else if (const auto* load = std::get_if<LoadReported>(&owner_event.event)) {
    handle_load(known, *load);
  } else if (const auto* refused = std::get_if<Refused>(&owner_event.event)) {
    log_.warn("a frame to or from an agent was refused", {{"tenant", said_tenant(known)},
                                                          {"sender.id", known.instance},
                                                          {"code", to_string(refused->code)},
                                                          {"reason", refused->info}});
  } else if (const auto* ended = std::get_if<Ended>(&owner_event.event)) {
    handle_ended(session, *ended);
  }
}

void AgentSessions::handle_load(Known& known, const LoadReported& load) {
  const bool is_unfit = load.is_short() || !load.healthy;
  if (std::exchange(known.is_unfit, is_unfit) == is_unfit) return;
  log_.info(is_unfit ? "an agent is short of memory or disk, or not well; its worker is chosen last"
                     : "an agent is well again and has enough memory and disk",
            {{"tenant", said_tenant(known)}, {"sender.id", known.instance}});
  tell_fitness(known);
}

void AgentSessions::tell_fitness(const Known& known) {
  if (!known.channel || known.channel->is_closed) return;
  events_.on_channel_news(known.channel->id, known.is_unfit ? ChannelNews::Unfit : ChannelNews::Fit, {});
}

// A connection on which nothing is heard is as good as none.
void AgentSessions::handle_liveness(const Channel& channel, Liveness level) {
  if (level == Liveness::Healthy) {
    events_.on_channel_news(channel.id, ChannelNews::Attached, {});
  } else if (level >= Liveness::Degraded) {
    events_.on_channel_news(channel.id, ChannelNews::Detached, {});
  }
}

void AgentSessions::handle_established(SessionHandle session, const Established& established) {
  auto found = known_.find(session);
  if (found == known_.end()) {
    const SessionIdentity& identity = endpoint_.session(session)->identity();
    found = known_.emplace(session, std::make_unique<Known>(session, options_.limits)).first;
    found->second->tenant = identity.tenant;
    found->second->instance = identity.peer_id;
    metrics_.count_session("new");
    log_.info("an agent's session begins",
              {{"tenant", said_tenant(*found->second)}, {"sender.id", identity.peer_id}});
    return open(*found->second);
  }
  Known& known = *found->second;
  if (!established.resumed) return;
  metrics_.count_session("resumed");
  log_.info(
      "an agent's session goes on",
      {{"tenant", said_tenant(known)}, {"sender.id", known.instance}, {"replayed", established.replayed}});
  if (known.channel && !known.channel->is_closed) {
    events_.on_channel_news(known.channel->id, ChannelNews::Attached, {});
  }
  pump(session, known);
}

std::string_view AgentSessions::said_tenant(const Known& known) const {
  return known.tenant == options_.tenant ? std::string_view{} : std::string_view{known.tenant};
}

void AgentSessions::open(Known& known) {
  known.channel = std::make_unique<Channel>(
      *this, known, "f" + std::to_string(options_.seed) + "-" + std::to_string(++channels_) + "-");
  known.channel->id = events_.on_channel_opened(*known.channel, {.kind = ChannelKind::Session,
                                                                 .identity = known.instance,
                                                                 .is_agent = true,
                                                                 .peer = known.instance,
                                                                 .tenant = known.tenant});
  if (known.is_unfit) tell_fitness(known);
}

void AgentSessions::handle_delivered(SessionHandle session, Known& known, const Delivered& delivered) {
  const Message& message = delivered.message;
  if (message.type() == function_rpc::kMessageType) {
    const std::size_t held = known.receiver.held_bytes();
    const auto taken = known.receiver.take(message, [&](std::string_view whole) {
      // After a terminate the next worker begins here; what the last one still says is of no use.
      if (known.channel->is_closed && known.channel->is_terminated &&
          is_content(whole, function_rpc::Content::StartStream)) {
        open(known);
      }
      if (!known.channel->is_closed) events_.on_channel_message(known.channel->id, whole);
    });
    if (!taken && !known.channel->is_closed) {
      events_.on_channel_news(known.channel->id, ChannelNews::Broken, taken.error().reason);
    }
    unfinished_bytes_ += known.receiver.held_bytes();
    unfinished_bytes_ -= held;
    if (unfinished_bytes_ > options_.unfinished_bytes_max) bound_unfinished();
  } else {
    log_.warn("an agent sent a message that is no FunctionRpc",
              {{"tenant", said_tenant(known)}, {"sender.id", known.instance}, {"type", message.type()}});
  }
  endpoint_.own(session, delivered.seq + 1, loop_.now());
}

// Whoever holds most pays, so nobody can keep the others from sending.
void AgentSessions::bound_unfinished() {
  const auto most = std::ranges::max_element(
      known_, {}, [](const auto& each) { return each.second->receiver.held_bytes(); });
  Known& known = *most->second;
  log_.warn("an agent held most of what the runtime keeps of unfinished messages, and loses them",
            {{"sender.id", known.instance},
             {"bytes", std::uint64_t{known.receiver.held_bytes()}},
             {"bytes_max", std::uint64_t{options_.unfinished_bytes_max}}});
  unfinished_bytes_ -= known.receiver.held_bytes();
  known.receiver.drop_unfinished();
  if (!known.channel || known.channel->is_closed) return;
  events_.on_channel_news(known.channel->id, ChannelNews::Broken,
                          "too much of its messages is unfinished while others need the room");
}

void AgentSessions::handle_ended(SessionHandle session, const Ended& ended) {
  const auto found = known_.find(session);
  const std::unique_ptr<Known> known = std::move(found->second);
  known_.erase(found);
  unfinished_bytes_ -= known->receiver.held_bytes();
  metrics_.count_session("ended");
  log_.info("an agent's session ended", {{"tenant", said_tenant(*known)},
                                         {"sender.id", known->instance},
                                         {"code", ended.code},
                                         {"reason", ended.reason}});
  if (!known->channel || known->channel->is_closed) return;
  known->channel->is_closed = true;
  events_.on_channel_closed(known->channel->id,
                            ended.code.empty() ? ChannelEnd::Closed : ChannelEnd::Unavailable, ended.reason);
}

void AgentSessions::pump(SessionHandle session, Known& known) {
  if (!known.channel) return;
  const std::size_t queued = known.channel->sender.bytes();
  const auto refused = known.channel->sender.pump([&](Message&& message) {
    if (!known.is_draining) return endpoint_.send(session, std::move(message), loop_.now());
    // New work is refused by a session that drains. This is the rest of what its worker was given before, so
    // it is marked as belonging to something.
    return endpoint_.send(session,
                          Message{{.type = message.type(),
                                   .id = message.id(),
                                   .payload = message.payload(),
                                   .corr = kBegunBefore,
                                   .attachment = message.attachment()}},
                          loop_.now());
  });
  queued_bytes_ -= queued - known.channel->sender.bytes();
  if (refused && refused->code != ErrorCode::SessionWouldBlock) {
    log_.debug("a message to an agent is not sent", {{"tenant", said_tenant(known)},
                                                     {"sender.id", known.instance},
                                                     {"code", to_string(refused->code)},
                                                     {"reason", refused->reason}});
  }
  if (known.channel->is_closed || known.channel->sender.is_full()) return;
  if (std::exchange(known.channel->is_blocked, false)) {
    events_.on_channel_news(known.channel->id, ChannelNews::Writable, {});
  }
}

void AgentSessions::flush() {
  for (const SessionHandle session : std::exchange(dirty_, {})) {
    const auto found = known_.find(session);
    if (found == known_.end()) continue;
    Known& known = *found->second;
    known.is_dirty = false;
    pump(session, known);
    if (known.is_refused) endpoint_.reset(session, ErrorCode::ProtoState, known.refusal, loop_.now());
  }
  if (queued_bytes_ > options_.queued_bytes_max) bound_queued();
  driver_.flush();
  tell_refusals();
}

// A slow reader is closed, not waited for.
void AgentSessions::bound_queued() {
  std::size_t leaving = 0;
  Known* most = nullptr;
  const auto queued = [](const Known& known) { return known.channel ? known.channel->sender.bytes() : 0; };
  for (const auto& [session, known] : known_) {
    if (known->is_reset) {
      leaving += queued(*known);
    } else if (most == nullptr || queued(*known) > queued(*most)) {
      most = known.get();
    }
  }
  if (most == nullptr || queued_bytes_ - leaving <= options_.queued_bytes_max) return;
  log_.warn("closing the session of a slow agent: it holds the largest share of the queued data",
            {{"tenant", said_tenant(*most)},
             {"sender.id", most->instance},
             {"bytes", std::uint64_t{queued(*most)}},
             {"bytes_max", std::uint64_t{options_.queued_bytes_max}}});
  most->is_reset = true;
  endpoint_.reset(most->handle, ErrorCode::LimitCapacity, "too much waits for this agent, which reads slowly",
                  loop_.now());
  loop_.turn_again();
}

void AgentSessions::tell_refusals() {
  while (const auto refusal = endpoint_.poll_refusal()) {
    metrics_.count_session("refused");
    log_.warn("a connection was refused", {{"tenant", refusal->tenant},
                                           {"sender.id", refusal->sender_id},
                                           {"code", to_string(refusal->code)},
                                           {"reason", refusal->reason}});
  }
}

}  // namespace windlass::runtime
