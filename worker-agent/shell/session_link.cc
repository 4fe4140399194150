// A runtime reached by a session: FunctionRpc messages as attachments. A cut of the connection is the
// session's to mend; the language worker does not notice.
#include <utility>

#include "protocol/adapters/websocket_client.h"
#include "protocol/driver/worker_driver.h"
#include "protocol/function_rpc/peek.h"
#include "worker-agent/shell/runtime_link.h"

namespace windlass::agent {
namespace {

constexpr std::string_view kSessionPath = "/ws/worker";
constexpr Duration kLinkDrainDeadline = seconds{300};
constexpr Duration kLinkAnswerWait = seconds{3};  // for the runtime's word, if it has every answer

// Somebody waits for it; other words can be lost with a runtime that is away.
bool is_answer(std::string_view message) {
  const auto peeked = function_rpc::peek(message);
  return peeked && (peeked->content == function_rpc::Content::InvocationResponse ||
                    peeked->content == function_rpc::Content::HttpStream);
}

class SessionLink final : public RuntimeLink, private ConnectionEvents {
 public:
  SessionLink(const RuntimeLinkOptions& options, const LinkPlace& place)
      : place_(place),
        limits_(options.limits),
        prefix_("f" + std::to_string(options.seed) + "-"),
        endpoint_(options.worker, options.session, options.seed),
        alarm_(place.loop, [this] { driver_->on_alarm(); }),
        leave_alarm_(place.loop, [] {}),
        receiver_(options.limits) {}

  Result<Done> open(const RuntimeLinkOptions& options) {
    auto address = parse_address(options.url);
    if (!address) return address.error();
    if (address->target == "/") address->target = kSessionPath;
    auto client = WebSocketClient::create(place_.loop,
                                          {.address = *address,
                                           .tls = address->secure ? options.tls : nullptr,
                                           .clear_text_anywhere = options.clear_text_anywhere,
                                           .connection = client_connection(options.session.dead_link_after)},
                                          *this);
    if (!client) return client.error();
    client_ = *std::move(client);
    driver_ =
        std::make_unique<WorkerDriver>(endpoint_, place_.decoder, place_.loop.clock(), alarm_, *client_);
    endpoint_.start(place_.loop.now());
    place_.loop.turn_again();
    return Done{};
  }

  Result<Done> send(std::string& message) override {
    if (!sender_) return Error{ErrorCode::SessionWouldBlock, Blame::Local, "there is no session"};
    if (sender_->is_full()) return Error{ErrorCode::SessionWouldBlock, Blame::Peer, "the queue is full"};
    owes_answer_ = owes_answer_ || is_answer(message);
    return sender_->push(std::move(message));
  }

  bool take(bool is_paused) override {
    bool is_any = false;
    // A part of a message is always taken: what is complete is what may wait.
    while (auto event = driver_->poll_event()) {
      is_any = true;
      handle(*event);
    }
    if (!is_paused && owned_ != unowned_) {
      owned_ = unowned_;
      endpoint_.own(session_, owned_, place_.loop.now());
    }
    return is_any;
  }

  void flush() override {
    const Now now = place_.loop.now();
    if (sender_ && !is_blocked_) {
      is_blocked_ = sender_->pump([&](Message&& message) { return endpoint_.send(std::move(message), now); })
                        .has_value();
    }
    if (!has_unacknowledged()) owes_answer_ = false;
    if (is_complete_ && (!sender_ || sender_->is_empty()) && !std::exchange(is_complete_told_, true)) {
      endpoint_.complete_drain(now);
    }
    driver_->flush(std::exchange(idle_, false));
  }

  void drain(bool is_complete) override {
    if (!std::exchange(is_draining_, true)) {
      endpoint_.drain("the worker leaves", kLinkDrainDeadline, place_.loop.now());
    }
    if (!is_complete || std::exchange(is_complete_, true)) return;
    leave_at_ = place_.loop.now().steady + kLinkAnswerWait;
    leave_alarm_.set(leave_at_);
  }
  bool is_gone() const override {
    if (endpoint_.state() == SessionState::Closed) return true;
    // A runtime that is away or silent is waited for only if it has not got every answer.
    if (!is_complete_ || owes_answer_) return false;
    return !is_connected() || place_.loop.now().steady >= *leave_at_;
  }
  bool is_connected() const override {
    return endpoint_.session() != nullptr && endpoint_.session()->is_connected();
  }
  std::size_t waiting_messages() const override { return sender_ ? sender_->messages() : 0; }
  bool is_drain_wanted() const override { return is_drain_wanted_; }
  void set_load(const LoadFacts& load) override { endpoint_.set_load(load); }
  void set_auth_token(const std::string& token) override { endpoint_.set_auth_token(token); }
  void set_fingerprint(const std::string& fingerprint) override { endpoint_.set_fingerprint(fingerprint); }

 private:
  bool has_unacknowledged() const {
    if (sender_ && !sender_->is_empty()) return true;
    return endpoint_.session() != nullptr && endpoint_.session()->stream().send_window().in_flight() > 0;
  }

