// What the session checker knows of a session, of a connection, and of a frame on its way. Plain values;
// session_checker.h says what must hold between them.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "protocol/messages/control.h"
#include "tests/sim/network.h"

namespace windlass::sim {

struct PromisedMessage {
  std::size_t content = 0;
  std::uint64_t bytes_end = 0;  // of this message and all before it
  bool alone = false;           // sent while nothing was outstanding: the byte window does not bind it
  std::optional<WallTime> ts;   // of its first sending
};

// What a frame on its way says, as far as promises depend on it.
struct SeenFrame {
  enum class Kind : std::uint8_t { Data, Ack, Accept, Resume, DrainStart, DrainComplete, Reset, Lie, Other };
  Kind kind = Kind::Other;
  std::size_t hash = 0;
  std::string id;
  Seq seq = 0;
  bool asks_ack = false;
  std::string session;
  std::string token;
  bool resumed = false;
  Seq received_next = 0;
  Credit credit;
  std::string answers;     // the frame that an ack is for
  bool is_answer = false;  // to a frame of the peer, with yes or no
  std::optional<AckState> state;
};

// A message as it was written, to be played again.
struct TapedMessage {
  SeenFrame seen;
  Bytes bytes;
  MessageKind kind = MessageKind::Text;
};

// What a receiver's owner was given and has not owned.
struct Unowned {
  std::size_t frames = 0;
  std::uint64_t bytes = 0;
};

// One stream of a session.
struct StreamRecord {
  std::vector<PromisedMessage> messages;  // by seq
  std::vector<bool> arrived;
  Seq delivered_next = 0;
  Seq owned_next = 0;
  std::deque<std::uint64_t> unowned;  // bytes of each message from owned_next to delivered_next
  Seq acknowledged_next = 0;          // as the sender's owner was told
  // What the sender has heard.
  Seq heard_owned = 0;
  std::vector<bool> heard_held;
  Seq edge = 0;
  std::uint64_t edge_bytes = 0;
  // What the receiver has said.
  Seq said_owned = 0;
  Seq said_edge = 0;
  std::uint64_t said_edge_bytes = 0;
  std::deque<TapedMessage> tape;  // some data frames

  std::uint64_t bytes_before(Seq seq) const { return seq == 0 ? 0 : messages[seq - 1].bytes_end; }
  bool is_held(Seq seq) const { return seq < heard_held.size() && heard_held[seq]; }
  bool has_arrived(Seq seq) const { return seq < arrived.size() && arrived[seq]; }
};

struct SessionRecord {
  struct Drain {
    std::string frame_id;  // of the newest one; empty: none was sent
    bool is_answered = false;
  };

  std::string id;
  std::string instance;
  Revision revision = Revision::Two;
  std::array<StreamRecord, 2> to;       // by receiving end
  std::array<std::uint64_t, 2> wire{};  // that carries it, as each end knows
  std::array<Duration, 2> asked_at{};   // when each end began to use the connection, or probed since
  std::array<bool, 2> over{};           // its owner was told, or died
  std::array<Drain, 2> drain;           // by the end that asked for it
  std::vector<std::string> tokens;      // in order of their accepts
  std::size_t tokens_proved = 0;        // how many are at or below the newest one proved to have arrived
  std::string accept_frame_id;          // of the newest accept
  bool was_lied_to = false;
};

struct WireRecord {
  std::array<SessionRecord*, 2> session{};  // as each end knows
  std::array<Seq, 2> next{};  // by sending end: the next frame to go out for the first time here
  std::array<std::optional<int>, 2> drain_due;  // a drain must be repeated: frames sent without it so far
  std::array<std::deque<SeenFrame>, 2> flying;  // by receiving end
  // Some plain acks, by receiving end. TCP plays nothing from one connection into another, and what an ack
  // says holds only until a resume.
  std::array<std::deque<TapedMessage>, 2> acks;
  std::optional<Seq> resume_position;  // of the worker's resume, as the scheduler read it
  Credit resume_credit;
};

}  // namespace windlass::sim
