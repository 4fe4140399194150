// What one agent may make the runtime keep or write: unfinished messages, and lines of log.
#include <algorithm>
#include <map>

#include "protocol/function_rpc/session_channel.h"
#include "runtime/shell/agent_sessions.h"
#include "tests/integration/runtime/shell/session_world.h"

namespace windlass::testing {
namespace {

class CrowdAdmission final : public Admission {
 public:
  Result<Done> admit(const AdmissionRequest&) const override { return Done{}; }
  Result<Done> admit_resume(const ResumeRequest&) const override { return Done{}; }
};

// The listener for agents by itself, and whose stream broke.
class Crowd final : public runtime::ChannelEvents, private TurnEnd {
 public:
  explicit Crowd(std::size_t unfinished_bytes_max, std::size_t queued_bytes_max = 1ULL << 30U)
      : log_(*JsonLog::open({.file = "/dev/null"})) {
    runtime::AgentSessionsOptions options;
    options.id = "r-1";
    options.keys = {{"k1", std::string(32, 'k')}};
    options.unfinished_bytes_max = unfinished_bytes_max;
    options.queued_bytes_max = queued_bytes_max;
    options.server.rules.paths = {"/ws/worker"};
    sessions_ =
        *runtime::AgentSessions::listen(loop_, std::move(options), admission_, *this, metrics_, *log_);
    loop_.add_turn_end(TurnPhase::Decide, *this);
    thread_ = std::jthread{[this] { loop_.run(); }};
  }
  ~Crowd() override {
    loop_.stop();
    thread_.join();
    loop_.remove_turn_end(TurnPhase::Decide, *this);
  }
  std::uint16_t port() const { return sessions_->port(); }
  // So many messages of a size to the agent of this name.
  void send(const std::string& name, std::size_t count, std::size_t bytes) {
    loop_.post([this, name, count, bytes] {
      for (std::size_t i = 0; i < count && channels_.contains(name); ++i) {
        channels_.at(name)->send(std::string(bytes, 'x'));
      }
    });
  }
  std::string closed() const {
    const std::lock_guard lock{mutex_};
    return closed_;
  }
  std::string broken() const {
    const std::lock_guard lock{mutex_};
    return broken_;
  }
  std::map<std::string, std::size_t> whole() const {
    const std::lock_guard lock{mutex_};
    return whole_;
  }

 private:
  runtime::ChannelId on_channel_opened(runtime::WorkerChannel& channel,
                                       runtime::ChannelFacts facts) override {
    channels_[facts.identity] = &channel;
    names_.push_back(facts.identity);
    return runtime::ChannelId{names_.size()};
  }
  const std::string& name_of(runtime::ChannelId id) const { return names_[id.value() - 1]; }
  void on_channel_message(runtime::ChannelId id, std::string_view bytes) override {
    const std::lock_guard lock{mutex_};
    whole_[name_of(id)] += bytes.size();
  }
  void on_channel_news(runtime::ChannelId id, runtime::ChannelNews news, std::string_view) override {
    const std::lock_guard lock{mutex_};
    if (news == runtime::ChannelNews::Broken && broken_.empty()) broken_ = name_of(id);
  }
  void on_channel_closed(runtime::ChannelId id, runtime::ChannelEnd, std::string_view) override {
    const std::lock_guard lock{mutex_};
    channels_.erase(name_of(id));
    if (closed_.empty()) closed_ = name_of(id);
  }
  void on_turn_end(TurnPhase) override {
    while (sessions_->take_events()) {
    }
    sessions_->flush();
  }

