// Workers that dial in by themselves over gRPC.
#include "tests/integration/runtime/shell/runtime_world.h"
#include "tests/integration/runtime/shell/scripted_stream.h"

namespace windlass::testing {
namespace {

class GrpcWorkerTest : public RuntimeTest {
 protected:
  void serve() {
    write("app/host.json", R"({"version":"2.0","extensions":{"http":{"routePrefix":"v1"}}})");
    config.applications.push_back({.version = {{"shop", "m1"}, "c1"},
                                   .directory = folder + "/app",
                                   .language = "test",
                                   .environment = {}});
    config.grpc_application = "shop";
    start();
    worker = std::make_unique<ScriptedStream>(runtime->grpc_port(), WorkerScript{}.start("w-1"));
    ASSERT_TRUE(logs("a worker is ready"));
  }
  std::unique_ptr<ScriptedStream> worker;
};

TEST_F(GrpcWorkerTest, AConfiguredApplicationIsServed) {
  serve();
  EXPECT_EQ(ask_http(http, "GET", "/v1/hello/world").body, "hello world");
  EXPECT_EQ(ask_http(http, "GET", "/api/hello/world").status, 404);
  EXPECT_EQ(ask_http(http, "GET", "/v1/fail").status, 500);
  EXPECT_NE(ask_http(admin, "GET", "/metrics")
                .body.find("windlass_runtime_worker_connections_total{channel=\"grpc\"} 1"),
            std::string::npos);
}

TEST_F(GrpcWorkerTest, AProcessOfAnotherUserIsNotLetInWithoutAToken) {
  write("agents.toml", "[[token]]\ntenant = \"acme\"\nsha256 = \"" + hex_encode(view_of(sha256("worker"))) +
                           "\"\ninstance = \"w-1\"\n[[token]]\ntenant = \"acme\"\nsha256 = \"" +
                           hex_encode(view_of(sha256("agent"))) +
                           "\"\nrole = \"agent\"\ninstance = \"i-1\"\n");
  config.grpc_users = {::geteuid() + 1};
  start();
  const auto dial = [&](const std::string& id, const ScriptedStream::Metadata& metadata) {
    return std::make_unique<ScriptedStream>(runtime->grpc_port(), WorkerScript{}.start(id),
                                            grpc::InsecureChannelCredentials(), metadata);
  };
  EXPECT_EQ(dial("w-1", {})->wait_for_end().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_FALSE(dial("w-1", {{"authorization", "Bearer wrong"}})->wait_for_end().ok());
  EXPECT_FALSE(dial("w-2", {{"authorization", "Bearer worker"}})->wait_for_end().ok()) << "another's id";
  EXPECT_FALSE(
      dial("w-1", {{"authorization", "Bearer worker"}, {"windlass-agent", "1"}})->wait_for_end().ok());
  EXPECT_EQ(logged().find("a worker connected"), std::string::npos);
  const auto agent = dial("i-1.1", {{"authorization", "Bearer agent"}, {"windlass-agent", "1"}});
  const auto good = dial("w-1", {{"authorization", "Bearer worker"}});
  EXPECT_TRUE(logs("a worker is initialized"));
}

TEST_F(GrpcWorkerTest, NobodyIsAnAgentForTheAsking) {
  start();
  const ScriptedStream stream{runtime->grpc_port(),
                              WorkerScript{}.start("w-1"),
                              grpc::InsecureChannelCredentials(),
                              {{"windlass-agent", "1"}}};
  EXPECT_TRUE(logs("a connection was refused"));
}

TEST_F(GrpcWorkerTest, ALargeBodyGoesThereAndBack) {
  serve();
  const std::string body(20 * 1024 * 1024, 'y');
  const HttpSaid said =
      ask_http(http, "POST", "/v1/echo", body, "Content-Type: application/octet-stream\r\n");
  EXPECT_EQ(said.status, 200);
  EXPECT_TRUE(said.body == body);
}

TEST_F(GrpcWorkerTest, AWrongFirstMessageEndsOnlyThatStream) {
  serve();
  rpc::StreamingMessage wrong;
  wrong.mutable_rpc_log()->set_message("hello");
  EXPECT_FALSE(ScriptedStream(runtime->grpc_port(), wrong.SerializeAsString()).wait_for_end().ok());
  EXPECT_FALSE(ScriptedStream(runtime->grpc_port(), "\xFF\xFF garbage").wait_for_end().ok());
  EXPECT_FALSE(ScriptedStream(runtime->grpc_port(), WorkerScript{}.start("w-1")).wait_for_end().ok())
      << "the id is in use";
  EXPECT_EQ(ask_http(http, "GET", "/v1/hello/world").status, 200);
}

TEST_F(GrpcWorkerTest, TheFirstOfTwoAnswersCountsAndOneToNothingDoesNot) {
  serve();
  HttpSaid said;
  std::jthread asker{[&] { said = ask_http(http, "GET", "/v1/hang"); }};
  ASSERT_TRUE(eventually([&] { return !worker->script.hung().empty(); }));
  const std::string id = worker->script.hung();
  ASSERT_TRUE(worker->write(worker->script.answered("nobody-asked", "418")));
  ASSERT_TRUE(worker->write(worker->script.answered(id)));
  ASSERT_TRUE(worker->write(worker->script.answered(id, "418")));
  asker.join();
  EXPECT_EQ(said.status, 200);
  EXPECT_TRUE(logs("an answer to nothing that is under way"));
  EXPECT_EQ(ask_http(http, "GET", "/v1/hello/world").status, 200);
}

TEST_F(GrpcWorkerTest, AMessageOverTheLimitEndsOnlyItsStream) {
  config.message_bytes_max = 1024 * 1024;
  serve();
  ScriptedStream other{runtime->grpc_port(), WorkerScript{}.start("w-2")};
  ASSERT_TRUE(logs(R"("a worker is ready","worker":"w-2")"));
  rpc::StreamingMessage large;
  large.mutable_rpc_log()->set_message(std::string(2 * 1024 * 1024, 'x'));
  other.write(large.SerializeAsString());
  EXPECT_EQ(other.wait_for_end().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  ASSERT_TRUE(logs(R"("a worker is gone","worker":"w-2")"));
  EXPECT_EQ(ask_http(http, "GET", "/v1/hello/world").status, 200);
}

TEST_F(GrpcWorkerTest, AWorkerThatDoesNotReadIsCutOff) {
  config.core.invocation_timeout = milliseconds{300};
  serve();
  worker->set_deaf(true);
  std::jthread hangs{[this] { ask_http(http, "GET", "/v1/hang"); }};
  ASSERT_TRUE(eventually([&] { return !worker->script.hung().empty(); }));
  ask_http(http, "POST", "/v1/echo", std::string(32 * 1024 * 1024, 'x'),
           "Content-Type: application/octet-stream\r\n");
  ASSERT_TRUE(logs("a worker is given up"));
  EXPECT_TRUE(eventually([&] { return !worker->write(WorkerScript{}.start("w-1")); }));
}

TEST_F(GrpcWorkerTest, AWorkerThatIsGoneLeavesNobodyToServe) {
  config.core.pending_timeout = milliseconds{200};
  serve();
  ASSERT_EQ(ask_http(http, "GET", "/v1/hello/world").status, 200);
  worker.reset();
  ASSERT_TRUE(logs("a worker is gone"));
  // While somebody may still replace it and after that.
  EXPECT_EQ(ask_http(http, "GET", "/v1/hello/world").status, 503);
}

TEST_F(GrpcWorkerTest, AStopEndsTheRuntime) {
  serve();
  runtime->stop();
  thread.join();
  EXPECT_NE(logged().find("ends what is under way"), std::string::npos);
}

}  // namespace
}  // namespace windlass::testing
