// The side that dials: NEW, HANDSHAKING, REGISTERED, then a Session, and BACKOFF between connections. It
// keeps the session and its token across connections, resumes where it can and starts afresh where it must.
//
// Every dial has a ConnectionId that the shell quotes in later calls: what an abandoned connection still has
// to say changes nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/base/deadlines.h"
#include "protocol/base/random.h"
#include "protocol/base/ring.h"
#include "protocol/messages/frame.h"
#include "protocol/session/backoff.h"
#include "protocol/session/session.h"

namespace windlass {

struct WorkerOptions {
  std::string tenant;
  std::string instance_id;
  Role role = Role::Worker;
  Revision revision = Revision::Two;
  AuthMode auth_mode = AuthMode::Token;
  std::string auth_token;   // secret
  std::string fingerprint;  // of the client certificate, for mTLS
  WorkerProfile profile;
};

class WorkerEndpoint {
 public:
  WorkerEndpoint(WorkerOptions options, const SessionConfig& config, std::uint64_t seed);
  WorkerEndpoint(const WorkerEndpoint&) = delete;
  WorkerEndpoint& operator=(const WorkerEndpoint&) = delete;

  // Commands.
  void start(Now now);
  void stop(std::string_view reason, Now now);  // gives up at once: unacknowledged messages come back
  [[nodiscard]] Result<Seq> send(Message&& message,
                                 Now now);  // a message that is refused stays with the caller
  // Of a session that is over it changes nothing: a commit may end after its session did.
  void own(SessionHandle session, Seq next, Now now);
  void set_receive_credit(Credit credit, Now now);
  void set_load(const LoadFacts& load);
  void set_auth_token(std::string token) { options_.auth_token = std::move(token); }
  void set_fingerprint(std::string fingerprint) { options_.fingerprint = std::move(fingerprint); }
  void drain(std::string_view reason, Duration deadline, Now now);
  void complete_drain(Now now);

  // In.
  void handle_opened(ConnectionId connection, Now now);
  void handle_frame(ConnectionId connection, const Frame& frame, Now now);
  void handle_bad_frame(ConnectionId connection, const BadFrame& bad, Now now);
  void handle_closed(ConnectionId connection, std::uint16_t code, std::string_view reason, Now now);
  // The dial ended before it opened, by an answer that asks to come back later.
  void handle_put_off(ConnectionId connection, std::string_view reason, Duration retry_after, Now now);
  void handle_timeout(Now now);
  void handle_idle();
  void set_transport_busy(bool busy, Now now);

  // Out. A dial replaces whatever connection there was.
  [[nodiscard]] std::optional<ConnectionId> poll_dial(Now now);
  [[nodiscard]] std::optional<Frame> poll_transmit(Now now);
  [[nodiscard]] std::optional<CloseRequest> poll_close(Now now);  // of the current connection
  [[nodiscard]] std::optional<OwnerEvent> poll_event();
  [[nodiscard]] std::optional<Instant> poll_timeout() const;

  SessionState state() const;
  Revision revision() const { return options_.revision; }
  std::uint64_t frame_bytes_max() const { return frame_bytes_max_; }  // of what this side takes
  ConnectionId connection() const { return connection_; }
  bool is_current(ConnectionId connection) const { return connection == connection_ && dialled_; }
  // The connection closes once everything that poll_transmit gives was sent, however slowly the peer reads.
  bool is_closing() const { return close_ || (session_ && session_->is_closing()); }
  std::uint32_t failures() const { return backoff_.failures(); }
  SessionHandle handle() const { return handle_; }  // of the newest session
  // The session under way, connected or not.
  const Session* session() const { return session_.get(); }

 private:
  enum class Timer { Stage, Retry, ResumeExpiry, Count };
  enum class Outgoing : std::uint8_t { None, Handshake, Register, Resume, Reset };

  void handle_before_accept(const Frame& frame, Now now);
  void handle_accept(const Frame& frame, const SessionAccept& accept, Now now);
  void handle_early_reset(const Reset& reset, Now now);
  void accept_new(const Frame& frame, const SessionAccept& accept, Now now);
  void accept_resumed(const SessionAccept& accept, Now now);
  void refuse(ErrorCode code, std::string_view reason,
              Now now);                           // resets and closes the connection, backs off
  void abandon(std::string_view cause, Now now);  // the same without a word
  void lose(std::string_view cause, Now now);     // the connection is gone
  bool take_expiry(Now now);
  void collect(Now now);
  void note_ended(const Ended& ended, Now now);
  void note_ready_over(Now now);
  Duration delay_after(std::string_view code, std::optional<Duration> retry_after);
  void leave(Now now);
  void close_for_good();
  bool means_start_fresh(std::uint16_t code, std::string_view reason) const;
  void await_stage(Now now);
  Frame greeting(Outgoing kind, Now now);

  WorkerOptions options_;
  SessionConfig config_;  // as the accept adjusts it
  Random random_;
  Lifecycle lifecycle_;
  Backoff backoff_;
  Deadlines<Timer> deadlines_;
  std::unique_ptr<Session> session_;
  std::string session_token_;
  SessionHandle handle_{0};
  Ring<OwnerEvent> events_;
  std::optional<CloseRequest> close_;
  ConnectionId connection_{0};
  Outgoing outgoing_ = Outgoing::None;
  bool started_ = false;
  bool dial_wanted_ = false;
  bool dialled_ = false;   // the current connection exists, or is being made
  bool resuming_ = false;  // the frame awaiting an answer is a resume
  bool stopping_ = false;  // after a completed drain or stop(): no more dials
  LoadFacts load_;
  std::string drain_reason_;
  std::optional<Instant> drain_until_;  // its owner wants it drained by then
  bool busy_ = false;                   // the current connection's transport
  std::uint64_t frame_bytes_max_;       // of this side, whatever an accept said
  std::optional<Instant> ready_since_;
  std::optional<Duration> next_delay_;  // decided by what the scheduler said
  std::uint64_t frame_counter_ = 0;
  std::string frame_id_;
  std::string awaited_ack_;  // the id of the greeting that was last sent
  ErrorCode refusal_code_{};
  std::string refusal_reason_;
};

}  // namespace windlass
