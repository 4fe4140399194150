// The desk with a channel whose queue a test makes full: what becomes of a streamed invocation.
#include "runtime/shell/core_desk.h"

#include <gtest/gtest.h>

#include "protocol/function_rpc/http_stream.h"
#include "protocol/function_rpc/peek.h"
#include "tests/integration/runtime/shell/worker_script.h"

namespace windlass::testing {
namespace {

using runtime::SendStatus;

// Takes `room` messages, the last of them with Blocked.
class NarrowChannel final : public runtime::WorkerChannel {
 public:
  SendStatus send(std::string bytes) override {
    if (bytes.size() > bytes_max) return SendStatus::TooLarge;
    if (room == 0) return SendStatus::Full;
    sent.push_back(std::move(bytes));
    return --room == 0 ? SendStatus::Blocked : SendStatus::Sent;
  }
  void close(bool, std::string_view) override {}

  std::size_t room = 1'000;
  std::size_t bytes_max = 1'000'000;
  std::vector<std::string> sent;
};

class FakeStream final : public runtime::InvocationStream {
 public:
  std::string first_message(const runtime::InvocationId& id) override {
    return function_rpc::write_http_stream({.invocation_id = id.value(), .data = "head"});
  }
  void on_begun() override { ++begun; }
  void on_piece(std::string_view) override {}
  void on_lost(std::string_view reason) override { lost = reason; }

  int begun = 0;
  std::string lost;
};

class CoreDeskTest : public ::testing::Test {
 protected:
  void SetUp() override {
    channel_id = desk.on_channel_opened(
        channel, {.kind = runtime::ChannelKind::Session, .identity = "i-1", .is_agent = true, .peer = "i-1"});
    say(script.start("i-1.1"));
    say(script.specialized("i-1.1", "shop"));
    ASSERT_TRUE(script.is_specialized);
  }
  void say(const std::string& bytes) {
    desk.on_channel_message(channel_id, bytes);
    desk.step();
    while (!channel.sent.empty()) {
      for (const std::string& asked : std::exchange(channel.sent, {})) {
        for (const std::string& said : script.answer(asked)) desk.on_channel_message(channel_id, said);
      }
      desk.step();
    }
  }
  runtime::InvocationId begin(std::size_t body_bytes = 0) {
    runtime::TriggerInput input;
    input.binding = "event";
    input.data = {runtime::Datum::Kind::Text, std::string(body_bytes, 'x')};
    auto taken = desk.submit({.job_host = {"shop", "m1"},
                              .function = "work",
                              .body = std::make_shared<const std::string>(write_invocation_body(input)),
                              .source = "test",
                              .stream = stream},
                             [this](const runtime::Outcome& outcome, const std::vector<std::string>&) {
                               outcomes.push_back(outcome);
                             });
    desk.step();
    return *std::move(taken);
  }
  void writable(std::size_t room) {
    channel.room = room;
    desk.on_channel_news(channel_id, runtime::ChannelNews::Writable, {});
    desk.step();
  }
  std::string piece(const std::string& body) const {
    return function_rpc::write_http_stream({.invocation_id = "i", .data = body});
  }
  // What the agent got, in order: "invocation", or the body of a piece.
  std::vector<std::string> got() const {
    std::vector<std::string> all;
    for (const std::string& each : channel.sent) {
      const auto peeked = function_rpc::peek(each);
      const bool is_piece = peeked && peeked->content == function_rpc::Content::HttpStream;
      all.emplace_back(is_piece ? std::string{function_rpc::read_http_stream(peeked->body)->data}
                                : "invocation");
    }
    return all;
  }
  using Texts = std::vector<std::string>;

  std::unique_ptr<JsonLog> log = *JsonLog::open({.file = "/dev/null"});
  EventLoop loop;
  runtime::RuntimeMetrics metrics;
  NarrowChannel channel;
  WorkerScript script;
  std::shared_ptr<FakeStream> stream = std::make_shared<FakeStream>();
  std::vector<runtime::Outcome> outcomes;
  runtime::CoreDesk desk{{}, {}, loop, metrics, *log, 7, {.grants = {{"", "*", "*"}}}};
  runtime::ChannelId channel_id{0};
};

TEST_F(CoreDeskTest, AQueueThatTheHeadFillsGetsTheInvocationWhenThereIsRoom) {
  channel.room = 1;
  begin();
  EXPECT_EQ(got(), (Texts{"head"}));
  EXPECT_EQ(stream->begun, 1);
  EXPECT_TRUE(outcomes.empty());
  writable(10);
  EXPECT_EQ(got(), (Texts{"head", "invocation"}));
  EXPECT_TRUE(outcomes.empty());
}

TEST_F(CoreDeskTest, AFullQueueHoldsPiecesBackAndFailsNoStream) {
  channel.room = 2;
  const auto id = begin();
  for (const char* each : {"a", "b", "c"}) desk.stream_send(id, piece(each));
  desk.stream_send(id, piece("abort"));
  desk.stream_over(id);
  desk.step();
  EXPECT_EQ(got(), (Texts{"head", "invocation"}));
  EXPECT_EQ(stream->lost, "");
  writable(2);
  EXPECT_EQ(got(), (Texts{"head", "invocation", "a", "b"}));
  writable(10);
  EXPECT_EQ(got(), (Texts{"head", "invocation", "a", "b", "c", "abort"}));
}

TEST_F(CoreDeskTest, AnInvocationThatIsTooLargeEndsAndItsAgentCanBeTold) {
  channel.bytes_max = 10'000;
  const auto id = begin(20'000);
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_EQ(outcomes.front().cause, runtime::Cause::TooLarge);
  desk.stream_send(id, piece("abort"));
  EXPECT_EQ(got(), (Texts{"head", "abort"}));
}

TEST_F(CoreDeskTest, AnInvocationThatWaitedAndIsTooLargeEndsLikewise) {
  channel.bytes_max = 10'000;
  channel.room = 1;
  begin(20'000);
  EXPECT_TRUE(outcomes.empty());
  writable(10);
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_EQ(outcomes.front().cause, runtime::Cause::TooLarge);
}

TEST_F(CoreDeskTest, AStreamWhoseHeadWentOutIsNotSentAgain) {
  begin();
  EXPECT_EQ(got(), (Texts{"head", "invocation"}));
  channel.sent.clear();
  rpc::StreamingMessage ended;
  ended.mutable_worker_ended()->set_worker_id("i-1.1");
  say(ended.SerializeAsString());
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_NE(outcomes.front().settlement, runtime::Settlement::Complete);
  EXPECT_EQ(outcomes.front().tries, 1U);
}

}  // namespace
}  // namespace windlass::testing