  void handle(OwnerEvent& owner_event) {
    if (auto* delivered = std::get_if<Delivered>(&owner_event.event)) {
      deliver(*delivered);
    } else if (std::holds_alternative<Writable>(owner_event.event)) {
      is_blocked_ = false;
    } else if (const auto* established = std::get_if<Established>(&owner_event.event)) {
      place_.log.info("the session to the runtime is established",
                      {{"resumed", established->resumed}, {"replayed", established->replayed}});
      is_blocked_ = false;
      if (!established->resumed) begin(owner_event.session);
    } else if (const auto* ended = std::get_if<Ended>(&owner_event.event)) {
      place_.log.warn("the session to the runtime ended", {{"code", ended->code}, {"reason", ended->reason}});
      sender_.reset();
      is_drain_wanted_ = false;
      is_complete_told_ = false;  // one that leaves does not dial again
      place_.events.on_runtime_ended();
    } else if (std::holds_alternative<Detached>(owner_event.event)) {
      place_.log.warn("the connection to the runtime is gone; the session waits for a resume");
    } else if (const auto* waits = std::get_if<BackingOff>(&owner_event.event)) {
      place_.log.warn("not connected to the runtime",
                      {{"reason", waits->cause},
                       {"retry_ms", static_cast<std::uint64_t>(waits->delay / milliseconds{1})}});
    } else if (std::holds_alternative<DrainRequested>(owner_event.event)) {
      place_.log.info("the runtime asks for a drain");
      is_drain_wanted_ = true;
    } else if (const auto* refused = std::get_if<Refused>(&owner_event.event)) {
      place_.log.warn("a frame to or from the runtime was refused",
                      {{"code", to_string(refused->code)}, {"reason", refused->info}});
    }
  }

  void begin(SessionHandle session) {
    session_ = session;
    owned_ = unowned_ = 0;
    owes_answer_ = false;
    sender_.emplace(limits_, prefix_ + std::to_string(++sessions_) + "-");
    receiver_ = function_rpc::ChannelReceiver{limits_};
    place_.events.on_runtime_opened();
  }

  void deliver(const Delivered& delivered) {
    unowned_ = delivered.seq + 1;
    if (delivered.message.type() != function_rpc::kMessageType) {
      place_.log.warn("the runtime sent a message that is no FunctionRpc",
                      {{"type", delivered.message.type()}});
      return;
    }
    const auto taken = receiver_.take(
        delivered.message, [this](std::string_view message) { place_.events.on_runtime_message(message); });
    if (taken) return;
    place_.log.error("a FunctionRpc message of the runtime cannot be read and is left out",
                     {{"id", delivered.message.id()}, {"reason", taken.error().reason}});
  }

  void on_opened(ConnectionId id, WebSocketConnection& connection) override {
    driver_->on_opened(id, connection);
  }
  void on_message(ConnectionId id, BytesView message, MessageKind kind) override {
    driver_->on_message(id, message, kind);
  }
  void on_idle(ConnectionId) override { idle_ = true; }
  void on_blocked(ConnectionId id) override { driver_->on_blocked(id); }
  void on_writable(ConnectionId id) override { driver_->on_writable(id); }
  void on_closed(ConnectionId id, const CloseFacts& facts) override {
    if (facts.retry_after) return driver_->on_put_off(id, facts.reason, *facts.retry_after);
    driver_->on_closed(id, facts.code, facts.reason);
  }

  LinkPlace place_;
  function_rpc::ChannelLimits limits_;
  std::string prefix_;
  WorkerEndpoint endpoint_;
  LoopAlarm alarm_;
  LoopAlarm leave_alarm_;  // for a turn, in which whoever waits for this link looks again
  std::unique_ptr<WebSocketClient> client_;
  std::unique_ptr<WorkerDriver> driver_;
  std::optional<function_rpc::ChannelSender> sender_;  // of the present session
  function_rpc::ChannelReceiver receiver_;
  SessionHandle session_{0};
  Seq owned_ = 0;
  Seq unowned_ = 0;  // after the last that was handed on
  std::uint64_t sessions_ = 0;
  bool is_blocked_ = false;
  bool idle_ = false;
  bool is_draining_ = false;
  bool owes_answer_ = false;  // one may not have reached the runtime
  bool is_complete_ = false;
  std::optional<Instant> leave_at_;
  bool is_complete_told_ = false;
  bool is_drain_wanted_ = false;
};

}  // namespace

Result<std::unique_ptr<RuntimeLink>> make_session_link(const RuntimeLinkOptions& options,
                                                       const LinkPlace& place) {
  auto link = std::make_unique<SessionLink>(options, place);
  if (auto opened = link->open(options); !opened) return opened.error();
  return std::unique_ptr<RuntimeLink>{std::move(link)};
}

bool is_grpc_url(std::string_view url) {
  return url.starts_with("http://") || url.starts_with("https://");
}

Result<Done> check_runtime_url(std::string_view url) {
  std::string as_socket{url};
  if (url.starts_with("http://")) as_socket = "ws://" + as_socket.substr(7);
  if (url.starts_with("https://")) as_socket = "wss://" + as_socket.substr(8);
  const auto address = parse_address(as_socket);
  if (!address) return address.error();
  return Done{};
}

Result<std::unique_ptr<RuntimeLink>> make_runtime_link(const RuntimeLinkOptions& options,
                                                       const LinkPlace& place) {
  return is_grpc_url(options.url) ? make_grpc_link(options, place) : make_session_link(options, place);
}

}  // namespace windlass::agent
