// The two reliable streams of a session: both windows, when to acknowledge, when to send again, when to probe
// a closed window. It speaks positions and messages; frames and everything else about a session are
// session.h.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "protocol/base/deadlines.h"
#include "protocol/base/random.h"
#include "protocol/base/result.h"
#include "protocol/messages/frame.h"
#include "protocol/session/ack_policy.h"
#include "protocol/session/receive_window.h"
#include "protocol/session/retransmit.h"
#include "protocol/session/send_window.h"
#include "protocol/session/session_config.h"

namespace windlass {

struct StreamCounters {
  std::uint64_t delivered = 0;
  std::uint64_t duplicates = 0;            // received twice
  std::uint64_t outside_window = 0;        // dropped
  std::uint64_t retransmits = 0;           // sent again by timer
  std::uint64_t spurious_retransmits = 0;  // of those, what the peer had already
  std::uint64_t replayed = 0;              // sent again by a resume
  std::uint64_t probes = 0;
};

class Stream {
 public:
  Stream(const SessionConfig& config, Revision revision);

  // Owner. send is refused with WouldBlock when credit is spent; take_writable then says when to try again.
  Result<Seq> send(Message&& message, Now now);
  void own(Seq next, Instant now);
  void set_receive_credit(Credit capacity, Instant now);

  // Peer. In-order messages are appended to `delivered`.
  ReceiveWindow::Arrival handle_data(const Frame& frame, Instant now, std::vector<Message>& delivered);
  // Says whether ack_seq moved.
  Result<bool> handle_ack(const AckState& ack, Instant now);
  void request_ack() { ack_.note_urgent(); }

  // Connection. `connect` of a new session, `resume` of an old one; the latter says how many frames go out
  // again.
  void connect(Credit peer_credit, Random& random, Instant now);
  Result<std::uint64_t> resume(Seq peer_received_next, Seq peer_earliest_retained, Credit peer_credit,
                               Random& random, Instant now);
  void disconnect();
  // While the transport holds unsent bytes no timer resends.
  void set_transport_busy(bool busy, Instant now);
  bool is_transport_busy() const { return transport_busy_; }

  // Out.
  bool is_ack_due() const { return ack_.is_due(); }
  void take_ack(AckState& state);             // fills it in; the caller sends it now
  bool take_probe();                          // true once per probe: send an ack that asks for one
  std::optional<Seq> poll_data(Instant now);  // the frame to send now, new or again
  bool take_writable();                       // true once when credit is back after a refusal
  void flush_ack() { ack_.flush(); }

  std::optional<Instant> next_timeout() const { return deadlines_.next(); }
  // Fails with Timeout once every attempt was in vain.
  Result<Done> handle_timeout(Instant now, Random& random);

  std::vector<Message> take_unacknowledged() { return send_.take_all(); }
  void release_idle_memory();
  void forget_attempts() { note_progress(); }

  const SendWindow& send_window() const { return send_; }
  const ReceiveWindow& receive_window() const { return receive_; }
  const StreamCounters& counters() const { return counters_; }

 private:
  enum class Timer { Ack, Retransmit, Probe, Count };

  void note_progress();
  void arm_ack(Instant now);
  void arm_retransmit(Instant now);
  void arm_probe(Instant now);
  Instant resend_time(Seq seq) const;
  bool is_ack_behind_data(Instant now);

  const SessionConfig& config_;
  Revision revision_;
  SendWindow send_;
  ReceiveWindow receive_;
  AckPolicy ack_;
  RetransmitTimer retransmit_;
  Deadlines<Timer> deadlines_;
  StreamCounters counters_;
  std::uint64_t retransmits_unreported_ = 0;  // the most the peer's `dup` can charge as spurious
  std::optional<Seq> resend_;                 // due now
  std::optional<Seq> left_;                   // waited for a busy transport, which let go of it at
  Instant left_at_{};
  bool peer_sends_ = false;               // new frames of its own since the last look of the timer
  std::optional<Instant> spent_at_;       // when the last attempt was in vain
  std::uint32_t waits_ = 0;               // that began its interval anew
  std::optional<std::uint64_t> blocked_;  // the smallest size that the owner was refused
  bool connected_ = false;
  bool transport_busy_ = false;
  bool probe_due_ = false;
};

}  // namespace windlass
