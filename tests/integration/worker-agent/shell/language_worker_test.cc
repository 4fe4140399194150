// A real agent and a real language worker process between a scheduler and runtimes in this process.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "protocol/crypto/digest.h"
#include "protocol/crypto/text_encoding.h"
#include "tests/integration/worker-agent/shell/agent_process.h"
#include "tests/integration/worker-agent/shell/little_runtime.h"
#include "tests/integration/worker-agent/shell/little_scheduler.h"
#include "tests/support/certificates.h"
#include "tests/support/zip_package.h"
#include "worker-agent/adapters/function_rpc_server.h"

namespace windlass::testing {
namespace {

std::string invocation(const std::string& id, const std::string& function, const std::string& data = "x") {
  rpc::StreamingMessage message;
  message.set_request_id("q-" + id);
  auto& request = *message.mutable_invocation_request();
  request.set_invocation_id(id);
  request.set_function_id(function);
  request.add_input_data()->mutable_data()->set_bytes(data);
  return message.SerializeAsString();
}

rpc::InvocationResponse response_in(const std::string& bytes) {
  rpc::StreamingMessage message;
  EXPECT_TRUE(message.ParseFromString(bytes));
  return message.invocation_response();
}

// What the fake worker answers, byte for byte.
std::string answer_to(const std::string& request) {
  rpc::StreamingMessage asked;
  EXPECT_TRUE(asked.ParseFromString(request));
  rpc::StreamingMessage reply;
  reply.set_request_id(asked.request_id());
  auto& response = *reply.mutable_invocation_response();
  response.set_invocation_id(asked.invocation_request().invocation_id());
  response.mutable_result()->set_status(rpc::StatusResult::Success);
  response.mutable_return_value()->set_bytes(request);
  return reply.SerializeAsString();
}

bool is_alive(const std::string& pid) {
  std::ifstream file{"/proc/" + pid + "/stat"};
  std::string id;
  std::string name;
  std::string state;
  return (file >> id >> name >> state) && state != "Z";
}

class LanguageWorkerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    scheduler.when_other = [this](const Message& message) { take(message); };
  }
  void start() { start_as_fake(runtime.url()); }
  void start_as_fake(const std::string& runtime_url) {
    std::filesystem::create_directories(agent.path("worker"));
    agent.write(
        "worker/worker.config.json",
        R"({"description":{"language":"fake","extensions":[".x"],"defaultExecutablePath":")" WINDLASS_FAKE_WORKER
        R"("}})");
    start_with(agent.path("worker"), runtime_url);
  }
  void start_with(const std::string& folder, const std::string& runtime_url) {
    agent.configure(scheduler.url(), "[language_worker]\nfolder = \"" + folder +
                                         "\"\nrestart_first = \"10ms\"\n[runtime]\nurl = \"" + runtime_url +
                                         "\"\n[metrics]\nlisten = \"127.0.0.1:0\"\n");
    agent.start();
  }
  bool until(std::function<bool()> condition, Duration patience = seconds{20}) {
    return scheduler.run_until(std::move(condition), patience);
  }
  bool is_up() {
    return until([&] { return runtime.initialised > 0 && scheduler.has_session(); });
  }
  void TearDown() override {
    const std::string log = agent.read("log") + agent.read("out");
    if (HasFailure())
      std::fputs(log.substr(log.size() - std::min<std::size_t>(log.size(), 6000)).c_str(), stderr);
  }

  void take(const Message& message) {
    if (message.type() == "biz.worker.status") {
      statuses.emplace_back(message.payload());
      return;
    }
    ASSERT_EQ(message.type(), "biz.package.get");
    ++gets;
    const std::string payload{message.payload()};
    const std::size_t at = payload.find("\"offset\":") + 9;
    const std::size_t offset = std::stoul(payload.substr(at));
    const std::string part = package.substr(offset, 100'000);
    const std::string told = R"({"digest":")" + digest() + R"(","offset":)" + std::to_string(offset) +
                             R"(,"total":)" + std::to_string(package.size()) + "}";
    scheduler.send(Message{{.type = "biz.package.part",
                            .id = "part-" + std::to_string(gets),
                            .payload = told,
                            .corr = message.id(),
                            .attachment = Attachment{"application/octet-stream", part}}});
  }
  // Gives the worker one invocation after the other until the runtime hears that it is to have no more.
  bool until_under_load(const std::function<bool()>& condition) {
    return until([&] {
      for (int i = 0; i < 5 && runtime.partings == 0; ++i) {
        runtime.send_bytes(invocation("load-" + std::to_string(++invoked), "echo"));
      }
      return condition();
    });
  }
  std::string digest() const { return hex_encode(view_of(sha256(package))); }
  void specialize(const std::string& id, const std::string& runtime_url = "") {
    scheduler.order(
        id, "biz.worker.specialize",
        R"({"application_id":"shop","metadata_version":"m1","code_version":"c1","language":")" + language +
            R"(","package":{"digest":")" + digest() + R"(","bytes":)" + std::to_string(package.size()) +
            R"(},"settings":{"GREETING":"good day"})" +
            (runtime_url.empty() ? "" : R"(,"runtime":{"id":"rt-2","url":")" + runtime_url + "\"}") + "}");
  }
  std::string make_package() const {
    std::string noise;
    for (unsigned i = 0; noise.size() < 300'000; i = i * 1664525U + 1013904223U) noise += std::to_string(i);
    return zip_of({{"host.json", R"({"version":"2.0"})"},
                   {"hello/function.json", R"({"bindings":[]})"},
                   {"hello/data.txt", noise}});
  }
  bool has_status(std::string_view text) const {
    return std::ranges::any_of(statuses,
                               [&](const std::string& each) { return each.find(text) != std::string::npos; });
  }
  std::string worker_pid() const {
    const std::string& last = statuses.back();
    const std::size_t at = last.find("\"pid\":") + 6;
    return last.substr(at, last.find_first_not_of("0123456789", at) - at);
  }

  LittleScheduler scheduler;
  LittleRuntime runtime{scheduler.loop()};
  AgentProcess agent;
  std::string package;
  std::string language = "fake";
  std::vector<std::string> statuses;
  std::size_t gets = 0;
  std::size_t invoked = 0;
};

