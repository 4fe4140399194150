// The language worker: hears the host, answers it, and runs functions. The thread that reads decides what
// happens with a message; whatever may take long (loading code) happens on the control thread in the order it
// was asked for, invocations run on the executor.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "worker-agent/native/arguments.h"
#include "worker-agent/native/control.h"
#include "worker-agent/native/executor.h"
#include "worker-agent/native/invocation.h"
#include "worker-agent/native/specialization.h"
#include "worker-agent/native/stream.h"

namespace windlass::native {

class Worker final : public InvocationHost {
 public:
  explicit Worker(const Arguments& arguments);
  ~Worker() override;

  // Until the stream is over: the process's exit code.
  int run();
  // False when user code still runs: the process can then only be left.
  bool stop();

  void send_log(const rpc::StreamingMessage& log) override;
  void send_answer(Invocation& invocation, rpc::StreamingMessage& answer) override;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  bool lead();
  bool handle(const grpc::ByteBuffer& bytes);
  void handle_control(rpc::StreamingMessage& message);
  bool handle_invocation(std::unique_ptr<Invocation> spare);
  bool admit(std::unique_ptr<Invocation> invocation);
  bool dispatch(Invocation& invocation, bool may_run_inline);
  void refuse(std::unique_ptr<Invocation> invocation, std::string reason, std::string type);
  void refuse_admitted(Invocation& invocation, std::string reason, std::string type);
  void handle_cancel(const rpc::InvocationCancel& cancel);
  void handle_terminate(const rpc::WorkerTerminate& terminate);
  void terminate_after(std::chrono::steady_clock::time_point deadline);

  void answer(const std::string& request_id, const std::function<void(rpc::StreamingMessage*)>& fill);
  void system_log(Level level, const std::string& text);
  void send(const rpc::StreamingMessage& message, Stream::Patience patience, Stream::Urgency urgency);
  LoadedFunction* function_of(std::string_view id);

  std::unique_ptr<Invocation> withdraw(Invocation& invocation);
  std::unique_ptr<Invocation> take_spare();
  void give_back(std::unique_ptr<Invocation> invocation);

  const Arguments arguments_;
  Specialization specialization_;  // the control thread's
  Stream stream_;
  Executor executor_;
  Control control_;

  std::mutex functions_mutex_;
  std::unordered_map<std::string, LoadedFunction*, Hash, std::equal_to<>> functions_;  // by id

  std::mutex invocations_mutex_;
  std::condition_variable invocations_changed_;
  std::unordered_multimap<std::string_view, std::unique_ptr<Invocation>> in_flight_;  // by invocation id
  std::vector<std::unique_ptr<Invocation>> spare_;
  bool terminating_ = false;
  bool over_ = false;
  std::thread terminator_;
};

}  // namespace windlass::native
