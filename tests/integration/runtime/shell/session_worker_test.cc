// Workers behind an agent's session, and who asks for their functions.
#include "tests/integration/runtime/shell/session_world.h"

namespace windlass::testing {
namespace {

TEST_F(SessionWorkerTest, AFunctionIsServedOverHttp) {
  serve();
  const HttpSaid said = ask_http(http, "GET", "/api/hello/world");
  EXPECT_EQ(said.status, 200);
  EXPECT_EQ(said.body, "hello world");
  EXPECT_NE(said.head.find("x-trace: 00-"), std::string::npos) << said.head;
  EXPECT_EQ(ask_http(http, "GET", "/shop/api/hello/again").body, "hello again");
  EXPECT_EQ(ask_http(http, "POST", "/api/echo", "what I say").body, "what I say");
}

TEST_F(SessionWorkerTest, WhatCannotBeServedIsSaidByItsCode) {
  serve();
  EXPECT_EQ(ask_http(http, "GET", "/api/nowhere").status, 404);
  const HttpSaid wrong = ask_http(http, "GET", "/api/echo");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_NE(wrong.head.find("Allow: POST"), std::string::npos) << wrong.head;
  const HttpSaid failed = ask_http(http, "GET", "/api/fail");
  EXPECT_EQ(failed.status, 500);
  EXPECT_EQ(failed.body.find("boom"), std::string::npos)
      << "why it failed is nobody's business unless settings say so";
}

TEST_F(SessionWorkerTest, ALargeBodyGoesThereAndBack) {
  serve();
  std::string body(20 * 1024 * 1024, 'x');
  for (std::size_t i = 0; i < body.size(); i += 4099) body[i] = static_cast<char>(i % 251);
  const HttpSaid said =
      ask_http(http, "POST", "/api/echo", body, "Content-Type: application/octet-stream\r\n");
  EXPECT_EQ(said.status, 200);
  EXPECT_TRUE(said.body == body);
}

TEST_F(SessionWorkerTest, ACutOfTheConnectionFailsNothing) {
  serve();
  std::atomic<int> good{0};
  std::vector<std::jthread> askers;
  askers.reserve(4);
  for (int i = 0; i < 4; ++i) {
    askers.emplace_back([&] {
      for (int n = 0; n < 50; ++n)
        good += ask_http(http, "GET", "/api/hello/you").body == "hello you" ? 1 : 0;
    });
  }
  for (int cut = 0; cut < 3; ++cut) {
    ASSERT_TRUE(eventually([&] { return good.load() > 20 + cut * 40; }));
    agent->cut();
    ASSERT_TRUE(eventually([&] { return agent->resumes.load() > cut; }));
  }
  askers.clear();
  EXPECT_EQ(good.load(), 200);
  EXPECT_EQ(agent->sessions.load(), 1);
}

TEST_F(SessionWorkerTest, AWorkerThatHangsIsGivenUpAndItsAgentBringsTheNextOnTheSameSession) {
  config.core.invocation_timeout = milliseconds{100};
  serve();
  EXPECT_EQ(ask_http(http, "GET", "/api/hang").status, 504);
  ASSERT_TRUE(eventually([&] { return agent->script.terminations.load() == 1; }));
  ASSERT_TRUE(logs("a worker is given up"));
  // What the last worker still says is of no use to anybody.
  rpc::StreamingMessage late;
  late.mutable_rpc_log()->set_message("late");
  agent->send(late.SerializeAsString());
  agent->script.is_specialized = false;
  agent->send(agent->script.start("i-1.2"));
  ASSERT_TRUE(logs(R"("a worker is initialized","worker":"i-1.2")"));
  agent->send(agent->script.specialized("i-1.2", "shop"));
  ASSERT_TRUE(eventually([&] { return agent->script.is_specialized.load(); }));
  EXPECT_EQ(ask_http(http, "GET", "/api/hello/new").body, "hello new");
  EXPECT_EQ(agent->sessions.load(), 1);
}

TEST_F(SessionWorkerTest, AnAgentThatLeavesIsNoFailure) {
  serve();
  agent->drain();
  agent->complete_drain();
  ASSERT_TRUE(logs("an agent's session ended"));
  ASSERT_TRUE(logs("a worker is gone"));
  EXPECT_EQ(logged().find("Replace"), std::string::npos) << "nobody is missed";
  ScriptedAgent other{runtime->port(), "i-2", kToken};
  other.send(other.script.start("i-2.1"));
  ASSERT_TRUE(logs(R"("a worker is initialized","worker":"i-2.1")"));
  other.send(other.script.specialized("i-2.1", "shop"));
  ASSERT_TRUE(eventually([&] { return other.script.is_specialized.load(); }));
  EXPECT_EQ(ask_http(http, "GET", "/api/hello/you").body, "hello you");
}

TEST_F(SessionWorkerTest, AnAgentThatDrainsUnderLoadFinishesWhatItHas) {
  window = 1;  // so that a drain finds messages that wait, and some half sent
  serve();
  ScriptedAgent other{runtime->port(), "i-2", kToken};
  other.send(other.script.start("i-2.1"));
  ASSERT_TRUE(logs(R"("a worker is initialized","worker":"i-2.1")"));
  other.send(other.script.specialized("i-2.1", "shop"));
  ASSERT_TRUE(eventually([&] { return other.script.is_specialized.load(); }));
  const std::string body(700 * 1024, 'x');  // in parts
  std::atomic<int> good{0};
  std::vector<std::jthread> askers;
  askers.reserve(4);
  for (int i = 0; i < 4; ++i) {
    askers.emplace_back([&] {
      for (int n = 0; n < 25; ++n) good += ask_http(http, "POST", "/api/echo", body).body == body ? 1 : 0;
    });
  }
  ASSERT_TRUE(eventually([&] { return good.load() > 10; }));
  agent->drain();
  askers.clear();
  agent->complete_drain();
  EXPECT_EQ(good.load(), 100);
  EXPECT_TRUE(logs("an agent's session ended"));
}

TEST_F(SessionWorkerTest, AnAnswerToNothingIsNotedAndHurtsNobody) {
  serve();
  rpc::StreamingMessage message;
  message.mutable_invocation_response()->set_invocation_id("no-such-invocation");
  message.mutable_invocation_response()->mutable_result()->set_status(rpc::StatusResult::Success);
  agent->send(message.SerializeAsString());
  EXPECT_TRUE(logs("an answer to nothing that is under way"));
  EXPECT_EQ(ask_http(http, "GET", "/api/hello/you").body, "hello you");
}

TEST_F(SessionWorkerTest, TheFirstOfTwoAnswersCounts) {
  serve();
  HttpSaid said;
  std::jthread asker{[&] { said = ask_http(http, "GET", "/api/hang"); }};
  ASSERT_TRUE(eventually([&] { return !agent->script.hung().empty(); }));
  agent->send(agent->script.answered(agent->script.hung()));
  agent->send(agent->script.answered(agent->script.hung(), "418"));
  asker.join();
  EXPECT_EQ(said.status, 200);
  EXPECT_TRUE(logs("an answer to nothing that is under way"));
  EXPECT_EQ(ask_http(http, "GET", "/api/hello/you").body, "hello you");
}

TEST_F(SessionWorkerTest, AMessageOverTheLimitEndsOnlyItsWorker) {
  config.message_bytes_max = 1024 * 1024;
  serve();
  ScriptedAgent other{runtime->port(), "i-2", kToken};
  other.send(other.script.start("i-2.1"));
  ASSERT_TRUE(logs(R"("a worker is initialized","worker":"i-2.1")"));
  rpc::StreamingMessage large;
  large.mutable_rpc_log()->set_message(std::string(2 * 1024 * 1024, 'x'));
  other.send(large.SerializeAsString());
  EXPECT_TRUE(eventually([&] { return other.script.terminations.load() == 1; }));
  EXPECT_TRUE(logs("over the limit"));
  EXPECT_EQ(ask_http(http, "GET", "/api/hello/you").body, "hello you");
}

TEST_F(SessionWorkerTest, ABodyOverTheLimitIsRefused) {
  config.http_body_bytes_max = 64 * 1024;
  serve();
  EXPECT_EQ(ask_http(http, "POST", "/api/echo", std::string(65 * 1024, 'x')).status, 413);
  EXPECT_EQ(ask_http(http, "POST", "/api/echo", std::string(64 * 1024, 'x')).status, 200);
}

TEST_F(SessionWorkerTest, WhatNoMessageCanCarryIsRefusedAndTheWorkerGoesOn) {
  config.message_bytes_max = 1024 * 1024;
  serve();
  EXPECT_EQ(ask_http(http, "POST", "/api/echo", std::string(2 * 1024 * 1024, 'x')).status, 413);
  EXPECT_EQ(ask_http(http, "GET", "/api/hello/you").body, "hello you");
}

TEST_F(SessionWorkerTest, AForeignWorkerIdEndsTheSession) {
  start();
  agent = std::make_unique<ScriptedAgent>(runtime->port(), "i-1", kToken);
  agent->send(agent->script.start("i-2.1"));
  EXPECT_TRUE(eventually([&] { return agent->ended.load() > 0; }));
  EXPECT_TRUE(logs("does not belong to i-1"));
}

TEST_F(SessionWorkerTest, GarbageAndAWrongFirstMessageEndOnlyTheirSession) {
  serve();
  ScriptedAgent other{runtime->port(), "i-2", kToken};
  other.send("\xFF\xFFno message");
  EXPECT_TRUE(eventually([&] { return other.ended.load() == 1; }));
  other.send(other.script.specialized("i-2.1", "shop"));
  EXPECT_TRUE(eventually([&] { return other.ended.load() == 2; }));
  EXPECT_EQ(ask_http(http, "GET", "/api/hello/you").status, 200);
}

TEST_F(SessionWorkerTest, AStrangerIsNotLetIn) {
  start();
  ScriptedAgent stranger{runtime->port(), "i-9", "another token"};
  EXPECT_TRUE(logs("a connection was refused"));
  EXPECT_EQ(stranger.sessions.load(), 0);
}

TEST_F(SessionWorkerTest, ANewKeyOfTheFunctionsIsReadWithoutARestart) {
  write("function.key", "old-key-of-functions");
  std::filesystem::permissions(folder + "/function.key",
                               std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  config.http_key_file = folder + "/function.key";
  serve();
  EXPECT_EQ(ask_http(http, "GET", "/api/locked", {}, "x-functions-key: new-key-of-functions\r\n").status,
            401);
  write("function.key", "new-key-of-functions");
  EXPECT_TRUE(eventually([&] {
    return ask_http(http, "GET", "/api/locked", {}, "x-functions-key: new-key-of-functions\r\n").status ==
           200;
  }));
  EXPECT_EQ(ask_http(http, "GET", "/api/locked", {}, "x-functions-key: old-key-of-functions\r\n").status,
            401);
}

TEST_F(SessionWorkerTest, AnAgentOfAnotherTenantThanTheRuntimesIsNotLetIn) {
  config.scheduler = runtime::SchedulerSettings{
      .address = *parse_address("ws://127.0.0.1:1/ws/worker"), .token = "any", .tenant = "globex"};
  start();
  const ScriptedAgent other{runtime->port(), "i-1", kToken};
  EXPECT_TRUE(logs("this runtime works for another tenant"));
  EXPECT_EQ(other.sessions.load(), 0);
}

TEST_F(SessionWorkerTest, HealthAndMetricsTellOfTheWorker) {
  serve();
  ASSERT_EQ(ask_http(http, "GET", "/api/hello/world").status, 200);
  ASSERT_EQ(ask_http(http, "GET", "/api/fail").status, 500);
  const HttpSaid health = ask_http(admin, "GET", "/health");
  EXPECT_EQ(health.status, 200);
  for (const char* field :
       {R"("grpc_server":"listening")", R"("total_workers":1)", R"("ready_workers":1)",
        R"("memory_utilization":)", R"("pending_invocations":0)", R"("active_jobhosts":)"}) {
    EXPECT_NE(health.body.find(field), std::string::npos) << field << " in " << health.body;
  }
  const HttpSaid metrics = ask_http(admin, "GET", "/metrics");
  for (const char* line :
       {"windlass_runtime_worker_connections_total{channel=\"session\"} 1",
        "windlass_runtime_worker_specialization_duration_seconds_count 1",
        "windlass_runtime_worker_pool_size{state=\"Ready\"} 1",
        "windlass_runtime_invocations_routed_total{application=\"shop\"} 2",
        "windlass_runtime_invocations_completed_total{application=\"shop\"} 1",
        "windlass_runtime_invocations_failed_total{", "windlass_runtime_invocation_duration_seconds_count{",
        "windlass_runtime_messages_received_total{source=\"http\"} 2",
        "windlass_runtime_messages_completed_total{source=\"http\"} 1",
        "windlass_runtime_messages_abandoned_total{", "windlass_runtime_messages_dead_lettered_total{",
        "windlass_runtime_worker_in_flight_invocations_count",
        "windlass_runtime_backpressure_events_total"}) {
    EXPECT_NE(metrics.body.find(line), std::string::npos) << line << " in\n" << metrics.body;
  }
  EXPECT_EQ(ask_http(admin, "GET", "/nowhere").status, 404);
}

}  // namespace
}  // namespace windlass::testing