  std::unique_ptr<JsonLog> log_;
  EventLoop loop_;
  CrowdAdmission admission_;
  runtime::RuntimeMetrics metrics_;
  std::vector<std::string> names_;
  std::map<std::string, runtime::WorkerChannel*> channels_;
  mutable std::mutex mutex_;
  std::string closed_;
  std::string broken_;
  std::map<std::string, std::size_t> whole_;
  std::unique_ptr<runtime::AgentSessions> sessions_;
  std::jthread thread_;
};

constexpr std::size_t kPart = 64 * 1024;

// So many parts of a message that never ends.
void send_unfinished(ScriptedAgent& agent, std::size_t parts) {
  for (std::size_t i = 0; i < parts; ++i) {
    agent.send_part(
        R"({"message":"endless","offset":)" + std::to_string(i * kPart) + R"(,"total":100000000})",
        std::string(kPart, 'x'));
  }
}

class FloodTest : public SessionWorkerTest {
 protected:
  // A running invocation says so many lines, each of which is written with `text` or counted.
  void flood(rpc::RpcLog::RpcLogCategory kind, std::size_t lines, std::string_view text) {
    serve();
    // Only what a running invocation says is logged.
    std::jthread asker{[this] { ask_http(http, "GET", "/api/hang"); }};
    ASSERT_TRUE(eventually([&] { return !agent->script.hung().empty(); }));
    const std::string invocation = agent->script.hung();
    for (std::size_t i = 0; i < lines; ++i) {
      rpc::StreamingMessage line;
      line.mutable_rpc_log()->set_message("line " + std::to_string(i));
      line.mutable_rpc_log()->set_level(rpc::RpcLog::Information);
      line.mutable_rpc_log()->set_log_category(kind);
      line.mutable_rpc_log()->set_invocation_id(invocation);
      agent->send(line.SerializeAsString());
    }
    EXPECT_TRUE(eventually([&] {
      return logged().find("a worker logged too much; some lines were dropped") != std::string::npos;
    }));
    // Everything that was sent is either written or counted, once the flood is over.
    std::size_t written = 0;
    std::size_t left_out = 0;
    EXPECT_TRUE(eventually([&] {
      written = left_out = 0;
      const std::string all = logged();
      for (std::size_t at = 0; (at = all.find(text, at)) != std::string::npos; ++at) ++written;
      for (std::size_t at = 0; (at = all.find("\"lines\":", at)) != std::string::npos; ++at)
        left_out += std::stoul(all.substr(at + 8));
      return written + left_out == lines;
    })) << written
        << " " << left_out;
    EXPECT_LT(written, 20'000U);
    EXPECT_LT(logged().size(), 8U * 1024 * 1024);
    agent->send(agent->script.answered(invocation));
  }
};

TEST_F(FloodTest, WhoeverHoldsMostUnfinishedBytesPaysForAll) {
  Crowd crowd{20 * kPart};
  ScriptedAgent greedy{crowd.port(), "greedy", "any"};
  ScriptedAgent modest{crowd.port(), "modest", "any"};
  ASSERT_TRUE(eventually([&] { return greedy.sessions.load() == 1 && modest.sessions.load() == 1; }));
  send_unfinished(greedy, 15);
  greedy.send("over");  // goes when the parts before it have gone
  ASSERT_TRUE(eventually([&] { return crowd.whole()["greedy"] == 4; }));
  EXPECT_EQ(crowd.broken(), "");
  send_unfinished(modest, 8);
  modest.send(std::string(10 * kPart, 'm'));  // a message of its own that ends
  ASSERT_TRUE(eventually([&] { return crowd.whole()["modest"] == 10 * kPart; }));
  EXPECT_EQ(crowd.broken(), "greedy");
}

TEST_F(FloodTest, WhoeverIsSlowestToReadIsClosedWhenTooMuchWaitsForAll) {
  constexpr std::size_t kMessage = 1024 * 1024;
  Crowd crowd{20 * kPart, 24 * kMessage};
  ScriptedAgent slow{crowd.port(), "slow", "any"};
  ScriptedAgent quick{crowd.port(), "quick", "any"};
  ASSERT_TRUE(eventually([&] { return slow.sessions.load() == 1 && quick.sessions.load() == 1; }));
  const std::function<void()> go_on = slow.stall();
  crowd.send("slow", 20, kMessage);
  crowd.send("quick", 8, kMessage);
  EXPECT_TRUE(eventually([&] { return quick.heard.load() >= 8; })) << "the slow one is within the bound";
  EXPECT_EQ(crowd.closed(), "");
  crowd.send("slow", 40, kMessage);
  EXPECT_TRUE(eventually([&] { return !crowd.closed().empty(); }));
  EXPECT_EQ(crowd.closed(), "slow");
  crowd.send("quick", 8, kMessage);
  EXPECT_TRUE(eventually([&] { return quick.heard.load() >= 16; }));
  go_on();
}

TEST_F(FloodTest, AFloodOfUserLogsIsThinnedOutAndOneLineSaysHowMany) {
  flood(rpc::RpcLog::User, 300'000, "\"a worker says\"");
}

TEST_F(FloodTest, NamesOfCategoriesCountAndAreCut) {
  serve();
  std::jthread asker{[this] { ask_http(http, "GET", "/api/hang"); }};
  ASSERT_TRUE(eventually([&] { return !agent->script.hung().empty(); }));
  const std::string invocation = agent->script.hung();
  rpc::StreamingMessage line;
  line.mutable_rpc_log()->set_message("short");
  line.mutable_rpc_log()->set_category(std::string(1024 * 1024, 'c'));
  line.mutable_rpc_log()->set_level(rpc::RpcLog::Information);
  line.mutable_rpc_log()->set_log_category(rpc::RpcLog::User);
  line.mutable_rpc_log()->set_invocation_id(invocation);
  for (int i = 0; i < 40; ++i) agent->send(line.SerializeAsString());
  agent->send(agent->script.answered(invocation));
  asker.join();
  EXPECT_NE(logged().find("\"a worker says\""), std::string::npos);
  EXPECT_LT(logged().size(), 40U * 20 * 1024) << "each category is cut";
}

TEST_F(FloodTest, TextsOfFailuresAreCutAndThinnedOut) {
  serve();
  constexpr std::size_t kCalls = 600;
  const std::string text(64 * 1024, 't');
  for (std::size_t i = 0; i < kCalls; ++i) ask_http(http, "POST", "/api/throw", text);
  std::size_t written = 0;
  std::size_t left_out = 0;
  EXPECT_TRUE(eventually([&] {
    written = left_out = 0;
    const std::string all = logged();
    for (std::size_t at = 0; (at = all.find("\"an invocation failed\"", at)) != std::string::npos; ++at)
      ++written;
    for (std::size_t at = all.find("too many failures to log"); at != std::string::npos;
         at = all.find("too many failures to log", at + 1)) {
      left_out += std::stoul(all.substr(all.find("\"lines\":", at) + 8));
    }
    return written + left_out == kCalls;
  })) << written
      << " " << left_out;
  EXPECT_GT(left_out, 0U);
  EXPECT_LT(logged().size(), 16U * 1024 * 1024) << "of " << kCalls * text.size();
}

TEST_F(FloodTest, AFloodOfMetricsIsThinnedOutLikewise) {
  flood(rpc::RpcLog::CustomMetric, 30'000, "\"a function reports a metric\"");
}

}  // namespace
}  // namespace windlass::testing
