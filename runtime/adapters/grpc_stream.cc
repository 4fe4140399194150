#include "runtime/adapters/grpc_stream.h"

#include <grpc/grpc_security_constants.h>

#include <utility>
#include <vector>

namespace windlass::runtime {
namespace {

constexpr std::string_view kMethod = "/AzureFunctionsRpcMessages.FunctionRpc/EventStream";
// Of an agent's stream, which carries one worker after another and their applications.
constexpr const char* kAgentMetadata = "windlass-agent";

// The bytes move into the buffer; they are freed when gRPC has sent them.
grpc::ByteBuffer buffer_of(std::string bytes) {
  auto* const owned = new std::string(std::move(bytes));
  const grpc::Slice slice{owned->data(), owned->size(),
                          [](void* text) { delete static_cast<std::string*>(text); }, owned};
  return grpc::ByteBuffer{&slice, 1};
}

std::string text_of(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return {};
  std::string text;
  text.reserve(buffer.Length());
  for (const grpc::Slice& each : slices) {
    text.append(reinterpret_cast<const char*>(each.begin()), each.size());
  }
  return text;
}

GrpcCaller caller_of(const grpc::ServerContextBase& context) {
  constexpr std::string_view kBearer = "Bearer ";
  GrpcCaller caller{.peer = context.peer()};
  const auto& metadata = context.client_metadata();
  caller.says_agent = metadata.contains(kAgentMetadata);
  if (const auto found = metadata.find("authorization"); found != metadata.end()) {
    const std::string_view value{found->second.data(), found->second.size()};
    if (value.starts_with(kBearer)) caller.token = value.substr(kBearer.size());
  }
  const auto shown = context.auth_context()->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  if (!shown.empty()) caller.certificate_pem.assign(shown.front().data(), shown.front().size());
  return caller;
}

std::uint64_t next_stream_id() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1);
}

}  // namespace

// Keeps its stream alive while gRPC holds the tag.
struct GrpcStream::Tag {
  std::shared_ptr<GrpcStream> stream;
  Operation operation;
};

void GrpcStream::wait(grpc::AsyncGenericService& service, grpc::ServerCompletionQueue& queue,
                      const GrpcLimits& limits, GrpcStreamEvents& events, std::atomic<std::size_t>& live) {
  const std::shared_ptr<GrpcStream> stream{new GrpcStream{service, queue, limits, events, live}};
  stream->done_tag_ = new Tag{stream, Operation::Done};
  stream->context_.AsyncNotifyWhenDone(stream->done_tag_);
  service.RequestCall(&stream->context_, &stream->call_, &queue, &queue, new Tag{stream, Operation::Accept});
}

GrpcStream::GrpcStream(grpc::AsyncGenericService& service, grpc::ServerCompletionQueue& queue,
                       const GrpcLimits& limits, GrpcStreamEvents& events, std::atomic<std::size_t>& live)
    : service_(service),
      queue_(queue),
      limits_(limits),
      events_(events),
      live_(live),
      id_(next_stream_id()) {}

GrpcStream::~GrpcStream() {
  if (is_counted_) live_.fetch_sub(1);
}

void GrpcStream::handle(void* tag, bool ok) {
  const std::unique_ptr<Tag> owned{static_cast<Tag*>(tag)};
  owned->stream->complete(owned->operation, ok);
}

void GrpcStream::complete(Operation operation, bool ok) {
  switch (operation) {
    case Operation::Accept:
      return handle_accepted(ok);
    case Operation::Read:
      return handle_read(ok);
    case Operation::Write:
      return handle_written(ok);
    case Operation::Done:
      return handle_done();
    case Operation::Finish: {
      std::unique_lock lock{mutex_};
      is_finish_done_ = true;
      return tell_closed(lock);
    }
    case Operation::Grace: {
      const std::lock_guard lock{mutex_};
      if (ok) cut();
      return;
    }
  }
}

void GrpcStream::handle_accepted(bool ok) {
  if (!ok) {
    // The server stops. gRPC does not give back the notice of a call that never came.
    delete std::exchange(done_tag_, nullptr);
    return;
  }
  wait(service_, queue_, limits_, events_, live_);
  std::unique_lock lock{mutex_};
  peer_ = context_.peer();
  is_counted_ = true;
  if (live_.fetch_add(1) >= limits_.streams_max) {
    status_ = {grpc::StatusCode::RESOURCE_EXHAUSTED, "this runtime has as many streams as it may"};
  } else if (context_.method() != kMethod) {
    status_ = {grpc::StatusCode::UNIMPLEMENTED,
               "only " + std::string{kMethod} + " is served here, not " + context_.method()};
  } else if (auto identity = events_.identify_caller(caller_of(context_)); !identity) {
    status_ = {grpc::StatusCode::UNAUTHENTICATED, identity.error().reason};
    events_.on_stream_refused(peer_, identity.error().reason);
  } else {
    identity_ = *std::move(identity);
    is_open_ = true;
  }
  if (!is_open_) {
    is_finishing_ = true;
    return finish_if_written();
  }
  lock.unlock();
  events_.on_stream_opened(shared_from_this());
  lock.lock();
  read_next();
}

void GrpcStream::handle_read(bool ok) {
  std::unique_lock lock{mutex_};
  is_reading_ = false;
  if (!ok) {
    // Which of the two it was is known when gRPC says that the call is over.
    if (!is_finishing_) fail(ChannelEnd::Closed, "the worker ended its stream");
    return;
  }
  std::string bytes = text_of(incoming_);
  incoming_.Clear();
  if (is_finishing_) return read_next();  // until the end; nobody listens any more
  unread_bytes_ += bytes.size();
  ++unread_messages_;
  read_next();
  lock.unlock();
  events_.on_stream_message(shared_from_this(), std::move(bytes));
}

