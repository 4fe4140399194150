// A real agent and real programs against a scheduler in this process.
#include <gtest/gtest.h>

#include <map>

#include "protocol/session/journal_log.h"
#include "tests/integration/worker-agent/shell/agent_process.h"
#include "tests/integration/worker-agent/shell/little_scheduler.h"

namespace windlass::testing {
namespace {

class AgentTest : public ::testing::Test {
 protected:
  void start(const std::string& more = "") {
    agent.configure(scheduler.url(), more + rules());
    agent.start();
  }
  void TearDown() override {
    const std::string log = agent.read("log") + agent.read("out");
    if (HasFailure())
      std::fputs(log.substr(log.size() - std::min<std::size_t>(log.size(), 4000)).c_str(), stderr);
  }
  std::string rules() const {
    return "[exec.append]\nprogram = \"/bin/sh\"\nargs = ['-c', 'sleep 0.0$(( $$ % 5 )); echo \"$1\" >> \"" +
           agent.path("effects") +
           "\"', 'sh']\narg_patterns = ['[a-z0-9-]+']\n"
           "[exec.talk]\nprogram = \"/bin/sh\"\nargs = ['-c', 'echo out; echo err >&2; env | sort >&2; exit "
           "3']\n"
           "[exec.hang]\nprogram = \"/bin/sh\"\nargs = ['-c', 'trap \"\" TERM; sleep 60 & echo $!; wait; "
           "sleep 60']\n"
           "[exec.stay]\nprogram = \"/bin/sh\"\nargs = ['-c', 'echo $$ >> \"" +
           agent.path("effects") +
           "\"; exec sleep 60']\n"
           "[exec.nap]\nprogram = \"/bin/sleep\"\narg_patterns = ['[0-9.]+']\n"
           "[exec.flood]\nprogram = \"/bin/sh\"\nargs = ['-c', 'head -c 1000000 /dev/zero']\noutput_max = "
           "\"1KiB\"\n";
  }
  bool answered(const std::string& id) {
    return scheduler.run_until([&] { return scheduler.result(id).has_value(); });
  }
  bool established() {
    return scheduler.run_until([&] { return scheduler.has_session(); });
  }

