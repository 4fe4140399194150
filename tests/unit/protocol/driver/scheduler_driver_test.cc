// What a scheduler's loop decides by itself: how large a message may be before it is looked at.
#include "protocol/driver/scheduler_driver.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "protocol/codec/encode.h"
#include "tests/support/lone_scheduler.h"

namespace windlass {
namespace {

using testing::LoneScheduler;

class FixedClock final : public Clock {
 public:
  Now now() const override { return {Instant{seconds{1}}, WallTime{milliseconds{1'700'000'000'000}}}; }
};

class NoAlarm final : public Alarm {
 public:
  void set(std::optional<Instant>) override {}
};

class Recorder final : public Transport {
 public:
  SendStatus send(BytesView message, MessageKind) override {
    sent.emplace_back(message);
    return SendStatus::Sent;
  }
  void set_message_bytes_max(std::size_t bytes) override { message_bytes_max = bytes; }
  void close(std::uint16_t code, std::string_view) override { closed_with = code; }

  std::vector<std::string> sent;
  std::uint16_t closed_with = 0;
  std::size_t message_bytes_max = limits::kFrameBytesBeforeAuthMax;
};

class SchedulerDriverTest : public ::testing::Test {
 protected:
  SchedulerDriverTest() { driver_.on_opened(kConnection, transport_, {}); }

  void say(FrameBody body) {
    Frame frame;
    const std::string id = testing::numbered("x", said_++);
    frame.id = id;
    frame.ts = clock_.now().wall;
    frame.tenant = "acme";
    frame.sender_id = "i-1";
    frame.body = std::move(body);
    std::string text;
    const MessageKind kind = encode(frame, Revision::Two, text);
    driver_.on_message(kConnection, text, kind);
    driver_.flush();
  }

  void say_text(std::string_view text) {
    driver_.on_message(kConnection, text, MessageKind::Text);
    driver_.flush();
  }

  bool was_sent(std::string_view text) const {
    for (const std::string& message : transport_.sent) {
      if (message.find(text) != std::string::npos) return true;
    }
    return false;
  }

  static constexpr ConnectionId kConnection{1};
  SessionConfig config_ = [] {
    SessionConfig config;
    config.frame_bytes_max = 64 * 1024;
    return config;
  }();
  testing::AdmitAll admission_;
  TokenAuthority tokens_ = testing::test_tokens();
  SchedulerEndpoint endpoint_{{.scheduler_id = "sched"}, config_, admission_, tokens_, 7};
  Decoder decoder_;
  FixedClock clock_;
  NoAlarm alarm_;
  SchedulerDriver driver_{endpoint_, decoder_, clock_, alarm_};
  Recorder transport_;
  std::uint64_t said_ = 0;
};

// A registration whose text is larger than what a stranger may send.
struct LargeRegistration {
  LargeRegistration() {
    body = LoneScheduler::registration();
    body.manifests.push_back({"p", "1", manifest});
  }
  std::string manifest =
      R"({"files":")" + std::string(limits::kFrameBytesBeforeAuthMax + 4'000, 'f') + R"("})";
  Register body;
};

TEST_F(SchedulerDriverTest, TakesALargeRegistrationOfAnAuthenticatedWorker) {
  const LargeRegistration large;
  say(LoneScheduler::handshake());
  say(large.body);
  //= HSK-12
  EXPECT_TRUE(was_sent("control.session.accept"));
  EXPECT_EQ(transport_.closed_with, 0);
  EXPECT_EQ(endpoint_.sessions(), 1U);
}

TEST_F(SchedulerDriverTest, HoldsAnAuthenticatedWorkerToTheFrameSizeOfItsAccept) {
  say(LoneScheduler::handshake());
  //= LIM-1
  EXPECT_EQ(transport_.message_bytes_max, config_.frame_bytes_max);
  say(LoneScheduler::registration());
  driver_.on_message(kConnection, std::string(config_.frame_bytes_max + 1, 'x'), MessageKind::Text);
  driver_.flush();
  EXPECT_TRUE(was_sent("E.LIMIT.FRAME"));
}

TEST_F(SchedulerDriverTest, HoldsARegistrationToTheFrameSizeThatItsAcceptWouldSay) {
  say(LoneScheduler::handshake());
  driver_.on_message(kConnection, std::string(config_.frame_bytes_max + 1, 'x'), MessageKind::Text);
  driver_.flush();
  //= LIM-10
  EXPECT_TRUE(was_sent("E.LIMIT.FRAME"));
  EXPECT_EQ(transport_.closed_with, 1011);
  EXPECT_GE(config_.frame_bytes_max, limits::kFrameBytesLeast);
}

TEST_F(SchedulerDriverTest, RefusesALargeMessageOfAStrangerBeforeItIsParsed) {
  driver_.on_message(kConnection, std::string(limits::kFrameBytesBeforeAuthMax + 1, 'x'), MessageKind::Text);
  driver_.flush();
  //= HSK-12
  EXPECT_TRUE(was_sent("E.LIMIT.FRAME")) << "what is no JSON would have another code";
  EXPECT_EQ(transport_.closed_with, 1011);
}

TEST_F(SchedulerDriverTest, JudgesAMessageOf16KiBByItsContent) {
  driver_.on_message(kConnection, std::string(limits::kFrameBytesBeforeAuthMax, 'x'), MessageKind::Text);
  driver_.flush();
  //= HSK-12
  EXPECT_TRUE(was_sent("E.PROTO.JSON"));
}

TEST_F(SchedulerDriverTest, NamesTheVersionAsWhatIsWrongWithAHandshakeOfALaterRevision) {
  say_text(
      R"({"type":"control.handshake","id":"h-1","ts":"2026-11-16T08:00:00Z","tenant":"acme",)"
      R"("sender":{"role":"worker","id":"i-1"},"payload":{"protocol":3,"auth":[{"mode":"passkey"}],"resume":true}})");
  //= HSK-2
  EXPECT_TRUE(was_sent("E.PROTO.VERSION"));
  EXPECT_TRUE(was_sent(R"("tenant":"acme")"));
  EXPECT_EQ(transport_.closed_with, 1011);
  EXPECT_FALSE(endpoint_.is_authenticated(kConnection));
}

TEST_F(SchedulerDriverTest, TakesNothingLargeAfterAHandshakeThatWasRefused) {
  const LargeRegistration large;
  Handshake wrong = LoneScheduler::handshake();
  wrong.token = "guess";
  say(wrong);
  //= HSK-12
  EXPECT_FALSE(endpoint_.is_authenticated(kConnection));
  say(large.body);
  EXPECT_FALSE(was_sent("control.session.accept"));
}

}  // namespace
}  // namespace windlass
