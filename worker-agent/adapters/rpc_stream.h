// One FunctionRpc stream over gRPC between a completion queue's thread and the agent's loop. Both directions
// are bounded: what the loop has not consumed stops the reading, so that the peer feels it, and what the peer
// does not take is told to the loop by is_full().
#pragma once

#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace windlass::agent {

inline constexpr const char* kEventStream = "/AzureFunctionsRpcMessages.FunctionRpc/EventStream";

struct RpcStreamBounds {
  std::size_t inbound_bytes_max = 32 * 1024 * 1024;   // read and not consumed; one message may go beyond
  std::size_t outbound_bytes_max = 32 * 1024 * 1024;  // given and not sent
  std::size_t outbound_messages_max = 16'384;
};

// A tag of the queue: which of a call's operations ended.
struct RpcTag {
  enum class Kind : std::uint8_t { Opened, Read, Written, Finished } kind{};
  void* call = nullptr;
};

class RpcStream final {
 public:
  using Reader = grpc::internal::AsyncReaderInterface<grpc::ByteBuffer>;
  using Writer = grpc::internal::AsyncWriterInterface<grpc::ByteBuffer>;

  // `wake` is called on the queue's thread when take() has something after it had nothing. Reader, writer and
  // tags must outlive the stream's operations.
  RpcStream(Reader& reader, Writer& writer, RpcTag* read, RpcTag* written, const RpcStreamBounds& bounds,
            std::function<void()> wake);
  RpcStream(const RpcStream&) = delete;
  RpcStream& operator=(const RpcStream&) = delete;

  // On the queue's thread.
  void start_reading();
  void deliver(std::string message);  // read before the stream was known to be ours
  // True once nothing is under way any more and the stream is over: it may be finished.
  bool handle_read(bool ok);
  bool handle_written(bool ok);
  bool end();  // from any thread: nothing more is read or written
  static std::string text_of(const grpc::ByteBuffer& buffer);
  grpc::ByteBuffer& read_buffer() { return read_buffer_; }

  // From any thread.
  void take(std::vector<std::string>& messages);  // what came since the last time
  void consumed(std::size_t bytes);               // of what was taken
  // Taken, to leave with flush(), so that what is sent together leaves together; false: the stream is over.
  bool send(std::string_view message);
  void flush();
  bool is_full() const;
  bool is_over() const;
  // Of a stream that is over: what it was given and never began to write.
  std::vector<std::string> take_unwritten();
  std::size_t waiting_messages() const;  // given and not sent

 private:
  void write_next();  // with mutex_ held
  void give_back();   // likewise: what waits will not be written

  Reader& reader_;
  Writer& writer_;
  RpcTag* read_;
  RpcTag* written_;
  RpcStreamBounds bounds_;
  std::function<void()> wake_;
  grpc::ByteBuffer read_buffer_;

  mutable std::mutex mutex_;  // of what follows
  std::vector<std::string> inbound_;
  std::size_t inbound_bytes_ = 0;
  std::deque<grpc::ByteBuffer> outbound_;  // the first is being written if is_writing_
  std::size_t outbound_bytes_ = 0;
  std::vector<std::string> unwritten_;
  bool is_reading_ = false;
  bool is_writing_ = false;
  bool is_over_ = false;
};

}  // namespace windlass::agent
