// The side that accepts: connections before their accept, sessions with and without a connection, resume,
// fencing, tokens. One of these serves all connections of a loop.
//
// Drive loop: handle_* or a command, then poll_transmit until empty, poll_close until empty, poll_event until
// empty, and set the alarm to poll_timeout.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "protocol/base/id_map.h"
#include "protocol/base/ids.h"
#include "protocol/base/random.h"
#include "protocol/base/ring.h"
#include "protocol/base/text_pair.h"
#include "protocol/base/timer_queue.h"
#include "protocol/messages/frame.h"
#include "protocol/session/admission.h"
#include "protocol/session/detached_sessions.h"
#include "protocol/session/session.h"
#include "protocol/token/token.h"

namespace windlass {

struct SchedulerOptions {
  std::string scheduler_id;
  Role role = Role::Scheduler;
};

struct Transmit {
  ConnectionId connection;
  Revision revision = Revision::Two;
  Frame frame;
};

struct CloseConnection {
  ConnectionId connection;
  CloseRequest request;
};

// Somebody was not let in, and was told why. For logs and metrics.
struct Refusal {
  ConnectionId connection{0};
  std::string tenant;     // as it was claimed; empty where nothing could be read
  std::string sender_id;  // likewise
  std::string frame_type;
  std::string frame_id;
  ErrorCode code{};
  std::string reason;
  bool was_resume = false;
  bool was_unreadable = false;  // the frame broke the schema or a limit of its form
};

struct EndpointCounters {
  std::uint64_t handshakes_refused = 0;
  std::array<std::uint64_t, kErrorCodes> refused_by_code{};  // the same ones
  std::uint64_t violations_before_accept = 0;
  std::uint64_t sessions_opened = 0;
  std::uint64_t resumes_accepted = 0;
  std::uint64_t resumes_refused = 0;
  std::uint64_t superseded = 0;
  std::uint64_t twins_suspected = 0;
  std::uint64_t made_room = 0;  // sessions that waited for a resume and were ended for another's sake
  std::uint64_t refusals_forgotten = 0;  // more came than are kept for poll_refusal
  // Of all sessions (StreamCounters).
  std::uint64_t duplicates = 0;
  std::uint64_t retransmits = 0;
  std::uint64_t spurious_retransmits = 0;
  std::uint64_t outside_window = 0;
};

class SchedulerEndpoint {
 public:
  // Everything given by reference must outlive the endpoint.
  SchedulerEndpoint(SchedulerOptions options, const SessionConfig& config, const Admission& admission,
                    TokenAuthority& tokens, std::uint64_t seed);
  ~SchedulerEndpoint();
  SchedulerEndpoint(const SchedulerEndpoint&) = delete;
  SchedulerEndpoint& operator=(const SchedulerEndpoint&) = delete;

  // In. Ids are the shell's and are never used twice.
  void handle_opened(ConnectionId id, PeerFacts peer, Now now);
  void handle_frame(ConnectionId id, const Frame& frame, Now now);
  void handle_bad_frame(ConnectionId id, const BadFrame& bad, Now now);
  void handle_closed(ConnectionId id, Now now);
  void handle_timeout(Now now);
  void handle_idle(ConnectionId id);
  void set_transport_busy(ConnectionId id, bool busy, Now now);

  // Commands about one session. Those that answer false, and send, know no such session.
  // A message that is refused stays with the caller.
  [[nodiscard]] Result<Seq> send(SessionHandle session, Message&& message, Now now);
  void own(SessionHandle session, Seq next, Now now);
  void set_receive_credit(SessionHandle session, Credit credit, Now now);
  bool drain(SessionHandle session, std::string_view reason, Duration deadline, Now now);
  bool reset(SessionHandle session, ErrorCode code, std::string_view reason, Now now);
  bool rotate_token(SessionHandle session, Now now);
  // No token of this worker verifies any more; its session ends.
  void revoke(std::string_view tenant, std::string_view instance_id, Now now);
  // Spreads a reset of every session over the window; nobody new is let in.
  void drain_all(Duration window_max, Now now);

  // Out.
  [[nodiscard]] std::optional<Transmit> poll_transmit(Now now);
  [[nodiscard]] std::optional<CloseConnection> poll_close(Now now);
  [[nodiscard]] std::optional<OwnerEvent> poll_event();
  // The oldest of the last few that were not let in. May be left unpolled.
  [[nodiscard]] std::optional<Refusal> poll_refusal();
  [[nodiscard]] std::optional<Instant> poll_timeout() const { return timers_.next(); }

