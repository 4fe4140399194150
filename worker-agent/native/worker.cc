#include "worker-agent/native/worker.h"

#include <algorithm>
#include <cstdio>

#include "protocol/base/version.h"

namespace windlass::native {
namespace {

using Content = rpc::StreamingMessage::ContentCase;
using Clock = std::chrono::steady_clock;

unsigned thread_count(unsigned asked) {
  if (asked > 0) return asked;
  return std::clamp(std::thread::hardware_concurrency(), kThreadsMin, kThreadsMax);
}

Clock::duration grace_of(const google::protobuf::Duration& duration) {
  constexpr std::int64_t kHour = 3600;
  return std::chrono::seconds(std::clamp<std::int64_t>(duration.seconds(), 0, kHour)) +
         std::chrono::nanoseconds(std::clamp(duration.nanos(), 0, 999'999'999));
}

grpc::Slice serialized(const rpc::StreamingMessage& message, std::size_t bytes) {
  grpc::Slice slice(bytes);
  message.SerializeWithCachedSizesToArray(const_cast<std::uint8_t*>(slice.begin()));
  return slice;
}

bool is_control(Content content) {
  switch (content) {
    case Content::kWorkerInitRequest:
    case Content::kFunctionEnvironmentReloadRequest:
    case Content::kFunctionsMetadataRequest:
    case Content::kFunctionLoadRequest:
    case Content::kFunctionLoadRequestCollection:
    case Content::kWorkerWarmupRequest:
      return true;
    default:
      return false;
  }
}

}  // namespace

Worker::Worker(const Arguments& arguments)
    : arguments_(arguments),
      specialization_([this](const std::string& id, LoadedFunction& function) {
        const std::lock_guard lock(functions_mutex_);
        functions_.insert_or_assign(id, &function);
      }),
      stream_(arguments.target, arguments.message_bytes_max),
      executor_(thread_count(arguments.threads), [this] { return lead(); }) {}

Worker::~Worker() = default;

int Worker::run() {
  rpc::StreamingMessage start;
  start.set_request_id(arguments_.request_id);
  start.mutable_start_stream()->set_worker_id(arguments_.worker_id);
  send(start, Stream::Patience::Never, Stream::Urgency::Now);
  executor_.start();
  executor_.wait_until_over();
  bool terminating = false;
  {
    const std::lock_guard lock(invocations_mutex_);
    over_ = true;
    terminating = terminating_;
    invocations_changed_.notify_all();
  }
  if (terminator_.joinable()) terminator_.join();
  if (terminating || stream_.status().ok()) return 0;
  std::fprintf(stderr,
               "LanguageWorkerConsoleLog[error] the stream to the host at %s ended: %s (gRPC status %d)\n",
               arguments_.target.c_str(), stream_.status().error_message().c_str(),
               static_cast<int>(stream_.status().error_code()));
  return 1;
}

bool Worker::stop() {
  return executor_.stop() && control_.stop();
}

// True: another thread leads now.
bool Worker::lead() {
  while (const auto bytes = stream_.next()) {
    if (handle(*bytes)) continue;
    stream_.flush_deferred();  // the answer was left for the reader, which is another thread now and may be
                               // waiting
    return true;
  }
  return false;
}

// False when the lead was lost meanwhile.
bool Worker::handle(const grpc::ByteBuffer& bytes) {
  std::unique_ptr<Invocation> spare = take_spare();
  if (!spare->parse(bytes)) {
    system_log(Level::Error, "a message of " + std::to_string(bytes.Length()) +
                                 " bytes that is no StreamingMessage was ignored");
    give_back(std::move(spare));
    return true;
  }
  rpc::StreamingMessage& message = spare->message();
  switch (message.content_case()) {
    case Content::kInvocationRequest:
      return handle_invocation(std::move(spare));
    case Content::kInvocationCancel:
      handle_cancel(message.invocation_cancel());
      break;
    case Content::kWorkerStatusRequest:
      answer(message.request_id(), [](rpc::StreamingMessage* to) { to->mutable_worker_status_response(); });
      break;
    case Content::kWorkerTerminate:
      handle_terminate(message.worker_terminate());
      break;
    case Content::kCloseSharedMemoryResourcesRequest:
      answer(message.request_id(), [&](rpc::StreamingMessage* to) {
        auto* results = to->mutable_close_shared_memory_resources_response()->mutable_close_map_results();
        for (const std::string& name : message.close_shared_memory_resources_request().map_names()) {
          (*results)[name] = false;  // none was ever opened
        }
      });
      break;
    case Content::kFileChangeEventRequest:
      break;  // loaded code does not change
    default:
      if (is_control(message.content_case())) {
        handle_control(message);
      } else {
        system_log(Level::Error, "a message with content " + std::to_string(message.content_case()) +
                                     ", which a host does not send to a worker, was ignored");
      }
  }
  give_back(std::move(spare));
  return true;
}

void Worker::handle_control(rpc::StreamingMessage& message) {
  const auto request = std::make_shared<rpc::StreamingMessage>(message);  // shared: std::function copies
  const bool posted = control_.post([this, request] {
    answer(request->request_id(), [&](rpc::StreamingMessage* to) {
      switch (request->content_case()) {
        case Content::kWorkerInitRequest:
          specialization_.init(request->worker_init_request(), to->mutable_worker_init_response());
          break;
        case Content::kFunctionEnvironmentReloadRequest:
          specialization_.reload(request->function_environment_reload_request(),
                                 to->mutable_function_environment_reload_response());
          break;
        case Content::kFunctionsMetadataRequest:
          specialization_.index(request->functions_metadata_request(),
                                to->mutable_function_metadata_response());
          break;
        case Content::kFunctionLoadRequest:
          specialization_.load(request->function_load_request(), to->mutable_function_load_response());
          break;
        case Content::kFunctionLoadRequestCollection:
          for (const auto& one : request->function_load_request_collection().function_load_requests()) {
            specialization_.load(
                one, to->mutable_function_load_response_collection()->add_function_load_responses());
          }
          to->mutable_function_load_response_collection();
          break;
        default:  // warmup: code is warm once it is loaded
          to->mutable_worker_warmup_response()->mutable_result()->set_status(rpc::StatusResult::Success);
      }
    });
  });
  if (!posted) system_log(Level::Error, "a request about the application was dropped: too many wait already");
}

bool Worker::handle_invocation(std::unique_ptr<Invocation> spare) {
  // The functions it needs may be on their way: it waits behind what was asked before it. It is admitted
  // first, so that a cancel finds it.
  if (control_.is_busy()) {
    Invocation& held = *spare;
    if (!admit(std::move(spare))) return true;
    const auto later = [this, &held] {
      LoadedFunction* const function = function_of(held.request().function_id());
      if (function == nullptr) {
        refuse_admitted(held, "its function is not loaded on this worker", "FunctionNotLoaded");
        return;
      }
      held.assign(*function);
      dispatch(held, false);
    };
    if (!control_.post(later)) refuse_admitted(held, "too many requests wait on this worker", "WorkerFull");
    return true;
  }
  LoadedFunction* const function = function_of(spare->request().function_id());
  if (function == nullptr) {
    refuse(std::move(spare), "its function is not loaded on this worker", "FunctionNotLoaded");
    return true;
  }
  spare->assign(*function);
  Invocation& invocation = *spare;
  if (!admit(std::move(spare))) return true;
  const bool is_short = function->short_runs.load(std::memory_order_relaxed) >= kShortRunsMin;
  return dispatch(invocation, is_short);
}

// False when it was refused: the worker ends.
bool Worker::admit(std::unique_ptr<Invocation> invocation) {
  {
    const std::lock_guard lock(invocations_mutex_);
    if (!terminating_) {
      const std::string_view id = invocation->invocation_id();
      in_flight_.emplace(id, std::move(invocation));
      return true;
    }
  }
  refuse(std::move(invocation), "the worker terminates and takes no more invocations", "WorkerTerminating");
  return false;
}

// False when the lead was lost meanwhile.
bool Worker::dispatch(Invocation& invocation, bool may_run_inline) {
  if (may_run_inline && executor_.may_run_inline() && stream_.has_room()) {
    invocation.is_inline = true;
    return executor_.run_inline(invocation);
  }
  if (!executor_.enqueue(invocation)) {
    refuse_admitted(invocation,
                    "more than " + std::to_string(kWaitingMax) + " invocations wait on this worker",
                    "WorkerFull");
  }
  return true;
}

void Worker::refuse(std::unique_ptr<Invocation> invocation, std::string reason, std::string type) {
  const rpc::InvocationRequest& request = invocation->request();
  answer(invocation->message().request_id(), [&](rpc::StreamingMessage* to) {
    rpc::InvocationResponse* response = to->mutable_invocation_response();
    response->set_invocation_id(request.invocation_id());
    set_failure("function id '" + request.function_id() + "' was not invoked: " + std::move(reason),
                std::move(type), response->mutable_result());
  });
  give_back(std::move(invocation));
}

// It may have been answered for already, if the worker ends.
void Worker::refuse_admitted(Invocation& invocation, std::string reason, std::string type) {
  const bool is_unanswered = invocation.claim_answer();
  std::unique_ptr<Invocation> owned = withdraw(invocation);
  if (is_unanswered) return refuse(std::move(owned), std::move(reason), std::move(type));
  give_back(std::move(owned));
}

void Worker::handle_cancel(const rpc::InvocationCancel& cancel) {
  const std::lock_guard lock(invocations_mutex_);
  const auto [first, last] = in_flight_.equal_range(cancel.invocation_id());
  std::for_each(first, last, [](auto& entry) { entry.second->cancel(); });
}

void Worker::handle_terminate(const rpc::WorkerTerminate& terminate) {
  {
    const std::lock_guard lock(invocations_mutex_);
    if (terminating_) return;
    terminating_ = true;
  }
  const auto deadline = Clock::now() + grace_of(terminate.grace_period());
  terminator_ = std::thread([this, deadline] { terminate_after(deadline); });
}

void Worker::terminate_after(Clock::time_point deadline) {
  std::unique_lock lock(invocations_mutex_);
  invocations_changed_.wait_until(lock, deadline, [this] { return over_ || in_flight_.empty(); });
  for (auto& [id, invocation] : in_flight_) {
    if (!invocation->claim_answer()) continue;
    invocation->cancel();
    answer(invocation->message().request_id(), [&id = id](rpc::StreamingMessage* to) {
      to->mutable_invocation_response()->set_invocation_id(std::string(id));
      set_failure("the worker was terminated before the function returned", "WorkerTerminated",
                  to->mutable_invocation_response()->mutable_result());
    });
  }
  lock.unlock();
  stream_.finish_sending();
  lock.lock();
  if (!invocations_changed_.wait_for(lock, kFarewell, [this] { return over_; })) stream_.cancel();
}

void Worker::send_log(const rpc::StreamingMessage& log) {
  send(log, Stream::Patience::Wait, Stream::Urgency::Now);
}

void Worker::send_answer(Invocation& invocation, rpc::StreamingMessage& answer) {
  if (invocation.claim_answer()) {
    std::size_t bytes = answer.ByteSizeLong();
    if (bytes > static_cast<std::size_t>(arguments_.message_bytes_max)) {
      // Sent, it would end the stream and every other invocation with it.
      rpc::InvocationResponse* response = answer.mutable_invocation_response();
      response->clear_output_data();
      response->clear_return_value();
      set_failure("the function's answer has " + std::to_string(bytes) +
                      " bytes, more than the host takes (" + std::to_string(arguments_.message_bytes_max) +
                      ")",
                  "AnswerTooLarge", response->mutable_result());
      bytes = answer.ByteSizeLong();
    }
    const bool on_reader = invocation.is_inline;
    stream_.send(serialized(answer, bytes), on_reader ? Stream::Patience::Never : Stream::Patience::Wait,
                 on_reader ? Stream::Urgency::Deferred : Stream::Urgency::Now);
  }
  give_back(withdraw(invocation));
}

void Worker::answer(const std::string& request_id, const std::function<void(rpc::StreamingMessage*)>& fill) {
  rpc::StreamingMessage message;
  message.set_request_id(request_id);
  fill(&message);
  send(message, Stream::Patience::Never, Stream::Urgency::Now);
}

void Worker::system_log(Level level, const std::string& text) {
  rpc::StreamingMessage message;
  rpc::RpcLog* log = message.mutable_rpc_log();
  log->set_category("windlass-native-worker");
  log->set_level(static_cast<rpc::RpcLog::Level>(static_cast<int>(level)));
  log->set_message(speakable(text));
  log->set_log_category(rpc::RpcLog::System);
  send(message, Stream::Patience::Never, Stream::Urgency::Now);
}

void Worker::send(const rpc::StreamingMessage& message, Stream::Patience patience, Stream::Urgency urgency) {
  stream_.send(serialized(message, message.ByteSizeLong()), patience, urgency);
}

LoadedFunction* Worker::function_of(std::string_view id) {
  const std::lock_guard lock(functions_mutex_);
  const auto found = functions_.find(id);
  return found == functions_.end() ? nullptr : found->second;
}

std::unique_ptr<Invocation> Worker::withdraw(Invocation& invocation) {
  const std::lock_guard lock(invocations_mutex_);
  const auto [first, last] = in_flight_.equal_range(invocation.invocation_id());
  const auto found =
      std::find_if(first, last, [&](const auto& entry) { return entry.second.get() == &invocation; });
  CHECK(found != last);
  std::unique_ptr<Invocation> owned = std::move(found->second);
  in_flight_.erase(found);
  if (in_flight_.empty() && terminating_) invocations_changed_.notify_all();
  return owned;
}

std::unique_ptr<Invocation> Worker::take_spare() {
  {
    const std::lock_guard lock(invocations_mutex_);
    if (!spare_.empty()) {
      std::unique_ptr<Invocation> taken = std::move(spare_.back());
      spare_.pop_back();
      return taken;
    }
  }
  return std::make_unique<Invocation>(*this);
}

void Worker::give_back(std::unique_ptr<Invocation> invocation) {
  invocation->release();
  const std::lock_guard lock(invocations_mutex_);
  if (spare_.size() < kSpareInvocationsMax) spare_.push_back(std::move(invocation));
}

}  // namespace windlass::native
