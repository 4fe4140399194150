#include "tests/sim/session_checker.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

namespace windlass::sim {
namespace {

std::size_t mix(std::size_t hash, std::string_view text) {
  return (hash ^ std::hash<std::string_view>{}(text)) * 0x9e3779b97f4a7c15ULL + text.size();
}

}  // namespace

std::size_t content_hash(std::string_view id, std::string_view corr, const Data& data) {
  std::size_t hash = mix(mix(mix(mix(0, id), corr), data.type), data.payload);
  if (data.attachment) hash = mix(mix(hash, data.attachment->type), data.attachment->bytes);
  return hash;
}

std::size_t content_hash(const Message& message) {
  return content_hash(message.id(), message.corr(), message.data());
}

const char* name(End end) {
  return end == End::Worker ? "worker" : "scheduler";
}

SessionRecord& SessionChecker::record_of(const std::string& session) {
  SessionRecord& record = sessions_[session];
  record.id = session;
  return record;
}

std::string SessionChecker::where(const Wire& wire, End from, Seq seq) const {
  return "seq " + std::to_string(seq) + " from the " + name(from) + " of " + wire.machine() + " on wire " +
         std::to_string(wire.number());
}

void SessionChecker::on_send_accepted(const std::string& session, End from, Seq seq, const Message& message) {
  StreamRecord& stream = record_of(session).to[index(other(from))];
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
  SessionRecord& record = record_of(session);
  StreamRecord& stream = record.to[index(at)];
  //= WIN-4
  if (delivered.seq != stream.delivered_next) {
    return context_.fail("delivered-in-order-once", "the ", name(at), "'s owner got seq ", delivered.seq,
                         " where ", stream.delivered_next, " was next");
  }
  ++stream.delivered_next;
  stream.unowned.push_back(delivered.message.credit_bytes());
  if (record.instance.empty()) return;  // of a stranger
  if (delivered.seq >= stream.messages.size() ||
      stream.messages[delivered.seq].content != content_hash(delivered.message)) {
    return context_.fail("bytes-intact", "the ", name(at), "'s owner got another message as seq ",
                         delivered.seq, " than was sent");
  }
}

void SessionChecker::on_owned(const std::string& session, End at, Seq next) {
  StreamRecord& stream = record_of(session).to[index(at)];
  for (; stream.owned_next < next; ++stream.owned_next) stream.unowned.pop_front();
}

Duration SessionChecker::asked_at(const std::string& session, End at) const {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? Duration{} : found->second.asked_at[index(at)];
}

Unowned SessionChecker::unowned(const std::string& session, End at) const {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return {};
  const auto& unowned = found->second.to[index(at)].unowned;
  return {unowned.size(), std::accumulate(unowned.begin(), unowned.end(), std::uint64_t{0})};
}

bool SessionChecker::is_stranger(const std::string& session) const {
  const auto found = sessions_.find(session);
  return found == sessions_.end() || found->second.instance.empty();
}

void SessionChecker::on_acknowledged(const std::string& session, End sender, Seq next) {
  StreamRecord& stream = record_of(session).to[index(other(sender))];
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
  SessionRecord& record = record_of(session);
  if (record.over[index(at)]) return context_.fail("ends-once", "session ", session, " ended twice");
  record.over[index(at)] = true;
  check_cause(record, at, ended);
  const StreamRecord& stream = record.to[index(other(at))];
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

// Honest peers on a bad network end sessions for few reasons.
void SessionChecker::check_cause(const SessionRecord& record, End at, const Ended& ended) {
  static constexpr std::array kCauses = {ErrorCode::SessionStaleBinding,
                                         ErrorCode::SessionUnknown,
                                         ErrorCode::SessionSuperseded,
                                         ErrorCode::SessionRestarting,
                                         ErrorCode::AuthInvalidToken,
                                         ErrorCode::SessionInvalidToken,
                                         ErrorCode::Timeout,
                                         ErrorCode::Internal,
                                         ErrorCode::SessionDraining};
  const auto code = error_code_from(ended.code);
  const bool is_lie = code == ErrorCode::SessionAckInvalid && record.was_lied_to;
  const bool is_usual = code && std::ranges::count(kCauses, *code) > 0;
  const bool is_stranger = record.instance.empty();
  if (!ended.code.empty() && !is_lie && !is_usual && !is_stranger) {
    return context_.fail("ends-have-a-cause", "a session of ", record.instance, " ended at the ", name(at),
                         " with ", ended.code, ": ", ended.reason);
  }
  if (at != End::Worker || ended.initiator != Blame::Peer) return;
  //= RES-7
  const bool is_gone = code == ErrorCode::SessionStaleBinding || code == ErrorCode::SessionUnknown;
  if (is_gone && !record.over[index(End::Scheduler)]) {
    context_.fail("stale-only-when-gone", "the scheduler has the session that it refused to resume of ",
                  record.instance);
  }
  //= TOK-2
  if (code == ErrorCode::SessionInvalidToken && tokens_stay_valid_) {
    context_.fail("valid-token-is-taken", record.instance, " was refused: ", ended.reason);
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

const TapedMessage* SessionChecker::old_message(const Wire& wire, End to) {
  const WireRecord& record = record_of(wire);
  const SessionRecord* const session = record.session[index(other(to))];
  if (session == nullptr) return nullptr;
  const auto& tape = context_.chance(50) ? record.acks[index(to)] : session->to[index(to)].tape;
  return tape.empty() ? nullptr : &tape[context_.random.below(tape.size())];
}

std::optional<StolenToken> SessionChecker::replaced_token() {
  for (const auto& [id, session] : sessions_) {
    if (session.over[index(End::Scheduler)] || session.tokens_proved < 2) continue;
    if (context_.chance(50)) continue;
    const std::string& token = session.tokens[context_.random.below(session.tokens_proved - 1)];
    return StolenToken{id, session.instance, token, session.revision};
  }
  return std::nullopt;
}

std::vector<std::string> SessionChecker::open_sessions(End at) const {
  std::vector<std::string> open;
  for (const auto& [id, record] : sessions_) {
    if (!record.over[index(at)] && record.wire[index(at)] != 0) open.push_back(id);
  }
  return open;
}

}  // namespace windlass::sim
