#include "runtime/adapters/held_exchange.h"

#include <gtest/gtest.h>

namespace windlass::runtime {
namespace {

class FakeEvents final : public HttpExchangeEvents {
 public:
  void on_body(std::string_view bytes) override { body += bytes; }
  void on_body_end() override {}
  void on_written(std::size_t bytes) override { written += bytes; }
  void on_gone() override { is_gone = true; }

  std::string body;
  std::size_t written = 0;
  bool is_gone = false;
};

class HeldExchangeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    exchange = std::make_shared<HeldExchange>(loop, "in", 1'000, [this](std::optional<HttpOutput> output) {
      ++answers;
      answer = std::move(output);
    });
    exchange->set_events(events);
  }
  // Everything that is due by now has its turn.
  void pass() {
    LoopAlarm end{loop, [this] { loop.post([this] { loop.post([this] { loop.stop(); }); }); }};
    end.set(loop.now().steady);
    loop.run();
  }
  static HttpResponse nothing() {
    HttpResponse response;
    response.status = 204;
    return response;
  }

  EventLoop loop;
  std::shared_ptr<FakeEvents> events = std::make_shared<FakeEvents>();
  std::shared_ptr<HeldExchange> exchange;
  std::optional<HttpOutput> answer;
  int answers = 0;
};

TEST_F(HeldExchangeTest, AnAnswerThatBeganAfterTheOutcomeMayTakeItsTime) {
  exchange->answer_unless_begun(Duration{0}, nothing());
  exchange->begin({200, {}, {}});
  exchange->write("first ");
  pass();
  EXPECT_FALSE(events->is_gone);
  EXPECT_EQ(answers, 0);
  exchange->write("last");
  exchange->finish();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "first last");
  pass();
  EXPECT_EQ(answers, 1);
  EXPECT_FALSE(events->is_gone);
}

TEST_F(HeldExchangeTest, AnAnswerThatBeginsAsItsTimeRunsOutIsNotCut) {
  exchange->answer_unless_begun(Duration{0}, nothing());
  // Due in the same turn, after the exchange's own: what that one posted has not run yet.
  LoopAlarm begins{loop, [this] { exchange->begin({200, {}, {}}); }};
  begins.set(loop.now().steady);
  pass();
  EXPECT_FALSE(events->is_gone);
  EXPECT_EQ(answers, 0);
}

TEST_F(HeldExchangeTest, WithoutABeginningItIsAnsweredInItsPlace) {
  exchange->answer_unless_begun(Duration{0}, nothing());
  pass();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 204);
  EXPECT_TRUE(events->is_gone);
}

TEST_F(HeldExchangeTest, WhatEndedIsNotAnsweredAgain) {
  exchange->answer_unless_begun(Duration{0}, nothing());
  exchange->abort();
  EXPECT_EQ(answers, 1);
  EXPECT_EQ(exchange.use_count(), 1) << "the alarm does not keep it";
  pass();
  EXPECT_EQ(answers, 1);
  EXPECT_FALSE(events->is_gone);
}

}  // namespace
}  // namespace windlass::runtime
