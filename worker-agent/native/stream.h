// The FunctionRpc stream to the host, over gRPC's generic completion-queue interface: serialized messages in,
// serialized messages out. Exactly one thread at a time calls next(); anybody sends. Messages leave in the
// order in which they were sent.
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace windlass::native {

class Stream final {
 public:
  enum class Patience {
    Wait,   // while the outbox is full
    Never,  // for the thread that reads: it may not wait for what it alone can bring about
  };
  // Deferred: it may wait for more to go with it, until the reader has nothing else to do.
  enum class Urgency { Now, Deferred };

  Stream(const std::string& target, std::int64_t message_bytes_max);
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();

  void send(grpc::Slice message, Patience patience, Urgency urgency = Urgency::Now);
  // Deferred messages wait no longer. For whoever deferred some and does not read any more.
  void flush_deferred();
  // No message follows; those sent before still go out.
  void finish_sending();
  // Ends the call from this side, whatever is on its way.
  void cancel() { context_.TryCancel(); }

  // The next message of the host; nullopt when the stream is over, and status() says how. Not to be called
  // after that.
  std::optional<grpc::ByteBuffer> next();
  const grpc::Status& status() const { return status_; }
  bool has_room() const { return outbox_bytes_.load(std::memory_order_relaxed) < kRoomBytes; }

 private:
  enum class Tag : std::intptr_t { Start = 1, Read, Write, WritesDone, Finish };
  static constexpr std::size_t kRoomBytes = std::size_t{32} << 20;

  void write_next_locked();
  void handle_written(bool ok);
  void handle_read_closed();
  bool take_event(Tag* tag, bool* ok);
  void* as_tag(Tag tag) { return reinterpret_cast<void*>(static_cast<std::intptr_t>(tag)); }

  std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  grpc::ByteBuffer incoming_;  // the reader's
  grpc::Status status_;        // the reader's

  std::mutex mutex_;  // guards what follows
  std::condition_variable room_;
  std::deque<grpc::Slice> outbox_;
  std::atomic<std::size_t> outbox_bytes_ = 0;
  bool started_ = false;
  bool writing_ = false;
  bool closing_ = false;  // WritesDone follows the last message
  bool broken_ = false;   // nothing more can be sent
  std::atomic<bool> deferred_ = false;
};

}  // namespace windlass::native
