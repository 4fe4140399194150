#include "tests/sim/session_checker.h"

#include <algorithm>
#include <functional>

#include "protocol/base/limits.h"

namespace windlass::sim {
namespace {

std::size_t mix(std::size_t hash, std::string_view text) {
  return (hash ^ std::hash<std::string_view>{}(text)) * 0x9e3779b97f4a7c15ULL + text.size();
}

std::size_t content_hash(std::string_view id, std::string_view corr, const Data& data) {
  std::size_t hash = mix(mix(mix(mix(0, id), corr), data.type), data.payload);
  if (data.attachment) hash = mix(mix(hash, data.attachment->type), data.attachment->bytes);
  return hash;
}

template <class T>
void put(std::vector<T>& values, std::size_t at, T value) {
  if (values.size() <= at) values.resize(at + 1);
  values[at] = value;
}

const char* name(End end) {
  return end == End::Worker ? "worker" : "scheduler";
}

}  // namespace

std::size_t content_hash(const Message& message) {
  return content_hash(message.id(), message.corr(), message.data());
}

SessionChecker::Record& SessionChecker::record_of(const std::string& session) {
  Record& record = sessions_[session];
  record.id = session;
  return record;
}

std::string SessionChecker::where(const Wire& wire, End from, Seq seq) const {
  return "seq " + std::to_string(seq) + " from the " + name(from) + " of " + wire.machine() + " on wire " +
         std::to_string(wire.number());
}

void SessionChecker::on_sent(Wire& wire, End from, BytesView message, MessageKind kind) {
  if (wire.instance().empty()) return;
  WireRecord& record = record_of(wire);
  const Expect expect = wire.revision() == Revision::One ? Expect::RevisionOne : Expect::RevisionTwo;
  const Frame* const frame = decoder_.decode(message, kind, expect);
  if (frame == nullptr) {
    const auto& violation = decoder_.violation();
    context_.note(wire.machine(), " wire ", wire.number(), " ", name(from), " sends ", message);
    return context_.fail("frames-are-valid", "the ", name(from),
                         " sent a frame that does not decode: ", violation.pointer, " ", violation.reason);
  }
  Seen seen = summarise(wire, from, *frame);
  seen.hash = std::hash<std::string_view>{}(message);
  if (context_.log.is_on()) {
    context_.note("wire ", wire.number(), " ", wire.machine(), from == End::Worker ? " -> " : " <- ",
                  type_of(*frame), " ", frame->id, frame->seq ? " seq " + std::to_string(*frame->seq) : "",
                  seen.state ? " owned " + std::to_string(seen.state->owned_next) + " window " +
                                   std::to_string(seen.state->credit.frames) + "/" +
                                   std::to_string(seen.state->credit.bytes)
                             : "");
  }
  if (seen.kind == Seen::Kind::Data) check_data(wire, from, seen.seq, *frame);
  if (seen.state) check_ack(wire, from, *seen.state);
  if (seen.kind == Seen::Kind::Accept && from == End::Scheduler) bind(wire, from, seen);
  record.flying[index(other(from))].push_back(std::move(seen));
}

SessionChecker::Seen SessionChecker::summarise(const Wire&, End, const Frame& frame) {
  Seen seen;
  if (frame.is_data()) {
    seen.kind = Seen::Kind::Data;
    seen.seq = *frame.seq;
  } else if (const auto* ack = std::get_if<Ack>(&frame.body)) {
    seen.kind = Seen::Kind::Ack;
    seen.state = ack->state;
  } else if (const auto* accept = std::get_if<SessionAccept>(&frame.body)) {
    seen.kind = Seen::Kind::Accept;
    seen.session = accept->session_id;
    seen.resumed = accept->resumed;
    seen.received_next = accept->received_next;
    seen.credit = accept->credit;
  } else if (const auto* resume = std::get_if<Resume>(&frame.body)) {
    seen.kind = Seen::Kind::Resume;
    seen.received_next = resume->received_next;
    seen.credit = resume->credit;
  }
  return seen;
}

void SessionChecker::on_injected(Wire& wire, End to, BytesView message) {
  Seen seen;
  seen.hash = std::hash<std::string_view>{}(message);
  seen.is_injected = true;
  record_of(wire).flying[index(to)].push_back(std::move(seen));
}

void SessionChecker::check_data(const Wire& wire, End from, Seq seq, const Frame& frame) {
  WireRecord& record = record_of(wire);
  Record* const session = record.session[index(from)];
  if (session == nullptr) return context_.fail("no-data-before-accept", where(wire, from, seq));
  Stream& stream = session->to[index(other(from))];
  if (seq >= stream.messages.size()) {
    return context_.fail("sends-only-what-was-given", where(wire, from, seq), " was never handed to send()");
  }
  Promised& promised = stream.messages[seq];
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
  if (seq == next) ++next;
}

void SessionChecker::check_ack(const Wire& wire, End from, const AckState& state) {
  Record* const session = record_of(wire).session[index(from)];
  if (session == nullptr) return context_.fail("no-ack-before-accept", "by the ", name(from));
  Stream& stream = session->to[index(from)];
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
    const Seq seq = state.owned_next + bit;
    if (state.held.test(bit) && (seq >= stream.arrived.size() || !stream.arrived[seq])) {
      return context_.fail("bitmap-only-arrived", "the ", name(from), " of ", wire.machine(),
                           " says it holds ", seq, ", which never arrived");
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

bool SessionChecker::on_read(Wire& wire, End at, BytesView message, Ear ear) {
  WireRecord& record = record_of(wire);
  auto& flying = record.flying[index(at)];
  const bool is_known = !flying.empty() && flying.front().hash == std::hash<std::string_view>{}(message);
  if (!is_known) {
    context_.fail("bytes-intact", "wire ", wire.number(), " gave a message that was not put into it next");
    return false;
  }
  const Seen seen = std::move(flying.front());
  flying.pop_front();
  if (seen.is_injected) return ear == Ear::Open;
  if (seen.kind == Seen::Kind::Resume && at == End::Scheduler) {
    record.resume_position = seen.received_next;
    record.resume_credit = seen.credit;
  }
  Record* const session = record.session[index(at)];
  if (seen.kind == Seen::Kind::Accept && at == End::Worker && ear == Ear::Greeting) {
    bind(wire, at, seen);
  } else if (session != nullptr && ear == Ear::Open) {
    if (seen.kind == Seen::Kind::Data) put(session->to[index(at)].arrived, seen.seq, true);
    if (seen.state) hear_ack(*session, at, *seen.state);
  }
  return false;
}

// The end `at` learns how far its peer has come, and what it may send.
void SessionChecker::hear_ack(Record& session, End at, const AckState& state) {
  Stream& stream = session.to[index(other(at))];
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

void SessionChecker::hear_position(Record& session, End sender, Seq received_next, Credit credit) {
  Stream& stream = session.to[index(other(sender))];
  for (Seq seq = stream.heard_owned; seq < received_next; ++seq) put(stream.heard_held, seq, true);
  stream.edge = std::max(stream.edge, stream.heard_owned + credit.frames);
  stream.edge_bytes = std::max(stream.edge_bytes, stream.bytes_before(stream.heard_owned) + credit.bytes);
}

// An accept binds a connection to a session: at the scheduler's end as it is sent, at the worker's as it is
// read.
void SessionChecker::bind(const Wire& wire, End at, const Seen& accept) {
  WireRecord& record = record_of(wire);
  if (record.session[index(at)] != nullptr) return;  // a token was rotated, nothing else
  Record& session = record_of(accept.session);
  session.revision = wire.revision();
  record.session[index(at)] = &session;
  session.wire[index(at)] = wire.number();
  const Credit fixed{limits::kWindowFramesRevision1Max, limits::kWindowBytes};
  const bool revision1 = wire.revision() == Revision::One;
  Seq position = 0;
  Credit credit = accept.credit;
  if (at == End::Scheduler) {
    position = accept.resumed ? record.resume_position.value_or(0) : 0;
    credit = accept.resumed ? record.resume_credit : Credit{};
  } else if (accept.resumed) {
    const Stream& stream = session.to[index(End::Scheduler)];
    position = revision1 ? stream.heard_owned : accept.received_next;
  }
  //= REV-11
  if (revision1) credit = fixed;
  hear_position(session, at, position, credit);
  record.next[index(at)] = position;
}

void SessionChecker::on_send_accepted(const std::string& session, End from, Seq seq, const Message& message) {
  Stream& stream = record_of(session).to[index(other(from))];
  //= WIN-1
  if (seq != stream.messages.size()) {
    return context_.fail("seq-counts-up", "send() gave seq ", seq, " where ", stream.messages.size(),
                         " was next");
  }
  stream.messages.push_back({.content = content_hash(message),
                             .bytes_end = stream.bytes_before(seq) + message.credit_bytes(),
                             .alone = stream.heard_owned == seq,
                             .ts = {}});
}

void SessionChecker::on_delivered(const std::string& session, End at, const Delivered& delivered) {
  Stream& stream = record_of(session).to[index(at)];
  //= WIN-4
  if (delivered.seq != stream.delivered_next) {
    return context_.fail("delivered-in-order-once", "the ", name(at), "'s owner got seq ", delivered.seq,
                         " where ", stream.delivered_next, " was next");
  }
  ++stream.delivered_next;
  if (delivered.seq >= stream.messages.size() ||
      stream.messages[delivered.seq].content != content_hash(delivered.message)) {
    return context_.fail("bytes-intact", "the ", name(at), "'s owner got another message as seq ",
                         delivered.seq, " than was sent");
  }
}

void SessionChecker::on_owned(const std::string& session, End at, Seq next) {
  Stream& stream = record_of(session).to[index(at)];
  stream.owned_next = std::max(stream.owned_next, next);
}

void SessionChecker::on_acknowledged(const std::string& session, End sender, Seq next) {
  Stream& stream = record_of(session).to[index(other(sender))];
  if (next > stream.owned_next) {
    return context_.fail("ack-only-owned", "the ", name(sender), "'s owner was told that ", next,
                         " are acknowledged, but only ", stream.owned_next, " are owned");
  }
  if (next <= stream.acknowledged_next) {
    return context_.fail("ack-moves-on", "the ", name(sender), "'s owner was told ", next, " after ",
                         stream.acknowledged_next);
  }
  stream.acknowledged_next = next;
}

void SessionChecker::on_ended(const std::string& session, End at, const Ended& ended) {
  Record& record = record_of(session);
  if (record.over[index(at)]) return context_.fail("ends-once", "session ", session, " ended twice");
  record.over[index(at)] = true;
  const Stream& stream = record.to[index(other(at))];
  //= RTX-5
  const Seq kept = stream.messages.size() - stream.acknowledged_next;
  bool same = ended.returned.size() == kept;
  for (std::size_t i = 0; same && i < kept; ++i) {
    same = content_hash(ended.returned[i]) == stream.messages[stream.acknowledged_next + i].content;
  }
  if (!same) {
    context_.fail("acknowledged-or-returned", "session ", session, " gave ", ended.returned.size(),
                  " messages back to the ", name(at), "'s owner, not the ", kept,
                  " unacknowledged ones in order");
  }
}

void SessionChecker::on_process_lost(const std::string& session, End at) {
  record_of(session).over[index(at)] = true;
}

const std::string* SessionChecker::session_on(const Wire& wire, End at) const {
  const auto found = wires_.find(wire.number());
  if (found == wires_.end() || found->second.session[index(at)] == nullptr) return nullptr;
  return &found->second.session[index(at)]->id;
}

bool SessionChecker::is_current(const Wire& wire, End at) const {
  const auto found = wires_.find(wire.number());
  if (found == wires_.end() || found->second.session[index(at)] == nullptr) return true;
  return found->second.session[index(at)]->wire[index(at)] == wire.number();
}

std::vector<std::string> SessionChecker::open_sessions(End at) const {
  std::vector<std::string> open;
  for (const auto& [id, record] : sessions_) {
    if (!record.over[index(at)] && record.wire[index(at)] != 0) open.push_back(id);
  }
  return open;
}

}  // namespace windlass::sim
