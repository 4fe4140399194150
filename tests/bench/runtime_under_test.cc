#include "tests/bench/runtime_under_test.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>

#include "protocol/base/check.h"
#include "protocol/crypto/digest.h"
#include "protocol/crypto/text_encoding.h"
#include "tests/bench/load_connection.h"
#include "worker-agent/adapters/package_tree.h"

namespace windlass::bench {
namespace {

constexpr const char* kGrpcAgent = "w-grpc";

std::string toml_text(const std::string& text) {
  return '"' + text + "\"\n";
}

void write_private(const std::string& path, const std::string& text) {
  std::ofstream{path} << text;
  CHECK(::chmod(path.c_str(), 0600) == 0);
}

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> all;
  for (const auto& thread : std::filesystem::directory_iterator{"/proc/" + std::to_string(pid) + "/task"}) {
    std::ifstream children{thread.path() / "children"};
    for (pid_t child = 0; children >> child;) all.push_back(child);
  }
  return all;
}

}  // namespace

RuntimeUnderTest::RuntimeUnderTest(const testing::IssuedFiles& files, const std::string& authority_file) {
  write_private(
      folder_.file("agents.toml"),
      "[[token]]\ntenant = \"acme\"\nname = \"bench\"\nsha256 = " +
          toml_text(hex_encode(windlass::view_of(sha256(kWorkerToken)))) +
          "[[certificate]]\ntenant = \"acme\"\nsan = \"DNS:localhost\"\nrole = \"agent\"\ninstance = " +
          toml_text(kGrpcAgent));
  runtime::RuntimeConfig config;
  config.id = "runtime-1";
  config.credentials_file = folder_.file("agents.toml");
  const auto& [certificate, key] = files;
  config.tls = TlsServerOptions{{certificate, key}};
  config.grpc = ListenAddress{};
  config.grpc_tls = TlsServerOptions{.identity = {certificate, key},
                                     .client_certificates = ClientCertificates::Required,
                                     .client_authority_file = authority_file};
  config.grants = {{"", "*", "*"}};
  config.core.slots_per_worker = 1'000;  // the load says how many are under way
  config.core.pending_max = 100'000;
  config.core.memory_elevated = 1.0;  // the machine's memory is nobody's business here
  config.core.memory_critical = 1.0;
  log_ = *JsonLog::open({.file = folder_.file("log")});
  auto made = runtime::Runtime::create(config, *log_);
  if (!made) stop_bench("the runtime did not start: " + made.error().reason);
  runtime_ = *std::move(made);
  thread_ = std::thread{[this] { runtime_->run(); }};
}

RuntimeUnderTest::~RuntimeUnderTest() {
  runtime_->stop();
  runtime_->stop();
  thread_.join();
}

void RuntimeUnderTest::wait_until(const std::function<bool(const runtime::RuntimeCore&)>& holds,
                                  const std::string& what) {
  for (int i = 0; i < 3'000; ++i) {
    std::promise<bool> answer;
    runtime_->loop().post([&] { answer.set_value(holds(runtime_->desk().core())); });
    if (answer.get_future().get()) return;
    std::this_thread::sleep_for(milliseconds{10});
  }
  std::ostringstream said;
  said << std::ifstream{folder_.file("log")}.rdbuf();
  stop_bench(what + " did not happen; the runtime says: " + said.str());
}

void RuntimeUnderTest::wait_for(const std::string& application) {
  wait_until(
      [&](const runtime::RuntimeCore& core) {
        const auto job_host = core.find_job_host(application);
        return job_host && core.free_slots(*job_host) > 0;
      },
      "a worker of " + application);
}

std::string RuntimeUnderTest::url_of(WorkerChannelKind kind) const {
  return kind == WorkerChannelKind::Session
             ? "wss://127.0.0.1:" + std::to_string(runtime_->port()) + "/ws/worker"
             : "https://127.0.0.1:" + std::to_string(runtime_->grpc_port());
}

AgentUnderTest::AgentUnderTest(const Identity& identity, const RuntimeUnderTest& runtime,
                               const std::string& application, WorkerChannelKind channel) {
  const std::string digest(64, 'e');
  const std::string url = runtime.url_of(channel);
  const std::filesystem::path state = folder_.file("var");
  std::filesystem::create_directories(state / "packages");
  std::filesystem::copy(WINDLASS_ECHO_APP, state / "packages" / digest);
  const auto tree = agent::tree_digest((state / "packages" / digest).string());
  if (!tree) stop_bench(tree.error().reason);
  write_private(state / "packages" / (digest + ".tree"), *tree);
  write_private(state / "assignment.json", R"({"runtime":{"id":"runtime-1","url":")" + url +
                                               R"("},"application":{"application_id":")" + application +
                                               R"(","metadata_version":"1","code_version":"1",)" +
                                               R"("language":"native","package":{"digest":")" + digest +
                                               R"(","bytes":1},"setting_names":[],"setting_values":[]}})");
  // Its certificate is bound to it.
  if (channel == WorkerChannelKind::Grpc) write_private(state / "worker_instance_id", kGrpcAgent);
  write_private(folder_.file("token"), kWorkerToken);
  // Nobody is at the scheduler's address: it has nothing to say here.
  write_private(folder_.file("agent.toml"),
                "[scheduler]\nurl = \"wss://127.0.0.1:9/ws/worker\"\n[tls]\nauthority = " +
                    toml_text(identity.authority.certificate_file()) + "certificate = " +
                    toml_text(identity.files.certificate) + "key = " + toml_text(identity.files.key) +
                    "[auth]\ntoken_file = " + toml_text(folder_.file("token")) +
                    "[worker]\ntenant = \"acme\"\nstate_folder = " + toml_text(state) +
                    // The channel is measured, and another user could not enter this private folder.
                    "[language_worker]\nconfine = \"off\"\nfolder = " + toml_text(WINDLASS_NATIVE_FOLDER) +
                    "[runtime]\nid = \"runtime-1\"\nurl = " + toml_text(url) +
                    "[log]\nfile = " + toml_text(folder_.file("log")));
  process_ = std::make_unique<ChildProcess>(
      std::vector<std::string>{WINDLASS_AGENT, "--config", folder_.file("agent.toml")});
}

double AgentUnderTest::worker_nanoseconds() const {
  // Those of windlass-run, which stands between them.
  double sum = 0;
  for (const pid_t supervisor : children_of(process_->pid())) {
    for (const pid_t child : children_of(supervisor)) sum += process_nanoseconds(child);
  }
  return sum;
}

ApplicationHost::ApplicationHost(RuntimeUnderTest& under_test, std::string name,
                                 const std::string& application)
    : runtime_(under_test.runtime()), name_(std::move(name)), job_host_{application, kVersion} {
  under_test.wait_for(application);
}

void ApplicationHost::invoke(std::uint64_t tag) {
  const auto begun = runtime_.desk().submit(
      {.job_host = job_host_, .function = kEchoFunction, .body = body_, .source = "bench"},
      [this, tag](const runtime::Outcome& outcome, const std::vector<std::string>&) {
        if (outcome.settlement != runtime::Settlement::Complete || outcome.body.size() < kPayloadBytes) {
          stop_bench("an invocation failed: " + outcome.reason);
        }
        on_answer(tag);
      });
  if (!begun) stop_bench("an invocation was refused: " + begun.error().reason);
}

}  // namespace windlass::bench
