// The admin listener against peers that are slow, large, wrong or unknown.
#include <gtest/gtest.h>

#include "tests/integration/scheduler/shell/admin_world.h"

namespace windlass::testing {
namespace {

class AdminHttpTest : public AdminWorld {};

TEST_F(AdminHttpTest, AnswersManyRequestsOnOneConnection) {
  start();
  RawClient client = connect();
  for (int i = 0; i < 3; ++i) {
    client.send(request("GET", "/healthz"));
    const auto answered = client.receive();
    ASSERT_TRUE(answered.has_value());
    EXPECT_EQ(answered->status, 200);
    EXPECT_FALSE(answered->head_has("connection: close"));
  }
  EXPECT_EQ(http->counters().accepted, 1U);
  EXPECT_EQ(http->counters().requests, 3U);
}

TEST_F(AdminHttpTest, AnswersPipelinedRequestsInOrder) {
  start();
  RawClient client = connect();
  client.send(request("GET", "/healthz") + request("GET", "/nothing") + request("GET", "/readyz"));
  EXPECT_EQ(client.receive()->status, 200);
  EXPECT_EQ(client.receive()->status, 404);
  EXPECT_EQ(client.receive()->status, 200);
}

TEST_F(AdminHttpTest, TakesARequestInSingleBytes) {
  start();
  RawClient client = connect();
  for (const char c : request("GET", "/healthz")) client.send(std::string_view{&c, 1});
  EXPECT_EQ(client.receive()->status, 200);
}

TEST_F(AdminHttpTest, ClosesWhenTheClientWishes) {
  start();
  RawClient client = connect();
  client.send(request("GET", "/healthz", {}, "Connection: close\r\n"));
  const auto answered = client.receive();
  ASSERT_TRUE(answered.has_value());
  EXPECT_TRUE(answered->head_has("connection: close"));
  EXPECT_TRUE(client.ends());
}

TEST_F(AdminHttpTest, AnswersAClientThatHasFinishedSending) {
  start();
  RawClient client = connect();
  client.send(request("GET", "/healthz"));
  client.finish_sending();
  EXPECT_EQ(client.receive()->status, 200);
  EXPECT_TRUE(client.ends());
}

TEST_F(AdminHttpTest, LeavesOutTheBodyOfAHead) {
  start();
  const Answered answered = ask("HEAD", "/healthz");
  EXPECT_EQ(answered.status, 200);
  EXPECT_FALSE(answered.head_has("content-length: 0"));
}

TEST_F(AdminHttpTest, TakesNoBodyWithoutAGoodToken) {
  start();
  for (const std::string header : {"", "Authorization: Bearer wrong\r\n", "Authorization: Basic Zm9v\r\n"}) {
    RawClient client = connect();
    // The body is announced and never sent: the answer must not wait for it.
    client.send("POST /v1/workers/a/b/drain HTTP/1.1\r\nHost: x\r\n" + header +
                "Content-Length: 500\r\n\r\n");
    const auto answered = client.receive();
    ASSERT_TRUE(answered.has_value());
    EXPECT_EQ(answered->status, 401);
    EXPECT_TRUE(answered->head_has("www-authenticate: bearer"));
    EXPECT_TRUE(answered->has("E.AUTH."));
    EXPECT_FALSE(answered->has("wrong")) << "a token is never shown";
    EXPECT_TRUE(client.ends());
  }
  EXPECT_EQ(http->counters().unauthorized, 1U);
}

TEST_F(AdminHttpTest, TakesAnyOfItsTokensAndNoneTwice) {
  start();
  for (const std::string token : {"another-token", kToken}) {
    RawClient client = connect();
    client.send(request("GET", "/v1/workers", {}, "authorization: bearer " + token + "\r\n"));
    EXPECT_EQ(client.receive()->status, 200);
  }
  RawClient client = connect();
  const std::string line = std::string{"Authorization: Bearer "} + kToken + "\r\n";
  client.send(request("GET", "/v1/workers", {}, line + line));
  EXPECT_EQ(client.receive()->status, 401);
  http->set_tokens({sha256("fresh")});
  EXPECT_EQ(ask("GET", "/v1/workers").status, 401) << "a token that was taken away is void at once";
}

TEST_F(AdminHttpTest, RefusesWhatIsTooLargeBeforeItIsThere) {
  start();
  RawClient body = connect();
  body.send(request("POST", "/v1/workers/a/b/drain", {},
                    std::string{"Authorization: Bearer "} + kToken + "\r\nContent-Length: 2000000\r\n"));
  EXPECT_EQ(body.receive()->status, 413);
  EXPECT_TRUE(body.ends());

  RawClient chunked = connect();
  chunked.send(
      request("POST", "/v1/workers/a/b/drain", {},
              std::string{"Authorization: Bearer "} + kToken + "\r\nTransfer-Encoding: chunked\r\n"));
  for (int i = 0; i < 20; ++i) chunked.send("10000\r\n" + std::string(0x10000, ' ') + "\r\n");
  EXPECT_EQ(chunked.receive()->status, 413);

  RawClient head = connect();
  head.send("GET /healthz HTTP/1.1\r\nX-Large: " + std::string(40'000, 'x'));
  EXPECT_EQ(head.receive()->status, 431);
  EXPECT_TRUE(head.ends());
}

TEST_F(AdminHttpTest, RefusesWhatIsNotHttp) {
  start();
  for (const std::string text : {"\x16\x03\x01\x02\x00\x01\x00\x01", "hello\r\n\r\n",
                                 "GET / HTTP/9.9\r\n\r\n", "POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n"}) {
    RawClient client = connect();
    client.send(text + "\r\n\r\n");
    EXPECT_EQ(client.receive()->status, 400) << text;
    EXPECT_TRUE(client.ends());
  }
}

TEST_F(AdminHttpTest, TellsAClientThatAsksToGoOn) {
  start();
  open_worker("w1");
  RawClient client = connect();
  const std::string body = R"({"reason":"x"})";
  client.send(
      "POST /v1/workers/acme/w1/drain HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nAuthorization: Bearer " +
      std::string{kToken} + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n");
  EXPECT_EQ(client.receive()->status, 100);
  client.send(body);
  EXPECT_EQ(client.receive()->status, 202);
}

TEST_F(AdminHttpTest, GivesUpOnSlowPeersAtEveryStage) {
  http_options.head_time = milliseconds{60};
  http_options.body_time = milliseconds{60};
  http_options.idle_time = milliseconds{60};
  start();
  RawClient silent = connect();
  RawClient slow_head = connect();
  slow_head.send("GET /healthz HTTP/1.1\r\nX-A: ");
  RawClient slow_body = connect();
  slow_body.send(request("POST", "/v1/workers/a/b/drain", {},
                         std::string{"Authorization: Bearer "} + kToken + "\r\nContent-Length: 100\r\n") +
                 "{");
  RawClient idle = connect();
  idle.send(request("GET", "/healthz"));
  EXPECT_EQ(idle.receive()->status, 200);
  EXPECT_EQ(slow_head.receive()->status, 408);
  EXPECT_EQ(slow_body.receive()->status, 408);
  EXPECT_TRUE(silent.ends());
  EXPECT_TRUE(idle.ends());
  for (RawClient* client : {&silent, &slow_head, &slow_body}) client->reset();
  EXPECT_TRUE(runner.run_until([&] { return http->connections() == 0; }));
}

TEST_F(AdminHttpTest, LetsTheOperatorInWhenSlowPeersFillTheHouse) {
  http_options.connections_max = 4;
  start();
  std::vector<std::unique_ptr<RawClient>> crowd;
  for (int i = 0; i < 20; ++i) {
    crowd.push_back(std::make_unique<RawClient>(runner, http->port()));
    crowd.back()->send("GET /hea");
  }
  EXPECT_EQ(ask("GET", "/healthz").status, 200);
  EXPECT_LE(http->connections(), 4U);
  EXPECT_GE(http->counters().evicted, 16U);
}

TEST_F(AdminHttpTest, ForgetsAnAnswerWhoseConnectionIsGone) {
  start();
  open_worker("w1");
  ASSERT_EQ(
      ask("POST", "/v1/workers/acme/w1/commands", R"({"id":"c","type":"biz.echo","payload":{}})").status,
      202);
  RawClient client = connect();
  client.send(request("GET", "/v1/commands/acme/c?wait_ms=100"));
  ASSERT_TRUE(runner.run_until([&] { return http->counters().requests == 2; }));
  client.reset();
  bool is_over = false;
  LoopAlarm later{loop, [&] { is_over = true; }};
  later.set(loop.now().steady + milliseconds{150});
  EXPECT_TRUE(runner.run_until([&] { return is_over && http->connections() == 0; }));
}

TEST_F(AdminHttpTest, ListensInClearTextOnlyWhereNobodyListensIn) {
  start();
  HttpListenerOptions options;
  options.address = "0.0.0.0";
  const auto refused = HttpListener::listen(loop, options, *api);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().reason.find("clear text"), std::string::npos);
  options.clear_text_anywhere = true;
  EXPECT_TRUE(HttpListener::listen(loop, options, *api).has_value());
}

}  // namespace
}  // namespace windlass::testing
