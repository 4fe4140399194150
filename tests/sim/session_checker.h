// The promises of a session, checked from outside: what its owners were told on both ends, against every
// frame on the wire. Per session and direction: in order, exactly once, intact; acknowledged only what was
// owned; inside the window; resent only what the peer lacks; and every message either acknowledged or given
// back.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "protocol/codec/decode.h"
#include "protocol/session/session_event.h"
#include "tests/sim/context.h"
#include "tests/sim/network.h"

namespace windlass::sim {

class SessionChecker final : public WireObserver {
 public:
  explicit SessionChecker(Context& context) : context_(context) {}

  // From the network.
  void on_sent(Wire& wire, End from, BytesView message, MessageKind kind) override;
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

  // At the end of the world: sides of sessions whose owner was never told of an end.
  std::vector<std::string> open_sessions(End at) const;

 private:
  struct Promised {
    std::size_t content = 0;
    std::uint64_t bytes_end = 0;  // of this message and all before it
    bool alone = false;           // sent while nothing was outstanding: the byte window does not bind it
    std::optional<WallTime> ts;   // of its first sending
  };

  // One stream of a session.
  struct Stream {
    std::vector<Promised> messages;  // by seq
    std::vector<bool> arrived;
    Seq delivered_next = 0;
    Seq owned_next = 0;
    Seq acknowledged_next = 0;  // as the sender's owner was told
    // What the sender has heard.
    Seq heard_owned = 0;
    std::vector<bool> heard_held;
    Seq edge = 0;
    std::uint64_t edge_bytes = 0;
    // What the receiver has said.
    Seq said_owned = 0;
    Seq said_edge = 0;
    std::uint64_t said_edge_bytes = 0;

    std::uint64_t bytes_before(Seq seq) const { return seq == 0 ? 0 : messages[seq - 1].bytes_end; }
    bool is_held(Seq seq) const { return seq < heard_held.size() && heard_held[seq]; }
  };

  struct Record {
    std::string id;
    Revision revision = Revision::Two;
    std::array<Stream, 2> to;             // by receiving end
    std::array<std::uint64_t, 2> wire{};  // that carries it, as each end knows
    std::array<bool, 2> over{};           // its owner was told, or died
  };

  // What a frame on its way says, as far as promises depend on it.
  struct Seen {
    enum class Kind : std::uint8_t { Data, Ack, Accept, Resume, Other } kind = Kind::Other;
    std::size_t hash = 0;
    bool is_injected = false;
    Seq seq = 0;
    std::string session;
    bool resumed = false;
    Seq received_next = 0;
    Credit credit;
    std::optional<AckState> state;
  };

  struct WireRecord {
    std::array<Record*, 2> session{};  // as each end knows
    std::array<Seq, 2> next{};         // by sending end: the next frame to go out for the first time here
    std::array<std::deque<Seen>, 2> flying;  // by receiving end
    std::optional<Seq> resume_position;      // of the worker's resume, as the scheduler read it
    Credit resume_credit;
  };

  WireRecord& record_of(const Wire& wire) { return wires_[wire.number()]; }
  Record& record_of(const std::string& session);
  Seen summarise(const Wire& wire, End from, const Frame& frame);
  void check_data(const Wire& wire, End from, Seq seq, const Frame& frame);
  void check_ack(const Wire& wire, End from, const AckState& state);
  void hear_ack(Record& session, End at, const AckState& state);
  void hear_position(Record& session, End sender, Seq received_next, Credit credit);
  void bind(const Wire& wire, End at, const Seen& accept);
  std::string where(const Wire& wire, End from, Seq seq) const;

  Context& context_;
  Decoder decoder_;
  std::map<std::string, Record> sessions_;
  std::unordered_map<std::uint64_t, WireRecord> wires_;
};

// What must come out as it went in.
std::size_t content_hash(const Message& message);

}  // namespace windlass::sim
