#include "tests/sim/scheduler_machine.h"

#include <utility>

#include "tests/sim/snapshot.h"

namespace windlass::sim {
namespace {

constexpr std::string_view kTenant = "acme";
constexpr Duration kDrainLateMax = seconds{1};

}  // namespace

Result<Done> Bearers::admit(const AdmissionRequest& request) const {
  if (request.tenant != kTenant) {
    return Error{ErrorCode::SessionTenantMismatch, Blame::Peer, "this identity belongs to another tenant"};
  }
  if (request.handshake.token.empty()) {
    return Error{ErrorCode::AuthMissingToken, Blame::Peer, "a bearer token is wanted here"};
  }
  if (request.handshake.token != of(request.instance_id)) {
    return Error{ErrorCode::AuthInvalidToken, Blame::Peer, "the bearer token is not valid here"};
  }
  return Done{};
}

std::string Bearers::of(std::string_view instance) const {
  const auto own = own_.find(instance);
  return own == own_.end() ? "let-me-in" : own->second;
}

SchedulerMachine::Process::Process(SchedulerMachine& machine, std::uint64_t seed)
    : tokens(TokenAuthority::with_keys(machine.keys_).value()),
      endpoint({.scheduler_id = "scheduler-1"}, machine.options_.scheduler_config, machine.bearers_, tokens,
               seed),
      driver(endpoint, machine.parts_.decoder, machine.clock_, machine.alarm_),
      owner({machine.context_, machine, machine.parts_.sessions, machine.parts_.duties}, endpoint,
            machine.disk_, machine.store_, machine.options_.own_delay_max, machine.options_.trusts_acks) {
  for (const auto& [instance, when] : machine.store_.revocations) tokens.revoke(kTenant, instance, when);
}

SchedulerMachine::SchedulerMachine(const MachineParts& parts, const WorldOptions& options)
    : Machine(parts.context, "scheduler", options.scheduler_clock),
      parts_(parts),
      options_(options),
      disk_(parts.context, options.scheduler_commit_time_max,
            [this](std::function<void()> report) { later(Duration{}, std::move(report)); }) {
  add_key();
}

SchedulerMachine::~SchedulerMachine() = default;

void SchedulerMachine::start() {
  if (process_) return;
  context_.note("scheduler starts");
  process_ = std::make_unique<Process>(*this, context_.random.next());
  finish_turn();
}

void SchedulerMachine::crash(bool peers_hear) {
  if (!process_) return;
  context_.note("scheduler process ends");
  disk_.crash();
  process_->owner.lose_process();
  end_life();
  alarm_.set(std::nullopt);
  for (const auto& [id, socket] : sockets_) parts_.network.abandon(*socket, peers_hear);
  sockets_.clear();
  process_.reset();
}

bool SchedulerMachine::is_idle() const {
  if (!process_ || !process_->owner.is_idle()) return false;
  for (const SessionHandle handle : process_->owner.sessions()) {
    const Session* const session = process_->endpoint.session(handle);
    if (session == nullptr || !session->stream().send_window().empty()) return false;
    const ReceiveWindow& window = session->stream().receive_window();
    if (window.owned_next() != window.received_next()) return false;
  }
  return true;
}

void SchedulerMachine::submit(const Row& row, std::function<void()> confirm) {
  if (!process_) return;
  later(Duration{}, [this, row, confirm = std::move(confirm)] { process_->owner.submit(row, confirm); });
}

const Session* SchedulerMachine::session_of(const std::string& instance) const {
  if (!process_) return nullptr;
  const auto handle = process_->endpoint.find(kTenant, instance);
  return handle ? process_->endpoint.session(*handle) : nullptr;
}

void SchedulerMachine::drain(const std::string& instance, Duration deadline) {
  if (!process_) return;
  later(Duration{}, [this, instance, deadline] {
    const auto handle = process_->endpoint.find(kTenant, instance);
    if (!handle || process_->endpoint.session(*handle)->is_draining()) return;
    process_->owner.expect_drained(*handle, deadline);
    process_->endpoint.drain(*handle, "scale in", deadline, clock_.now());
  });
}

void SchedulerMachine::drain_all(Duration window) {
  if (!process_) return;
  later(Duration{}, [this, window] { process_->endpoint.drain_all(window, clock_.now()); });
}

void SchedulerMachine::reset(const std::string& instance) {
  if (!process_) return;
  later(Duration{}, [this, instance] {
    if (const auto handle = process_->endpoint.find(kTenant, instance)) {
      process_->endpoint.reset(*handle, ErrorCode::Internal, "the owner starts over", clock_.now());
    }
  });
}

void SchedulerMachine::rotate_token(const std::string& instance) {
  if (!process_) return;
  later(Duration{}, [this, instance] {
    if (const auto handle = process_->endpoint.find(kTenant, instance)) {
      process_->endpoint.rotate_token(*handle, clock_.now());
    }
  });
}

void SchedulerMachine::add_key() {
  const std::string number = std::to_string(++key_count_);
  keys_.insert(keys_.begin(), {"k" + number, std::string(32, 'x') + number});
  if (keys_.size() > 3) keys_.pop_back();
  if (!process_) return;
  later(Duration{}, [this] { static_cast<void>(process_->tokens.set_keys(keys_)); });
}

void SchedulerMachine::revoke(const std::string& instance, const std::string& next_bearer) {
  bearers_.require(instance, next_bearer);
  if (!process_) return;
  later(Duration{}, [this, instance] {
    store_.revocations[instance] = clock_.now().wall;
    process_->endpoint.revoke(kTenant, instance, clock_.now());
  });
}

void SchedulerMachine::set_credit(const std::string& instance, Credit credit) {
  if (!process_) return;
  later(Duration{}, [this, instance, credit] {
    if (const auto handle = process_->endpoint.find(kTenant, instance)) {
      process_->endpoint.set_receive_credit(*handle, credit, clock_.now());
    }
  });
}

SocketEvents& SchedulerMachine::on_accepted(Socket& socket) {
  socket.id = ConnectionId{next_connection_++};
  sockets_[socket.id.value()] = &socket;
  process_->driver.on_opened(socket.id, socket, {});
  finish_turn();
  return *this;
}

// Whether the session that this connection once carried is carried by another one, or replaced, as the wire
// has shown it.
bool SchedulerMachine::is_stale(Socket& socket) const {
  const std::string* const id = parts_.sessions.session_on(socket.wire(), End::Scheduler);
  if (id == nullptr) return false;
  const Session* const session = session_of(socket.wire().instance());
  return !parts_.sessions.is_current(socket.wire(), End::Scheduler) ||
         (session != nullptr && session->identity().session_id != *id);
}

void SchedulerMachine::on_message(Socket& socket, BytesView message, MessageKind kind) {
  const std::string& instance = socket.wire().instance();
  const bool stale = is_stale(socket);
  const Snapshot before = snapshot_of(session_of(instance));
  using Ear = SessionChecker::Ear;
  const Ear ear = !stale && before.is_connected ? Ear::Open : Ear::Deaf;
  const bool is_lie =
      !instance.empty() && parts_.sessions.on_read(socket.wire(), End::Scheduler, message, ear);
  process_->driver.on_message(socket.id, message, kind);
  const Snapshot after = snapshot_of(session_of(instance));
  if (stale) {
    ++context_.stats.stale_messages;
    //= FEN-1
    if (before != after) {
      context_.fail("stale-connection-changes-nothing", "the scheduler heard an older connection of ",
                    instance);
    }
  }
  //= ACK-4
  if (is_lie && before.session == after.session) {
    context_.fail("lie-ends-session", "the scheduler believed an ack of what it never sent to ", instance);
  }
  poll_events();
}

void SchedulerMachine::on_input_used(Socket& socket) {
  if (process_ && context_.chance(50)) process_->driver.on_idle(socket.id);
  finish_turn();
}

void SchedulerMachine::on_writable(Socket& socket) {
  process_->driver.on_writable(socket.id);
  finish_turn();
}

void SchedulerMachine::on_closed(Socket& socket, std::uint16_t code, std::string_view reason) {
  context_.note("scheduler wire ", socket.wire().number(), " closed ", code, " ", reason);
  sockets_.erase(socket.id.value());
  const std::string& instance = socket.wire().instance();
  const bool stale = is_stale(socket);
  const Snapshot before = snapshot_of(session_of(instance));
  process_->driver.on_closed(socket.id);
  if (stale) {
    ++context_.stats.stale_closes;
    //= FEN-1
    if (before != snapshot_of(session_of(instance))) {
      context_.fail("stale-connection-changes-nothing",
                    "the scheduler heeded the close of an older connection of ", instance);
    }
  }
  finish_turn();
}

void SchedulerMachine::on_alarm() {
  if (!process_) return;
  process_->driver.on_alarm();
  finish_turn();
}

void SchedulerMachine::poll_events() {
  while (auto event = process_->driver.poll_event()) process_->owner.handle(std::move(*event));
}

void SchedulerMachine::finish_turn() {
  if (!process_) return;
  for (int round = 0; round < 3; ++round) {
    poll_events();
    process_->owner.pump();
    process_->driver.flush();
  }
  for (const auto& [id, socket] : sockets_) {
    if (socket->fills_up()) process_->driver.on_blocked(socket->id);
  }
  poll_events();
  check_bounds();
}

void SchedulerMachine::check_bounds() {
  for (const SessionHandle handle : process_->owner.sessions()) {
    const Session* const session = process_->endpoint.session(handle);
    if (session == nullptr) {
      return context_.fail("every-end-is-told", "the scheduler lost a session without telling its owner");
    }
    check_session(context_, "the scheduler", *session,
                  parts_.sessions.unowned(session->identity().session_id, End::Scheduler));
    //= DRN-5
    const auto due = process_->owner.drain_due(handle);
    if (due && *due + kDrainLateMax < clock_.now().steady &&
        asleep_until() + kDrainLateMax < context_.now()) {
      return context_.fail("drains-end-in-time", "the scheduler still has the session of ",
                           session->identity().peer_id, " after its drain deadline");
    }
  }
}

}  // namespace windlass::sim
