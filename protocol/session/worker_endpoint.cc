#include "protocol/session/worker_endpoint.h"

#include <algorithm>
#include <utility>

#include "protocol/base/check.h"
#include "protocol/base/clip.h"
#include "protocol/base/mutant.h"

namespace windlass {

WorkerEndpoint::WorkerEndpoint(WorkerOptions options, const SessionConfig& config, std::uint64_t seed)
    : options_(std::move(options)),
      config_(config),
      random_(seed),
      frame_bytes_max_(config.frame_bytes_max) {}

void WorkerEndpoint::start(Now) {
  if (stopping_ || std::exchange(started_, true)) return;
  dial_wanted_ = true;
}

void WorkerEndpoint::stop(std::string_view reason, Now now) {
  //= RST-8
  if (session_) session_->reset(ErrorCode::SessionDraining, reason, now);
  collect(now);
  leave(now);
}

Result<Seq> WorkerEndpoint::send(Message&& message, Now now) {
  if (!session_)
    return Error{ErrorCode::SessionWouldBlock, Blame::Local, "there is no session yet; wait for it"};
  return session_->send(std::move(message), now);
}

void WorkerEndpoint::own(SessionHandle session, Seq next, Now now) {
  //= ACK-1
  if (session_ && session == handle_) session_->own(next, now);
}

void WorkerEndpoint::set_receive_credit(Credit credit, Now now) {
  config_.receive_credit = credit;
  if (session_) session_->set_receive_credit(credit, now);
}

void WorkerEndpoint::set_load(const LoadFacts& load) {
  load_ = load;
  if (session_) session_->set_load(load);
}

void WorkerEndpoint::drain(std::string_view reason, Duration deadline, Now now) {
  deadline = std::clamp(deadline, Duration{}, limits::kIntervalMax);
  drain_until_ = now.steady + deadline;
  drain_reason_ = reason;
  if (session_) session_->drain(reason, deadline, now);
  collect(now);
}

void WorkerEndpoint::complete_drain(Now now) {
  if (!session_ && drain_until_) return leave(now);
  if (session_) session_->complete_drain(now);
  collect(now);
}

void WorkerEndpoint::handle_opened(ConnectionId connection, Now now) {
  if (!is_current(connection)) return;
  CHECK(lifecycle_.apply(SessionTrigger::ChannelOpened));
  //= HSK-1
  outgoing_ = Outgoing::Handshake;
  await_stage(now);
}

void WorkerEndpoint::handle_frame(ConnectionId connection, const Frame& frame, Now now) {
  //= FEN-1
  if (!is_current(connection) || close_) return;
  if (session_ && session_->is_connected()) {
    session_->handle_frame(frame, now);
    return collect(now);
  }
  handle_before_accept(frame, now);
}

void WorkerEndpoint::handle_bad_frame(ConnectionId connection, const BadFrame& bad, Now now) {
  if (!is_current(connection) || close_) return;
  if (session_ && session_->is_connected()) {
    session_->handle_bad_frame(bad, now);
    return collect(now);
  }
  //= LIM-3
  refuse(bad.code, bad.info, now);
}

void WorkerEndpoint::handle_closed(ConnectionId connection, std::uint16_t code, std::string_view reason,
                                   Now now) {
  //= FEN-1
  if (!is_current(connection)) return;
  //= RST-10
  if (session_ && session_->is_connected() && code == kCloseNormal) session_->handle_normal_close();
  if (session_ && means_start_fresh(code, reason))
    session_->end(ErrorCode::SessionRestarting, reason, Blame::Peer);
  collect(now);
  //= REV-9
  if (options_.revision == Revision::One && reason.find("superseded session") != std::string_view::npos) {
    next_delay_ = delay_after(to_string(ErrorCode::SessionSuperseded), {});
  }
  lose(reason.empty() ? "the connection broke" : reason, now);
}

void WorkerEndpoint::handle_put_off(ConnectionId connection, std::string_view reason, Duration retry_after,
                                    Now now) {
  if (!is_current(connection)) return;
  //= RST-9
  const Duration hint = std::clamp(retry_after, Duration{}, config_.retry_after_max);
  const Duration spread = random_.below(std::min(hint, config_.backoff_cap) + Duration{1});
  next_delay_ = hint + spread + backoff_.next(config_, random_);
  lose(reason, now);
}

bool WorkerEndpoint::means_start_fresh(std::uint16_t code, std::string_view reason) const {
  //= REV-10
  return options_.revision == Revision::One &&
         (code == kCloseRestart || reason.find("service restart") != std::string_view::npos ||
          reason.find("Unknown session") != std::string_view::npos);
}

void WorkerEndpoint::handle_timeout(Now now) {
  if (deadlines_.take_due(Timer::Stage, now.steady)) {
    //= HSK-10
    abandon("the scheduler did not answer in time", now);
  }
  if (take_expiry(now) && session_ && !session_->is_connected()) {
    //= RES-1
    session_->end(ErrorCode::SessionStaleBinding, "the resume window passed", Blame::Local);
    collect(now);
    session_.reset();
    // A resume under way has lost its session: start over on a new connection.
    if (lifecycle_.state() == SessionState::Registered) abandon("the resume window passed", now);
  }
  if (deadlines_.take_due(Timer::Retry, now.steady)) {
    CHECK(lifecycle_.apply(SessionTrigger::Returned));
    dial_wanted_ = true;
  }
  if (session_ && session_->is_connected()) {
    session_->handle_timeout(now);
    collect(now);
  }
}

// One that comes late was not waited for: this machine stood still, and so may have the scheduler.
//= LIV-6
bool WorkerEndpoint::take_expiry(Now now) {
  const auto due = deadlines_.at(Timer::ResumeExpiry);
  if (!deadlines_.take_due(Timer::ResumeExpiry, now.steady)) return false;
  if (now.steady - *due < config_.clock_jump) return true;
  deadlines_.set(Timer::ResumeExpiry, now.steady + config_.resume_ttl);
  return false;
}

void WorkerEndpoint::handle_idle() {
  if (session_) session_->handle_idle();
}

void WorkerEndpoint::set_transport_busy(bool busy, Now now) {
  busy_ = busy;
  if (session_ && session_->is_connected()) session_->set_transport_busy(busy, now);
}

void WorkerEndpoint::await_stage(Now now) {
  deadlines_.set(Timer::Stage, now.steady + config_.handshake_stage);
}

void WorkerEndpoint::abandon(std::string_view cause, Now now) {
  close_ = CloseRequest{kCloseInternal, std::string{clip(cause, limits::kCloseReasonBytesMax)}};
  lose(cause, now);
}

void WorkerEndpoint::lose(std::string_view cause, Now now) {
  dialled_ = false;
  outgoing_ = Outgoing::None;
  deadlines_.clear(Timer::Stage);
  note_ready_over(now);
  if (session_) {
    session_->disconnect(now);
    collect(now);
    if (session_->is_ended()) session_.reset();
  }
  if (session_ && !deadlines_.is_set(Timer::ResumeExpiry)) {
    //= RES-1
    deadlines_.set(Timer::ResumeExpiry, now.steady + config_.resume_ttl);
  }
  if (!session_) deadlines_.clear(Timer::ResumeExpiry);
  CHECK(lifecycle_.apply(SessionTrigger::ChannelLost));
  // Out of time and with nothing left to finish: coming back would only be drained again.
  //= DRN-5
  if (!session_ && drain_until_ && *drain_until_ <= now.steady) stopping_ = true;
  if (stopping_) return close_for_good();
  const Duration delay = next_delay_ ? *next_delay_ : backoff_.next(config_, random_);
  next_delay_.reset();
  deadlines_.set(Timer::Retry, now.steady + delay);
  events_.push_back({SessionHandle{0}, BackingOff{delay, std::string{cause}}});
}

void WorkerEndpoint::collect(Now now) {
  if (!session_) return;
  while (auto event = session_->poll_event()) {
    if (auto* rotated = std::get_if<TokenRotated>(&*event)) {
      session_token_ = std::move(rotated->token);
      //= TOK-8
      continue;  // a secret goes no further
    }
    if (const auto* ended = std::get_if<Ended>(&*event)) note_ended(*ended, now);
    events_.push_back({handle_, std::move(*event)});
  }
}

void WorkerEndpoint::note_ended(const Ended& ended, Now now) {
  session_token_.clear();
  if (ended.code.empty()) {
    stopping_ = true;
    return;
  }
  note_ready_over(now);
  // A session that ran out of time between connections says nothing about the next dial.
  if (session_->is_connected() || ended.initiator == Blame::Peer) {
    next_delay_ = delay_after(ended.code, ended.retry_after);
  }
}

void WorkerEndpoint::note_ready_over(Now now) {
  //= RST-6
  if (ready_since_ && now.steady - *ready_since_ > config_.backoff_cap) backoff_.forget();
  ready_since_.reset();
}

Duration WorkerEndpoint::delay_after(std::string_view code, std::optional<Duration> retry_after) {
  //= RST-7
  //= FEN-5
  const Duration delay =
      retries_at_cap(code) ? backoff_.at_cap(config_, random_) : backoff_.next(config_, random_);
  if (MUTANT(backoff_ignores_hint)) return delay;
  //= RST-5
  return delay + std::min(retry_after.value_or(Duration{}), config_.retry_after_max);
}

// Ends for good, once a session that is connected has said so.
void WorkerEndpoint::leave(Now now) {
  stopping_ = true;
  dial_wanted_ = false;
  if (session_ && session_->is_connected()) return;
  if (dialled_) return abandon("the worker stops", now);
  close_for_good();
}

void WorkerEndpoint::close_for_good() {
  stopping_ = true;
  dial_wanted_ = false;
  session_.reset();
  deadlines_.clear_all();
  if (!lifecycle_.is_closed()) CHECK(lifecycle_.apply(SessionTrigger::Ended));
}

SessionState WorkerEndpoint::state() const {
  return session_ && session_->is_connected() ? session_->state() : lifecycle_.state();
}

std::optional<ConnectionId> WorkerEndpoint::poll_dial(Now now) {
  if (!std::exchange(dial_wanted_, false)) return std::nullopt;
  connection_ = ConnectionId{connection_.value() + 1};
  dialled_ = true;
  busy_ = false;
  close_.reset();
  outgoing_ = Outgoing::None;
  await_stage(now);
  return connection_;
}

std::optional<CloseRequest> WorkerEndpoint::poll_close(Now now) {
  if (close_) return std::exchange(close_, std::nullopt);
  if (!session_ || !session_->is_connected()) return std::nullopt;
  auto request = session_->poll_close();
  if (request) lose(request->reason, now);
  return request;
}

std::optional<OwnerEvent> WorkerEndpoint::poll_event() {
  if (events_.empty()) return std::nullopt;
  return events_.pop_front();
}

std::optional<Instant> WorkerEndpoint::poll_timeout() const {
  const auto own = deadlines_.next();
  const auto inner = session_ && session_->is_connected() ? session_->poll_timeout() : std::nullopt;
  if (!own || !inner) return own ? own : inner;
  return std::min(*own, *inner);
}

std::optional<Frame> WorkerEndpoint::poll_transmit(Now now) {
  if (!dialled_ && outgoing_ != Outgoing::Reset) return std::nullopt;
  if (const auto kind = std::exchange(outgoing_, Outgoing::None); kind != Outgoing::None)
    return greeting(kind, now);
  if (session_ && session_->is_connected()) return session_->poll_transmit(now);
  return std::nullopt;
}

}  // namespace windlass
