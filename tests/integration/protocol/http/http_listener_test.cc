// A listener that is open to everybody, against clients that send much, slowly or nothing, and that go away.
#include "protocol/http/http_listener.h"

#include <gtest/gtest.h>

#include "tests/support/raw_http_client.h"

namespace windlass::testing {
namespace {

struct Deaf final : HttpExchangeEvents {
  void on_body(std::string_view /*bytes*/) override {}
  void on_body_end() override {}
  void on_written(std::size_t /*bytes*/) override {}
  void on_gone() override {}
};

// Keeps what it is asked until the test answers.
class KeepingHandler final : public HttpHandler {
 public:
  std::optional<HttpResponse> refuse(const HttpRequest& head) override {
    heads.push_back(head);
    return refusal;
  }
  void handle(HttpRequest request, HttpAnswer answer) override {
    requests.push_back(std::move(request));
    answers.push_back(std::move(answer));
  }
  void handle_gone(std::uint64_t request) override { gone.push_back(request); }
  std::shared_ptr<HttpExchangeEvents> stream(const HttpRequest& /*head*/,
                                             const std::shared_ptr<HttpExchange>& exchange) override {
    if (is_streaming) exchanges.push_back(exchange);
    return is_streaming ? std::make_shared<Deaf>() : nullptr;
  }

  bool is_streaming = false;
  std::vector<std::shared_ptr<HttpExchange>> exchanges;
  std::optional<HttpResponse> refusal;
  std::vector<HttpRequest> heads;
  std::vector<HttpRequest> requests;
  std::vector<HttpAnswer> answers;
  std::vector<std::uint64_t> gone;
};

class HttpListenerTest : public ::testing::Test {
 protected:
  HttpListenerTest() {
    options.is_open = true;
    tick.set(loop.now().steady);
  }
  void start() {
    auto listening = HttpListener::listen(loop, options, handler);
    ASSERT_TRUE(listening.has_value()) << listening.error().reason;
    http = std::move(*listening);
  }
  RawClient connect() { return RawClient{runner, http->port()}; }
  static std::string post(std::size_t announced, const std::string& body = {}) {
    return "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(announced) + "\r\n\r\n" + body;
  }
  bool has_requests(std::size_t count) {
    return runner.run_until([&] { return handler.requests.size() == count; });
  }
  void pass(Duration time) {
    bool is_over = false;
    LoopAlarm later{loop, [&] { is_over = true; }};
    later.set(loop.now().steady + time);
    ASSERT_TRUE(runner.run_until([&] { return is_over; }));
  }

  EventLoop loop;
  LoopRunner runner{loop};
  // The loop does not watch the client's side of a connection, so it looks there now and then.
  LoopAlarm tick{loop, [this] { tick.set(loop.now().steady + milliseconds{2}); }};
  KeepingHandler handler;
  HttpListenerOptions options;
  std::unique_ptr<HttpListener> http;
};

const std::string kGet = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";

TEST_F(HttpListenerTest, RefusesByTheHeadAndTakesNoBody) {
  start();
  handler.refusal = HttpResponse{404, "text/plain", "no"};
  RawClient client = connect();
  client.send(post(1000));  // never sent: the answer must not wait for it
  const auto answered = client.receive();
  ASSERT_TRUE(answered.has_value());
  EXPECT_EQ(answered->status, 404);
  EXPECT_TRUE(client.ends());
  ASSERT_EQ(handler.heads.size(), 1U);
  EXPECT_EQ(handler.heads[0].target, "/a");
  EXPECT_EQ(handler.heads[0].headers.size(), 2U);
  EXPECT_TRUE(handler.requests.empty());
}

TEST_F(HttpListenerTest, BoundsWhatAllBodiesHoldTogether) {
  options.body_bytes_max = 1000;
  options.bodies_bytes_max = 1500;
  start();
  RawClient first = connect();
  first.send(post(1000, std::string(900, 'x')));
  ASSERT_TRUE(runner.run_until([&] { return http->bodies_bytes() == 900; }));

  RawClient announced = connect();
  announced.send(post(601));
  const auto refused = announced.receive();
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->status, 503);
  EXPECT_TRUE(refused->head_has("retry-after: "));

