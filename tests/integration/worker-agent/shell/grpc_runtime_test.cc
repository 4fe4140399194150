// A real agent and a real runtime's gRPC server under TLS.
#include "protocol/crypto/digest.h"
#include "protocol/crypto/text_encoding.h"
#include "tests/integration/runtime/shell/runtime_world.h"
#include "tests/integration/worker-agent/shell/agent_process.h"
#include "tests/integration/worker-agent/shell/little_scheduler.h"
#include "tests/support/certificates.h"
#include "tests/support/zip_package.h"

namespace windlass::testing {
namespace {

class GrpcRuntimeTest : public RuntimeTest {
 protected:
  GrpcRuntimeTest() {
    const IssuedFiles mine = authority.issue("runtime");
    config.grpc_tls = TlsServerOptions{.identity = {mine.certificate, mine.key},
                                       .client_certificates = ClientCertificates::Required,
                                       .client_authority_file = authority.certificate_file()};
    write("agents.toml", std::string{"[[certificate]]\ntenant = \"acme\"\nsan = \"DNS:agent.example\"\n"} +
                             "role = \"agent\"\ninstance = \"" + kInstance + "\"\n");
    scheduler.when_other = [this](const Message& message) { send_package(message); };
    package = zip_of(
        {{"host.json", R"({"version":"2.0"})"},
         {"hello/function.json",
          R"({"bindings":[{"type":"httpTrigger","direction":"in","name":"req","authLevel":"anonymous"},)"
          R"({"type":"http","direction":"out","name":"$return"}]})"}});
  }
  void start_agent() {
    const IssuedFiles its = authority.issue("agent", {.alternative_names = "DNS:agent.example"});
    std::filesystem::create_directories(agent.path("worker"));
    std::filesystem::create_directories(agent.path("var"));
    agent.write("var/worker_instance_id", kInstance);
    agent.write(
        "worker/worker.config.json",
        R"({"description":{"language":"fake","extensions":[".x"],"defaultExecutablePath":")" WINDLASS_FAKE_WORKER
        R"("}})");
    agent.configure(scheduler.url(),
                    "[language_worker]\nfolder = \"" + agent.path("worker") +
                        "\"\n[runtime]\nurl = \"https://127.0.0.1:" + std::to_string(runtime->grpc_port()) +
                        "\"\n[tls]\nauthority = \"" + authority.certificate_file() + "\"\ncertificate = \"" +
                        its.certificate + "\"\nkey = \"" + its.key + "\"\n");
    agent.start();
    ASSERT_TRUE(scheduler.run_until([&] { return scheduler.has_session(); }));
  }
  void send_package(const Message& message) {
    if (message.type() != "biz.package.get") return;
    scheduler.send(Message{{.type = "biz.package.part",
                            .id = "part-" + std::string{message.id()},
                            .payload = R"({"digest":")" + digest() + R"(","offset":0,"total":)" +
                                       std::to_string(package.size()) + "}",
                            .corr = message.id(),
                            .attachment = Attachment{"application/octet-stream", package}}});
  }
  std::string digest() const { return hex_encode(view_of(sha256(package))); }
  // The result of a command that was given to the agent.
  std::string tell(const std::string& id, const std::string& type, const std::string& payload) {
    scheduler.order(id, type, payload);
    if (!scheduler.run_until([&] { return scheduler.result(id).has_value(); })) return "no answer";
    return *scheduler.result(id);
  }
  std::string specialize(const std::string& id) {
    return tell(id, "biz.worker.specialize",
                R"({"application_id":"shop","metadata_version":"m1","code_version":"c1","language":"fake",)"
                R"("package":{"digest":")" +
                    digest() + R"(","bytes":)" + std::to_string(package.size()) + "}}");
  }
  void TearDown() override {
    if (HasFailure()) std::fputs(agent.read("log").c_str(), stderr);
    RuntimeTest::TearDown();
  }

  static constexpr const char* kInstance = "w-agent";
  TestAuthority authority;
  LittleScheduler scheduler;
  AgentProcess agent;
  std::string package;
};

TEST_F(GrpcRuntimeTest, AnAgentServesOneApplicationAfterAnother) {
  start();
  start_agent();
  const std::string first = specialize("c-1");
  ASSERT_TRUE(first.starts_with(R"({"ok":true)")) << first;
  EXPECT_EQ(ask_http(http, "GET", "/api/hello").status, 200);
  const std::string released = tell("c-2", "biz.worker.release", "{}");
  ASSERT_TRUE(released.starts_with(R"({"ok":true)")) << released;
  const std::string second = specialize("c-3");
  ASSERT_TRUE(second.starts_with(R"({"ok":true)")) << second;
  EXPECT_EQ(ask_http(http, "GET", "/api/hello").status, 200);
}

TEST_F(GrpcRuntimeTest, ATermUnderLoadLosesNoRequest) {
  config.core.pending_timeout = milliseconds{200};  // of those that come when nobody is left
  start();
  start_agent();
  const std::string first = specialize("c-1");
  ASSERT_TRUE(first.starts_with(R"({"ok":true)")) << first;
  std::atomic<int> served = 0;
  std::atomic<int> lost = 0;
  std::atomic<bool> is_over = false;
  std::vector<std::jthread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      while (!is_over) {
        const int status = ask_http(http, "GET", "/api/hello").status;
        if (status == 200) ++served;
        if (status == 502) ++lost;
      }
    });
  }
  ASSERT_TRUE(scheduler.run_until([&] { return served > 50; }));
  agent.signal(SIGTERM);
  EXPECT_TRUE(scheduler.run_until([&] { return agent.has_ended(); }));
  is_over = true;
  callers.clear();
  EXPECT_EQ(agent.exit_code(), 0);
  EXPECT_EQ(lost, 0);
}

}  // namespace
}  // namespace windlass::testing
