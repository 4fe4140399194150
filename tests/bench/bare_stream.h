// One bidirectional gRPC stream of messages that nobody looks into, on one completion queue. Writes go one
// after the other, as gRPC wants it; each says whether another follows at once, so that gRPC sends them in
// one system call.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <deque>
#include <utility>

namespace windlass::bench {

inline constexpr const char* kEventStreamMethod = "/AzureFunctionsRpcMessages.FunctionRpc/EventStream";

class BareStream final {
 public:
  enum class Event : std::uint8_t { Opened, Read, Written };
  struct Tag {
    BareStream* stream;
    Event event;
  };

  // Both are sides of the same call, which must outlive the stream.
  template <class Call>
  explicit BareStream(Call& call) : reader_(call), writer_(call) {}
  BareStream(const BareStream&) = delete;
  BareStream& operator=(const BareStream&) = delete;

  Tag opened{this, Event::Opened};

  // Once it is opened.
  void begin() {
    is_open_ = true;
    reader_.Read(&incoming_, &read_);
    flush();
  }
  // After Event::Read.
  grpc::ByteBuffer take() {
    grpc::ByteBuffer message;
    message.Swap(&incoming_);
    reader_.Read(&incoming_, &read_);
    return message;
  }
  void push(grpc::ByteBuffer message) { waiting_.push_back(std::move(message)); }
  // What was pushed leaves, once what is being written has.
  void flush() {
    if (is_writing_ || waiting_.empty() || !is_open_) return;
    is_writing_ = true;
    const grpc::ByteBuffer message = std::move(waiting_.front());
    waiting_.pop_front();
    grpc::WriteOptions options;
    if (!waiting_.empty()) options.set_buffer_hint();
    writer_.Write(message, options, &written_);
  }
  // After Event::Written.
  void handle_written() {
    is_writing_ = false;
    flush();
  }

 private:
  grpc::internal::AsyncReaderInterface<grpc::ByteBuffer>& reader_;
  grpc::internal::AsyncWriterInterface<grpc::ByteBuffer>& writer_;
  Tag read_{this, Event::Read};
  Tag written_{this, Event::Written};
  grpc::ByteBuffer incoming_;
  std::deque<grpc::ByteBuffer> waiting_;
  bool is_open_ = false;
  bool is_writing_ = false;
};

}  // namespace windlass::bench