TEST_F(LanguageWorkerTest, MessagesPassBothWaysByteForByte) {
  start();
  ASSERT_TRUE(is_up());
  ASSERT_EQ(runtime.workers.size(), 1U);
  EXPECT_TRUE(runtime.workers[0].ends_with(".1")) << runtime.workers[0];
  std::string every;
  for (int i = 0; i < 256; ++i) every += static_cast<char>(i);
  // Fields that this schema does not know travel too.
  const std::string plain = invocation("i-odd", "echo", every);
  std::string body{function_rpc::peek(plain)->body};
  function_rpc::append_bytes(body, 777, "from the future");
  const std::string odd = function_rpc::compose("q-i-odd", function_rpc::Content::InvocationRequest, body);
  runtime.send_bytes(odd);
  ASSERT_TRUE(until([&] { return runtime.answers.size() == 1; }));
  EXPECT_EQ(runtime.answers[0], answer_to(odd));
  ASSERT_TRUE(until([&] { return has_status(R"("state":"placeholder")"); }));
  EXPECT_TRUE(has_status(R"("language":"fake")"));
  EXPECT_NE(agent.read("log").find("hello from the fake worker"), std::string::npos);
}

TEST_F(LanguageWorkerTest, ALargeMessagePassesAndSmallOnesOvertakeIt) {
  start();
  ASSERT_TRUE(is_up());
  const std::string large = invocation("i-large", "echo", std::string(20 * 1024 * 1024, 'L'));
  runtime.send_bytes(large);
  runtime.send_bytes(invocation("i-small", "echo", "s"));
  ASSERT_TRUE(until([&] { return runtime.answers.size() == 2; }, seconds{40}));
  EXPECT_EQ(response_in(runtime.answers[0]).invocation_id(), "i-small");
  EXPECT_TRUE(runtime.answers[1] == answer_to(large));
}

