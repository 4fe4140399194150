// A real agent with a language worker that takes HTTP at a port of its own: when it is ready, and what the
// runtime is told.
#include <gtest/gtest.h>

#include <filesystem>

#include "protocol/function_rpc/http_stream.h"
#include "tests/integration/worker-agent/shell/agent_process.h"
#include "tests/integration/worker-agent/shell/little_runtime.h"
#include "tests/integration/worker-agent/shell/little_scheduler.h"
#include "worker-agent/adapters/files.h"

namespace windlass::testing {
namespace {

bool is_open(const std::string& port) {
  const agent::FileDescriptor client{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoul(port)));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return ::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

class HttpPort : public ::testing::Test {
 protected:
  // As the fake worker is told by --http; true once the runtime has its answer to the init.
  bool start(const std::string& how, const std::string& init_timeout = "00:01:00") {
    scheduler.when_other = [](const Message&) {};
    std::filesystem::create_directories(agent.path("worker"));
    agent.write("worker/worker.config.json",
                R"({"description":{"language":"fake","defaultExecutablePath":")" WINDLASS_FAKE_WORKER
                R"(","arguments":["--http",")" +
                    how + R"("]},"processOptions":{"initializationTimeout":")" + init_timeout + R"("}})");
    agent.configure(scheduler.url(), "[language_worker]\nfolder = \"" + agent.path("worker") +
                                         "\"\n[runtime]\nurl = \"" + runtime.url() + "\"\n");
    agent.start();
    return scheduler.run_until([&] { return !runtime.inits.empty(); }, seconds{30});
  }
  const rpc::WorkerInitResponse& init() const { return runtime.inits.front(); }
  const std::string& capability(const std::string& name) const { return init().capabilities().at(name); }
  void TearDown() override {
    if (HasFailure()) std::fputs((agent.read("log") + agent.read("out")).c_str(), stderr);
  }

  LittleScheduler scheduler;
  LittleRuntime runtime{scheduler.loop()};
  AgentProcess agent;
};

TEST_F(HttpPort, AWorkerIsReadyOnceItAnswersThere) {
  bool was_open = false;
  runtime.when_initialised = [&](const auto& told) { was_open = is_open(told.capabilities().at("Port")); };
  ASSERT_TRUE(start("late"));
  EXPECT_TRUE(was_open) << "a request would have been lost";
  EXPECT_EQ(init().result().status(), rpc::StatusResult::Success);
  EXPECT_EQ(capability("HttpUri"), function_rpc::kHttpOnChannel);
}

TEST_F(HttpPort, AWorkerThatNeverAnswersThereFailsItsInitAndSaysWhy) {
  ASSERT_TRUE(start("never", "00:00:04"));
  EXPECT_EQ(init().result().status(), rpc::StatusResult::Failure);
  EXPECT_EQ(init().result().exception().message(), "the worker says that it takes HTTP at http://127.0.0.1:" +
                                                       capability("Port") + "/, and nobody answers there");
}

TEST_F(HttpPort, OfSomebodyElseIsNotDialledForTheWorker) {
  const std::string url = runtime.url();
  const std::string port = url.substr(url.rfind(':') + 1, url.find('/', url.rfind(':')) - url.rfind(':') - 1);
  ASSERT_TRUE(start("port " + port));
  EXPECT_EQ(init().result().status(), rpc::StatusResult::Failure);
  EXPECT_EQ(init().result().exception().message(), "the worker says that it takes HTTP at http://127.0.0.1:" +
                                                       port + "/, where another process listens");
}

TEST_F(HttpPort, IsFoundBesideACapabilityThatIsNoText) {
  ASSERT_TRUE(start("strange"));
  EXPECT_EQ(capability("HttpUri"), function_rpc::kHttpOnChannel);
  EXPECT_EQ(capability("Strange"), "\xEF\xBF\xBD\xEF\xBF\xBD");
}

}  // namespace
}  // namespace windlass::testing
