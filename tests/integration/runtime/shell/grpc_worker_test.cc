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