TEST_F(LanguageWorkerTest, ACutUnderLoadLosesAndRepeatsNothing) {
  constexpr std::size_t kInvocations = 600;
  start();
  ASSERT_TRUE(is_up());
  std::size_t sent = 0;
  for (const std::size_t target : {150U, 300U, 450U, 600U}) {
    for (; sent < target; ++sent) runtime.send_bytes(invocation("i-" + std::to_string(sent), "echo", "data"));
    const std::size_t before = runtime.answers.size();
    ASSERT_TRUE(until([&] { return runtime.answers.size() > before + 20; }));
    runtime.cut();
  }
  ASSERT_TRUE(until([&] { return runtime.answers.size() >= kInvocations; }));
  std::set<std::string> ids;
  for (const std::string& each : runtime.answers) ids.insert(response_in(each).invocation_id());
  EXPECT_EQ(runtime.answers.size(), kInvocations);
  EXPECT_EQ(ids.size(), kInvocations);
  EXPECT_GE(runtime.resumes, 1U);
  EXPECT_EQ(runtime.sessions, 1U);
  EXPECT_EQ(runtime.workers.size(), 1U) << "the worker's stream was not to notice";
}

TEST_F(LanguageWorkerTest, ASessionThatIsOverIsFollowedByAnotherForTheSameWorker) {
  start();
  ASSERT_TRUE(is_up());
  runtime.reset();
  ASSERT_TRUE(until([&] { return runtime.initialised == 2; }));
  ASSERT_EQ(runtime.workers.size(), 2U);
  EXPECT_EQ(runtime.workers[0], runtime.workers[1]);
  runtime.send_bytes(invocation("i-1", "echo"));
  ASSERT_TRUE(until([&] { return runtime.answers.size() == 1; }));
}

TEST_F(LanguageWorkerTest, AWorkerThatCrashesIsReportedAndStartedAgainUnderANewId) {
  start();
  ASSERT_TRUE(is_up());
  runtime.send_bytes(invocation("i-1", "crash"));
  ASSERT_TRUE(until([&] { return runtime.initialised == 2; }));
  EXPECT_TRUE(runtime.workers.at(1).ends_with(".2")) << runtime.workers[1];
  EXPECT_EQ(runtime.sessions, 1U);
  ASSERT_TRUE(until([&] { return has_status("exited with code 3"); }));
  EXPECT_TRUE(has_status("it cannot go on \xEF\xBF\xBD like this"));
  runtime.send_bytes(invocation("i-2", "echo"));
  ASSERT_TRUE(until([&] { return runtime.answers.size() == 1; }));
  EXPECT_EQ(response_in(runtime.answers[0]).invocation_id(), "i-2");
}

TEST_F(LanguageWorkerTest, SpecializedAWorkerHasTheApplicationAndReleasedItIsAPlaceholderAgain) {
  package = make_package();
  runtime.load = "hello";
  start();
  ASSERT_TRUE(is_up());
  specialize("c-1");
  ASSERT_TRUE(until([&] { return scheduler.result("c-1").has_value(); }));
  EXPECT_TRUE(scheduler.result("c-1")->starts_with(R"({"ok":true)")) << *scheduler.result("c-1");
  EXPECT_NE(scheduler.result("c-1")->find(R"("functions":["hello"])"), std::string::npos)
      << *scheduler.result("c-1");
  EXPECT_GE(gets, 2U) << "it was to come in parts";
  ASSERT_EQ(runtime.specialized.size(), 1U);
  EXPECT_EQ(runtime.specialized[0].application_id(), "shop");
  EXPECT_EQ(runtime.specialized[0].worker_id(), runtime.workers[0]);
  EXPECT_EQ(runtime.specialized[0].host_json(), R"({"version":"2.0"})");
  EXPECT_EQ(runtime.specialized[0].function_json().at("hello"), R"({"bindings":[]})");
  ASSERT_TRUE(until([&] { return has_status(R"("state":"ready")"); }));
  runtime.send_bytes(invocation("i-1", "environment"));
  ASSERT_TRUE(until([&] { return runtime.answers.size() == 1; }));
  const std::string said = response_in(runtime.answers[0]).return_value().string();
  EXPECT_TRUE(said.starts_with("good day /")) << said;
  EXPECT_TRUE(std::filesystem::exists(said.substr(9) + "/hello/data.txt")) << said;

  scheduler.order("c-2", "biz.worker.release", "{}");
  ASSERT_TRUE(until([&] { return scheduler.result("c-2").has_value() && runtime.initialised == 2; }));
  EXPECT_TRUE(runtime.workers.at(1).ends_with(".2"));
  const std::size_t before = gets;
  specialize("c-3");
  ASSERT_TRUE(until([&] { return scheduler.result("c-3").has_value(); }));
  EXPECT_TRUE(scheduler.result("c-3")->starts_with(R"({"ok":true)")) << *scheduler.result("c-3");
  EXPECT_EQ(gets, before) << "the package was here already";
}

