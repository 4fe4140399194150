// The worker's loop with a transport of the test's: who gets to say what when the link is slow, and what
// becomes of connections that nobody waits for any more.
#include "protocol/driver/worker_driver.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/session_pair.h"

namespace windlass {
namespace {

class FakeTransport final : public Transport {
 public:
  SendStatus send(BytesView message, MessageKind) override {
    sent.emplace_back(message);
    return full ? SendStatus::Blocked : SendStatus::Sent;
  }
  void set_message_bytes_max(std::size_t bytes) override { message_bytes_max = bytes; }
  void close(std::uint16_t code, std::string_view) override { closed_with = code; }

  bool has_sent(std::string_view type) const {
    for (const std::string& each : sent) {
      if (each.find("\"type\":\"" + std::string{type} + "\"") != std::string::npos) return true;
    }
    return false;
  }

  bool full = false;
  std::size_t message_bytes_max = 0;
  std::vector<std::string> sent;
  std::optional<std::uint16_t> closed_with;
};

struct FakeShell final : Clock, Alarm, Dialer {
  Now now() const override { return {Instant{elapsed}, WallTime{milliseconds{1'700'000'000'000}}}; }
  void set(std::optional<Instant> deadline) override { alarm = deadline; }
  void dial(ConnectionId id) override { dialled = id; }

  Duration elapsed = seconds{1};
  std::optional<Instant> alarm;
  ConnectionId dialled{0};
};

class WorkerDriverTest : public ::testing::Test {
 protected:
  void SetUp() override {
    endpoint.start(shell.now());
    driver.flush(true);
  }

  void connect() {
    driver.on_opened(shell.dialled, transport);
    driver.flush(true);
  }

  void wake() {
    shell.elapsed = std::max(shell.elapsed, shell.alarm->time_since_epoch());
    driver.on_alarm();
    driver.flush(true);
  }

  // Whatever the worker asks for is granted.
  void accept() {
    const auto answer = [&](std::string_view body) {
      driver.on_message(shell.dialled,
                        std::string{R"({"id":"~g","ts":"2026-01-01T00:00:00Z","tenant":"acme",)"} +
                            R"("sender":{"role":"scheduler","id":"s"},)" + std::string{body},
                        MessageKind::Text);
      driver.flush(true);
    };
    answer(R"("type":"control.ack","payload":{"ok":true,"for":"~h1-0"}})");
    answer(R"("type":"control.ack","payload":{"ok":true,"for":"~h1-1"}})");
    answer(
        R"("type":"control.session.accept","ack":{"request":true},"payload":{"session_id":"s-1",)"
        R"("session_token":"dG9r.c2ln","worker_instance_id":"i-1","resumed":false,"earliest_retained_seq":0,)"
        R"("recv_window":16,"recv_window_bytes":1000000,"heartbeat_interval_ms":30000,"resume_ttl_ms":300000,)"
        R"("frame_bytes_max":1048576}})");
  }

  FakeShell shell;
  Decoder decoder;
  SessionConfig config;
  WorkerEndpoint endpoint{testing::worker_options(), config, 1};
  WorkerDriver driver{endpoint, decoder, shell, shell, shell};
  FakeTransport transport;
};

TEST_F(WorkerDriverTest, SaysItsResetThroughAFullTransport) {
  connect();
  accept();
  ASSERT_EQ(endpoint.state(), SessionState::Ready);
  transport.full = true;
  ASSERT_TRUE(endpoint.send(testing::message("m"), shell.now()));
  driver.flush(true);
  endpoint.stop("no more", shell.now());
  driver.flush(true);
  //= RST-1
  EXPECT_TRUE(transport.has_sent("control.reset"));
  EXPECT_TRUE(transport.closed_with.has_value());
}

TEST_F(WorkerDriverTest, TakesMessagesAsLargeAsItsOwnLimit) {
  connect();
  //= LIM-1
  EXPECT_EQ(transport.message_bytes_max, config.frame_bytes_max);
}

TEST_F(WorkerDriverTest, HoldsDataBackWhileTheTransportIsFull) {
  connect();
  accept();
  transport.full = true;
  ASSERT_TRUE(endpoint.send(testing::message("m1"), shell.now()));
  driver.flush(true);
  const std::size_t before = transport.sent.size();
  ASSERT_TRUE(endpoint.send(testing::message("m2"), shell.now()));
  driver.flush(true);
  EXPECT_EQ(transport.sent.size(), before);
  transport.full = false;
  driver.on_writable(shell.dialled);
  driver.flush(true);
  EXPECT_GT(transport.sent.size(), before);
}

//= RTX-2
TEST_F(WorkerDriverTest, SendsNothingAgainAfterATurnThatCouldNotBeWritten) {
  connect();
  accept();
  ASSERT_TRUE(endpoint.send(testing::message("m"), shell.now()));
  driver.flush(true);
  const std::size_t before = transport.sent.size();
  driver.on_blocked(shell.dialled);
  for (int i = 0; i < 20; ++i) {
    shell.elapsed += milliseconds{100};
    driver.on_alarm();
    driver.flush(true);
  }
  EXPECT_EQ(transport.sent.size(), before);
  driver.on_writable(shell.dialled);
  driver.flush(true);
  for (int i = 0; i < 20 && transport.sent.size() == before; ++i) wake();
  EXPECT_GT(transport.sent.size(), before);
}

TEST_F(WorkerDriverTest, DoesNotBlockForAnOlderConnection) {
  connect();
  accept();
  const ConnectionId older = shell.dialled;
  driver.on_closed(older, 1006, "");
  driver.flush(true);
  wake();  // the backoff is over
  ASSERT_NE(shell.dialled, older);
  driver.on_blocked(older);
  transport.sent.clear();
  connect();
  EXPECT_TRUE(transport.has_sent("control.handshake"));
}

TEST_F(WorkerDriverTest, ClosesAConnectionThatOpensAfterItWasGivenUp) {
  const ConnectionId slow = shell.dialled;
  wake();  // the stage's deadline
  ASSERT_EQ(endpoint.state(), SessionState::Backoff);
  driver.on_opened(slow, transport);
  driver.flush(true);
  EXPECT_TRUE(transport.sent.empty());
  EXPECT_EQ(transport.closed_with, kCloseNormal);
}

}  // namespace
}  // namespace windlass
