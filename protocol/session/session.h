// One accepted session, on either side: two reliable streams, heartbeats, liveness, drain, errors. It
// outlives connections; dialling and handshakes belong to worker_endpoint.h and scheduler_endpoint.h.
//
// Drive loop: handle_* or a command, then poll_transmit until empty, poll_close, poll_event until empty, and
// set the alarm to poll_timeout. Nothing here calls back, blocks, throws or reads a clock.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/base/deadlines.h"
#include "protocol/base/random.h"
#include "protocol/base/result.h"
#include "protocol/base/ring.h"
#include "protocol/messages/frame.h"
#include "protocol/session/error_budget.h"
#include "protocol/session/session_config.h"
#include "protocol/session/session_event.h"
#include "protocol/session/session_state.h"
#include "protocol/session/stream.h"
#include "protocol/session/tenant_account.h"

namespace windlass {

enum class Side : std::uint8_t { Worker, Scheduler };

struct SessionIdentity {
  std::string session_id;
  std::string tenant;
  Role self_role = Role::Scheduler;
  std::string self_id;
  Role peer_role = Role::Worker;
  std::string peer_id;
  Revision revision = Revision::Two;
};

// The positions and credit of the other side, as a handshake states them.
struct PeerPosition {
  Seq received_next = 0;
  Seq earliest_retained = 0;
  Credit credit;
};

// A frame that could not be decoded.
struct BadFrame {
  ErrorCode code = ErrorCode::ProtoSchema;
  std::string_view frame_id;    // empty where it could not be read
  std::string_view frame_type;  // likewise
  std::string_view info;        // "<pointer>: <reason>"
};

struct LoadFacts {
  bool healthy = true;
  std::uint64_t inflight = 0;
  std::optional<double> cpu_pct;
  std::optional<double> mem_pct;
  std::optional<double> disk_pct;
  std::optional<double> latency_ms;
};

class Session {
 public:
  // The config must outlive the session, and so must the account of its tenant, if there is one.
  Session(Side side, SessionIdentity identity, const SessionConfig& config, std::uint64_t seed,
          TenantAccount* account = nullptr);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Connection. A new session connects once; later connections resume. resume fails, and the session must be
  // reset, when the positions do not fit.
  void connect(Credit peer_credit, Now now);
  [[nodiscard]] Result<Done> resume(const PeerPosition& peer, Now now);
  void disconnect(Now now);
  void set_transport_busy(bool busy, Now now) { stream_.set_transport_busy(busy, now.steady); }

  // In. The frame's revision, tenant and sender are checked here.
  void handle_frame(const Frame& frame, Now now);
  void handle_bad_frame(const BadFrame& bad, Now now);
  void handle_timeout(Now now);
  void handle_normal_close();                  // the peer closed with 1000: after a drain that is the end
  void handle_idle() { stream_.flush_ack(); }  // the loop has nothing else to do: acknowledge what is pending

  // Commands. send is refused with WouldBlock (wait for Writable), or Draining, or once the session is over;
  // a message that is refused stays with the caller.
  [[nodiscard]] Result<Seq> send(Message&& message, Now now);
  void own(Seq next, Now now);  // responsibility is taken for every delivered frame below `next`
  void set_receive_credit(Credit credit, Now now) { stream_.set_receive_credit(credit, now.steady); }
  // Values that the wire forbids are mended: a sensor's nonsense must not end a session.
  void set_load(const LoadFacts& load);
  void drain(std::string_view reason, Duration deadline, Now now);
  void complete_drain(Now now);  // the worker's owner: nothing is left to do
  void reset(ErrorCode code, std::string_view reason, Now now,
             std::optional<Duration> retry_after = std::nullopt);
  // Ends the session without a word to the peer: its connection is gone, or says it by itself.
  void end(ErrorCode code, std::string_view reason, Blame initiator,
           std::optional<Duration> retry_after = {});
  void acknowledge(std::string_view frame_id, std::string_view ack_info, bool ok);

  // Out.
  [[nodiscard]] std::optional<Frame> poll_transmit(Now now);
  [[nodiscard]] std::optional<CloseRequest> poll_close();
  [[nodiscard]] std::optional<SessionEvent> poll_event();
  [[nodiscard]] std::optional<Instant> poll_timeout() const;