TEST_F(LanguageWorkerTest, WithoutARuntimeItGoesToTheOneThatComesWithTheApplication) {
  package = make_package();
  start_as_fake("");
  ASSERT_TRUE(until([&] { return has_status(R"("runtime":"","state":"placeholder")"); }));
  specialize("c-1", runtime.url());
  ASSERT_TRUE(until([&] { return scheduler.result("c-1").has_value(); }));
  EXPECT_TRUE(scheduler.result("c-1")->starts_with(R"({"ok":true)")) << *scheduler.result("c-1");
  EXPECT_EQ(runtime.specialized.size(), 1U);
  ASSERT_TRUE(until([&] { return has_status(R"("runtime":"rt-2","state":"ready")"); }));
}

TEST_F(LanguageWorkerTest, ARuntimeThatCannotBeDialledIsSaidAtOnce) {
  package = make_package();
  start();
  ASSERT_TRUE(is_up());
  scheduler.order("c-1", "biz.worker.reassign", R"({"runtime":{"id":"x","url":"gopher://nowhere"}})");
  ASSERT_TRUE(until([&] { return scheduler.result("c-1").has_value(); }));
  EXPECT_TRUE(scheduler.result("c-1")->starts_with(R"({"ok":false,"code":"E.PROTO.SCHEMA")"))
      << *scheduler.result("c-1");
}

TEST_F(LanguageWorkerTest, NumbersOfTheRelayAreServed) {
  start();
  ASSERT_TRUE(is_up());
  runtime.send_bytes(invocation("i-1", "echo"));
  ASSERT_TRUE(until([&] { return runtime.answers.size() == 1; }));
  const std::string log = agent.read("log");
  const std::size_t at = log.find("\"port\":", log.find("metrics are served")) + 7;
  const std::string page = http_get(static_cast<std::uint16_t>(std::stoul(log.substr(at))), "/metrics");
  EXPECT_NE(page.find("relay_messages_total{to=\"worker\"} 2"), std::string::npos) << page;
  EXPECT_NE(page.find("relay_messages_total{to=\"runtime\"}"), std::string::npos);
  EXPECT_NE(page.find("worker_restarts_total 0"), std::string::npos);
}

TEST_F(LanguageWorkerTest, ReassignedItServesTheOtherRuntimeWithItsApplication) {
  package = make_package();
  LittleRuntime other{scheduler.loop()};
  start();
  ASSERT_TRUE(is_up());
  specialize("c-1");
  ASSERT_TRUE(until([&] { return scheduler.result("c-1").has_value(); }));
  scheduler.order("c-2", "biz.worker.reassign", R"({"runtime":{"id":"rt-2","url":")" + other.url() + "\"}}");
  ASSERT_TRUE(until([&] { return scheduler.result("c-2").has_value(); }));
  EXPECT_TRUE(scheduler.result("c-2")->starts_with(R"({"ok":true)")) << *scheduler.result("c-2");
  EXPECT_EQ(other.specialized.size(), 1U);
  EXPECT_EQ(other.workers, runtime.workers) << "the same process";
  ASSERT_TRUE(until([&] { return runtime.ended == 1; }));
  other.send_bytes(invocation("i-1", "environment"));
  ASSERT_TRUE(until([&] { return other.answers.size() == 1; }));
  EXPECT_TRUE(response_in(other.answers[0]).return_value().string().starts_with("good day /"));
  ASSERT_TRUE(until([&] { return has_status(R"("runtime":"rt-2","state":"ready")"); }));

  // And back.
  scheduler.order("c-3", "biz.worker.reassign",
                  R"({"runtime":{"id":"rt-1","url":")" + runtime.url() + "\"}}");
  ASSERT_TRUE(until([&] { return scheduler.result("c-3").has_value() && other.ended == 1; }));
  EXPECT_TRUE(scheduler.result("c-3")->starts_with(R"({"ok":true)")) << *scheduler.result("c-3");
  runtime.send_bytes(invocation("i-2", "echo"));
  ASSERT_TRUE(until([&] { return runtime.answers.size() == 1; }));
  EXPECT_EQ(runtime.sessions, 2U);
  EXPECT_EQ(other.sessions, 1U);
}

