#include "tests/sim/worker_machine.h"

#include <algorithm>
#include <utility>

#include "tests/sim/snapshot.h"

namespace windlass::sim {
namespace {

// The codes that schema/errors.json wants retried at the cap.
bool wants_cap(std::string_view code) {
  for (const std::string_view known : {"E.AUTH.", "E.SESSION.DENIED", "E.SESSION.SUPERSEDED",
                                       "E.SESSION.TENANT_MISMATCH", "E.PROTO.VERSION"}) {
    if (code.starts_with(known)) return true;
  }
  return false;
}

}  // namespace

WorkerMachine::Process::Process(WorkerMachine& machine, WorkerOptions options, std::uint64_t seed)
    : endpoint(std::move(options), machine.plan_.config, seed),
      driver(endpoint, machine.parts_.decoder, machine.clock_, machine.alarm_, machine),
      owner({machine.context_, machine, machine.parts_.sessions, machine.parts_.duties}, endpoint,
            machine.disk_, machine.store_, machine.own_delay_max_, machine.plan_.work_time_max) {}

WorkerMachine::WorkerMachine(const MachineParts& parts, std::string name, std::string instance,
                             const WorkerPlan& plan, Duration own_delay_max)
    : Machine(parts.context, std::move(name), plan.clock),
      parts_(parts),
      instance_(std::move(instance)),
      plan_(plan),
      own_delay_max_(own_delay_max),
      disk_(parts.context, plan.commit_time_max,
            [this](std::function<void()> report) { later(Duration{}, std::move(report)); }) {}

WorkerMachine::~WorkerMachine() = default;

void WorkerMachine::start() {
  if (process_ || retired_) return;
  stopping_ = false;
  ended_.reset();
  WorkerOptions options;
  options.tenant = "acme";
  options.instance_id = instance_;
  options.revision = plan_.revision;
  options.auth_token = bearer_;
  options.profile.worker_name = name_;
  options.profile.version = "1.0";
  options.profile.hostname = name_;
  options.profile.runtimes = {"native"};
  context_.note(name_, " starts, revision ", static_cast<int>(plan_.revision));
  dialled_ = ConnectionId{0};
  process_ = std::make_unique<Process>(*this, std::move(options), context_.random.next());
  process_->endpoint.start(clock_.now());
  finish_turn();
}

void WorkerMachine::crash(bool peer_hears) {
  if (!process_) return;
  context_.note(name_, " process ends");
  disk_.crash();  // first: what makes it to the disk is still this process's
  process_->owner.lose_process();
  end_life();
  alarm_.set(std::nullopt);
  for (const auto& [wire, socket] : sockets_) parts_.network.abandon(*socket, peer_hears);
  sockets_.clear();
  process_.reset();
}

void WorkerMachine::retire(bool peer_hears) {
  retired_ = true;
  crash(peer_hears);
}

void WorkerMachine::set_bearer(const std::string& bearer) {
  bearer_ = bearer;
  if (process_) process_->endpoint.set_auth_token(bearer);
}

void WorkerMachine::change_revision() {
  plan_.revision = plan_.revision == Revision::One ? Revision::Two : Revision::One;
}

bool WorkerMachine::is_ready() const {
  return process_ && process_->endpoint.state() == SessionState::Ready;
}

std::string WorkerMachine::unfinished() const {
  if (!process_) return "is down";
  const Session* const session = process_->endpoint.session();
  if (session == nullptr) return "has no session";
  const ReceiveWindow& window = session->stream().receive_window();
  if (window.owned_next() != window.received_next()) return "has not owned what it received";
  if (!session->stream().send_window().empty()) return "keeps unacknowledged frames";
  return process_->owner.unfinished();
}

void WorkerMachine::accept_event(Outgoing event) {
  if (!process_) return;
  later(Duration{}, [this, event = std::move(event)] { process_->owner.accept_event(event); });
}

void WorkerMachine::drain(Duration deadline) {
  if (!process_) return;
  later(Duration{}, [this, deadline] { process_->owner.drain(deadline); });
  // Whoever stops a machine does not wait for ever.
  later(deadline + Duration{seconds{2}}, [this] {
    ++context_.stats.stops;
    process_->endpoint.stop("the machine goes away now", clock_.now());
  });
}

void WorkerMachine::set_credit(Credit credit) {
  plan_.config.receive_credit = credit;
  if (!process_) return;
  later(Duration{}, [this, credit] { process_->endpoint.set_receive_credit(credit, clock_.now()); });
}

void WorkerMachine::set_memory(double percent) {
  if (process_) process_->owner.set_memory(percent);
}

void WorkerMachine::dial(ConnectionId id) {
  dialled_ = id;
  context_.note(name_, " dials ", id.value());
  const auto alive = [this, id, count = life()] { return process_ && life() == count && dialled_ == id; };
  parts_.network.dial({name_, instance_, plan_.revision, plan_.link, id}, *this, *this, alive);
}

void WorkerMachine::on_opened(ConnectionId id, Socket& socket) {
  sockets_[socket.wire().number()] = &socket;
  process_->driver.on_opened(id, socket);
  finish_turn();
}

void WorkerMachine::on_refused(ConnectionId id) {
  process_->driver.on_closed(id, 1006, "refused");
  finish_turn();
}

void WorkerMachine::on_message(Socket& socket, BytesView message, MessageKind kind) {
  const bool stale = socket.id != process_->endpoint.connection();
  const Snapshot before = snapshot_of(process_->endpoint.session());
  using Ear = SessionChecker::Ear;
  const bool is_greeting = !stale && process_->endpoint.state() == SessionState::Registered;
  const Ear ear = !stale && before.is_connected ? Ear::Open : is_greeting ? Ear::Greeting : Ear::Deaf;
  const bool is_lie = parts_.sessions.on_read(socket.wire(), End::Worker, message, ear);
  process_->driver.on_message(socket.id, message, kind);
  const Snapshot after = snapshot_of(process_->endpoint.session());
  if (stale) {
    ++context_.stats.stale_messages;
    //= FEN-1
    if (before != after) {
      context_.fail("stale-connection-changes-nothing", name_, " heard an older connection");
    }
  }
  //= ACK-4
  if (is_lie && !before.is_ended && before.session == after.session && !after.is_ended) {
    context_.fail("lie-ends-session", name_, " believed an ack of what it never sent");
  }
  poll_events();
}

void WorkerMachine::on_input_used(Socket&) {
  finish_turn();
}

void WorkerMachine::on_writable(Socket& socket) {
  process_->driver.on_writable(socket.id);
  finish_turn();
}

void WorkerMachine::on_closed(Socket& socket, std::uint16_t code, std::string_view reason) {
  context_.note(name_, " wire ", socket.wire().number(), " closed ", code, " ", reason);
  sockets_.erase(socket.wire().number());
  const bool is_stale = socket.id != process_->endpoint.connection();
  const Snapshot before = snapshot_of(process_->endpoint.session());
  process_->driver.on_closed(socket.id, code, reason);
  if (is_stale) {
    ++context_.stats.stale_closes;
    //= FEN-1
    if (before != snapshot_of(process_->endpoint.session())) {
      context_.fail("stale-connection-changes-nothing", name_, " heeded the close of an older connection");
    }
  }
  finish_turn();
}

void WorkerMachine::on_alarm() {
  if (!process_) return;
  process_->driver.on_alarm();
  finish_turn();
}

void WorkerMachine::poll_events() {
  while (auto event = process_->driver.poll_event()) {
    const auto* const ended = std::get_if<Ended>(&event->event);
    // A session that expired between connections does not change when the next dial comes.
    if (ended != nullptr && ended->reason != "the resume window passed") ended_ = *ended;
    if (const auto* backing_off = std::get_if<BackingOff>(&event->event)) check_backoff(*backing_off);
    process_->owner.handle(std::move(*event));
  }
}

void WorkerMachine::finish_turn() {
  if (!process_) return;
  // A flush may close the connection, of which the owner wants to know before the machine waits again.
  for (int round = 0; round < 3; ++round) {
    poll_events();
    process_->owner.pump();
    process_->driver.flush(context_.chance(50));
  }
  for (const auto& [wire, socket] : sockets_) {
    if (socket->fills_up()) process_->driver.on_blocked(socket->id);
  }
  poll_events();
  check_bounds();
  if (process_->endpoint.state() == SessionState::Closed && !stopping_) {
    stopping_ = true;
    ++context_.stats.drains_completed;
    context_.note(name_, " is drained and stops");
    context_.timeline.after(Duration{}, [this] { crash(true); });
    context_.timeline.after(context_.uniform(milliseconds{1}, seconds{5}), [this] { start(); });
  }
}

void WorkerMachine::check_bounds() {
  const Session* const session = process_->endpoint.session();
  if (session == nullptr) return;
  check_session(context_, name_, *session,
                parts_.sessions.unowned(session->identity().session_id, End::Worker));
  for (const auto& [wire, socket] : sockets_) {
    if (socket->id != process_->endpoint.connection() || !socket->takes_messages()) continue;
    if (!process_->owner.wants_credit()) continue;
    check_probes(context_, name_, *session,
                 std::max({process_->owner.blocked_since(), socket->free_since(), asleep_until(),
                           parts_.sessions.asked_at(session->identity().session_id, End::Worker)}));
  }
}

// The law of waiting before a dial. Where in its interval a plain delay lies is counted; print_summary judges
// the spread.
void WorkerMachine::check_backoff(const BackingOff& event) {
  const SessionConfig& config = plan_.config;
  const std::optional<Ended> ended = std::exchange(ended_, std::nullopt);
  const bool was_refused = !ended && event.cause.starts_with("E.");  // before there was a session
  const std::string_view code = ended ? std::string_view{ended->code} : std::string_view{event.cause};
  // Revision 2 is told by a reset, and one that ended its session by itself no longer reads it.
  //= REV-9
  const bool is_told_by_close =
      process_->endpoint.revision() == Revision::One && event.cause == "superseded session";
  const bool at_cap = is_told_by_close || ((ended || was_refused) && wants_cap(code));
  const std::uint32_t failures = std::min<std::uint32_t>(std::max(process_->endpoint.failures(), 1U), 20);
  const Duration doubled = config.backoff_first * (std::int64_t{1} << (failures - 1));
  const Duration limit = std::min(config.backoff_cap, doubled);
  //= RST-5
  Duration least =
      ended && ended->retry_after ? std::min(*ended->retry_after, config.retry_after_max) : Duration{};
  Duration most = least + limit;
  //= RST-7
  //= FEN-5
  if (at_cap) least += config.backoff_cap, most = least + config.backoff_cap;
  if (was_refused) most += config.retry_after_max;
  //= RST-4
  if (event.delay < least || event.delay > most) {
    context_.fail("backoff-law", name_, " waits ", event.delay, " after failure ", failures, " and '", code,
                  "', which allows ", least, " to ", most);
  }
  if (at_cap || was_refused || ended) return;
  const auto tenth = static_cast<std::size_t>(10 * event.delay / (limit + Duration{1}));
  if (tenth < context_.stats.backoff_deciles.size()) ++context_.stats.backoff_deciles[tenth];
}

}  // namespace windlass::sim
