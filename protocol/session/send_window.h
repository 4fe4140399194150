// The sending half of a session: every frame that the peer's ack_seq does not cover yet, the credit the peer
// gave, and what goes out next on the current connection. It knows nothing of timers; retransmit.h does.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "protocol/base/ids.h"
#include "protocol/base/result.h"
#include "protocol/base/ring.h"
#include "protocol/base/time.h"
#include "protocol/messages/message.h"

namespace windlass {

class SendWindow {
 public:
  struct Slot {
    Message message;
    WallTime ts{};        // of the first sending: a frame that is sent again keeps it
    Instant sent_at{};    // on the current connection
    bool sent = false;    // on the current connection
    bool held = false;    // the peer has it, but has not taken responsibility
    bool resent = false;  // its round trip says nothing
  };

  struct AckOutcome {
    bool progress = false;               // something new is acknowledged or held
    std::optional<Duration> round_trip;  // of the newest frame this ack is the first to mention
  };

  Seq next_seq() const { return first_ + slots_.size(); }
  Seq earliest_retained() const { return first_; }
  std::size_t in_flight() const { return slots_.size(); }
  bool empty() const { return slots_.empty(); }

  // Whether a message of this size may be pushed now.
  bool has_credit(std::uint64_t bytes) const;
  std::uint32_t frames_credit() const;

  // Takes the message as the next frame. Only while has_credit.
  Seq push(Message message, Now now);

  // The peer's position and credit. An ack for what was never sent, which a frame still waiting here was not,
  // is the peer's mistake; the window is unchanged then.
  Result<AckOutcome> handle_ack(const AckState& ack, Instant now);

  // A new connection: what lies beyond the peer's position goes out again. Says how many frames were sent
  // before and will be sent again. A position that was never sent or is already freed is the peer's mistake.
  Result<std::uint64_t> rewind(Seq peer_received_next);

  // Credit as stated by a handshake, before any ack. It counts from the last ack_seq known here, which is
  // never above the peer's own.
  void grant(Credit credit);

  // The next frame of the current connection, or none; mark_sent moves on.
  std::optional<Seq> next_unsent() const;
  void mark_sent(Seq seq, Instant now);

  // The oldest frame that was sent here and is not known to have arrived.
  std::optional<Seq> oldest_outstanding() const;

  Slot& slot(Seq seq) { return slots_[seq - first_]; }
  const Slot& slot(Seq seq) const { return slots_[seq - first_]; }
  bool contains(Seq seq) const { return seq >= first_ && seq < next_seq(); }
  bool is_held(Seq seq) const { return contains(seq) && slot(seq).held; }

  // The connection broke: nothing counts as sent any more.
  void disconnect();

  // Gives every unacknowledged message back, in order, and empties the window.
  std::vector<Message> take_all();

  // Returns the memory of an empty window.
  void release();

 private:
  void free_through(Seq next);
  bool hold(Seq seq);
  void skip_done();

  Ring<Slot> slots_;               // frames first_ .. next_seq()-1
  Seq first_ = 0;                  // ack_seq + 1
  Seq sent_next_ = 0;              // frames below it were sent, on this connection or an earlier one
  Seq cursor_ = 0;                 // nothing below it waits to be sent on this connection
  Seq outstanding_ = 0;            // nothing below it needs a retransmission timer
  Seq right_edge_ = 0;             // frames below it may be sent
  std::uint64_t freed_bytes_ = 0;  // bytes of all frames below first_
  std::uint64_t pushed_bytes_ = 0;
  std::uint64_t right_edge_bytes_ = 0;
};

}  // namespace windlass
