// Every admin route over a real socket: what it answers, and what it refuses.
#include <gtest/gtest.h>

#include "tests/integration/scheduler/shell/admin_world.h"

namespace windlass::testing {
namespace {

class AdminApiTest : public AdminWorld {
 protected:
  void deliver_result(SessionRef session, std::string_view command, std::string_view payload) {
    const std::string id = "r-" + std::string{command};
    say(session,
        Delivered{seq++, Message{{.type = "biz.result", .id = id, .payload = payload, .corr = command}}});
  }
  Seq seq = 0;
};

TEST_F(AdminApiTest, WantsATokenForAllButHealth) {
  start();
  const auto status = [&](const std::string& target, const std::string& headers) {
    RawClient client = connect();
    client.send(request("GET", target, {}, headers));
    return client.receive()->status;
  };
  EXPECT_EQ(status("/healthz", ""), 200);
  EXPECT_EQ(status("/readyz", ""), 200);
  for (const std::string target :
       {"/metrics", "/v1/workers", "/v1/commands", "/v1/messages", "/v1/workers/a/b"}) {
    EXPECT_EQ(status(target, ""), 401) << target;
    EXPECT_EQ(status(target, "Authorization: Bearer nope\r\n"), 401) << target;
  }
  admin_options.metrics_are_open = true;
  start();
  EXPECT_EQ(status("/metrics", ""), 200);
}

TEST_F(AdminApiTest, NamesThePathAndMethodThatAreNotServed) {
  start();
  for (const std::string path :
       {"/", "/v1", "/v1/workers/acme", "/v1/workers/acme/w1/explode", "/v1/workers//w1"}) {
    const Answered answered = ask("GET", path);
    EXPECT_EQ(answered.status, 404) << path;
    EXPECT_TRUE(answered.head_has("application/problem+json")) << path;
    EXPECT_TRUE(answered.has(R"("code":"E.HTTP.NOT_FOUND")")) << path;
  }
  const Answered read_only = ask("DELETE", "/v1/workers");
  EXPECT_EQ(read_only.status, 405);
  EXPECT_TRUE(read_only.head_has("allow: get, head"));
  const Answered write_only = ask("GET", "/v1/workers/acme/w1/drain");
  EXPECT_EQ(write_only.status, 405);
  EXPECT_TRUE(write_only.head_has("allow: post"));
  EXPECT_EQ(ask("GET", "/v1/workers/%zz/w1").status, 400);
}

TEST_F(AdminApiTest, ListsWorkersInPages) {
  start();
  for (const char* id : {"w1", "w2", "w3"}) open_worker(id);
  open_worker("x/1", "other tenant");
  const Answered all = ask("GET", "/v1/workers");
  EXPECT_EQ(all.status, 200);
  EXPECT_TRUE(all.has(R"("total":4)"));
  EXPECT_TRUE(all.has(R"("id":"x/1")"));
  const Answered page = ask("GET", "/v1/workers?tenant=acme&limit=2");
  EXPECT_TRUE(page.has(R"("id":"w2")"));
  EXPECT_FALSE(page.has(R"("id":"w3")"));
  EXPECT_TRUE(page.has(R"("next":"acme/w2")"));
  const Answered rest = ask("GET", "/v1/workers?tenant=acme&limit=2&after=acme/w2");
  EXPECT_FALSE(rest.has(R"("id":"w2")"));
  EXPECT_TRUE(rest.has(R"("id":"w3")"));
  EXPECT_FALSE(rest.has(R"("next")"));
  EXPECT_EQ(ask("GET", "/v1/workers?limit=0").status, 400);
  EXPECT_EQ(ask("GET", "/v1/workers?after=acme").status, 400);
  const Answered misspelt = ask("GET", "/v1/workers?tennant=acme");
  EXPECT_EQ(misspelt.status, 400);
  EXPECT_TRUE(misspelt.has("'tennant'"));
}

TEST_F(AdminApiTest, ShowsOneWorkerWithWhatItSaidOfItself) {
  start();
  const SessionRef session = open_worker("x/1", "other tenant");
  auto profile = std::make_shared<WorkerProfile>();
  profile->worker_name = "box \"7\"";
  profile->runtimes = {"node"};
  profile->payload_types = {"biz.echo"};
  say(session, Registered{profile});
  say(session,
      LoadReported{true, 3, 12.5, std::nullopt, std::nullopt, std::nullopt, R"({"cpu_pct":12.5,"queue":4})"});
  ASSERT_TRUE(runner.run_until([&] {
    return control->core().fleet().find({TenantId{"other tenant"}, InstanceId{"x/1"}})->load.has_value();
  }));
  const Answered shown = ask("GET", "/v1/workers/other%20tenant/x%2f1");
  EXPECT_EQ(shown.status, 200);
  for (const char* part :
       {R"("state":"READY")", R"("name":"box \"7\"")", R"("runtimes":["node"])",
        R"("payload_types":["biz.echo"])", R"("queue":4)", R"("cpu_pct":12.5)", R"("counters":{)"}) {
    EXPECT_TRUE(shown.has(part)) << part << " in " << shown.body;
  }
  EXPECT_EQ(ask("GET", "/v1/workers/acme/nobody").status, 404);
}

TEST_F(AdminApiTest, ActsOnWorkersAndSaysWhyNot) {
  start();
  open_worker("w1");
  for (const std::string action : {"reset", "rotate", "revoke", "drain"}) {
    const Answered done = ask("POST", "/v1/workers/acme/w1/" + action);
    EXPECT_EQ(done.status, 202) << action << done.body;
    EXPECT_TRUE(done.has("\"accepted\":\"" + action + '"'));
  }
  EXPECT_TRUE(image->rows.contains("revocation/acme/w1")) << "durable before it is answered";
  EXPECT_TRUE(image->rows.contains("drain/acme/w1"));
  EXPECT_TRUE(image->rows.contains("denial/acme/w1"));
  EXPECT_TRUE(ask("GET", "/v1/denied?tenant=acme").has(R"("id":"w1")"));
  EXPECT_TRUE(ask("GET", "/v1/workers/acme/w1").has(R"("denied":true)"));
  EXPECT_EQ(ask("POST", "/v1/workers/acme/w1/allow").status, 202);
  EXPECT_FALSE(image->rows.contains("denial/acme/w1"));
  EXPECT_FALSE(ask("GET", "/v1/denied").has("w1"));
  EXPECT_EQ(ask("POST", "/v1/workers/acme/w1/allow").status, 409) << "it is not revoked any more";
  EXPECT_EQ(ask("POST", "/v1/workers/acme/nobody/allow").status, 404);
  EXPECT_TRUE(ask("GET", "/v1/workers/acme/w1").has(R"("reason":"an operator asked for it")"));
  EXPECT_EQ(ask("POST", "/v1/workers/acme/nobody/drain").status, 404);
  EXPECT_EQ(ask("POST", "/v1/workers/acme/nobody/revoke").status, 202) << "its tokens may be about";
}

TEST_F(AdminApiTest, RefusesBodiesThatItDoesNotWhollyUnderstand) {
  start();
  open_worker("w1");
  const std::vector<std::pair<std::string, std::string>> bad = {
      {R"({"type":"biz.echo","payload":{},"priority":1})", "/priority"},
      {R"({"type":"biz.echo"})", "/payload: it is missing"},
      {R"({"payload":{}})", "/type: it is missing"},
      {R"({"type":7,"payload":{}})", "/type"},
      {R"({"type":"biz.echo","payload":[1]})", "/payload"},
      {R"({"type":"biz.echo","payload":{},"timeout_ms":1.5})", "/timeout_ms"},
      {R"({"type":"biz.echo","payload":{},"timeout_ms":99999999})", "/timeout_ms"},
      {R"({"type":"biz.echo","type":"biz.echo","payload":{}})", "/type: it is given twice"},
      {R"({"type":"control.reset","payload":{}})", "/type"},
      {R"({"id":"~x","type":"biz.echo","payload":{}})", "/id"},
      {R"({"type":"biz.echo","payload":{}} trailing)", "not JSON"},
      {R"([])", "not a JSON object"},
      {"{\"type\":\"\xff\",\"payload\":{}}", "not JSON"},
      {R"({"a/b~c":1})", "missing"},
  };
  for (const auto& [body, what] : bad) {
    const Answered answered = ask("POST", "/v1/workers/acme/w1/commands", body);
    EXPECT_EQ(answered.status, 400) << body;
    EXPECT_TRUE(answered.has(what)) << body << " got " << answered.body;
    EXPECT_TRUE(answered.has(R"("code":"E.PROTO.)")) << answered.body;
  }
  EXPECT_TRUE(ask("POST", "/v1/workers/acme/w1/drain", R"({"a/b~c":1})").has("/a~1b~0c"));
  EXPECT_EQ(control->core().outbox().size(), 0U);
}

TEST_F(AdminApiTest, TakesACommandOfTheLargestSizeByteForByte) {
  start();
  open_worker("w1");
  const std::string payload = "{ \"x\" :\"" + std::string(limits::kCommandPayloadBytesMax - 10, 'x') + "\"}";
  ASSERT_EQ(payload.size(), limits::kCommandPayloadBytesMax);
  const Answered taken = ask("POST", "/v1/workers/acme/w1/commands",
                             R"({"id":"big","type":"biz.echo","payload":)" + payload + "}");
  EXPECT_EQ(taken.status, 202) << taken.body;
  EXPECT_TRUE(taken.head_has("location: /v1/commands/acme/big"));
  const Answered shown = ask("GET", "/v1/commands/acme/big");
  EXPECT_TRUE(shown.has(payload));
  const Answered larger = ask("POST", "/v1/workers/acme/w1/commands",
                              R"({"type":"biz.echo","payload":{ )" + payload.substr(1) + "}");
  EXPECT_EQ(larger.status, 413) << larger.body;
  EXPECT_TRUE(larger.has("E.LIMIT.FRAME"));
}

TEST_F(AdminApiTest, AnswersARepeatedSubmissionOnceAndADifferentOneWithAConflict) {
  start();
  const std::string body = R"({"id":"a","type":"biz.echo","payload":{"n":1}})";
  EXPECT_TRUE(ask("POST", "/v1/workers/acme/w1/commands", body).has(R"("repeated":false)"));
  EXPECT_TRUE(ask("POST", "/v1/workers/acme/w1/commands", body).has(R"("repeated":true)"));
  EXPECT_EQ(
      ask("POST", "/v1/workers/acme/w1/commands", R"({"id":"a","type":"biz.echo","payload":{}})").status,
      409);
}

TEST_F(AdminApiTest, ListsCommandsByStateAndWorkerInPages) {
  start();
  const SessionRef session = open_worker("w1");
  for (const std::string id : {"a", "b", "c"}) {
    ask("POST", "/v1/workers/acme/w1/commands",
        R"({"id":")" + id + R"(","type":"biz.echo","payload":{"secret":1}})");
  }
  ask("POST", "/v1/workers/acme/absent/commands", R"({"id":"d","type":"biz.echo","payload":{}})");
  deliver_result(session, "b", R"({"answer":42})");
  ASSERT_TRUE(runner.run_until([&] {
    return control->core().outbox().view({TenantId{"acme"}, "b"})->state == CommandState::Done;
  }));
  const Answered done = ask("GET", "/v1/commands?state=done");
  EXPECT_TRUE(done.has(R"("id":"b")"));
  EXPECT_FALSE(done.has(R"("id":"a")"));
  EXPECT_FALSE(done.has("answer")) << "a list carries no payloads";
  EXPECT_TRUE(ask("GET", "/v1/commands?state=waiting").has(R"("worker":"absent")"));
  const Answered page = ask("GET", "/v1/commands?worker=w1&limit=2");
  EXPECT_TRUE(page.has(R"("id":"b")"));
  EXPECT_FALSE(page.has(R"("id":"a")")) << "the newest first";
  EXPECT_TRUE(page.has(R"("next":2)"));
  const Answered rest = ask("GET", "/v1/commands?worker=w1&limit=2&after=2");
  EXPECT_TRUE(rest.has(R"("id":"a")"));
  EXPECT_FALSE(rest.has("next"));
  EXPECT_EQ(ask("GET", "/v1/commands?state=lost").status, 400);
  EXPECT_TRUE(ask("GET", "/v1/commands/acme/b").has(R"("payload":{"answer":42})"));
  EXPECT_EQ(ask("GET", "/v1/commands/acme/nothing").status, 404);
}

TEST_F(AdminApiTest, HoldsARequestUntilTheCommandHasItsOutcome) {
  start();
  const SessionRef session = open_worker("w1");
  ask("POST", "/v1/workers/acme/w1/commands", R"({"id":"a","type":"biz.echo","payload":{}})");
  RawClient client = connect();
  client.send(request("GET", "/v1/commands/acme/a?wait_ms=20000"));
  const std::uint64_t before = http->counters().requests;
  ASSERT_TRUE(runner.run_until([&] { return http->counters().requests == before + 1; }));
  EXPECT_TRUE(client.is_quiet());
  deliver_result(session, "a", R"({"answer":42})");
  const auto answered = client.receive();
  ASSERT_TRUE(answered.has_value());
  EXPECT_TRUE(answered->has(R"("state":"done")")) << answered->body;
  EXPECT_TRUE(answered->has(R"({"answer":42})"));
}

TEST_F(AdminApiTest, AnswersAWaitThatIsOverWithHowThingsStand) {
  start();
  ask("POST", "/v1/workers/acme/w1/commands", R"({"id":"a","type":"biz.echo","payload":{}})");
  EXPECT_TRUE(ask("GET", "/v1/commands/acme/a?wait_ms=30").has(R"("state":"waiting")"));
  EXPECT_EQ(ask("GET", "/v1/commands/acme/a?wait_ms=60001").status, 400);
  RawClient client = connect();
  client.send(request("GET", "/v1/commands/acme/a?wait_ms=60000"));
  const std::uint64_t before = http->counters().requests;
  ASSERT_TRUE(runner.run_until([&] { return http->counters().requests == before + 1; }));
  api->start_draining();
  EXPECT_TRUE(client.receive()->has(R"("state":"waiting")"));
}

TEST_F(AdminApiTest, ListsMessagesThatAnswerNoCommand) {
  start();
  const SessionRef session = open_worker("w1");
  for (const char* id : {"m1", "m2"}) {
    say(session, Delivered{seq++, Message{{.type = "biz.note", .id = id, .payload = R"({"n":1})"}}});
  }
  ASSERT_TRUE(runner.run_until([&] {
    std::size_t stored = 0;
    control->core().inbox().for_each({}, [&](const InboxRecord&) { ++stored; });
    return stored == 2;
  }));
  const Answered all = ask("GET", "/v1/messages?worker=w1");
  EXPECT_TRUE(all.has(R"("id":"m2")"));
  EXPECT_TRUE(all.has(R"("payload":{"n":1})"));
  EXPECT_TRUE(ask("GET", "/v1/messages?limit=1").has(R"("next":1)"));
  EXPECT_FALSE(ask("GET", "/v1/messages?tenant=other").has("m1"));
}

TEST_F(AdminApiTest, SaysThatItIsNotReadyWhileTheStoreRefusesOrItDrains) {
  image->bytes_max = 10;
  start();
  const Answered full =
      ask("POST", "/v1/workers/acme/w1/commands", R"({"id":"a","type":"biz.echo","payload":{}})");
  EXPECT_EQ(full.status, 507) << full.body;
  EXPECT_TRUE(full.has("E.STORE.FULL"));
  EXPECT_EQ(ask("GET", "/readyz").status, 503);
  EXPECT_EQ(ask("GET", "/healthz").status, 200);
  image->bytes_max = 1'000'000;
  start();
  EXPECT_EQ(ask("GET", "/readyz").status, 200);
  api->start_draining();
  EXPECT_EQ(ask("GET", "/readyz").status, 503);
}

TEST_F(AdminApiTest, CountsPendingCommandsInItsMetrics) {
  start();
  ask("POST", "/v1/workers/acme/w1/commands", R"({"id":"a","type":"biz.echo","payload":{}})");
  const Answered metrics_text = ask("GET", "/metrics");
  EXPECT_EQ(metrics_text.status, 200);
  EXPECT_TRUE(metrics_text.head_has("text/plain; version=0.0.4"));
  EXPECT_TRUE(metrics_text.has("windlass_commands_pending 1"));
}

}  // namespace
}  // namespace windlass::testing
