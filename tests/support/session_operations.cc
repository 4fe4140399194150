#include "tests/support/session_operations.h"

#include <array>

#include "tests/support/operations_world.h"

namespace windlass::testing {

std::uint8_t Choices::next_byte() {
  return position_ < bytes_.size() ? bytes_[position_++] : std::uint8_t{0};
}

std::uint64_t Choices::below(std::uint64_t bound) {
  const bool wide = bound > 256;
  std::uint64_t value = 0;
  if (random_) {
    value = random_->below(bound);
  } else {
    value = next_byte();
    if (wide) value = value << 8U | next_byte();
    value %= bound;
  }
  if (wide) taken_.push_back(static_cast<std::uint8_t>(value >> 8U));
  taken_.push_back(static_cast<std::uint8_t>(value));
  return value;
}

void OperationsWorld::send_from_worker() {
  Message message = next_message("w", 2 + choices_.below(200));
  const std::string id{message.id()};
  const std::uint64_t bytes = message.credit_bytes();
  const auto sent = worker_->send(std::move(message), now());
  if (sent) {
    ledger.sent(worker_session(), From::Worker, *sent, id);
  } else if (sent.error().code == ErrorCode::SessionWouldBlock && worker_->session() != nullptr) {
    worker_refused_ = std::min(worker_refused_.value_or(bytes), bytes);
    // NOLINTNEXTLINE(bugprone-use-after-move)
    if (message.id() != id) ledger.fail("a message that was refused is gone");
  }
  pump();
}

void OperationsWorld::send_from_scheduler() {
  const auto handle = live_handle();
  if (!handle) return;
  Message message = next_message("s", 2 + choices_.below(200));
  const std::string id{message.id()};
  const std::uint64_t bytes = message.credit_bytes();
  const auto sent = scheduler_->send(*handle, std::move(message), now());
  if (sent) {
    ledger.sent(session_ids_[*handle], From::Scheduler, *sent, id);
  } else if (sent.error().code == ErrorCode::SessionWouldBlock) {
    scheduler_refused_ = std::min(scheduler_refused_.value_or(bytes), bytes);
  }
  pump();
}

void OperationsWorld::own_at_worker(bool all) {
  const std::string session = worker_session();
  if (session.empty()) return;
  const LedgerStream& stream = ledger.stream(session, From::Scheduler);
  if (stream.owned >= stream.delivered) return;
  const Seq next =
      all ? stream.delivered
          : stream.owned + 1 + choices_.below(std::min<Seq>(stream.delivered - stream.owned, 256));
  ledger.owned(session, From::Scheduler, next);
  worker_->own(worker_->handle(), next, now());
  pump();
}

void OperationsWorld::own_at_scheduler(bool all) {
  const auto handle = live_handle();
  if (!handle) return;
  const LedgerStream& stream = ledger.stream(session_ids_[*handle], From::Worker);
  if (stream.owned >= stream.delivered) return;
  const Seq next =
      all ? stream.delivered
          : stream.owned + 1 + choices_.below(std::min<Seq>(stream.delivered - stream.owned, 256));
  ledger.owned(session_ids_[*handle], From::Worker, next);
  scheduler_->own(*handle, next, now());
  pump();
}

void OperationsWorld::deliver(std::size_t packets_max) {
  for (; packets_max > 0; --packets_max) {
    Link* busiest = nullptr;
    bool up = false;
    // Any connection may speak, the dead ones too: what they still hold comes late.
    const std::size_t start = choices_.below(2 * links_.size() + 1);
    for (std::size_t i = 0; i < 2 * links_.size() && busiest == nullptr; ++i) {
      Link& link = links_[(start + i) / 2 % links_.size()];
      up = (start + i) % 2 == 0;
      if (!(up ? link.up : link.down).empty()) busiest = &link;
    }
    if (busiest == nullptr) return;
    up ? deliver_up(*busiest) : deliver_down(*busiest);
  }
}

void OperationsWorld::damage_link() {
  note("world", "the link is damaged");
  if (links_.empty()) return;
  Link& link = links_.back();
  std::deque<Packet>& packets = choices_.one_in(2) ? link.up : link.down;
  if (packets.empty()) return;
  const std::size_t at = choices_.below(std::min<std::size_t>(packets.size(), 256));
  // A sequenced frame may be lost, since a timer sends it again, and acks may come in any order. Everything
  // else on a connection that lives is left to TCP.
  const bool is_data = packets[at].bytes.find("biz.test") != std::string::npos;
  const bool is_ack = packets[at].bytes.find("control.ack") != std::string::npos;
  if (!is_data && !is_ack) return;
  switch (choices_.below(3)) {
    case 0:
      if (is_data) packets.erase(packets.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 1:
      packets.insert(packets.begin() + static_cast<std::ptrdiff_t>(at), packets[at]);
      break;
    default:
      if (!packets.front().close) std::swap(packets.front(), packets[at]);
      break;
  }
}

void OperationsWorld::cut() {
  note("world", "cut");
  if (links_.empty()) return;
  Link& link = links_.back();
  link.cut = true;
  if (choices_.one_in(2)) link.up.clear();  // else the scheduler still gets what is under way
  link.down.clear();
  const std::uint64_t who = choices_.below(3);
  if (who != 0 && link.worker_open) {
    link.worker_open = false;
    worker_->handle_closed(link.worker_id, 1006, "", now());
  }
  if (who != 1 && link.scheduler_open) {
    link.scheduler_open = false;
    scheduler_->handle_closed(link.scheduler_id, now());
  }
  pump();
}

void OperationsWorld::notice_cuts() {
  note("world", "cuts are noticed");
  for (std::size_t i = 0; i < links_.size(); ++i) {
    if (!links_[i].cut) continue;
    if (std::exchange(links_[i].scheduler_open, false))
      scheduler_->handle_closed(links_[i].scheduler_id, now());
    if (std::exchange(links_[i].worker_open, false))
      worker_->handle_closed(links_[i].worker_id, 1006, "", now());
  }
  pump();
}

void OperationsWorld::advance(Duration by) {
  const Duration end = elapsed_ + by;
  for (std::size_t turns = 0;; ++turns) {
    std::optional<Instant> next = worker_->poll_timeout();
    const auto other = scheduler_->poll_timeout();
    if (!next || (other && *other < *next)) next = other;
    if (!next || next->time_since_epoch() > end) break;
    elapsed_ = std::max(elapsed_, next->time_since_epoch());
    worker_->handle_timeout(now());
    scheduler_->handle_timeout(now());
    pump();
    if (turns > 100'000) return ledger.fail("timers spin");
  }
  elapsed_ = end;
}

void OperationsWorld::change_credit() {
  note("world", "credit changes");
  const std::array<std::uint32_t, 5> frames = {0, 1, 4, 64, 4096};
  const std::array<std::uint64_t, 3> bytes = {10, 1000, 1 << 20};
  const Credit credit{frames[choices_.below(frames.size())], bytes[choices_.below(bytes.size())]};
  if (choices_.one_in(2)) {
    worker_->set_receive_credit(credit, now());
  } else if (const auto handle = live_handle()) {
    scheduler_->set_receive_credit(*handle, credit, now());
  }
  pump();
}

void OperationsWorld::toggle_busy() {
  note("world", "busy changes");
  if (links_.empty()) return;
  if (choices_.one_in(2)) {
    worker_busy_ = !worker_busy_;
    worker_->set_transport_busy(worker_busy_, now());
  } else {
    scheduler_->set_transport_busy(links_.back().scheduler_id, choices_.one_in(2), now());
  }
  pump();
}

void OperationsWorld::disturb() {
  note("world", "disturbed");
  const auto handle = live_handle();
  switch (choices_.below(16)) {
    case 0:
      worker_->drain("maintenance", seconds{1 + static_cast<std::int64_t>(choices_.below(60))}, now());
      break;
    case 1:
      if (handle)
        scheduler_->drain(*handle, "scale in", seconds{1 + static_cast<std::int64_t>(choices_.below(60))},
                          now());
      break;
    case 2:
      worker_->complete_drain(now());
      break;
    case 3:
      if (handle) scheduler_->reset(*handle, ErrorCode::Internal, "disturbed", now());
      break;
    case 4:
      if (handle) scheduler_->rotate_token(*handle, now());
      break;
    case 5:
      if (!links_.empty())
        scheduler_->handle_bad_frame(links_.back().scheduler_id,
                                     {ErrorCode::ProtoSchema, "b", "biz.x", "/x: why"}, now());
      break;
    case 6:
      worker_->handle_bad_frame(worker_->connection(), {ErrorCode::ProtoJson, {}, {}, "why"}, now());
      break;
    case 7:
      wall_offset_ += seconds{static_cast<std::int64_t>(choices_.below(60))} - seconds{20};
      break;
    case 8:
      worker_->handle_idle();
      if (!links_.empty()) scheduler_->handle_idle(links_.back().scheduler_id);
      break;
    case 9:
      dials_succeed_ = !choices_.one_in(4);
      break;
    case 10: {
      LoadFacts load;
      load.inflight = choices_.below(2);
      load.mem_pct = static_cast<double>(choices_.below(100));
      worker_->set_load(load);
      break;
    }
    case 11:
      worker_->stop("enough", now());
      break;
    default:
      deliver(100);
      break;
  }
  pump();
}

void OperationsWorld::restart_worker() {
  note("world", "the worker restarts");
  // Its sockets die with it. The scheduler notices later, or never.
  for (Link& link : links_) {
    link.worker_open = false;
    link.cut = true;
  }
  ledger.sender_died(From::Worker);
  make_worker();
}

void OperationsWorld::restart_scheduler() {
  note("world", "the scheduler restarts");
  for (Link& link : links_) {
    link.scheduler_open = false;
    link.cut = true;
  }
  ledger.sender_died(From::Scheduler);
  make_scheduler();
  pump();
}

void OperationsWorld::check_promises() {
  const auto check = [this](const Session* session) {
    if (session == nullptr) return;
    if (session->stream().counters().outside_window != 0) ledger.fail("a frame beyond the credit given");
    if (session->stream().send_window().in_flight() > limits::kWindowFramesMax)
      ledger.fail("more in flight than any window");
    if (session->is_connected() != (session->state() == SessionState::Ready ||
                                    session->state() == SessionState::Draining || session->is_ended())) {
      ledger.fail("a state that does not fit: " + std::string{to_string(session->state())});
    }
  };
  if (worker_) check(worker_->session());
  if (const auto handle = live_handle()) check(scheduler_->session(*handle));
}

void OperationsWorld::calm_down() {
  note("world", "calm");
  dials_succeed_ = true;
  worker_busy_ = false;
  worker_->set_transport_busy(false, now());
  worker_->set_receive_credit({256, 1 << 20}, now());
  notice_cuts();
  for (const Link& link : links_) scheduler_->set_transport_busy(link.scheduler_id, false, now());
  for (int round = 0; round < 1000 && ledger.failure().empty() && !unsettled().empty(); ++round) {
    if (const auto handle = live_handle()) scheduler_->set_receive_credit(*handle, {256, 1 << 20}, now());
    deliver(10'000);
    own_at_worker(true);
    own_at_scheduler(true);
    if (worker_->state() == SessionState::Draining) worker_->complete_drain(now());
    pump();
    deliver(10'000);
    notice_cuts();
    advance(round < 100 ? milliseconds{100} : seconds{1});
  }
}

std::string OperationsWorld::unsettled() const {
  const SessionState state = worker_->state();
  if (state != SessionState::Ready && state != SessionState::Closed) {
    return "the worker did not settle: " + std::string{to_string(state)};
  }
  return ledger.unsettled(worker_session());
}

OperationsReport run_session_operations(Choices& choices, std::size_t operations_max, bool trace) {
  OperationsWorld world{choices, trace};
  for (std::size_t i = 0; i < operations_max && !choices.is_spent() && world.ledger.failure().empty(); ++i) {
    ++world.report.operations;
    if (world.is_worker_closed() && choices.one_in(4)) world.restart_worker();
    const std::uint64_t pick = choices.below(64);
    if (pick < 10) {
      world.send_from_worker();
    } else if (pick < 20) {
      world.send_from_scheduler();
    } else if (pick < 24) {
      world.own_at_worker(false);
    } else if (pick < 28) {
      world.own_at_scheduler(false);
    } else if (pick < 48) {
      world.deliver(1 + choices.below(40));
    } else if (pick < 52) {
      world.advance(milliseconds{static_cast<std::int64_t>(choices.below(300))});
    } else if (pick < 53) {
      world.advance(milliseconds{static_cast<std::int64_t>(choices.below(20'000))});
    } else if (pick < 54) {
      world.cut();
    } else if (pick < 55) {
      world.notice_cuts();
    } else if (pick < 57) {
      world.change_credit();
    } else if (pick < 58) {
      world.toggle_busy();
    } else if (pick < 60) {
      world.damage_link();
    } else if (pick < 63) {
      world.disturb();
    } else {
      choices.one_in(2) ? world.restart_scheduler() : world.restart_worker();
    }
  }
  world.report.choices = choices.taken().size();
  world.calm_down();
  if (const std::string what = world.unsettled(); !what.empty()) world.ledger.fail(what);
  world.report.failure = world.ledger.failure();
  return world.report;
}

}  // namespace windlass::testing
