// The promises of a session, checked from outside: what its owners were told on both ends, against every
// frame on the wire. Per session and direction: in order, exactly once, intact; acknowledged only what was
// owned; inside the window; resent only what the peer lacks; and every message either acknowledged or given
// back. wire_checker.cc judges frames, session_checker.cc what owners are told.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "protocol/codec/decode.h"
#include "protocol/session/session_event.h"
#include "tests/sim/context.h"
#include "tests/sim/session_record.h"

namespace windlass::sim {

struct StolenToken {
  std::string session;
  std::string instance;
  std::string token;
  Revision revision = Revision::Two;
};

class SessionChecker final : public WireObserver {
 public:
  // `tokens_stay_valid`: nothing in this world makes the token of an honest worker invalid.
  SessionChecker(Context& context, bool tokens_stay_valid)
      : context_(context), tokens_stay_valid_(tokens_stay_valid) {}

  // From the network.
  void on_sent(Wire& wire, End from, BytesView message, MessageKind kind) override;
  bool may_lose(Wire& wire, End from) override;
  void on_injected(Wire& wire, End to, BytesView message) override;

  // From the machines. True when it was a lie that must end the session.
  enum class Ear : std::uint8_t {
    Deaf,      // the connection was given up: what it says does not count
    Greeting,  // no session is carried yet
    Open,      // the connection carries the session
  };
  bool on_read(Wire& wire, End at, BytesView message, Ear ear);
  void on_send_accepted(const std::string& session, End from, Seq seq, const Message& message);
  void on_delivered(const std::string& session, End at, const Delivered& delivered);
  void on_owned(const std::string& session, End at, Seq next);
  void on_acknowledged(const std::string& session, End sender, Seq next);
  void on_ended(const std::string& session, End at, const Ended& ended);
  void on_process_lost(const std::string& session, End at);

  // The session that `wire` was accepted for, as this end knows it, and whether no newer connection carries
  // it; null before the accept.
  const std::string* session_on(const Wire& wire, End at) const;
  bool is_current(const Wire& wire, End at) const;

  // When this end last asked for credit, or could begin to.
  Duration asked_at(const std::string& session, End at) const;
  Unowned unowned(const std::string& session, End at) const;
  // Nobody's of the fleet: what it sends was never promised.
  bool is_stranger(const std::string& session) const;

  // At the end of the world: sides of sessions whose owner was never told of an end.
  std::vector<std::string> open_sessions(End at) const;

  // For faults: a data frame of this session or an ack of this connection that went out before, to be put
  // into it again; and a token that its session has replaced.
  const TapedMessage* old_message(const Wire& wire, End to);
  std::optional<StolenToken> replaced_token();
  // The next injected message is an old one of the session, not a lie.
  void expect_replay(const SeenFrame& seen) { replay_ = seen; }

 private:
  WireRecord& record_of(const Wire& wire) { return wires_[wire.number()]; }
  SessionRecord& record_of(const std::string& session);
  bool can_do_without_ack(const Wire& wire, End sender);
  void judge_sent(const Wire& wire, End from, const Frame& frame, const SeenFrame& seen);
  void check_data(const Wire& wire, End from, Seq seq, const Frame& frame);
  void check_ack(const Wire& wire, End from, const AckState& state);
  void check_drain(const Wire& wire, End from, const SeenFrame& seen);
  void check_cause(const SessionRecord& record, End at, const Ended& ended);
  void hear(WireRecord& wire, SessionRecord& session, End at, const SeenFrame& seen);
  void hear_ack(SessionRecord& session, End at, const AckState& state);
  void hear_position(SessionRecord& session, End sender, Seq received_next, Credit credit);
  void prove_token(SessionRecord& session, const SeenFrame& seen);
  void bind(const Wire& wire, End at, const SeenFrame& accept);
  std::string where(const Wire& wire, End from, Seq seq) const;

  Context& context_;
  bool tokens_stay_valid_;
  Decoder decoder_;
  std::map<std::string, SessionRecord> sessions_;
  std::unordered_map<std::uint64_t, WireRecord> wires_;
  std::optional<SeenFrame> replay_;
};

// What must come out as it went in.
std::size_t content_hash(std::string_view id, std::string_view corr, const Data& data);
std::size_t content_hash(const Message& message);

const char* name(End end);

}  // namespace windlass::sim
