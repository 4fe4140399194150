// One EventStream call: reads and writes serialized messages, one of each at a time as gRPC wants it. Lives
// on two threads: its queue's, where completions come, and the loop's, which sends; a lock keeps its state.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "runtime/core/stream_identity.h"
#include "runtime/seams/worker_channel.h"

namespace windlass::runtime {

struct GrpcLimits {
  std::size_t message_bytes_max = 128 * 1024 * 1024;
  std::size_t queue_messages_max = 1'000;           // to one worker; Blocked above it
  std::size_t queue_bytes_max = 256 * 1024 * 1024;  // likewise
  std::size_t unread_bytes_max = 64 * 1024 * 1024;  // of one worker, that the loop has not taken yet
  std::size_t unread_messages_max = 1'000;          // likewise
  std::size_t streams_max = 10'000;
  std::chrono::milliseconds end_grace{2'000};  // for the last words to a worker that may not read
};

class GrpcStream;

// What a call shows before its first message.
struct GrpcCaller {
  std::string peer;                  // as gRPC names it
  std::string certificate_pem = {};  // verified; empty: none
  std::string token = {};            // of "authorization: Bearer ..."; secret; empty: none
  bool says_agent = false;
};

// What a stream tells; on its queue's thread.
class GrpcStreamEvents {
 public:
  virtual ~GrpcStreamEvents() = default;
  virtual Result<StreamIdentity> identify_caller(const GrpcCaller& caller) = 0;
  virtual void on_stream_refused(std::string peer, std::string reason) = 0;
  virtual void on_stream_opened(const std::shared_ptr<GrpcStream>& stream) = 0;
  virtual void on_stream_message(const std::shared_ptr<GrpcStream>& stream, std::string bytes) = 0;
  virtual void on_stream_writable(const std::shared_ptr<GrpcStream>& stream) = 0;
  virtual void on_stream_closed(const std::shared_ptr<GrpcStream>& stream, ChannelEnd end,
                                std::string reason) = 0;
};

class GrpcStream final : public std::enable_shared_from_this<GrpcStream> {
 public:
  // Waits for the next call of the service on this queue. All must outlive it.
  static void wait(grpc::AsyncGenericService& service, grpc::ServerCompletionQueue& queue,
                   const GrpcLimits& limits, GrpcStreamEvents& events, std::atomic<std::size_t>& live);

  // A completion of this stream, or of what it waited for.
  struct Tag;
  static void handle(void* tag, bool ok);

  ~GrpcStream();

  // Loop thread.
  SendStatus send(std::string bytes);
  void finish(grpc::Status status);      // after what was sent before, or when `end_grace` is over
  void handle_taken(std::size_t bytes);  // the loop took a message: there is room for another
  const std::string& peer() const { return peer_; }
  const StreamIdentity& identity() const { return identity_; }
  std::uint64_t id() const { return id_; }

 private:
  enum class Operation : std::uint8_t { Accept, Read, Write, Finish, Done, Grace };
  GrpcStream(grpc::AsyncGenericService& service, grpc::ServerCompletionQueue& queue, const GrpcLimits& limits,
             GrpcStreamEvents& events, std::atomic<std::size_t>& live);

  void complete(Operation operation, bool ok);
  void handle_accepted(bool ok);
  void handle_read(bool ok);
  void handle_written(bool ok);
  void handle_done();
  // With the lock held.
  void read_next();
  void write_next();
  void finish_if_written();
  void cut();  // what is being written and waits behind it is of no use any more
  void end_soon();
  void fail(ChannelEnd end, std::string reason);
  void tell_closed(std::unique_lock<std::mutex>& lock);

  grpc::AsyncGenericService& service_;
  grpc::ServerCompletionQueue& queue_;
  const GrpcLimits& limits_;
  GrpcStreamEvents& events_;
  std::atomic<std::size_t>& live_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter call_{&context_};
  grpc::ByteBuffer incoming_;
  std::string peer_;
  StreamIdentity identity_;
  std::uint64_t id_;

  std::mutex mutex_;
  std::deque<std::string> waiting_;
  std::size_t waiting_bytes_ = 0;
  std::size_t unread_bytes_ = 0;
  std::size_t unread_messages_ = 0;
  bool is_counted_ = false;
  bool is_open_ = false;  // told so
  bool is_reading_ = false;
  bool is_writing_ = false;
  bool is_blocked_ = false;  // told so
  bool is_finishing_ = false;
  bool is_finished_ = false;  // no operation may begin
  bool is_finish_done_ = false;
  bool is_done_ = false;     // gRPC said that the call is over
  Tag* done_tag_ = nullptr;  // gRPC's to give back, unless no call came
  bool is_closed_told_ = false;
  grpc::Alarm grace_;
  grpc::Status status_;
  ChannelEnd end_ = ChannelEnd::Closed;
  std::string end_reason_;
};

}  // namespace windlass::runtime
