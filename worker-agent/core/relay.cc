#include "worker-agent/core/relay.h"

#include <utility>

namespace windlass::agent {

using function_rpc::compose;
using function_rpc::Content;
using function_rpc::Peeked;

std::string_view to_string(WorkerState state) {
  switch (state) {
    case WorkerState::Starting:
      return "starting";
    case WorkerState::Placeholder:
      return "placeholder";
    case WorkerState::Specializing:
      return "specializing";
    case WorkerState::Ready:
      return "ready";
    case WorkerState::Failed:
      return "failed";
    case WorkerState::Drained:
      return "drained";
  }
  return {};
}

std::optional<std::size_t> Relay::pair_of_request(Content content) {
  switch (content) {
    case Content::FunctionsMetadataRequest:
      return 0;
    case Content::FunctionLoadRequest:
      return 1;
    case Content::FunctionLoadRequestCollection:
      return 2;
    case Content::WorkerStatusRequest:
      return 3;
    case Content::WorkerWarmupRequest:
      return 4;
    case Content::CloseSharedMemoryResourcesRequest:
      return 5;
    case Content::FunctionEnvironmentReloadRequest:
      return 6;
    default:
      return std::nullopt;
  }
}

std::optional<std::size_t> Relay::pair_of_answer(Content content) {
  switch (content) {
    case Content::FunctionMetadataResponse:
      return 0;
    case Content::FunctionLoadResponse:
      return 1;
    case Content::FunctionLoadResponseCollection:
      return 2;
    case Content::WorkerStatusResponse:
      return 3;
    case Content::WorkerWarmupResponse:
      return 4;
    case Content::CloseSharedMemoryResourcesResponse:
      return 5;
    case Content::FunctionEnvironmentReloadResponse:
      return 6;
    default:
      return std::nullopt;
  }
}

// Functions run inside the worker and can write whatever they like on its stream, so only what a language
// worker has to say passes: answers to what was asked of it, logs, and a wish to be restarted. Who it is and
// which application it holds is the agent's to say.
Route Relay::from_worker(const Peeked& peeked, std::string_view message, Instant now) {
  const Route as_usual = has_session_ && announced_ ? Route::Forward : Route::Drop;
  switch (peeked.content) {
    case Content::InvocationResponse:
      // What an earlier session asked for is nobody's any more.
      if (!known_.remove(peeked.invocation_id)) return Route::Drop;
      if (parting_) time_part(now);
      return as_usual;
    case Content::RpcLog:
      return peeked.invocation_id.empty() || known_.contains(peeked.invocation_id) ? as_usual : Route::Drop;
    case Content::StartStream:
      if (process_ != Process::Starting) return Route::Refuse;
      start_stream_ = message;
      process_ = Process::Up;
      deadlines_.clear(Timer::Start);
      if (has_session_) announce();
      advance(now);
      return Route::Drop;
    case Content::WorkerInitResponse:
      if (!init_asked_ || init_body_) return Route::Refuse;
      return handle_init_response(peeked, now);
    case Content::FunctionEnvironmentReloadResponse:
      if (loaded_ == Loaded::Asked) return Route::Take;
      break;
    case Content::WorkerActionResponse:
    case Content::WorkerHeartbeat:
      return as_usual;
    default:
      break;
  }
  const auto pair = pair_of_answer(peeked.content);
  if (!pair) return Route::Refuse;
  if (stale_[*pair] > 0) {
    --stale_[*pair];
    return Route::Drop;
  }
  if (asked_[*pair] == 0) return Route::Refuse;
  --asked_[*pair];
  return as_usual;
}

Route Relay::from_runtime(const Peeked& peeked, Instant now) {
  if (peeked.content == Content::WorkerStayDown) {
    stay_down(peeked.body);
    return Route::Drop;
  }
  if (process_ != Process::Up || !announced_) return Route::Drop;
  if (peeked.content == Content::WorkerInitRequest) return handle_init_request(peeked, now);
  // Sent to the worker before this one: the runtime had not heard of its end.
  if (awaiting_init_) return Route::Drop;
  switch (peeked.content) {
    case Content::InvocationRequest:
      known_.add(peeked.invocation_id);
      if (parting_) time_part(now);
      return Route::Forward;
    case Content::WorkerSpecializedResponse:
      return specialized_ == Announced::Asked ? Route::Take : Route::Drop;
    case Content::WorkerTerminate:
      // A worker that hangs does not hear it; its end is seen to here.
      parting_ ? part_now(now) : restart(now);
      return Route::Drop;
    default:
      break;
  }
  if (const auto pair = pair_of_request(peeked.content)) ++asked_[*pair];
  return Route::Forward;
}

Route Relay::handle_init_request(const Peeked& peeked, Instant now) {
  awaiting_init_ = false;
  init_request_id_ = peeked.request_id;
  if (init_body_) {
    steps_.push_back(ToRuntime{compose(init_request_id_, Content::WorkerInitResponse, *init_body_)});
    advance(now);
    return Route::Drop;
  }
  if (std::exchange(init_asked_, true)) return Route::Drop;
  deadlines_.set(Timer::Init, now + options_.init_timeout);
  return Route::Forward;
}

Route Relay::handle_init_response(const Peeked& peeked, Instant now) {
  init_body_.emplace(peeked.body);
  deadlines_.clear(Timer::Init);
  if (is_initialised()) {
    // The request may be that of a session which came while the worker was busy with the first.
    steps_.push_back(ToRuntime{compose(init_request_id_, Content::WorkerInitResponse, *init_body_)});
  }
  advance(now);
  return Route::Drop;
}

void Relay::announce() {
  announced_ = is_known_ = true;
  awaiting_init_ = true;
  specialized_ = Announced::Nothing;
  steps_.push_back(ToRuntime{start_stream_});
}

void Relay::handle_session_opened(Instant now) {
  has_session_ = true;
  announced_ = awaiting_init_ = is_known_ = false;
  specialized_ = Announced::Nothing;
  known_.clear();
  for (std::size_t i = 0; i < kPaired; ++i) stale_[i] += std::exchange(asked_[i], 0U);
  if (process_ == Process::Up) announce();
  if (parting_) return part_now(now);
  advance(now);
}

void Relay::handle_session_ended(Instant now) {
  has_session_ = announced_ = awaiting_init_ = is_known_ = false;
  specialized_ = Announced::Nothing;
  known_.clear();
  if (parting_) part_now(now);
}

void Relay::handle_function_loaded(std::string name) {
  for (const std::string& each : functions_) {
    if (each == name) return;
  }
  if (functions_.size() < options_.functions_max) functions_.push_back(std::move(name));
}

std::optional<RelayStep> Relay::poll_step() {
  if (steps_.empty()) return std::nullopt;
  RelayStep step = std::move(steps_.front());
  steps_.pop_front();
  return step;
}

WorkerStatus Relay::status() const {
  WorkerStatus status{.worker_id = worker_id_,
                      .state = WorkerState::Starting,
                      .runtime = runtime_,
                      .application = application_,
                      .last_error = last_error_};
  const bool is_down = process_ != Process::Up && failures_ > 0;
  if (is_drained_ && !operation_) {
    status.state = WorkerState::Drained;
    status.is_drained_for_memory = is_drained_for_memory_;
  } else if (operation_ && operation_->kind == Kind::Specialize) {
    status.state = WorkerState::Specializing;
  } else if (application_) {
    status.state = specialized_ == Announced::Yes ? WorkerState::Ready
                   : is_down                      ? WorkerState::Failed
                                                  : WorkerState::Specializing;
  } else if (!parting_ && (is_initialised() || (process_ == Process::Up && !has_session_))) {
    // Without a runtime it can still be given one, along with an application.
    status.state = WorkerState::Placeholder;
  } else if (is_down) {
    status.state = WorkerState::Failed;
  }
  return status;
}

std::optional<WorkerStatus> Relay::poll_status() {
  WorkerStatus status = this->status();
  if (told_ == status) return std::nullopt;
  told_ = status;
  return status;
}

}  // namespace windlass::agent
