#include "tests/sim/network.h"

#include <algorithm>
#include <utility>

#include "protocol/base/limits.h"
#include "protocol/websocket/writer.h"

namespace windlass::sim {

void Network::dial(const DialPlan& plan, Dialling& dialling, SocketEvents& events,
                   std::function<bool()> alive) {
  const Duration travel = plan.link.latency + context_.random.below(plan.link.jitter + Duration{1});
  const bool cut_off = context_.now() < refuse_until_;
  const bool odd = !calm_ && context_.random.one_in(40);
  if (cut_off || odd || listener_ == nullptr || !listener_->is_listening()) {
    if (cut_off ? refuse_silently_ : odd && context_.chance(50)) {
      ++context_.stats.dials_hung;
      return;
    }
    ++context_.stats.dials_refused;
    context_.timeline.after(2 * travel, [&dialling, id = plan.id, alive = std::move(alive)] {
      if (alive()) dialling.on_refused(id);
    });
    return;
  }
  Wire& wire = add_wire(plan);
  wire.worker_.id = plan.id;
  context_.timeline.after(travel, [this, &wire, &dialling, &events, travel, alive = std::move(alive)] {
    if (!listener_->is_listening()) {
      wire.worker_.closed_ = wire.scheduler_.closed_ = true;
      if (alive()) dialling.on_refused(wire.worker_.id);
      return;
    }
    wire.scheduler_.events_ = &listener_->on_accepted(wire.scheduler_);
    context_.timeline.after(travel, [this, &wire, &dialling, &events, alive] {
      if (wire.worker_.finishing_ || wire.worker_.closed_) return;
      // Nobody waits any more: the kernel answers for the process.
      if (!alive()) return abandon(wire.worker_, true);
      wire.worker_.events_ = &events;
      dialling.on_opened(wire.worker_.id, wire.worker_);
    });
  });
}

Socket& Network::connect_stranger(const LinkPlan& link, SocketEvents& events) {
  Wire& wire = add_wire({"stranger", "", Revision::Two, link, ConnectionId{0}});
  wire.worker_.events_ = &events;
  wire.scheduler_.events_ = &listener_->on_accepted(wire.scheduler_);
  return wire.worker_;
}

Wire& Network::add_wire(const DialPlan& plan) {
  ++context_.stats.connections;
  wires_.push_back(std::make_unique<Wire>(*this, wires_.size() + 1, plan));
  return *wires_.back();
}

void Network::cut(Wire& wire, const CutPlan& plan) {
  for (const End to : {End::Worker, End::Scheduler}) {
    Wire::Pipe& pipe = wire.pipe_to(to);
    // The bytes in flight: none, all, or any number of them arrive.
    const std::uint64_t kept = context_.random.below(3) == 0 ? (context_.chance(50) ? pipe.in_flight : 0)
                                                             : context_.random.below(pipe.in_flight + 1);
    wire.break_pipe(to, kept);
    if (plan.late_max > Duration{}) {
      const Duration late = context_.random.below(plan.late_max);
      for (Wire::Segment& segment : pipe.segments) segment.at += late;
    }
  }
  wire.worker_.failed_ = plan.worker_notices && context_.chance(40);
  wire.scheduler_.failed_ = plan.scheduler_notices && context_.chance(40);
  if (plan.worker_notices)
    wire.worker_.finish(1006, "", context_.random.below(plan.notice_max + Duration{1}));
  if (plan.scheduler_notices) {
    wire.scheduler_.finish(1006, "", context_.random.below(plan.notice_max + Duration{1}));
  }
}

void Network::cut_after(Wire& wire, std::uint64_t bytes, const CutPlan& plan) {
  wire.bytes_until_cut_ = bytes;
  wire.cut_plan_ = plan;
}

void Network::stall(Wire& wire, End to, Duration time) {
  Wire::Pipe& pipe = wire.pipe_to(to);
  pipe.stalled_until = std::max(pipe.stalled_until, context_.now() + time);
}

void Network::lose_one(Wire& wire, End to) {
  wire.pipe_to(to).loses_one = true;
}

void Network::slow_down(Wire& wire, std::uint64_t bytes_per_second) {
  wire.plan_.link.bytes_per_second = bytes_per_second;
}

void Network::abandon(Socket& socket, bool peer_hears) {
  socket.events_ = nullptr;
  socket.closed_ = true;
  Wire& wire = socket.wire_;
  wire.pipe_to(socket.end_).broken = true;
  wire.break_pipe(other(socket.end_), context_.random.below(wire.pipe_to(other(socket.end_)).in_flight + 1));
  if (peer_hears) {
    const Duration travel =
        wire.plan_.link.latency + context_.random.below(wire.plan_.link.jitter + Duration{1});
    wire.socket(other(socket.end_)).finish(1006, "", travel);
  }
}

std::vector<Wire*> Network::live(std::string_view machine) const {
  std::vector<Wire*> found;
  for (const auto& wire : wires_) {
    if (wire->worker_.closed_ || wire->scheduler_.closed_ || wire->is_broken()) continue;
    if (wire->worker_.events_ == nullptr || wire->scheduler_.events_ == nullptr) continue;
    if (machine.empty() || wire->plan_.machine == machine) found.push_back(wire.get());
  }
  return found;
}

Wire::Wire(Network& network, std::uint64_t number, const DialPlan& plan)
    : network_(network),
      number_(number),
      plan_(plan),
      worker_(*this, End::Worker, websocket::Side::Client),
      scheduler_(*this, End::Scheduler, websocket::Side::Server) {}

void Wire::push(End to, Bytes bytes) {
  Context& context = network_.context_;
  Pipe& pipe = pipe_to(to);
  context.stats.bytes += bytes.size();
  pipe.in_flight += bytes.size();
  if (pipe.broken) return time_out(to);
  Duration at = context.now() + plan_.link.latency + context.random.below(plan_.link.jitter + Duration{1});
  at = std::max({at, pipe.last_at, pipe.stalled_until});
  if (plan_.link.bytes_per_second > 0) {
    at += Duration{seconds{1}} * static_cast<Duration::rep>(bytes.size()) /
          static_cast<Duration::rep>(plan_.link.bytes_per_second);
  }
  pipe.last_at = at;
  const std::uint64_t size = bytes.size();
  pipe.segments.push_back({std::move(bytes), at});
  schedule_pump(to);
  if (!cut_plan_) return;
  if (bytes_until_cut_ > size) {
    bytes_until_cut_ -= size;
    return;
  }
  const CutPlan cut = *std::exchange(cut_plan_, std::nullopt);
  const Duration soon =
      context.random.below(plan_.link.latency + plan_.link.jitter + Duration{milliseconds{1}});
  context.timeline.after(soon, [this, cut] {
    if (!is_broken()) network_.cut(*this, cut);
  });
}

// A black hole: the writer sees its buffer fill, until its kernel has tried long enough.
void Wire::time_out(End to) {
  Socket& writer = socket(other(to));
  if (writer.finishing_) return;
  writer.finish(1006, "timed out", network_.context_.uniform(seconds{30}, seconds{180}));
}

void Wire::schedule_pump(End to) {
  Pipe& pipe = pipe_to(to);
  if (pipe.pump_scheduled || pipe.segments.empty()) return;
  pipe.pump_scheduled = true;
  Duration at = std::max(pipe.segments.front().at, pipe.stalled_until);
  const Socket& reader = socket(to);
  if (reader.events_ != nullptr) at = std::max(at, reader.events_->asleep_until());
  network_.context_.timeline.at(at, [this, to] {
    pipe_to(to).pump_scheduled = false;
    pump(to);
  });
}

// One turn of the reader's loop: everything that has arrived, or a part of it.
void Wire::pump(End to) {
  Context& context = network_.context_;
  Pipe& pipe = pipe_to(to);
  Socket& reader = socket(to);
  const bool awake = reader.events_ == nullptr || reader.events_->asleep_until() <= context.now();
  bool any = false;
  while (awake && !pipe.segments.empty() && pipe.segments.front().at <= context.now() &&
         pipe.stalled_until <= context.now()) {
    Bytes chunk = std::move(pipe.segments.front().bytes);
    if (chunk.size() > 1 && context.chance(plan_.link.split_percent)) {
      const std::size_t first = 1 + context.random.below(chunk.size() - 1);
      pipe.segments.front() = {chunk.substr(first), context.now() + context.random.below(milliseconds{3})};
      chunk.resize(first);
    } else {
      pipe.segments.pop_front();
    }
    pipe.in_flight -= chunk.size();
    any = true;
    reader.receive(std::move(chunk));
  }
  if (any && reader.events_ != nullptr) reader.events_->on_input_used(reader);
  Socket& writer = socket(other(to));
  if (writer.blocked_ && pipe.in_flight <= plan_.link.buffer_bytes / 2) {
    writer.blocked_ = false;
    writer.free_since_ = context.now();  // the driver is told a little later
    const Duration when = writer.events_ == nullptr ? context.now() : writer.events_->asleep_until();
    context.timeline.at(when, [&writer] {
      if (writer.events_ == nullptr || writer.closed_) return;
      writer.unblocking_ = true;
      writer.free_since_ = writer.wire_.network_.context_.now();
      writer.events_->on_writable(writer);
      writer.unblocking_ = false;
    });
  }
  schedule_pump(to);
}

void Wire::break_pipe(End to, std::uint64_t bytes_kept) {
  Pipe& pipe = pipe_to(to);
  pipe.broken = true;
  if (pipe.in_flight > bytes_kept) time_out(to);
  std::uint64_t kept = 0;
  for (auto segment = pipe.segments.begin(); segment != pipe.segments.end(); ++segment) {
    if (kept + segment->bytes.size() <= bytes_kept) {
      kept += segment->bytes.size();
      continue;
    }
    segment->bytes.resize(bytes_kept - kept);
    if (!segment->bytes.empty()) {
      ++network_.context_.stats.half_frames;
      ++segment;
    }
    pipe.segments.erase(segment, pipe.segments.end());
    break;
  }
}

void Wire::inject(End to, BytesView message, MessageKind kind) {
  Bytes framed;
  socket(other(to)).frame(message, kind, framed);
  if (pipe_to(to).broken) return;
  network_.observer_.on_injected(*this, to, message);
  push(to, std::move(framed));
}

SendStatus Socket::send(BytesView message, MessageKind kind) {
  Context& context = wire_.network_.context_;
  if (closing_ || closed_ || failed_) return SendStatus::Closed;
  wire_.network_.observer_.on_sent(wire_, end_, message, kind);
  if (wire_.pipe_to(other(end_)).loses_one && wire_.network_.observer_.may_lose(wire_, end_)) {
    wire_.pipe_to(other(end_)).loses_one = false;
    ++context.stats.messages_lost;
    context.note("wire ", wire_.number(), " loses this message");
    return SendStatus::Sent;
  }
  Bytes framed;
  if (!wire_.network_.calm_ && context.random.one_in(64)) {
    const auto key = websocket::MaskKey::from(static_cast<std::uint32_t>(context.random.next()));
    websocket::append_ping("sim", end_ == End::Worker ? websocket::Mask{key} : std::nullopt, framed);
  }
  frame(message, kind, framed);
  wire_.push(other(end_), std::move(framed));
  if (wire_.plan_.link.corks) return blocked_ ? SendStatus::Blocked : SendStatus::Sent;
  if (wire_.pipe_to(other(end_)).in_flight <= wire_.plan_.link.buffer_bytes) return SendStatus::Sent;
  ++context.stats.blocked_sends;
  blocked_ = true;
  return SendStatus::Blocked;
}

bool Socket::fills_up() {
  if (!wire_.plan_.link.corks || blocked_ || closing_ || closed_ || failed_) return false;
  if (wire_.pipe_to(other(end_)).in_flight <= wire_.plan_.link.buffer_bytes) return false;
  ++wire_.network_.context_.stats.blocked_turns;
  blocked_ = true;
  return true;
}

void Socket::frame(BytesView message, MessageKind kind, Bytes& out) {
  Context& context = wire_.network_.context_;
  websocket::Mask mask;
  if (end_ == End::Worker) {
    mask = websocket::MaskKey::from(static_cast<std::uint32_t>(context.random.next()));
  }
  kind == MessageKind::Text ? websocket::append_text(message, mask, out)
                            : websocket::append_binary(message, mask, out);
}

void Socket::send_raw(Bytes bytes) {
  if (!closing_ && !closed_) wire_.push(other(end_), std::move(bytes));
}

void Socket::close(std::uint16_t code, std::string_view reason) {
  if (closing_ || closed_) return;
  closing_ = true;
  Context& context = wire_.network_.context_;
  Bytes framed;
  websocket::Mask mask;
  if (end_ == End::Worker) mask = websocket::MaskKey::from(static_cast<std::uint32_t>(context.random.next()));
  websocket::append_close(static_cast<websocket::CloseCode>(code), reason, mask, framed);
  wire_.push(other(end_), std::move(framed));
  // An adapter may forget the connection at once, or wait for the peer's answer; meanwhile it still hears.
  finish(1006, "", context.chance(50) ? Duration{} : context.random.below(limits::kCloseLinger));
}

void Socket::receive(Bytes chunk) {
  if (events_ == nullptr || reader_.is_closed()) return;
  reader_.handle_bytes({chunk.data(), chunk.size()});
  for (;;) {
    auto event = reader_.poll_event();
    if (!event) {
      close(static_cast<std::uint16_t>(reader_.failure_code()), "");
      return finish(1006, "", Duration{});
    }
    if (!*event) return;
    if (const auto* message = std::get_if<websocket::Message>(&**event)) {
      ++wire_.network_.context_.stats.messages;
      events_->on_message(*this, message->payload, message->kind);
    } else if (const auto* said = std::get_if<websocket::Close>(&**event)) {
      const std::string reason{said->reason};
      const auto code = static_cast<std::uint16_t>(said->code);
      if (!closing_) close(1000, "");
      return tell_closed(code, reason);
    }
  }
}

void Socket::finish(std::uint16_t code, std::string_view reason, Duration delay) {
  Context& context = wire_.network_.context_;
  if (closed_) return;
  finishing_ = true;
  Duration when = context.now() + delay;
  if (events_ != nullptr) when = std::max(when, events_->asleep_until());
  context.timeline.at(when, [this, code, text = std::string{reason}] {
    if (closed_) return;
    if (events_ != nullptr && events_->asleep_until() > wire_.network_.context_.now()) {
      return finish(code, text, Duration{});
    }
    tell_closed(code, text);
  });
}

// The last thing that a driver hears of a connection.
void Socket::tell_closed(std::uint16_t code, std::string_view reason) {
  if (std::exchange(closed_, true)) return;
  SocketEvents* const events = std::exchange(events_, nullptr);
  if (events != nullptr) events->on_closed(*this, code, reason);
}

}  // namespace windlass::sim