TEST_F(LanguageWorkerTest, ReleasedUnderLoadItAnswersEveryInvocation) {
  package = make_package();
  start();
  ASSERT_TRUE(is_up());
  specialize("c-1");
  ASSERT_TRUE(until([&] { return scheduler.result("c-1").has_value(); }));
  ASSERT_TRUE(until_under_load([&] { return runtime.answers.size() > 50; }));
  scheduler.order("c-2", "biz.worker.release", "{}");
  ASSERT_TRUE(
      until_under_load([&] { return scheduler.result("c-2").has_value() && runtime.initialised == 2; }));
  EXPECT_EQ(runtime.answers.size(), invoked);
}

TEST_F(LanguageWorkerTest, ReassignedUnderLoadItAnswersEveryInvocation) {
  LittleRuntime other{scheduler.loop()};
  start();
  ASSERT_TRUE(is_up());
  ASSERT_TRUE(until_under_load([&] { return runtime.answers.size() > 50; }));
  scheduler.order("c-1", "biz.worker.reassign", R"({"runtime":{"id":"rt-2","url":")" + other.url() + "\"}}");
  ASSERT_TRUE(until_under_load([&] { return scheduler.result("c-1").has_value() && runtime.ended == 1; }));
  EXPECT_EQ(runtime.answers.size(), invoked);
}

TEST_F(LanguageWorkerTest, ATermUnderLoadLosesNoInvocation) {
  start();
  ASSERT_TRUE(is_up());
  ASSERT_TRUE(until_under_load([&] { return runtime.answers.size() > 50; }));
  agent.signal(SIGTERM);
  ASSERT_TRUE(until_under_load([&] { return agent.has_ended(); }));
  EXPECT_EQ(agent.exit_code(), 0);
  EXPECT_EQ(runtime.partings, 1U);
  EXPECT_EQ(runtime.answers.size(), invoked);
}

TEST_F(LanguageWorkerTest, TheNodeWorkerServesAnApplication) {
  const std::string library = std::string{WINDLASS_NODE_APP} + "/node_modules/@azure/functions";
  ASSERT_TRUE(std::filesystem::exists(library)) << "./dev setup installs it";
  package = zip_of(
      {{"host.json", R"({"version":"2.0"})"},
       {"package.json", R"({"main":"index.js"})"},
       {"index.js",
        "const { app, trigger, output } = require('" + library +
            "');\napp.generic('hello', {trigger: trigger.generic({type: 'queueTrigger', name: 'item'}), "
            "return: output.generic({type: 'queue'}), "
            "handler: (item) => process.env.GREETING + ' ' + item});\n"}});
  language = "node";
  runtime.load = "hello";
  start_with(WINDLASS_NODE_WORKER, runtime.url());
  ASSERT_TRUE(is_up());
  specialize("c-1");
  ASSERT_TRUE(until([&] { return scheduler.result("c-1").has_value() && !runtime.loads.empty(); }));
  EXPECT_TRUE(scheduler.result("c-1")->starts_with(R"({"ok":true)")) << *scheduler.result("c-1");
  EXPECT_EQ(runtime.loads[0].result().status(), rpc::StatusResult::Success) << runtime.loads[0].DebugString();
  rpc::StreamingMessage message;
  auto& request = *message.mutable_invocation_request();
  request.set_invocation_id("i-1");
  request.set_function_id("hello");
  request.add_input_data()->set_name("item");
  request.mutable_input_data(0)->mutable_data()->set_string("to you");
  runtime.send(message);
  ASSERT_TRUE(until([&] { return runtime.answers.size() == 1; }));
  const auto response = response_in(runtime.answers[0]);
  EXPECT_EQ(response.return_value().string(), "good day to you") << response.DebugString();
}