  SessionState state() const { return lifecycle_.state(); }
  bool is_connected() const { return connected_; }
  bool is_ended() const { return ended_; }
  bool is_draining() const { return draining_; }
  bool is_closing() const { return close_.has_value(); }
  bool has_said_complete() const { return complete_said_; }
  Liveness liveness() const { return liveness_; }
  const SessionIdentity& identity() const { return identity_; }
  const Stream& stream() const { return stream_; }
  PeerPosition position() const;  // this side's, for an accept or a resume
  Instant last_heard() const { return last_heard_; }
  Duration heartbeat_interval() const { return ladder_.interval; }  // as a scheduler's accept says it

 private:
  enum class Timer { Heartbeat, Liveness, Drain, Count };

  // A control frame waiting to be sent; what it says is filled in when it leaves.
  struct Pending {
    enum class Kind : std::uint8_t {
      Ack,
      HeartbeatAck,
      Nack,
      Reset,
      DrainStart,
      DrainComplete
    } kind = Kind::Ack;
    std::string for_id;
    std::string info;  // ack info, or the reset's code
  };

  void handle_body(const Frame& frame, Now now);
  void handle_data(const Frame& frame, Now now);
  void handle_ack(const Frame& frame, const Ack& ack, Now now);
  void handle_drain(const Frame& frame, const Drain& drain, Now now);
  void handle_heartbeat(const Heartbeat& heartbeat);
  void acknowledge_heartbeat(std::string_view frame_id);
  void judge_load(const Heartbeat& heartbeat);
  void handle_reset(const Reset& reset);
  void handle_register(const Frame& frame, const Register& body);
  void handle_accept(const Frame& frame, const SessionAccept& accept, Now now);
  void handle_nack(const Ack& ack, Now now);
  bool check_rate(Now now);
  bool check_sender(const Frame& frame, Now now);
  void note_heard(Now now);
  void note_clock(Now now);
  void count_anew(Now now);
  void check_liveness(Now now);
  Duration liveness_interval() const;
  enum class Answer : bool { No, Yes };
  struct FrameName {
    std::string_view id;
    std::string_view type;
  };
  void refuse(ErrorCode code, FrameName frame, std::string_view info, Now now, Answer answer = Answer::Yes,
              SchemaMode mode = SchemaMode::Strict);
  void refuse_out_of_turn(const Frame& frame, Now now);
  void queue_control(Pending pending);
  void drop_connection(std::uint16_t code, std::string_view reason);
  void start_draining(std::string_view reason, Duration deadline, bool tell_peer, Now now);
  void finish(std::string_view code, std::string_view reason, Blame initiator,
              std::optional<Duration> retry_after);
  void maybe_say_complete(Now now);
  void await_own_ack(const Frame& frame);
  void release_idle_memory();
  void arm_heartbeat(Now now);
  void attach(Now now, bool resumed, std::uint64_t replayed);

  Frame control_frame(FrameBody body, Now now);
  Frame data_frame(Seq seq);
  Frame pending_frame(Now now);
  Frame heartbeat_frame(Now now);
  Frame ack_frame(Now now);  // as current_ says

  Side side_;
  bool connected_ = false;
  bool ended_ = false;
  bool draining_ = false;
  bool drain_acknowledged_ = false;  // the peer knows
  bool drain_ours_ = false;          // this side asked for it
  bool complete_wanted_ = false;     // the worker's owner is done
  bool complete_said_ = false;
  bool heartbeat_due_ = false;
  Liveness liveness_ = Liveness::Healthy;
  SessionIdentity identity_;
  const SessionConfig& config_;
  TenantAccount* account_;  // may be none
  HeartbeatLadder ladder_;  // the scheduler's, fixed when the session began
  bool is_short_of_memory_ = false;
  bool is_short_of_disk_ = false;
  Random random_;
  Lifecycle lifecycle_;
  Stream stream_;
  Deadlines<Timer> deadlines_;
  Bucket errors_;
  Bucket frames_;
  Ring<Pending> control_;
  Ring<SessionEvent> events_;
  std::optional<CloseRequest> close_;
  std::vector<Message> delivered_;  // scratch, empty between calls
  struct AwaitedAck {
    Seq seq = 0;
    std::string frame_id;
  };
  Ring<AwaitedAck> awaited_;  // frames that asked for an ack of their own and have none yet, in order of seq
  LoadFacts load_;
  std::string drain_reason_;
  std::string drain_frame_id_;
  std::string complete_frame_id_;
  Duration drain_deadline_{};
  std::optional<Duration> reset_retry_after_;
  Instant last_heard_{};
  Duration clock_offset_{};  // wall minus steady when last looked
  std::uint64_t frame_counter_ = 0;
  Pending current_;  // the views of the last frame given out point here
  std::array<char, 40> frame_id_{};
};

}  // namespace windlass
