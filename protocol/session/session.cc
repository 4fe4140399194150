#include "protocol/session/session.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "protocol/base/check.h"
#include "protocol/base/clip.h"
#include "protocol/base/mutant.h"
#include "protocol/base/utf8.h"

namespace windlass {
namespace {

constexpr std::size_t kIdleEvents = 1;  // room for events that an idle session keeps

//= ENV-5
bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

//= ENV-2
bool is_business_type(std::string_view type) {
  if (type.size() > limits::kTypeBytesMax || !(type.starts_with("biz.") || type.starts_with("ext.")))
    return false;
  char before = 'x';
  for (const char c : type) {
    const bool is_word =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    if (!is_word && (c != '.' || before == '.')) return false;
    before = c;
  }
  return before != '.';
}

// What an owner hands in must pass the peer's checks: a frame that the peer refuses costs the session, and
// one whose bytes it cannot even read would come back after every resume. Only that the payload is JSON
// between its braces is taken on trust.
bool is_sendable(const Message& message) {
  const std::string_view payload = message.payload();
  const auto attachment = message.attachment();
  const auto is_type = [](std::string_view text) {
    return !text.empty() && text.size() <= limits::kTypeBytesMax && is_printable(text);
  };
  return is_business_type(message.type()) && !message.id().empty() && message.id().front() != '~' &&
         message.id().size() <= limits::kIdBytesMax && message.corr().size() <= limits::kIdBytesMax &&
         is_printable(message.id()) && is_printable(message.corr()) && payload.size() >= 2 &&
         payload.front() == '{' && payload.back() == '}' && is_utf8(payload) &&
         (!attachment || is_type(attachment->type));
}

std::optional<double> within(std::optional<double> value, double most) {
  if (!value || !std::isfinite(*value)) return std::nullopt;
  return std::clamp(*value, 0.0, most);
}

}  // namespace

Session::Session(Side side, SessionIdentity identity, const SessionConfig& config, std::uint64_t seed,
                 TenantAccount* account)
    : side_(side),
      identity_(std::move(identity)),
      config_(config),
      account_(account),
      ladder_(side == Side::Scheduler && account != nullptr ? account->ladder()
                                                            : HeartbeatLadder::of(config)),
      random_(seed),
      stream_(config, identity_.revision),
      errors_(config.error_budget, config.error_refill),
      frames_(config.frames_per_second_max,
              Duration{seconds{1}} /
                  static_cast<Duration::rep>(std::max<std::uint64_t>(1, config.frames_per_second_max))) {}

void Session::connect(Credit peer_credit, Now now) {
  stream_.connect(peer_credit, random_, now.steady);
  attach(now, false, 0);
}

Result<Done> Session::resume(const PeerPosition& peer, Now now) {
  CHECK(!connected_ && !ended_);
  const auto replayed =
      stream_.resume(peer.received_next, peer.earliest_retained, peer.credit, random_, now.steady);
  if (!replayed) return replayed.error();
  attach(now, true, *replayed);
  return Done{};
}

void Session::attach(Now now, bool resumed, std::uint64_t replayed) {
  CHECK(!connected_ && !ended_);
  if (lifecycle_.state() == SessionState::Backoff) CHECK(lifecycle_.apply(SessionTrigger::Returned));
  CHECK(lifecycle_.apply(SessionTrigger::ChannelOpened));
  CHECK(lifecycle_.apply(SessionTrigger::HandshakeAccepted));
  //= RES-11
  CHECK(lifecycle_.apply(draining_ ? SessionTrigger::AcceptedDraining : SessionTrigger::Accepted));
  connected_ = true;
  clock_offset_ = clock_offset(now);
  note_heard(now);
  // A revision 1 scheduler acknowledges no heartbeats: its silence says nothing.
  //= REV-14
  if (side_ == Side::Scheduler || identity_.revision == Revision::Two) {
    deadlines_.set(Timer::Liveness, now.steady + liveness_interval());
  }
  //= DRN-3
  arm_heartbeat(now);
  // Positions may have moved since the last ack was seen.
  //= RES-9
  //= REV-7
  stream_.request_ack();
  //= DRN-1
  if (draining_ && drain_ours_ && !drain_acknowledged_ && !MUTANT(resume_forgets_drain)) {
    queue_control({Pending::Kind::DrainStart, "", ""});
  }
  complete_said_ = false;
  maybe_say_complete(now);
  //= RES-10
  events_.push_back(Established{resumed, replayed, config_.resume_ttl});
  if (stream_.take_writable()) events_.push_back(Writable{});
}

void Session::disconnect(Now now) {
  if (!connected_) return;
  connected_ = false;
  stream_.disconnect();
  control_.clear();
  close_.reset();
  deadlines_.clear(Timer::Heartbeat);
  deadlines_.clear(Timer::Liveness);
  if (side_ == Side::Worker) deadlines_.clear(Timer::Drain);
  heartbeat_due_ = false;
  if (ended_) return;
  last_heard_ = now.steady;
  CHECK(lifecycle_.apply(SessionTrigger::ChannelLost));
  events_.push_back(Detached{});
}

Result<Seq> Session::send(Message&& message, Now now) {
  if (ended_)
    return Error{ErrorCode::SessionStaleBinding, Blame::Local, "the session is over; use the next one"};
  //= DRN-2
  if (draining_ && side_ == Side::Scheduler && message.corr().empty() && !MUTANT(drain_takes_new_work)) {
    return Error{ErrorCode::SessionDraining, Blame::Local,
                 "the worker is draining; give new work to another one"};
  }
  //= DRN-4
  if (complete_wanted_) {
    return Error{ErrorCode::SessionDraining, Blame::Local,
                 "the drain was said to be complete; keep the message for the next session"};
  }
  if (message.attachment() && identity_.revision == Revision::One) {
    return Error{ErrorCode::ProtoVersion, Blame::Local,
                 "revision 1 carries no attachments; send JSON instead"};
  }
  //= LIM-1
  if (message.credit_bytes() + limits::kEnvelopeBytesMax > config_.frame_bytes_max) {
    return Error{ErrorCode::LimitFrame, Blame::Local, "the message is larger than one frame; split it"};
  }
  if (!is_sendable(message)) {
    return Error{
        ErrorCode::ProtoSchema, Blame::Local,
        "a message needs a biz.* or ext.* type of letters, digits, _ and -, an id of 1 to 128 printable "
        "ASCII characters without ~ first, a JSON object in UTF-8, and a type for its attachment"};
  }
  return stream_.send(std::move(message), now);
}

void Session::set_load(const LoadFacts& load) {
  load_ = load;
  for (auto* percent : {&load_.cpu_pct, &load_.mem_pct, &load_.disk_pct}) *percent = within(*percent, 100);
  load_.latency_ms = within(load_.latency_ms, static_cast<double>(limits::kIntegerMax));
  load_.inflight = std::min(load_.inflight, limits::kIntegerMax);
}

void Session::own(Seq next, Now now) {
  if (!ended_) stream_.own(next, now.steady);
}

void Session::acknowledge(std::string_view frame_id, std::string_view info, bool ok) {
  queue_control({ok ? Pending::Kind::Ack : Pending::Kind::Nack, std::string{frame_id}, std::string{info}});
}

void Session::reset(ErrorCode code, std::string_view reason, Now, std::optional<Duration> retry_after) {
  if (ended_) return;
  reason = sayable(reason, limits::kReasonBytesMax);
  if (connected_) {
    //= RST-1
    control_.push_back({Pending::Kind::Reset, std::string{reason}, std::string{to_string(code)}});
    reset_retry_after_ = retry_after;
    close_ = CloseRequest{code == ErrorCode::SessionRestarting ? kCloseRestart : kCloseInternal,
                          std::string{clip(reason, limits::kCloseReasonBytesMax)}};
  }
  finish(to_string(code), reason, Blame::Local, retry_after);
}

void Session::end(ErrorCode code, std::string_view reason, Blame initiator,
                  std::optional<Duration> retry_after) {
  if (!ended_) finish(to_string(code), reason, initiator, retry_after);
}

//= STA-2
void Session::finish(std::string_view code, std::string_view reason, Blame initiator,
                     std::optional<Duration> retry_after) {
  CHECK(!ended_);
  ended_ = true;
  CHECK(lifecycle_.apply(code.empty() ? SessionTrigger::DrainCompleted : SessionTrigger::Ended));
  deadlines_.clear_all();
  //= RTX-5
  events_.push_back(
      Ended{std::string{code}, std::string{reason}, initiator, retry_after, stream_.take_unacknowledged()});
  stream_.disconnect();
}

void Session::handle_timeout(Now now) {
  if (ended_) return;
  note_clock(now);
  // A delay of several intervals is the whole ladder: where those are short, less than a clock jump is far
  // too late.
  const Duration late_max = std::min(config_.clock_jump, liveness_interval());
  if (const auto due = poll_timeout(); due && now.steady - *due > late_max) count_anew(now);
  if (connected_) {
    const auto outcome = stream_.handle_timeout(now.steady, random_);
    if (!outcome) return reset(outcome.error().code, outcome.error().reason, now);
    if (deadlines_.take_due(Timer::Liveness, now.steady)) check_liveness(now);
    if (deadlines_.take_due(Timer::Heartbeat, now.steady)) {
      heartbeat_due_ = true;
      release_idle_memory();
      arm_heartbeat(now);
    }
  }
  if (!deadlines_.take_due(Timer::Drain, now.steady)) return;
  if (side_ == Side::Worker) {
    close_ = CloseRequest{kCloseNormal, "drained"};
    return finish("", "drained", Blame::Local, {});
  }
  //= DRN-5
  reset(ErrorCode::Timeout, "the drain deadline passed before the worker was done", now);
}

void Session::release_idle_memory() {
  stream_.release_idle_memory();
  if (control_.empty()) control_.release();
  if (awaited_.empty()) awaited_.release();
  delivered_.shrink_to_fit();
}

void Session::refuse(ErrorCode code, FrameName frame, std::string_view info, Now now, Answer answer,
                     SchemaMode mode) {
  std::string text{to_string(code)};
  if (!info.empty()) text.append(" ").append(clip(info, limits::kReasonBytesMax - text.size() - 1));
  //= LIM-2
  if (mode == SchemaMode::Strict && !errors_.take(now.steady) && !MUTANT(errors_cost_nothing)) {
    return reset(ErrorCode::LimitErrors, "too many violations; the last one was " + text, now);
  }
  if (answer == Answer::Yes) acknowledge(frame.id, text, false);
  events_.push_back(Refused{code, std::move(text), std::string{clip(frame.id, limits::kIdBytesMax)},
                            std::string{clip(frame.type, limits::kTypeBytesMax)}, false,
                            mode == SchemaMode::Count});
}

void Session::queue_control(Pending pending) {
  if (!connected_ || close_) return;
  // What a turn brings is answered at its end; only who does not read makes answers wait longer.
  //= LIM-7
  const std::size_t most = stream_.is_transport_busy() ? config_.control_queue_max : limits::kControlTurnMax;
  if (control_.size() >= most) {
    return drop_connection(kClosePolicy, "control frames are not being read");
  }
  control_.push_back(std::move(pending));
}

// Nothing more is said on this connection; the session may resume on another.
void Session::drop_connection(std::uint16_t code, std::string_view reason) {
  control_.clear();
  close_ = CloseRequest{code, std::string{reason}};
}

std::optional<CloseRequest> Session::poll_close() {
  return std::exchange(close_, std::nullopt);
}

std::optional<SessionEvent> Session::poll_event() {
  if (events_.empty()) {
    if (events_.capacity() > kIdleEvents) events_.release();
    return std::nullopt;
  }
  return events_.pop_front();
}

std::optional<Instant> Session::poll_timeout() const {
  if (ended_) return std::nullopt;
  const auto a = stream_.next_timeout();
  const auto b = deadlines_.next();
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

PeerPosition Session::position() const {
  return {stream_.receive_window().received_next(), stream_.send_window().earliest_retained(),
          stream_.receive_window().credit()};
}

}  // namespace windlass
