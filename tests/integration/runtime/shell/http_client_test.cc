// What clients of functions meet: those that go away and those that read slowly.
#include "tests/integration/runtime/shell/runtime_world.h"
#include "tests/integration/runtime/shell/scripted_agent.h"

namespace windlass::testing {
namespace {

class HttpClientTest : public RuntimeTest {
 protected:
  void begin(const std::string& worker) {
    agent->send(agent->script.start(worker));
    ASSERT_TRUE(logs(R"("a worker is initialized","worker":")" + worker + '"'));
    agent->send(agent->script.specialized(worker, "shop"));
    ASSERT_TRUE(eventually([&] { return agent->script.is_specialized.load(); }));
  }
  void serve(bool heeds_cancel = false) {
    start();
    agent = std::make_unique<ScriptedAgent>(runtime->port(), "i-1", kToken);
    agent->script.heeds_cancel = heeds_cancel;
    begin("i-1.1");
  }
  std::unique_ptr<ScriptedAgent> agent;
};

TEST_F(HttpClientTest, WhoGoesAwayCancelsWhatHeAskedFor) {
  serve(true);
  {
    const HttpCall call{http, "GET", "/api/hang"};
    ASSERT_TRUE(eventually([&] { return agent->script.hanging.load() == 1; }));
  }
  EXPECT_TRUE(logs(R"("outcome":"cancelled")"));
  EXPECT_EQ(ask_http(http, "GET", "/api/hello/you").body, "hello you");
}

TEST_F(HttpClientTest, WhoGoesAwayLeavesTheQueue) {
  config.core.slots_per_worker = 1;
  serve();
  const HttpCall first{http, "GET", "/api/hang"};
  ASSERT_TRUE(eventually([&] { return agent->script.hanging.load() == 1; }));
  { const HttpCall second{http, "GET", "/api/hang"}; }
  EXPECT_TRUE(logs("it was cancelled before it reached a worker"));
}

TEST_F(HttpClientTest, AStopWaitsForWhoStillReads) {
  serve();
  const std::string body(20 * 1024 * 1024, 'x');
  const HttpCall call{http, "POST", "/api/echo", body};
  ASSERT_TRUE(logs("an invocation ended"));
  runtime->stop();
  ASSERT_TRUE(logs("ends what is under way"));
  const HttpSaid said = call.read();
  EXPECT_EQ(said.status, 200);
  EXPECT_EQ(said.body.size(), body.size());
}

}  // namespace
}  // namespace windlass::testing
