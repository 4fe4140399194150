// The listener for agents by itself: what becomes of a session whose channel is closed.
#include "runtime/shell/agent_sessions.h"

#include <functional>

#include "protocol/function_rpc/peek.h"
#include "tests/integration/runtime/shell/runtime_world.h"
#include "tests/integration/runtime/shell/scripted_agent.h"

namespace windlass::testing {
namespace {

using runtime::SendStatus;

class AnyAgentMay final : public Admission {
 public:
  Result<Done> admit(const AdmissionRequest&) const override { return Done{}; }
  Result<Done> admit_resume(const ResumeRequest&) const override { return Done{}; }
};

// Does with each channel, once it is open, what a test wants.
class Listening final : public runtime::ChannelEvents, private TurnEnd {
 public:
  Listening(std::function<void(runtime::WorkerChannel&)> opened, function_rpc::ChannelLimits limits)
      : opened_(std::move(opened)), log_(*JsonLog::open({.file = "/dev/null"})) {
    runtime::AgentSessionsOptions options;
    options.id = "r-1";
    options.keys = {{"k1", std::string(32, 'k')}};
    options.limits = limits;
    options.server.rules.paths = {"/ws/worker"};
    sessions_ =
        *runtime::AgentSessions::listen(loop_, std::move(options), admission_, *this, metrics_, *log_);
    loop_.add_turn_end(TurnPhase::Decide, *this);
    thread_ = std::jthread{[this] { loop_.run(); }};
  }
  ~Listening() override {
    loop_.stop();
    thread_.join();
    loop_.remove_turn_end(TurnPhase::Decide, *this);
  }
  std::uint16_t port() const { return sessions_->port(); }

 private:
  runtime::ChannelId on_channel_opened(runtime::WorkerChannel& channel, runtime::ChannelFacts) override {
    loop_.post([this, &channel] { opened_(channel); });
    return runtime::ChannelId{1};
  }
  void on_channel_message(runtime::ChannelId, std::string_view) override {}
  void on_channel_news(runtime::ChannelId, runtime::ChannelNews, std::string_view) override {}
  void on_channel_closed(runtime::ChannelId, runtime::ChannelEnd, std::string_view) override {}
  void on_turn_end(TurnPhase) override {
    while (sessions_->take_events()) {
    }
    sessions_->flush();
  }

  std::function<void(runtime::WorkerChannel&)> opened_;
  std::unique_ptr<JsonLog> log_;
  EventLoop loop_;
  AnyAgentMay admission_;
  runtime::RuntimeMetrics metrics_;
  std::unique_ptr<runtime::AgentSessions> sessions_;
  std::jthread thread_;
};

std::string terminate() {
  return function_rpc::compose("", function_rpc::Content::WorkerTerminate, "");
}

class AgentSessionsTest : public RuntimeTest {};

TEST_F(AgentSessionsTest, AnAgentThatIsToldToTerminateKeepsItsSession) {
  Listening listening{[](runtime::WorkerChannel& channel) {
                        EXPECT_EQ(channel.send(terminate()), SendStatus::Sent);
                        channel.close(false, "given up");
                      },
                      {}};
  const ScriptedAgent agent{listening.port(), "i-1", "any"};
  ASSERT_TRUE(eventually([&] { return agent.script.terminations.load() == 1; }));
  EXPECT_EQ(agent.ended.load(), 0);
}

TEST_F(AgentSessionsTest, AnAgentWhoseFullQueueTookNoTerminateLosesItsSession) {
  Listening listening{[](runtime::WorkerChannel& channel) {
                        while (channel.send("x") != SendStatus::Full) {
                        }
                        EXPECT_EQ(channel.send(terminate()), SendStatus::Full);
                        channel.close(false, "given up");
                      },
                      {.queue_messages_max = 4}};
  const ScriptedAgent agent{listening.port(), "i-1", "any"};
  EXPECT_TRUE(eventually([&] { return agent.ended.load() > 0; }));
}

}  // namespace
}  // namespace windlass::testing
