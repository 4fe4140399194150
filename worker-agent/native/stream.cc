#include "worker-agent/native/stream.h"

#include "protocol/base/check.h"
#include "worker-agent/native/limits.h"

namespace windlass::native {
namespace {

constexpr const char* kMethod = "/AzureFunctionsRpcMessages.FunctionRpc/EventStream";

grpc::ChannelArguments channel_arguments(std::int64_t message_bytes_max) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(static_cast<int>(message_bytes_max));
  arguments.SetMaxSendMessageSize(static_cast<int>(message_bytes_max));
  // The host is on this machine and the stream is one for life: no proxy, no second try.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 4 << 20);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, 256 << 10);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return arguments;
}

}  // namespace

Stream::Stream(const std::string& target, std::int64_t message_bytes_max)
    : channel_(grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(),
                                         channel_arguments(message_bytes_max))),
      stub_(channel_) {
  call_ = stub_.PrepareCall(&context_, kMethod, &queue_);
  call_->StartCall(as_tag(Tag::Start));
}

Stream::~Stream() {
  context_.TryCancel();
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) continue;
}

void Stream::send(grpc::Slice message, Patience patience, Urgency urgency) {
  std::unique_lock lock(mutex_);
  if (patience == Patience::Wait) {
    room_.wait(lock, [this] { return broken_ || outbox_bytes_.load() < kOutboxBytesMax; });
  }
  if (broken_ || closing_) return;
  outbox_bytes_ += message.size();
  outbox_.push_back(std::move(message));
  if (writing_ || !started_) return;
  if (urgency == Urgency::Deferred && outbox_.size() < kCorkedMax) {
    deferred_.store(true, std::memory_order_relaxed);
    return;
  }
  write_next_locked();
}

void Stream::finish_sending() {
  const std::lock_guard lock(mutex_);
  if (closing_ || broken_) return;
  closing_ = true;
  if (!writing_ && started_) write_next_locked();
}

void Stream::flush_deferred() {
  deferred_.store(false, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  if (!broken_ && !writing_ && started_ && !outbox_.empty()) write_next_locked();
}

// The hint keeps a message in gRPC's buffer until the next one, so that several leave in one system call.
void Stream::write_next_locked() {
  if (outbox_.empty()) {
    if (closing_ && !broken_) {
      broken_ = true;
      call_->WritesDone(as_tag(Tag::WritesDone));
    }
    return;
  }
  writing_ = true;
  const grpc::ByteBuffer message(&outbox_.front(), 1);
  outbox_bytes_ -= outbox_.front().size();
  outbox_.pop_front();
  grpc::WriteOptions options;
  if (!outbox_.empty()) options.set_buffer_hint();
  call_->Write(message, options, as_tag(Tag::Write));
  if (outbox_bytes_.load() < kOutboxBytesMax) room_.notify_all();
}

void Stream::handle_written(bool ok) {
  const std::lock_guard lock(mutex_);
  writing_ = false;
  if (!ok) {
    broken_ = true;
    outbox_.clear();
    outbox_bytes_ = 0;
    room_.notify_all();
    return;
  }
  write_next_locked();
}

void Stream::handle_read_closed() {
  {
    const std::lock_guard lock(mutex_);
    broken_ = true;
    room_.notify_all();
  }
  call_->Finish(&status_, as_tag(Tag::Finish));
}

// False when the queue is shut down, which only the destructor does.
bool Stream::take_event(Tag* tag, bool* ok) {
  void* raw = nullptr;
  if (deferred_.load(std::memory_order_relaxed)) {
    const auto taken = queue_.AsyncNext(&raw, ok, gpr_time_0(GPR_CLOCK_MONOTONIC));
    if (taken == grpc::CompletionQueue::TIMEOUT) {
      flush_deferred();
      return take_event(tag, ok);
    }
    if (taken == grpc::CompletionQueue::SHUTDOWN) return false;
  } else if (!queue_.Next(&raw, ok)) {
    return false;
  }
  *tag = static_cast<Tag>(reinterpret_cast<std::intptr_t>(raw));
  return true;
}

std::optional<grpc::ByteBuffer> Stream::next() {
  Tag tag{};
  bool ok = false;
  while (take_event(&tag, &ok)) {
    switch (tag) {
      case Tag::Start:
        if (!ok) {
          handle_read_closed();
          break;
        }
        call_->Read(&incoming_, as_tag(Tag::Read));
        {
          const std::lock_guard lock(mutex_);
          started_ = true;
          write_next_locked();
        }
        break;
      case Tag::Read: {
        if (!ok) {
          handle_read_closed();
          break;
        }
        grpc::ByteBuffer message;
        message.Swap(&incoming_);
        call_->Read(&incoming_, as_tag(Tag::Read));
        return message;
      }
      case Tag::Write:
        handle_written(ok);
        break;
      case Tag::WritesDone:
        break;
      case Tag::Finish:
        return std::nullopt;
    }
  }
  CHECK(false);
  return std::nullopt;
}

}  // namespace windlass::native