void GrpcStream::read_next() {
  if (is_reading_ || is_finished_) return;
  const bool is_full =
      unread_bytes_ > limits_.unread_bytes_max || unread_messages_ > limits_.unread_messages_max;
  if (is_full) return;  // handle_taken goes on
  is_reading_ = true;
  call_.Read(&incoming_, new Tag{shared_from_this(), Operation::Read});
}

void GrpcStream::handle_taken(std::size_t bytes) {
  const std::lock_guard lock{mutex_};
  unread_bytes_ -= bytes;
  --unread_messages_;
  if (!is_finishing_) read_next();
}

SendStatus GrpcStream::send(std::string bytes) {
  const std::lock_guard lock{mutex_};
  if (is_finishing_ || is_finished_) return SendStatus::Closed;
  if (bytes.size() > limits_.message_bytes_max) return SendStatus::TooLarge;
  // Whoever goes on after Blocked for as long again is not listening.
  if (waiting_.size() >= 2 * limits_.queue_messages_max || waiting_bytes_ >= 2 * limits_.queue_bytes_max) {
    fail(ChannelEnd::ResourceExhausted, "the worker does not read: its queue is full");
    return SendStatus::Closed;
  }
  waiting_bytes_ += bytes.size();
  waiting_.push_back(std::move(bytes));
  write_next();
  is_blocked_ = is_blocked_ || waiting_.size() >= limits_.queue_messages_max ||
                waiting_bytes_ >= limits_.queue_bytes_max;
  return is_blocked_ ? SendStatus::Blocked : SendStatus::Sent;
}

void GrpcStream::write_next() {
  if (is_writing_ || is_finished_ || waiting_.empty()) return;
  std::string bytes = std::move(waiting_.front());
  waiting_.pop_front();
  waiting_bytes_ -= bytes.size();
  is_writing_ = true;
  grpc::WriteOptions options;
  // gRPC keeps it for one write with what follows.
  if (!waiting_.empty()) options.set_buffer_hint();
  call_.Write(buffer_of(std::move(bytes)), options, new Tag{shared_from_this(), Operation::Write});
}

void GrpcStream::handle_written(bool ok) {
  std::unique_lock lock{mutex_};
  is_writing_ = false;
  if (!ok) {
    waiting_.clear();
    waiting_bytes_ = 0;
    if (!is_finishing_) fail(ChannelEnd::Unavailable, "the stream broke");
    return finish_if_written();
  }
  write_next();
  finish_if_written();
  const bool has_room =
      waiting_.size() <= limits_.queue_messages_max / 2 && waiting_bytes_ <= limits_.queue_bytes_max / 2;
  if (!is_blocked_ || !has_room || is_finishing_) return;
  is_blocked_ = false;
  lock.unlock();
  events_.on_stream_writable(shared_from_this());
}

void GrpcStream::finish(grpc::Status status) {
  const std::lock_guard lock{mutex_};
  is_closed_told_ = true;  // whoever closes is not told
  if (is_finishing_ || is_finished_) return;
  is_finishing_ = true;
  status_ = std::move(status);
  end_soon();
}

void GrpcStream::fail(ChannelEnd end, std::string reason) {
  is_finishing_ = true;
  end_ = end;
  status_ = end == ChannelEnd::Closed ? grpc::Status::OK
            : end == ChannelEnd::ResourceExhausted
                ? grpc::Status{grpc::StatusCode::RESOURCE_EXHAUSTED, reason}
                : grpc::Status{grpc::StatusCode::CANCELLED, reason};
  end_reason_ = std::move(reason);
  waiting_.clear();
  waiting_bytes_ = 0;
  if (!status_.ok()) return cut();
  end_soon();
}

// A write ends when the worker reads, which it may never do, and there is no end before the write's.
void GrpcStream::end_soon() {
  finish_if_written();
  if (is_finished_ || is_done_) return;
  grace_.Set(&queue_, std::chrono::system_clock::now() + limits_.end_grace,
             new Tag{shared_from_this(), Operation::Grace});
}

void GrpcStream::cut() {
  waiting_.clear();
  waiting_bytes_ = 0;
  if (is_writing_ && !is_done_) context_.TryCancel();
  finish_if_written();
}

void GrpcStream::finish_if_written() {
  if (!is_finishing_ || is_finished_ || is_writing_ || !waiting_.empty()) return;
  is_finished_ = true;
  grace_.Cancel();
  call_.Finish(status_, new Tag{shared_from_this(), Operation::Finish});
}

void GrpcStream::handle_done() {
  std::unique_lock lock{mutex_};
  is_done_ = true;
  const bool is_broken = context_.IsCancelled();
  if (!is_finishing_) fail(ChannelEnd::Unavailable, "the stream broke");
  if (is_broken && end_ == ChannelEnd::Closed) {
    end_ = ChannelEnd::Unavailable;
    end_reason_ = "the stream broke";
  }
  tell_closed(lock);
}

void GrpcStream::tell_closed(std::unique_lock<std::mutex>& lock) {
  if (!is_done_ || !is_finish_done_ || !is_open_ || std::exchange(is_closed_told_, true)) return;
  const ChannelEnd end = end_;
  std::string reason = end_reason_;
  lock.unlock();
  events_.on_stream_closed(shared_from_this(), end, std::move(reason));
}

}  // namespace windlass::runtime
