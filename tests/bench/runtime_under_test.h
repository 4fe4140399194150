// The runtime itself, as windlass-runtime runs it, in this process: whoever measures begins invocations where
// its HTTP front does. All that this process spends while a load runs is the runtime's and the load's.
//
//   RuntimeUnderTest (this process) <-- session, TLS --> windlass-agent <-- gRPC, clear text -->
//   windlass-native-worker
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "runtime/shell/runtime.h"
#include "tests/bench/child_process.h"
#include "tests/bench/identity.h"
#include "tests/bench/rpc_load.h"

namespace windlass::bench {

inline constexpr const char* kWorkerToken = "a worker's token";
inline constexpr const char* kVersion = "1";  // of every application

// The two ways of an agent to its runtime, both under TLS.
enum class WorkerChannelKind : std::uint8_t { Session, Grpc };

class RuntimeUnderTest final {
 public:
  RuntimeUnderTest(const testing::IssuedFiles& files, const std::string& authority_file);
  explicit RuntimeUnderTest(const Identity& identity)
      : RuntimeUnderTest(identity.files, identity.authority.certificate_file()) {}
  ~RuntimeUnderTest();

  std::uint16_t port() const { return runtime_->port(); }
  std::string url_of(WorkerChannelKind kind) const;
  runtime::Runtime& runtime() { return *runtime_; }
  // Until the core says so; asked on its loop.
  void wait_until(const std::function<bool(const runtime::RuntimeCore&)>& holds, const std::string& what);
  void wait_for(const std::string& application);  // a worker of it is ready

 private:
  testing::TemporaryFolder folder_;
  std::unique_ptr<JsonLog> log_;
  std::unique_ptr<runtime::Runtime> runtime_;
  std::thread thread_;
};

// windlass-agent with a native worker that holds the echo application, as one that was specialized before it
// was restarted.
class AgentUnderTest final {
 public:
  AgentUnderTest(const Identity& identity, const RuntimeUnderTest& runtime, const std::string& application,
                 WorkerChannelKind channel = WorkerChannelKind::Session);
  double nanoseconds() const { return process_->nanoseconds(); }
  double worker_nanoseconds() const;  // of its language worker

 private:
  testing::TemporaryFolder folder_;
  std::unique_ptr<ChildProcess> process_;
};

// One application of a runtime as something to invoke.
class ApplicationHost final : public RpcHost {
 public:
  ApplicationHost(RuntimeUnderTest& under_test, std::string name, const std::string& application);
  std::string name() const override { return name_; }
  void perform(std::function<void()> work) override { runtime_.loop().post(std::move(work)); }
  void invoke(std::uint64_t tag) override;

 private:
  runtime::Runtime& runtime_;
  std::string name_;
  runtime::JobHostKey job_host_;
  std::shared_ptr<const std::string> body_ = std::make_shared<const std::string>(echo_body());
};

}  // namespace windlass::bench
