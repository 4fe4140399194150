#include "tests/support/operations_world.h"

#include <cstdio>
#include <utility>

#include "protocol/codec/encode.h"

namespace windlass::testing {
namespace {

constexpr std::size_t kLinksKept = 4;  // the current one and some that died, whose packets may still come

SessionConfig config_of(Choices& choices) {
  SessionConfig config;
  const std::uint32_t frames[] = {1, 3, 16, 256};
  const std::uint64_t bytes[] = {64, 1000, 1 << 20};
  config.receive_credit = {frames[choices.below(4)], bytes[choices.below(3)]};
  config.resume_ttl = seconds{60};
  config.token_rotation = seconds{45};
  config.heartbeat_interval = seconds{10};
  config.backoff_first = milliseconds{200};  // connections are what is tried here, not waiting
  return config;
}

std::string event_name(const SessionEvent& event) {
  static constexpr const char* kNames[] = {"Established", "Delivered",      "Acknowledged", "Writable",
                                           "Detached",    "DrainRequested", "LoadReported", "LivenessChanged",
                                           "ClockJumped", "Registered",     "TokenRotated", "TwinSuspected",
                                           "BackingOff",  "Refused",        "Ended"};
  static_assert(std::variant_size_v<SessionEvent> == std::size(kNames));
  std::string name = kNames[event.index()];
  if (const auto* ended = std::get_if<Ended>(&event)) name += " " + ended->code + " " + ended->reason;
  if (const auto* delivered = std::get_if<Delivered>(&event))
    name += " " + std::string{delivered->message.id()};
  if (const auto* backing = std::get_if<BackingOff>(&event)) name += " " + backing->cause;
  return name;
}

}  // namespace

OperationsWorld::OperationsWorld(Choices& choices, bool trace)
    : choices_(choices),
      trace_(trace),
      revision_(choices.one_in(3) ? Revision::One : Revision::Two),
      worker_config_(config_of(choices)),
      scheduler_config_(config_of(choices)),
      tokens_(test_tokens()) {
  next_seed_ = choices.below(65536);
  make_scheduler();
  make_worker();
}

void OperationsWorld::make_worker() {
  worker_ = std::make_unique<WorkerEndpoint>(worker_options(revision_), worker_config_, next_seed_++);
  worker_session_.clear();
  worker_refused_.reset();
  worker_busy_ = false;
  worker_->start(now());
  pump();
}

void OperationsWorld::make_scheduler() {
  scheduler_ = std::make_unique<SchedulerEndpoint>(SchedulerOptions{.scheduler_id = "sched"},
                                                   scheduler_config_, admission_, tokens_, next_seed_++);
  session_ids_.clear();
  scheduler_refused_.reset();
}

Now OperationsWorld::now() const {
  return {Instant{elapsed_}, WallTime{milliseconds{1'700'000'000'000}} +
                                 std::chrono::duration_cast<milliseconds>(elapsed_ + wall_offset_)};
}

void OperationsWorld::note(std::string_view who, std::string_view what) const {
  if (!trace_) return;
  std::fprintf(stderr, "%12.6f %.*s %.*s (worker %s)\n", std::chrono::duration<double>(elapsed_).count(),
               static_cast<int>(who.size()), who.data(), static_cast<int>(what.size()), what.data(),
               worker_ ? std::string{to_string(worker_->state())}.c_str() : "none");
}

std::string OperationsWorld::worker_session() const {
  return worker_->session() == nullptr ? "" : worker_->session()->identity().session_id;
}

OperationsWorld::Link* OperationsWorld::link_of_worker(ConnectionId id) {
  for (Link& link : links_) {
    if (link.worker_id == id && link.worker_open) return &link;
  }
  return nullptr;
}

OperationsWorld::Link* OperationsWorld::link_of_scheduler(ConnectionId id) {
  for (Link& link : links_) {
    if (link.scheduler_id == id && link.scheduler_open) return &link;
  }
  return nullptr;
}

void OperationsWorld::pump() {
  for (bool moved = true; moved;) {
    moved = pump_worker();
    moved = pump_scheduler() || moved;
  }
  check_promises();
}

bool OperationsWorld::pump_worker() {
  if (worker_ == nullptr) return false;
  bool moved = false;
  if (const auto id = worker_->poll_dial(now())) {
    moved = true;
    dial(*id);
  }
  while (!worker_busy_) {
    const auto frame = worker_->poll_transmit(now());
    if (!frame) break;
    moved = true;
    Packet packet;
    packet.kind = encode(*frame, revision_, packet.bytes);
    Link* const link = link_of_worker(worker_->connection());
    if (link != nullptr && !link->cut) link->up.push_back(std::move(packet));
  }
  while (const auto close = worker_->poll_close(now())) {
    moved = true;
    Link* const link = link_of_worker(worker_->connection());
    if (link == nullptr) continue;
    link->worker_open = false;
    if (!link->cut) link->up.push_back({{}, MessageKind::Text, *close});
  }
  while (auto event = worker_->poll_event()) {
    moved = true;
    on_worker_event(event->event);
  }
  return moved;
}

bool OperationsWorld::pump_scheduler() {
  bool moved = false;
  while (const auto out = scheduler_->poll_transmit(now())) {
    moved = true;
    Packet packet;
    packet.kind = encode(out->frame, out->revision, packet.bytes);
    Link* const link = link_of_scheduler(out->connection);
    if (link != nullptr && !link->cut) link->down.push_back(std::move(packet));
  }
  while (const auto close = scheduler_->poll_close(now())) {
    moved = true;
    if (Link* const link = link_of_scheduler(close->connection)) {
      link->scheduler_open = false;
      if (!link->cut) link->down.push_back({{}, MessageKind::Text, close->request});
    }
    scheduler_->handle_closed(close->connection, now());
  }
  while (auto event = scheduler_->poll_event()) {
    moved = true;
    on_scheduler_event(*event);
  }
  return moved;
}

void OperationsWorld::dial(ConnectionId id) {
  worker_busy_ = false;
  if (!dials_succeed_) return worker_->handle_closed(id, 1006, "refused", now());
  links_.push_back({.worker_id = id, .scheduler_id = ConnectionId{next_connection_++}});
  while (links_.size() > kLinksKept) {
    if (links_.front().scheduler_open) scheduler_->handle_closed(links_.front().scheduler_id, now());
    links_.pop_front();
  }
  scheduler_->handle_opened(links_.back().scheduler_id, {}, now());
  worker_->handle_opened(id, now());
}

void OperationsWorld::deliver_up(Link& link) {
  const Packet packet = std::move(link.up.front());
  link.up.pop_front();
  if (!link.scheduler_open) return;
  const ConnectionId id = link.scheduler_id;
  if (packet.close) {
    link.scheduler_open = false;
    scheduler_->handle_closed(id, now());
  } else {
    const auto revision = scheduler_->revision(id);
    const Expect expect = !revision                    ? Expect::Any
                          : *revision == Revision::One ? Expect::RevisionOne
                                                       : Expect::RevisionTwo;
    const Frame* const frame = decoder_.decode(packet.bytes, packet.kind, expect);
    if (frame == nullptr) return ledger.fail("the worker sent what breaks the schema: " + packet.bytes);
    note("up", packet.bytes);
    scheduler_->handle_frame(id, *frame, now());
  }
  pump();
}

void OperationsWorld::deliver_down(Link& link) {
  const Packet packet = std::move(link.down.front());
  link.down.pop_front();
  if (!link.worker_open || worker_ == nullptr) return;
  if (packet.close) {
    link.worker_open = false;
    worker_->handle_closed(link.worker_id, packet.close->code, packet.close->reason, now());
  } else {
    const Expect expect = revision_ == Revision::One ? Expect::RevisionOne : Expect::RevisionTwo;
    const Frame* const frame = decoder_.decode(packet.bytes, packet.kind, expect);
    if (frame == nullptr) return ledger.fail("the scheduler sent what breaks the schema: " + packet.bytes);
    if (const auto* accept = std::get_if<SessionAccept>(&frame->body)) accepted_session_ = accept->session_id;
    note("down", packet.bytes);
    worker_->handle_frame(link.worker_id, *frame, now());
  }
  pump();
}

void OperationsWorld::on_worker_event(SessionEvent& event) {
  note("worker", event_name(event));
  if (const auto* established = std::get_if<Established>(&event)) {
    report.resumed += established->resumed ? 1 : 0;
    if (!established->resumed) {
      worker_session_ = accepted_session_;
      worker_refused_.reset();
    }
  } else if (const auto* delivered = std::get_if<Delivered>(&event)) {
    ++report.delivered;
    ledger.delivered(worker_session_, From::Scheduler, *delivered);
  } else if (const auto* acknowledged = std::get_if<Acknowledged>(&event)) {
    ledger.acknowledged(worker_session_, From::Worker, acknowledged->next);
  } else if (const auto* ended = std::get_if<Ended>(&event)) {
    ++report.ended;
    ledger.ended(worker_session_, From::Worker, *ended);
    worker_refused_.reset();
  } else if (std::holds_alternative<Writable>(event) && worker_refused_) {
    Message message = next_message("w", *std::exchange(worker_refused_, std::nullopt));
    const std::string id{message.id()};
    const auto sent = worker_->send(std::move(message), now());
    if (sent) ledger.sent(worker_session(), From::Worker, *sent, id);
    if (!sent && sent.error().code == ErrorCode::SessionWouldBlock)
      ledger.fail("writable, the worker was told, but it blocks");
  }
}

void OperationsWorld::on_scheduler_event(OwnerEvent& event) {
  note("scheduler", event_name(event.event));
  if (std::holds_alternative<Registered>(event.event) && !session_ids_.contains(event.session)) {
    const Session* const session = scheduler_->session(event.session);
    if (session != nullptr) session_ids_[event.session] = session->identity().session_id;
    scheduler_refused_.reset();
  }
  const std::string& sid = session_ids_[event.session];
  if (const auto* delivered = std::get_if<Delivered>(&event.event)) {
    ++report.delivered;
    ledger.delivered(sid, From::Worker, *delivered);
  } else if (const auto* acknowledged = std::get_if<Acknowledged>(&event.event)) {
    ledger.acknowledged(sid, From::Scheduler, acknowledged->next);
  } else if (const auto* ended = std::get_if<Ended>(&event.event)) {
    ledger.ended(sid, From::Scheduler, *ended);
    if (live_handle() == std::nullopt || *live_handle() == event.session) scheduler_refused_.reset();
  } else if (std::holds_alternative<Writable>(event.event) && scheduler_refused_ &&
             live_handle() == event.session) {
    Message message = next_message("s", *std::exchange(scheduler_refused_, std::nullopt));
    const std::string id{message.id()};
    const auto sent = scheduler_->send(event.session, std::move(message), now());
    if (sent) ledger.sent(sid, From::Scheduler, *sent, id);
    if (!sent && sent.error().code == ErrorCode::SessionWouldBlock)
      ledger.fail("writable, the scheduler was told, but it blocks");
  }
}

Message OperationsWorld::next_message(std::string_view prefix, std::uint64_t bytes) {
  const std::string id = numbered(prefix, next_message_++);
  return Message{{.type = "biz.test",
                  .id = id,
                  .payload = object(std::max<std::uint64_t>(bytes, 2)),
                  .corr = "c",
                  .attachment = {},
                  .ack_request = choices_.one_in(4)}};
}

}  // namespace windlass::testing
