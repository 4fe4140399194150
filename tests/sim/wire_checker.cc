// The half of the session checker that judges frames as they are written and read.
#include <algorithm>
#include <functional>
#include <iterator>

#include "protocol/base/limits.h"
#include "tests/sim/session_checker.h"

namespace windlass::sim {
namespace {

using Kind = SeenFrame::Kind;
constexpr std::size_t kTapeMax = 4;
constexpr std::size_t kAckTapeMax = 16;
constexpr int kFramesBeforeDrainMax = 16;

// One that answers nothing: the next one says what it says.
bool is_plain_ack(const SeenFrame& seen) {
  return seen.kind == Kind::Ack && seen.state && !seen.is_answer;
}

template <class T>
void put(std::vector<T>& values, std::size_t at, T value) {
  if (values.size() <= at) values.resize(at + 1);
  values[at] = value;
}

SeenFrame summarise(const Frame& frame) {
  SeenFrame seen;
  seen.id = frame.id;
  seen.asks_ack = frame.ack_request;
  if (frame.is_data()) {
    seen.kind = Kind::Data;
    seen.seq = *frame.seq;
  } else if (const auto* ack = std::get_if<Ack>(&frame.body)) {
    seen.kind = Kind::Ack;
    seen.state = ack->state;
    seen.is_answer = !ack->for_id.empty();
    if (ack->ok) seen.answers = ack->for_id;
  } else if (const auto* accept = std::get_if<SessionAccept>(&frame.body)) {
    seen.kind = Kind::Accept;
    seen.session = accept->session_id;
    seen.token = accept->session_token;
    seen.resumed = accept->resumed;
    seen.received_next = accept->received_next;
    seen.credit = accept->credit;
  } else if (const auto* resume = std::get_if<Resume>(&frame.body)) {
    seen.kind = Kind::Resume;
    seen.session = resume->session_id;
    seen.token = resume->session_token;
    seen.received_next = resume->received_next;
    seen.credit = resume->credit;
  } else if (const auto* drain = std::get_if<Drain>(&frame.body)) {
    seen.kind = drain->phase == DrainPhase::Start ? Kind::DrainStart : Kind::DrainComplete;
  } else if (std::holds_alternative<Reset>(frame.body)) {
    seen.kind = Kind::Reset;
  }
  return seen;
}

std::string describe(const SeenFrame& seen) {
  std::string text;
  if (seen.kind == Kind::Data) text += " seq " + std::to_string(seen.seq);
  if (!seen.state) return text;
  text += " owned " + std::to_string(seen.state->owned_next) + " window " +
          std::to_string(seen.state->credit.frames) + "/" + std::to_string(seen.state->credit.bytes);
  if (!seen.state->held.empty()) text += " held " + std::to_string(seen.state->held.bit_length());
  return text;
}

}  // namespace

void SessionChecker::on_sent(Wire& wire, End from, BytesView message, MessageKind kind) {
  if (wire.instance().empty()) return;
  const Expect expect = wire.revision() == Revision::One ? Expect::RevisionOne : Expect::RevisionTwo;
  const Frame* const frame = decoder_.decode(message, kind, expect);
  if (frame == nullptr) {
    const auto& violation = decoder_.violation();
    context_.note(wire.machine(), " wire ", wire.number(), " ", name(from), " sends ", message);
    return context_.fail("frames-are-valid", "the ", name(from),
                         " sent a frame that does not decode: ", violation.pointer, " ", violation.reason);
  }
  SeenFrame seen = summarise(*frame);
  seen.hash = std::hash<std::string_view>{}(message);
  if (context_.log.is_on()) {
    context_.note("wire ", wire.number(), " ", wire.machine(), from == End::Worker ? " -> " : " <- ",
                  type_of(*frame), " ", frame->id, describe(seen));
  }
  judge_sent(wire, from, *frame, seen);
  SessionRecord* const session = record_of(wire).session[index(from)];
  if (seen.kind == Kind::Data && session != nullptr) {
    auto& tape = session->to[index(other(from))].tape;
    if (tape.size() >= kTapeMax) tape.pop_front();
    tape.push_back({seen, Bytes{message}, kind});
  }
  if (is_plain_ack(seen)) {
    auto& acks = record_of(wire).acks[index(other(from))];
    if (acks.size() >= kAckTapeMax) acks.pop_front();
    acks.push_back({seen, Bytes{message}, kind});
  }
  record_of(wire).flying[index(other(from))].push_back(std::move(seen));
}

bool SessionChecker::may_lose(Wire& wire, End from) {
  auto& flying = record_of(wire).flying[index(other(from))];
  if (flying.empty()) return false;
  const bool is_data = flying.back().kind == Kind::Data;
  if (!is_data && !(is_plain_ack(flying.back()) && can_do_without_ack(wire, other(from)))) return false;
  flying.pop_back();
  return true;
}

// A timer of the sender will ask for another ack: the sender has heard nothing of some frame, or all frames
// are acknowledged and only credit can be missing. The sender never asks about frames that it knows to be
// held, because TCP loses no ack; an earlier ack still on its way may tell it that they are.
bool SessionChecker::can_do_without_ack(const Wire& wire, End sender) {
  const WireRecord& record = record_of(wire);
  const auto& flying = record.flying[index(sender)];
  const auto tells_of_held = [](const SeenFrame& seen) { return seen.state && !seen.state->held.empty(); };
  if (std::any_of(flying.begin(), std::prev(flying.end()), tells_of_held)) return false;
  const SessionRecord* const session = record.session[index(sender)];
  if (session == nullptr) return false;
  const StreamRecord& stream = session->to[index(other(sender))];
  if (stream.heard_owned == stream.messages.size()) return session->revision == Revision::Two;
  for (Seq seq = stream.heard_owned; seq < record.next[index(sender)]; ++seq) {
    if (!stream.is_held(seq)) return true;
  }
  return false;
}

void SessionChecker::judge_sent(const Wire& wire, End from, const Frame& frame, const SeenFrame& seen) {
  if (seen.kind == Kind::Reset) ++context_.stats.resets;
  if (seen.kind == Kind::Ack && seen.asks_ack) {
    ++context_.stats.probes;
    SessionRecord* const session = record_of(wire).session[index(from)];
    if (session != nullptr) session->asked_at[index(from)] = context_.now();
  }
  if (seen.kind == Kind::Accept) {
    bind(wire, from, seen);
    SessionRecord& session = record_of(seen.session);
    session.tokens.push_back(seen.token);
    session.accept_frame_id = seen.id;
    return;
  }
  check_drain(wire, from, seen);
  if (seen.kind == Kind::Data) check_data(wire, from, seen.seq, frame);
  if (seen.state) check_ack(wire, from, *seen.state);
}

void SessionChecker::on_injected(Wire& wire, End to, BytesView message) {
  SeenFrame seen;
  seen.hash = std::hash<std::string_view>{}(message);
  if (replay_) {
    seen = *replay_;
  } else {
    seen.kind = Kind::Lie;
    for (SessionRecord* const session : record_of(wire).session) {
      if (session != nullptr) session->was_lied_to = true;
    }
  }
  replay_.reset();
  record_of(wire).flying[index(to)].push_back(std::move(seen));
}

void SessionChecker::check_data(const Wire& wire, End from, Seq seq, const Frame& frame) {
  WireRecord& record = record_of(wire);
  SessionRecord* const session = record.session[index(from)];
  if (session == nullptr) return context_.fail("no-data-before-accept", where(wire, from, seq));
  StreamRecord& stream = session->to[index(other(from))];
  if (seq >= stream.messages.size()) {
    return context_.fail("sends-only-what-was-given", where(wire, from, seq), " was never handed to send()");
  }
  PromisedMessage& promised = stream.messages[seq];
  if (content_hash(frame.id, frame.corr, std::get<Data>(frame.body)) != promised.content) {
    return context_.fail("bytes-intact", where(wire, from, seq), " differs from what was handed to send()");
  }
  //= ENV-5
  if (promised.ts && *promised.ts != frame.ts) {
    return context_.fail("resend-keeps-ts", where(wire, from, seq), " changed its ts when sent again");
  }
  promised.ts = frame.ts;
  //= WIN-2
  if (seq >= stream.edge) {
    return context_.fail("right-edge", where(wire, from, seq), " lies beyond the window, whose edge is ",
                         stream.edge);
  }
  //= WIN-3
  if (promised.bytes_end > stream.edge_bytes && !promised.alone) {
    return context_.fail("byte-window", where(wire, from, seq), " ends at byte ", promised.bytes_end,
                         ", beyond the window's edge ", stream.edge_bytes);
  }
  //= RES-4
  //= ACK-3
  if (seq < stream.heard_owned || stream.is_held(seq)) {
    return context_.fail("no-resend-of-held", where(wire, from, seq),
                         " was sent though the peer had said it has it");
  }
  Seq& next = record.next[index(from)];
  next = std::max(next, stream.heard_owned);
  while (stream.is_held(next)) ++next;
  //= RES-4
  if (seq > next) {
    return context_.fail("sent-in-order", where(wire, from, seq), " was sent before ", next);
  }
  if (seq == next) {
    ++next;
    return;
  }
  ++context_.stats.retransmits;
  //= RTX-2
  if (wire.socket(from).is_held_up()) {
    context_.fail("no-resend-of-unsent", where(wire, from, seq),
                  " was sent again though bytes of its own were still to go");
  }
}

void SessionChecker::check_ack(const Wire& wire, End from, const AckState& state) {
  SessionRecord* const session = record_of(wire).session[index(from)];
  if (session == nullptr) return context_.fail("no-ack-before-accept", "by the ", name(from));
  StreamRecord& stream = session->to[index(from)];
  //= ACK-1
  if (state.owned_next > stream.owned_next) {
    return context_.fail("ack-only-owned", "the ", name(from), " of ", wire.machine(), " acknowledged up to ",
                         state.owned_next, " but its owner took only ", stream.owned_next);
  }
  if (state.owned_next < stream.said_owned) {
    return context_.fail("ack-moves-on", "the ", name(from), " of ", wire.machine(), " took back its ack ",
                         stream.said_owned, ", now ", state.owned_next);
  }
  stream.said_owned = state.owned_next;
  //= ACK-2
  for (std::size_t bit = 0; bit < state.held.bit_length(); ++bit) {
    if (state.held.test(bit) && !stream.has_arrived(state.owned_next + bit)) {
      return context_.fail("bitmap-only-arrived", "the ", name(from), " of ", wire.machine(),
                           " says it holds ", state.owned_next + bit, ", which never arrived");
    }
  }
  const Seq edge = state.owned_next + state.credit.frames;
  //= WIN-10
  if (edge < stream.said_edge) {
    return context_.fail("edge-never-moves-back", "the ", name(from), " of ", wire.machine(),
                         " moved it from ", stream.said_edge, " to ", edge);
  }
  stream.said_edge = edge;
  if (session->revision == Revision::One) return;
  const std::uint64_t edge_bytes = stream.bytes_before(state.owned_next) + state.credit.bytes;
  //= WIN-10
  if (edge_bytes < stream.said_edge_bytes) {
    return context_.fail("byte-edge-never-moves-back", "the ", name(from), " of ", wire.machine(),
                         " moved it from ", stream.said_edge_bytes, " to ", edge_bytes);
  }
  stream.said_edge_bytes = edge_bytes;
}

// A drain is repeated after a resume until it is answered, ahead of data; and it is complete when all is
// acknowledged.
void SessionChecker::check_drain(const Wire& wire, End from, const SeenFrame& seen) {
  WireRecord& record = record_of(wire);
  SessionRecord* const session = record.session[index(from)];
  if (session == nullptr) return;
  auto& due = record.drain_due[index(from)];
  if (seen.kind == Kind::DrainStart) {
    session->drain[index(from)] = {seen.id, false};
    due.reset();
  }
  //= DRN-1
  if (due && (seen.kind == Kind::Data || ++*due > kFramesBeforeDrainMax)) {
    context_.fail("drain-goes-on", "the ", name(from), " of ", wire.machine(),
                  " forgot its drain after a resume");
  }
  if (seen.kind != Kind::DrainComplete) return;
  const StreamRecord& stream = session->to[index(other(from))];
  //= DRN-4
  if (stream.heard_owned != stream.messages.size()) {
    context_.fail("drain-completes-last", wire.machine(), " is done with ",
                  stream.messages.size() - stream.heard_owned, " frames unacknowledged");
  }
}

bool SessionChecker::on_read(Wire& wire, End at, BytesView message, Ear ear) {
  WireRecord& record = record_of(wire);
  auto& flying = record.flying[index(at)];
  const bool is_known = !flying.empty() && flying.front().hash == std::hash<std::string_view>{}(message);
  if (!is_known) {
    context_.fail("bytes-intact", "wire ", wire.number(), " gave a message that was not put into it next");
    return false;
  }
  const SeenFrame seen = std::move(flying.front());
  flying.pop_front();
  if (seen.kind == Kind::Lie) return ear == Ear::Open;
  if (seen.kind == Kind::Resume && at == End::Scheduler) {
    record.resume_position = seen.received_next;
    record.resume_credit = seen.credit;
    if (sessions_.contains(seen.session)) prove_token(record_of(seen.session), seen);
  }
  SessionRecord* const session = record.session[index(at)];
  if (seen.kind == Kind::Accept && at == End::Worker && ear == Ear::Greeting) {
    bind(wire, at, seen);
  } else if (session != nullptr && ear == Ear::Open) {
    hear(record, *session, at, seen);
  }
  return false;
}

void SessionChecker::hear(WireRecord& record, SessionRecord& session, End at, const SeenFrame& seen) {
  if (seen.kind == Kind::Data) {
    StreamRecord& stream = session.to[index(at)];
    if (stream.has_arrived(seen.seq)) ++context_.stats.duplicates;
    if (seen.seq > 0 && !stream.has_arrived(seen.seq - 1)) ++context_.stats.early;
    put(stream.arrived, seen.seq, true);
  }
  if (seen.state) hear_ack(session, at, *seen.state);
  if (seen.answers.empty()) return;
  auto& drain = session.drain[index(at)];
  if (seen.answers == drain.frame_id) {
    drain.is_answered = true;
    record.drain_due[index(at)].reset();
  }
  if (at == End::Scheduler && seen.answers == session.accept_frame_id) {
    session.tokens_proved = session.tokens.size();
  }
}

void SessionChecker::prove_token(SessionRecord& session, const SeenFrame& seen) {
  const auto used = std::ranges::find(session.tokens, seen.token);
  if (used == session.tokens.end()) return;
  const auto count = static_cast<std::size_t>(used - session.tokens.begin()) + 1;
  session.tokens_proved = std::max(session.tokens_proved, count);
}

// The end `at` learns how far its peer has come, and what it may send.
void SessionChecker::hear_ack(SessionRecord& session, End at, const AckState& state) {
  StreamRecord& stream = session.to[index(other(at))];
  //= ACK-5
  if (state.owned_next < stream.heard_owned || state.owned_next > stream.messages.size()) return;
  stream.heard_owned = state.owned_next;
  for (std::size_t bit = 0; bit < state.held.bit_length(); ++bit) {
    if (state.held.test(bit)) put(stream.heard_held, state.owned_next + bit, true);
  }
  stream.edge = std::max(stream.edge, state.owned_next + state.credit.frames);
  const std::uint64_t freed = stream.bytes_before(state.owned_next);
  stream.edge_bytes = std::max(stream.edge_bytes, freed + state.credit.bytes);
}

void SessionChecker::hear_position(SessionRecord& session, End sender, Seq received_next, Credit credit) {
  StreamRecord& stream = session.to[index(other(sender))];
  for (Seq seq = stream.heard_owned; seq < received_next; ++seq) put(stream.heard_held, seq, true);
  stream.edge = std::max(stream.edge, stream.heard_owned + credit.frames);
  stream.edge_bytes = std::max(stream.edge_bytes, stream.bytes_before(stream.heard_owned) + credit.bytes);
}

// An accept binds a connection to a session: at the scheduler's end as it is sent, at the worker's as it is
// read.
void SessionChecker::bind(const Wire& wire, End at, const SeenFrame& accept) {
  WireRecord& record = record_of(wire);
  if (record.session[index(at)] != nullptr) return;  // a token was rotated, nothing else
  SessionRecord& session = record_of(accept.session);
  session.revision = wire.revision();
  session.instance = wire.instance();
  record.session[index(at)] = &session;
  session.wire[index(at)] = wire.number();
  session.asked_at[index(at)] = context_.now();
  const auto& drain = session.drain[index(at)];
  //= RES-11
  if (!drain.frame_id.empty() && !drain.is_answered) record.drain_due[index(at)] = 0;
  const bool revision1 = wire.revision() == Revision::One;
  Seq position = 0;
  Credit credit = accept.credit;
  if (at == End::Scheduler) {
    position = accept.resumed ? record.resume_position.value_or(0) : 0;
    credit = accept.resumed ? record.resume_credit : Credit{};
  } else if (accept.resumed) {
    const StreamRecord& stream = session.to[index(End::Scheduler)];
    position = revision1 ? stream.heard_owned : accept.received_next;
  }
  //= REV-11
  if (revision1) {
    credit = accept.resumed ? Credit{} : Credit{limits::kWindowFramesRevision1Max, limits::kWindowBytes};
  }
  hear_position(session, at, position, credit);
  record.next[index(at)] = position;
}

}  // namespace windlass::sim
