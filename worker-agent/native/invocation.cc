#include "worker-agent/native/invocation.h"

#include <grpcpp/support/proto_buffer_reader.h>

#include "protocol/base/clip.h"
#include "worker-agent/native/exception_text.h"

namespace windlass::native {
namespace {

google::protobuf::ArenaOptions arena_options(std::array<char, kArenaBytes>& block) {
  google::protobuf::ArenaOptions options;
  options.initial_block = block.data();
  options.initial_block_size = block.size();
  return options;
}

rpc::RpcLog::Level level_of(Level level) {
  return static_cast<rpc::RpcLog::Level>(static_cast<int>(level));
}

static_assert(static_cast<int>(Level::Critical) == rpc::RpcLog::Critical);

}  // namespace

std::string speakable(std::string_view text) {
  std::string spoken(text);
  if (!is_utf8(text)) {
    for (char& c : spoken) {
      if (static_cast<unsigned char>(c) >= 0x80) c = '?';
    }
  }
  return spoken;
}

void set_failure(std::string message, std::string type, rpc::StatusResult* result) {
  result->set_status(rpc::StatusResult::Failure);
  rpc::RpcException* exception = result->mutable_exception();
  exception->set_message(speakable(message));
  exception->set_type(std::move(type));
  exception->set_source("windlass-native-worker");
}

Invocation::Invocation(InvocationHost& host) : host_(host), arena_(arena_options(block_)) {}

bool Invocation::parse(const grpc::ByteBuffer& bytes) {
  message_ = google::protobuf::Arena::CreateMessage<rpc::StreamingMessage>(&arena_);
  grpc::Slice slice;
  if (bytes.TrySingleSlice(&slice).ok()) {
    return message_->ParseFromArray(slice.begin(), static_cast<int>(slice.size()));
  }
  grpc::ByteBuffer pieces = bytes;
  grpc::ProtoBufferReader reader(&pieces);
  return reader.status().ok() && message_->ParseFromZeroCopyStream(&reader);
}

void Invocation::release() {
  arena_.Reset();
  message_ = nullptr;
  response_ = nullptr;
  function_ = nullptr;
  data_ = Data();
  http_.show(nullptr);
  cancelled_ = false;
  answered_ = false;
  is_inline = false;
}

void Invocation::run() {
  auto* answer = google::protobuf::Arena::CreateMessage<rpc::StreamingMessage>(&arena_);
  *answer->mutable_request_id() = message_->request_id();
  response_ = answer->mutable_invocation_response();
  response_->set_invocation_id(request().invocation_id());
  if (cancelled()) {
    response_->mutable_result()->set_status(rpc::StatusResult::Cancelled);
  } else if (show_inputs(response_->mutable_result())) {
    const auto began = std::chrono::steady_clock::now();
    call(response_);
    count_run(std::chrono::steady_clock::now() - began);
  }
  host_.send_answer(*this, *answer);
}

bool Invocation::show_inputs(rpc::StatusResult* refusal) {
  const rpc::ParameterBinding* trigger = nullptr;
  const auto& inputs = request().input_data();
  for (const rpc::ParameterBinding& input : inputs) {
    if (input.has_rpc_shared_memory()) {
      set_failure("input '" + input.name() +
                      "' came in shared memory, which this worker does not take; send it in the message",
                  "SharedMemoryNotSupported", refusal);
      return false;
    }
    if (input.name() == function_->trigger) trigger = &input;
  }
  if (trigger == nullptr && inputs.size() == 1) trigger = &inputs[0];
  if (trigger != nullptr) {
    data_ = view_of(trigger->data());
    if (trigger->data().has_http()) http_.show(&trigger->data().http());
  }
  if (function_->http && !http_.is_shown()) {
    set_failure("function '" + function_->function.name +
                    "' has an HTTP trigger and was invoked without an HTTP request",
                "HttpRequestMissing", refusal);
    return false;
  }
  return true;
}

void Invocation::call(rpc::InvocationResponse* response) {
  rpc::StatusResult* result = response->mutable_result();
  try {
    Value value = function_->function.handler(*this, *this);
    put_value(std::move(value), function_->http, response->mutable_return_value());
    result->set_status(rpc::StatusResult::Success);
  } catch (...) {
    const ExceptionText thrown = current_exception_text();
    response->clear_return_value();
    response->clear_output_data();
    if (thrown.cancelled) {
      result->set_status(rpc::StatusResult::Cancelled);
    } else {
      set_failure(thrown.message, thrown.type, result);
      result->mutable_exception()->set_is_user_exception(true);
      result->mutable_exception()->set_source(function_->library);
    }
  }
}

void Invocation::count_run(std::chrono::steady_clock::duration took) {
  std::atomic<std::uint32_t>& runs = function_->short_runs;
  const std::uint32_t before = runs.load(std::memory_order_relaxed);
  if (took <= kInlineRunMax) {
    if (before < 2 * kShortRunsMin) runs.store(before + 1, std::memory_order_relaxed);
  } else {
    runs.store(took < kTakeoverTick ? before / 2 : 0, std::memory_order_relaxed);
  }
}

void Invocation::cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  cancel_.notify_all();
}

bool Invocation::wait(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return cancel_.wait_for(lock, time, [this] { return cancelled_.load(); });
}

Data Invocation::input(std::string_view name) const {
  for (const rpc::ParameterBinding& input : request().input_data()) {
    if (input.name() == name) return view_of(input.data());
  }
  return {};
}

Data Invocation::metadata(std::string_view name) const {
  const auto& metadata = request().trigger_metadata();
  const auto found = metadata.find(std::string(name));
  return found == metadata.end() ? Data() : view_of(found->second);
}

void Invocation::log(Level level, std::string_view message) {
  rpc::StreamingMessage envelope;
  rpc::RpcLog* log = envelope.mutable_rpc_log();
  log->set_invocation_id(request().invocation_id());
  log->set_category(function_->log_category);
  log->set_level(level_of(level));
  log->set_message(speakable(clip(message, kLogBytesMax)));
  log->set_log_category(rpc::RpcLog::User);
  host_.send_log(envelope);
}

void Invocation::output(std::string_view binding, Value value) {
  rpc::ParameterBinding* target = nullptr;
  for (rpc::ParameterBinding& known : *response_->mutable_output_data()) {
    if (known.name() == binding) target = &known;
  }
  if (target == nullptr) {
    target = response_->add_output_data();
    target->set_name(speakable(binding));
  }
  target->clear_data();
  put_value(std::move(value), false, target->mutable_data());
}

Trace Invocation::trace() const {
  const rpc::RpcTraceContext& context = request().trace_context();
  return {context.trace_parent(), context.trace_state()};
}

Retries Invocation::retries() const {
  const rpc::RetryContext& context = request().retry_context();
  return {context.retry_count(), context.max_retry_count()};
}

}  // namespace windlass::native
