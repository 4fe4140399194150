// Wanted ends: another application, another runtime, none at all. What the runtime gave the worker is
// answered first. The runtime alone knows what is on its way here, so it is asked for a restart: it gives
// this worker nothing more, and says WorkerTerminate when it waits for nothing of it.
#include <algorithm>
#include <utility>

#include "protocol/base/clip.h"
#include "worker-agent/core/relay.h"

namespace windlass::agent {
namespace {

// WorkerActionResponse: `action` is Restart, which is 0 and so left out.
constexpr std::uint32_t kActionReason = 2;

// WorkerEnded, which the runtime reads.
constexpr std::uint32_t kEndedWorker = 1;
constexpr std::uint32_t kEndedReason = 2;
constexpr std::uint32_t kEndedRunning = 3;
constexpr std::uint32_t kEndedFailures = 4;
constexpr std::size_t kEndedReasonBytesMax = 900;

}  // namespace

void Relay::tell_ended(std::string_view reason) {
  if (!has_session_ || !is_known_) return;
  std::string body;
  function_rpc::append_bytes(body, kEndedWorker, worker_id_);
  function_rpc::append_bytes(body, kEndedReason, sayable(reason, kEndedReasonBytesMax));
  known_.for_each([&](std::string_view id) { function_rpc::append_bytes(body, kEndedRunning, id); });
  function_rpc::append_varint(body, std::uint64_t{kEndedFailures} << 3U);
  function_rpc::append_varint(body, failures_);
  steps_.push_back(ToRuntime{function_rpc::compose({}, function_rpc::Content::WorkerEnded, body)});
  announced_ = awaiting_init_ = false;
  specialized_ = Announced::Nothing;
  known_.clear();
}

// A command under way is newer than what the runtime wants: the scheduler has work for this worker.
void Relay::stay_down(std::string_view body) {
  if (operation_ || stopping_) return;
  const auto reason = function_rpc::find_bytes(body, 1);
  const auto cause = function_rpc::find_bytes(body, 2);
  is_drained_ = true;
  is_drained_for_memory_ = cause && *cause == "memory";
  last_error_ = "the runtime drained it: ";
  last_error_ += reason && *reason ? sayable(**reason, kEndedReasonBytesMax) : "it gave no reason";
  remember();
}

void Relay::part(const Parting& wanted, Instant now) {
  const bool is_asked = parting_.has_value();
  if (!is_asked) parting_ = Parting{};
  parting_->is_restart = parting_->is_restart || wanted.is_restart;
  parting_->is_stop = parting_->is_stop || wanted.is_stop;
  if (wanted.target) parting_->target = wanted.target;
  if (is_asked) return;
  // A runtime that does not know the worker has given it nothing.
  if (process_ != Process::Up || !is_initialised()) return part_now(now);
  parting_->until = now + options_.part_timeout;
  time_part(now);
  std::string body;
  function_rpc::append_bytes(body, kActionReason,
                             wanted.is_stop ? "its agent stops" : "its agent has other work for it");
  steps_.push_back(ToRuntime{function_rpc::compose({}, function_rpc::Content::WorkerActionResponse, body)});
}

// A runtime that waits for nothing says so at once. One that is silent may still have sent something, which
// would be here by then.
void Relay::time_part(Instant now) {
  const bool is_idle = known_.size() == 0;
  deadlines_.set(Timer::Part,
                 is_idle ? std::min(parting_->until, now + options_.part_silence) : parting_->until);
}

void Relay::part_now(Instant now) {
  const Parting wanted = *std::exchange(parting_, std::nullopt);
  deadlines_.clear(Timer::Part);
  if (wanted.is_stop) return stop(now);
  if (wanted.target) dial(*wanted.target);
  wanted.is_restart ? restart(now) : advance(now);
}

// A runtime that cannot be heard is not waited for, once the worker has answered what came.
void Relay::handle_connected(bool is_connected, Instant now) {
  if (parting_ && !is_connected && known_.size() == 0) part_now(now);
}

void Relay::drain(Instant now) {
  if (std::exchange(draining_, true) || stopping_) return;
  if (operation_) fail(ErrorCode::SessionDraining, "the agent stops", now);
  part({.is_stop = true}, now);
}

}  // namespace windlass::agent
