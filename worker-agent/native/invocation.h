// One invocation: the request as it came, what the function sees of it, and its answer. Objects are used
// again, with their memory.
#pragma once

#include <google/protobuf/arena.h>
#include <grpcpp/support/byte_buffer.h>
#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>

#include "worker-agent/native/application.h"
#include "worker-agent/native/executor.h"
#include "worker-agent/native/limits.h"
#include "worker-agent/native/values.h"

namespace windlass::native {

class Invocation;

// What an invocation needs done. Called on the thread that runs it.
class InvocationHost {
 public:
  virtual ~InvocationHost() = default;
  virtual void send_log(const rpc::StreamingMessage& log) = 0;
  // `invocation` is over and the host's again.
  virtual void send_answer(Invocation& invocation, rpc::StreamingMessage& answer) = 0;
};

class Invocation final : public Work, public Event, public Context {
 public:
  explicit Invocation(InvocationHost& host);
  Invocation(const Invocation&) = delete;
  Invocation& operator=(const Invocation&) = delete;

  // False when the bytes are no StreamingMessage. What the last user left is gone.
  bool parse(const grpc::ByteBuffer& bytes);
  rpc::StreamingMessage& message() { return *message_; }
  const rpc::InvocationRequest& request() const { return message_->invocation_request(); }
  void release();  // its memory, for the next one

  void assign(LoadedFunction& function) { function_ = &function; }
  void run() override;
  void cancel();
  // Whoever is first may answer. The worker does when it cannot wait for the function.
  bool claim_answer() { return !answered_.exchange(true); }
  bool is_inline = false;  // it runs on the thread that reads

  const Data& data() const override { return data_; }
  const HttpRequest* http() const override { return http_.is_shown() ? &http_ : nullptr; }
  Data input(std::string_view name) const override;
  Data metadata(std::string_view name) const override;

  std::string_view invocation_id() const override { return request().invocation_id(); }
  std::string_view function_name() const override { return function_->function.name; }
  void log(Level level, std::string_view message) override;
  void output(std::string_view binding, Value value) override;
  bool cancelled() const override { return cancelled_.load(std::memory_order_relaxed); }
  bool wait(std::chrono::milliseconds time) override;
  Trace trace() const override;
  Retries retries() const override;

 private:
  bool show_inputs(rpc::StatusResult* refusal);
  void call(rpc::InvocationResponse* response);
  void count_run(std::chrono::steady_clock::duration took);

  InvocationHost& host_;
  alignas(16) std::array<char, kArenaBytes> block_;
  google::protobuf::Arena arena_;
  rpc::StreamingMessage* message_ = nullptr;
  rpc::InvocationResponse* response_ = nullptr;  // while the function runs
  LoadedFunction* function_ = nullptr;
  Data data_;
  HttpView http_;
  std::atomic<bool> cancelled_ = false;
  std::atomic<bool> answered_ = false;
  std::mutex mutex_;  // for waiting only
  std::condition_variable cancel_;
};

// A failure with its reason.
void set_failure(std::string message, std::string type, rpc::StatusResult* result);

// The text with what is not UTF-8 replaced: a host would take the whole message for garbage.
std::string speakable(std::string_view text);

}  // namespace windlass::native