TEST_F(LanguageWorkerTest, UnderTlsItKnowsTheRuntimeByItsAuthority) {
  TestAuthority authority;
  const IssuedFiles files = authority.issue("runtime");
  const auto tls = TlsContext::server({{files.certificate, files.key}});
  ASSERT_TRUE(tls.has_value());
  LittleRuntime secure{scheduler.loop(), tls->get()};
  start_as_fake(secure.secure_url() + "\"\nauthority = \"" + authority.certificate_file());
  ASSERT_TRUE(until([&] { return secure.initialised == 1; }));
  const std::string request = invocation("i-1", "echo", std::string(1'000'000, 't'));
  secure.send_bytes(request);
  ASSERT_TRUE(until([&] { return secure.answers.size() == 1; }));
  EXPECT_TRUE(secure.answers[0] == answer_to(request));
}

TEST_F(LanguageWorkerTest, OverGrpcMessagesPassAsTheyAre) {
  auto server = agent::FunctionRpcServer::listen({}, [this] { scheduler.loop().post([] {}); });
  ASSERT_TRUE(server.has_value());
  start_as_fake("http://127.0.0.1:" + std::to_string((*server)->port()));
  ASSERT_TRUE(
      until([&] { return !agent.read("var/worker_instance_id").empty() && scheduler.has_session(); }));
  std::string id = agent.read("var/worker_instance_id");
  id.erase(id.find_last_not_of('\n') + 1);
  // It was turned away until now, and comes again.
  (*server)->expect(id + ".1");
  std::vector<std::string> got;
  const auto has = [&](std::size_t count) {
    return until([&] {
      for (std::string& each : (*server)->poll().messages) got.push_back(std::move(each));
      return got.size() >= count;
    });
  };
  ASSERT_TRUE(has(1));
  EXPECT_EQ(function_rpc::peek(got[0])->content, function_rpc::Content::StartStream);
  (*server)->send(function_rpc::compose("init", function_rpc::Content::WorkerInitRequest, {}));
  (*server)->flush();
  ASSERT_TRUE(has(2));
  EXPECT_EQ(function_rpc::peek(got[1])->request_id, "init");
  const std::string request = invocation("i-1", "echo", "over gRPC");
  (*server)->send(request);
  (*server)->flush();
  ASSERT_TRUE(has(3));
  EXPECT_EQ(got[2], answer_to(request));
}

TEST_F(LanguageWorkerTest, AKilledAgentTakesItsWorkerAlongAndTheNextOneHasTheApplication) {
  package = make_package();
  start();
  ASSERT_TRUE(is_up());
  specialize("c-1");
  ASSERT_TRUE(until([&] { return scheduler.result("c-1").has_value() && has_status(R"("state":"ready")"); }));
  const std::string pid = worker_pid();
  ASSERT_TRUE(is_alive(pid)) << pid;
  agent.end(SIGKILL);
  ASSERT_TRUE(until([&] { return !is_alive(pid); }));
  agent.start();
  ASSERT_TRUE(until([&] { return runtime.specialized.size() == 2; }));
  EXPECT_EQ(runtime.specialized[1].application_id(), "shop");
}

TEST_F(LanguageWorkerTest, APackageThatWritesElsewhereIsRefused) {
  package = zip_of({{"host.json", "{}"}, {"../evil.txt", "evil"}});
  start();
  ASSERT_TRUE(is_up());
  specialize("c-1");
  ASSERT_TRUE(until([&] { return scheduler.result("c-1").has_value(); }));
  EXPECT_NE(scheduler.result("c-1")->find("E.PKG.INVALID"), std::string::npos) << *scheduler.result("c-1");
  EXPECT_FALSE(std::filesystem::exists(agent.path("var/evil.txt")));
  EXPECT_FALSE(std::filesystem::exists(agent.path("var/packages/evil.txt")));
  EXPECT_TRUE(runtime.specialized.empty());
}

TEST_F(LanguageWorkerTest, ATermEndsTheWorkerThenTheAgentWithZero) {
  start();
  ASSERT_TRUE(is_up());
  ASSERT_TRUE(until([&] { return has_status(R"("state":"placeholder")"); }));
  const std::string pid = worker_pid();
  agent.signal(SIGTERM);
  ASSERT_TRUE(until([&] { return agent.has_ended(); }));
  EXPECT_EQ(agent.exit_code(), 0);
  EXPECT_FALSE(is_alive(pid));
}

}  // namespace
}  // namespace windlass::testing