  LittleScheduler scheduler;
  AgentProcess agent;
};

bool lives(const std::string& pid) {
  std::ifstream file{"/proc/" + pid + "/stat"};
  std::string id;
  std::string name;
  std::string state;
  return (file >> id >> name >> state) && state != "Z";
}

TEST_F(AgentTest, CommandsOfEveryKindAreAnswered) {
  start();
  scheduler.order("c-echo", "biz.echo", R"({"deep":[1,{"a":"\u00e4"}]})");
  scheduler.order("c-talk", "biz.exec", R"({"name":"talk"})");
  scheduler.order("c-flood", "biz.exec", R"({"name":"flood"})");
  scheduler.order("c-denied", "biz.exec", R"({"name":"append","args":["a; rm"]})");
  scheduler.order("c-other", "biz.other", "{}");
  ASSERT_TRUE(scheduler.run_until([&] { return scheduler.answered() == 5; }));
  EXPECT_EQ(scheduler.result("c-echo"), R"({"deep":[1,{"a":"\u00e4"}]})");
  EXPECT_TRUE(scheduler.result("c-talk")->starts_with(
      R"({"ok":false,"exit_code":3,"stdout":"out\n","stderr":"err\n)"))
      << *scheduler.result("c-talk");
  EXPECT_NE(scheduler.result("c-flood")->find(R"("truncated":true)"), std::string::npos);
  EXPECT_LT(scheduler.result("c-flood")->size(), 8000U);
  EXPECT_NE(scheduler.result("c-denied")->find("E.PROTO.SCHEMA"), std::string::npos);
  EXPECT_NE(scheduler.result("c-other")->find("E.CMD.UNKNOWN"), std::string::npos);
}

TEST_F(AgentTest, AProgramThatRunsTooLongIsKilledWithWhatItStarted) {
  start();
  scheduler.order("c-1", "biz.exec", R"({"name":"hang","timeout_ms":300})");
  ASSERT_TRUE(answered("c-1"));
  const std::string result = *scheduler.result("c-1");
  EXPECT_NE(result.find(R"("code":"E.TIMEOUT")"), std::string::npos) << result;
  const std::size_t at = result.find(R"("stdout":")") + 10;
  const std::string pid = result.substr(at, result.find_first_not_of("0123456789", at) - at);
  ASSERT_FALSE(pid.empty());
  EXPECT_FALSE(lives(pid));
}

TEST_F(AgentTest, KilledUnderLoadEveryCommandIsAnsweredAndDoneExactlyOnce) {
  constexpr std::size_t kCommands = 150;
  start();
  for (std::size_t i = 0; i < kCommands; ++i) {
    const std::string id = "c-" + std::to_string(i);
    scheduler.order(id, "biz.exec", R"({"name":"append","args":[")" + id + "\"]}");
  }
  for (const std::size_t kill_after : {3U, 20U, 21U, 60U, 100U}) {
    ASSERT_TRUE(scheduler.run_until([&] { return scheduler.answered() >= kill_after; }));
    agent.end(SIGKILL);
    agent.start();
  }
  ASSERT_TRUE(scheduler.run_until([&] { return scheduler.answered() == kCommands; }, seconds{50}));
  EXPECT_GE(scheduler.sessions(), 5U);
  std::map<std::string, int> effects;
  std::istringstream lines{agent.read("effects")};
  for (std::string line; std::getline(lines, line);) ++effects[line];
  EXPECT_EQ(effects.size(), kCommands);
  for (const auto& [id, order] : scheduler.orders()) {
    EXPECT_EQ(effects[id], 1) << id;
    EXPECT_TRUE(order.result->starts_with(R"({"ok":true)")) << id << " " << *order.result;
  }
}

TEST_F(AgentTest, ATermFinishesWhatRunsAndExitsWithZero) {
  start();
  scheduler.order("c-1", "biz.exec", R"({"name":"nap","args":["0.5"]})");
  ASSERT_TRUE(
      scheduler.run_until([&] { return agent.read("log").find("a program starts") != std::string::npos; }));
  agent.signal(SIGTERM);
  ASSERT_TRUE(scheduler.run_until([&] { return agent.has_ended(); }));
  EXPECT_EQ(agent.exit_code(), 0);
  EXPECT_TRUE(scheduler.result("c-1").has_value());
}

TEST_F(AgentTest, ASecondTermEndsAtOnceAndLeavesNoProgramBehind) {
  start();
  scheduler.order("c-1", "biz.exec", R"({"name":"stay"})");
  ASSERT_TRUE(scheduler.run_until([&] { return !agent.read("effects").empty(); }));
  agent.signal(SIGTERM);
  ASSERT_TRUE(scheduler.run_until([&] { return agent.read("log").find("drains") != std::string::npos; }));
  agent.signal(SIGTERM);
  ASSERT_TRUE(scheduler.run_until([&] { return agent.has_ended(); }));
  agent.start();
  ASSERT_TRUE(answered("c-1"));
  EXPECT_NE(scheduler.result("c-1")->find("told to stop"), std::string::npos) << *scheduler.result("c-1");
  const std::string pid = agent.read("effects");
  EXPECT_FALSE(lives(pid.substr(0, pid.find('\n'))));
}

TEST_F(AgentTest, ADrainOfTheSchedulerEndsTheAgentWithZero) {
  start();
  ASSERT_TRUE(established());
  scheduler.drain();
  ASSERT_TRUE(scheduler.run_until([&] { return agent.has_ended(); }));
  EXPECT_EQ(agent.exit_code(), 0);
}

TEST_F(AgentTest, TheIdentitySurvivesAndASecondAgentCannotTakeIt) {
  start();
  ASSERT_TRUE(established());
  const std::string id = agent.read("var/worker_instance_id");
  EXPECT_EQ(id.size(), 35U);
  AgentProcess second;
  second.write("agent.toml", agent.read("agent.toml"));
  second.start();
  EXPECT_EQ(second.wait(), 2);
  EXPECT_NE(second.read("out").find("is in use by another windlass-agent"), std::string::npos);
  agent.end(SIGKILL);
  agent.start();
  ASSERT_TRUE(scheduler.run_until([&] { return scheduler.sessions() == 2; }));
  EXPECT_EQ(agent.read("var/worker_instance_id"), id);
}

TEST_F(AgentTest, MetricsHaveTheirNamesAndNoLogHasTheToken) {
  start("[metrics]\nlisten = \"127.0.0.1:0\"\n");
  scheduler.order("c-1", "biz.exec", R"({"name":"talk"})");
  ASSERT_TRUE(answered("c-1"));
  ASSERT_TRUE(scheduler.run_until([&] { return scheduler.load().has_value(); }));
  EXPECT_TRUE(scheduler.load()->mem_pct.has_value());
  EXPECT_TRUE(scheduler.load()->disk_pct.has_value());
  const std::string log = agent.read("log");
  const std::size_t at = log.find(R"("port":)") + 7;
  const auto port = static_cast<std::uint16_t>(std::stoi(log.substr(at, 5)));
  const std::string page = http_get(port, "/metrics");
  for (const char* line :
       {"\ninflight_tasks 0\n", "\ntask_duration_ms_bucket{node_type=\"biz.exec\",le=\"+Inf\"} 1\n",
        "\n# TYPE heartbeat_sent_total counter\n", "\nheartbeat_degraded_total "}) {
    EXPECT_NE(page.find(line), std::string::npos) << line << page;
  }
  EXPECT_TRUE(http_get(port, "/healthz").starts_with("HTTP/1.1 200"));
  EXPECT_TRUE(http_get(port, "/none").starts_with("HTTP/1.1 404"));
  EXPECT_EQ(log.find(kTestToken), std::string::npos);
  EXPECT_EQ(scheduler.result("c-1")->find("WINDLASS"), std::string::npos);
  EXPECT_NE(log.find(R"("tenant":"acme","sender.id":"w-)"), std::string::npos);
}

TEST_F(AgentTest, ATokenIsReadAgainOnHup) {
  agent.configure(scheduler.url(), rules());
  agent.write("token", "not-this-one\n");
  agent.start();
  ASSERT_TRUE(scheduler.run_until([&] {
    return agent.read("log").find("E.AUTH.INVALID_TOKEN") != std::string::npos ||
           agent.read("log").find("wrong token") != std::string::npos;
  }));
  EXPECT_FALSE(scheduler.has_session());
  agent.write("token", std::string{kTestToken} + "\n");
  agent.signal(SIGHUP);
  EXPECT_TRUE(established());
}

class AgentMistakes : public AgentTest {
 protected:
  // What a start with these settings prints; it must exit with 2.
  std::string refusal(const std::string& more, const std::vector<std::string>& arguments = {}) {
    agent.configure(scheduler.url(), more);
    agent.start(arguments);
    EXPECT_EQ(agent.wait(), 2);
    return agent.read("out");
  }
};

TEST_F(AgentMistakes, EveryWrongSettingIsOneSentenceWithItsPlace) {
  const std::string out =
      refusal("colour = \"red\"\n[exec.x]\nprogram = \"ls\"\n[exec.y]\nprogram = \"/none\"\n");
  EXPECT_NE(out.find("/agent.toml:16: log.colour is not a known setting; remove it or correct its name.\n"),
            std::string::npos)
      << out;
  EXPECT_NE(out.find(":18: exec.x.program must begin with '/'.\n"), std::string::npos) << out;
  EXPECT_NE(out.find(":20: exec.y.program names /none, which cannot be executed.\n"), std::string::npos)
      << out;
}

TEST_F(AgentMistakes, AWrongFlagIsNamed) {
  EXPECT_NE(refusal("", {"--max-parallel", "0"})
                .find("--max-parallel: worker.max_parallel must be from 1 to 1024."),
            std::string::npos);
  EXPECT_NE(refusal("", {"--nonsense"}).find("The command line is wrong"), std::string::npos);
}

TEST_F(AgentMistakes, ADamagedJournalIsRefusedAndLeftAlone) {
  const JournalLog log{Duration{}, Instant{}};
  Bytes bytes = log.encode_begin({"c-1", ""}, Digest{}, Instant{});
  bytes[bytes.size() / 2] ^= 1;
  bytes += log.encode_begin({"c-2", ""}, Digest{}, Instant{});
  std::filesystem::create_directories(agent.path("var"));
  agent.write("var/journal", bytes);
  EXPECT_NE(refusal("").find("/var/journal is damaged and was left as it is: "), std::string::npos);
  EXPECT_EQ(agent.read("var/journal"), bytes);
}

TEST_F(AgentMistakes, AMalformedIdentityIsRefusedAndLeftAlone) {
  std::filesystem::create_directories(agent.path("var"));
  agent.write("var/worker_instance_id", "");
  EXPECT_NE(refusal("").find("/var/worker_instance_id holds no instance id"), std::string::npos);
  EXPECT_EQ(agent.read("var/worker_instance_id"), "");
}

TEST_F(AgentMistakes, GoodSettingsAreSaidToBeGood) {
  agent.configure(scheduler.url(), rules());
  agent.start({"--check-config"});
  EXPECT_EQ(agent.wait(), 0);
  EXPECT_EQ(agent.read("out"), "the settings are good\n");
  EXPECT_FALSE(std::filesystem::exists(agent.path("var")));
}

}  // namespace
}  // namespace windlass::testing