  // What the decoder should expect of a connection: none before its handshake.
  std::optional<Revision> revision(ConnectionId id) const;
  // Its handshake, or the resume that stood for one, was accepted.
  bool is_authenticated(ConnectionId id) const;
  std::uint64_t frame_bytes_max() const { return config_.frame_bytes_max; }  // of an authenticated peer
  const Session* session(SessionHandle handle) const;
  std::optional<SessionHandle> find(std::string_view tenant, std::string_view instance_id) const;
  std::size_t connections() const { return connections_.size(); }
  std::size_t sessions() const { return by_instance_.size(); }
  const EndpointCounters& counters() const { return counters_; }

 private:
  struct Connection;
  struct Record;
  struct Timed;

  // Before the accept (scheduler_gate.cc).
  void handle_before_accept(Connection& connection, const Frame& frame, Now now);
  void handle_handshake(Connection& connection, const Frame& frame, const Handshake& handshake, Now now);
  void handle_register(Connection& connection, const Frame& frame, const Register& body, Now now);
  void handle_resume(Connection& connection, const Frame& frame, const Resume& resume, Now now);
  Result<Record*> find_resumable(Connection& connection, const Frame& frame, const Resume& resume, Now now);
  Error unknown_session(const Connection& connection, const TokenClaims& claims);
  static Error stale_session(const Connection& connection);
  void refuse(Connection& connection, ErrorCode code, std::string_view reason,
              std::optional<Duration> retry_after = std::nullopt);
  void refuse_restarting(Connection& connection);
  Connection* oldest_unproved();
  std::optional<TenantAccount::Place> take_place(Connection& connection);
  bool make_room(std::optional<SessionHandle> session);
  void detach(Record& record, Now now);
  void end_pending(Connection& connection);
  void bind(Connection& connection, Record& record);
  void send_accept(Connection& connection, Record& record, bool resumed, Now now);
  static void note_proof(Record& record, std::string_view accept_frame_id);
  void supersede(Record& record, Now now);
  void report_twin(Record& record, std::string_view reason);

  // What a refusal answers, while it is handled.
  struct Asked {
    std::string_view sender_id;
    std::string_view frame_type;
    std::string_view frame_id;
    bool was_resume = false;
    bool was_unreadable = false;
  };
  void note_refusal(const Connection& connection, ErrorCode code, std::string_view reason);

  Record* heard_on(const Connection& connection) const;
  static void unlink(Record& record);
  void settle(Record& record);  // after any call into a session: events, end
  void note_standing(Record& record);
  void complete_profile(Record& record, Registered& registered);
  void unbind(Record& record);
  void erase(Record& record);
  void mark_dirty(Connection& connection);
  void run(Record& record, Now now);
  std::optional<Instant> next_of(const Record& record) const;
  std::optional<Frame> next_frame(Connection& connection, Now now);
  bool is_closing(const Connection& connection) const;
  Frame greeting(Connection& connection, Now now);
  std::string new_session_id();

  SchedulerOptions options_;
  const SessionConfig& config_;
  const Admission& admission_;
  TokenAuthority& tokens_;
  Random random_;
  TimerQueue<Timed> timers_;
  IdMap<ConnectionId, std::unique_ptr<Connection>> connections_;
  IdMap<SessionHandle, std::unique_ptr<Record>> records_;
  // Sessions that are not over. The keys are views into the records' identities.
  std::unordered_map<std::string_view, Record*> by_session_id_;
  std::unordered_map<TextPairView, Record*, TextPairHash> by_instance_;  // tenant, instance id
  DetachedSessions detached_;
  Ring<ConnectionId> dirty_;    // may have something to send
  Ring<ConnectionId> closing_;  // may have to be closed
  Ring<OwnerEvent> events_;
  Ring<Refusal> refusals_;
  Asked asked_;
  EndpointCounters counters_;
  std::uint64_t next_handle_ = 1;
  std::size_t pending_ = 0;  // connections that wait for their accept
  std::uint64_t opened_ = 0;
  Ring<ConnectionId> unproved_;  // those without a handshake, oldest first; some may be further or gone
  bool restarting_ = false;
  Duration restart_window_{};
};

}  // namespace windlass