  RawClient chunked = connect();
  chunked.send("POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  chunked.send("12c\r\n" + std::string(300, 'x') + "\r\n12d\r\n" + std::string(301, 'x') + "\r\n");
  EXPECT_EQ(chunked.receive()->status, 503);
  EXPECT_EQ(http->counters().no_room, 2U);

  first.send(std::string(100, 'x'));
  ASSERT_TRUE(has_requests(1));
  EXPECT_EQ(http->bodies_bytes(), 1000U);
  first.reset();
  ASSERT_TRUE(runner.run_until([&] { return !handler.gone.empty(); }));
  EXPECT_EQ(http->bodies_bytes(), 1000U) << "whoever works on it still has it";
  handler.answers.clear();
  EXPECT_EQ(http->bodies_bytes(), 0U);

  RawClient next = connect();
  next.send(post(1000, std::string(1000, 'x')));
  EXPECT_TRUE(has_requests(2));
}

TEST_F(HttpListenerTest, TellsOnceThatAClientIsGone) {
  start();
  RawClient leaves = connect();
  leaves.send(kGet);
  ASSERT_TRUE(has_requests(1));
  leaves.reset();
  ASSERT_TRUE(runner.run_until([&] { return handler.gone.size() == 1; }));
  EXPECT_EQ(handler.gone[0], handler.requests[0].id);
  handler.answers[0]({});
  EXPECT_TRUE(runner.run_until([&] { return http->connections() == 0; }));

  RawClient finishes = connect();
  finishes.send(kGet);
  finishes.finish_sending();
  ASSERT_TRUE(runner.run_until([&] { return handler.gone.size() == 2; }));
  EXPECT_EQ(handler.gone[1], handler.requests[1].id);
  handler.answers[1]({});
  EXPECT_EQ(finishes.receive()->status, 200) << "if it reads nevertheless, it is answered";

  RawClient stays = connect();
  stays.send(kGet);
  ASSERT_TRUE(has_requests(3));
  handler.answers[2]({});
  EXPECT_EQ(stays.receive()->status, 200);
  stays.reset();
  EXPECT_TRUE(runner.run_until([&] { return http->connections() == 0; }));
  EXPECT_EQ(handler.gone.size(), 2U);
}

TEST_F(HttpListenerTest, GivesUpARequestThatIsNotAnsweredInTime) {
  options.answer_time = milliseconds{30};
  start();
  RawClient client = connect();
  client.send(kGet);
  EXPECT_EQ(client.receive()->status, 504);
  ASSERT_EQ(handler.gone.size(), 1U);
  EXPECT_EQ(handler.gone[0], handler.requests[0].id);
}

TEST_F(HttpListenerTest, CountsWhoIsOwedAnAnswerOrItsRest) {
  start();
  RawClient client = connect();
  client.send(kGet);
  ASSERT_TRUE(has_requests(1));
  EXPECT_EQ(http->busy(), 1U);
  http->stop_listening();
  handler.answers[0]({.content_type = {}, .body = std::string(16 * 1024 * 1024, 'x')});
  EXPECT_EQ(http->busy(), 1U) << "it is not written yet";
  const auto answered = client.receive();
  ASSERT_TRUE(answered.has_value());
  EXPECT_TRUE(answered->head_has("connection: close")) << "no further request is wanted";
  EXPECT_TRUE(runner.run_until([&] { return http->busy() == 0; }));
}

TEST_F(HttpListenerTest, GivesABodyTheTimeThatItsBytesNeed) {
  options.body_time = milliseconds{40};
  options.bytes_per_second_least = 1000;
  start();
  RawClient client = connect();
  client.send(post(1000, std::string(900, 'x')));
  RawClient slow = connect();
  slow.send(post(1000, "x"));
  EXPECT_EQ(slow.receive()->status, 408);
  pass(milliseconds{100});
  client.send(std::string(100, 'x'));
  EXPECT_TRUE(has_requests(1));
}

// A function may say nothing for a while, and its client has taken all there is.
TEST_F(HttpListenerTest, AStreamThatPausesIsNotASlowReader) {
  options.write_time = milliseconds{40};
  handler.is_streaming = true;
  start();
  RawClient client = connect();
  client.send(kGet);
  ASSERT_TRUE(runner.run_until([&] { return handler.exchanges.size() == 1; }));
  HttpExchange& exchange = *handler.exchanges[0];
  exchange.begin({.body_bytes = 10});
  exchange.write("first");
  pass(milliseconds{200});
  EXPECT_EQ(http->connections(), 1U);
  exchange.write(" last");
  exchange.finish();
  const auto answered = client.receive();
  ASSERT_TRUE(answered.has_value());
  EXPECT_EQ(answered->body, "first last");
}

TEST_F(HttpListenerTest, SaysThatAnAnswerBeforeTheEndOfItsRequestIsTheLast) {
  handler.is_streaming = true;
  start();
  RawClient client = connect();
  client.send(post(1000, "begun"));
  ASSERT_TRUE(runner.run_until([&] { return handler.exchanges.size() == 1; }));
  handler.exchanges[0]->begin({.status = 403, .body_bytes = 0});
  handler.exchanges[0]->finish();
  const auto answered = client.receive();
  ASSERT_TRUE(answered.has_value());
  EXPECT_EQ(answered->status, 403);
  EXPECT_TRUE(answered->head_has("connection: close"));
}

TEST_F(HttpListenerTest, EndsAReaderThatIsSlowerThanTheLeastPace) {
  options.write_time = milliseconds{40};
  options.bytes_per_second_least = 1024 * 1024 * 1024;
  start();
  RawClient client = connect();
  client.send(kGet);
  ASSERT_TRUE(has_requests(1));
  handler.answers[0]({.content_type = {}, .body = std::string(32 * 1024 * 1024, 'x')});
  Instant next = loop.now().steady;
  EXPECT_TRUE(runner.run_until([&] {
    if (loop.now().steady >= next) {
      client.read_slowly(128 * 1024);
      next = loop.now().steady + milliseconds{2};
    }
    return http->busy() == 0;
  }));
  EXPECT_EQ(http->counters().timed_out, 1U);
}

}  // namespace
}  // namespace windlass::testing
