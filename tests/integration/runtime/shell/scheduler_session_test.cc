// The session to the scheduler: its orders, what it is told, and what becomes of that when it is away.
#include <set>

#include "tests/integration/runtime/shell/scripted_scheduler.h"
#include "tests/integration/runtime/shell/session_world.h"

namespace windlass::testing {
namespace {

class SchedulerSessionTest : public SessionWorkerTest {
 protected:
  void listen_to(std::uint16_t port) {
    const std::string url = "ws://127.0.0.1:" + std::to_string(port) + "/ws/worker";
    config.scheduler =
        runtime::SchedulerSettings{.address = *parse_address(url), .token = "any", .tenant = "acme"};
  }
};

TEST_F(SchedulerSessionTest, TheSchedulerInvokesAndIsToldOfTheFleet) {
  ScriptedScheduler scheduler;
  listen_to(scheduler.port());
  config.core.pending_timeout = milliseconds{1};  // it knows at once that no other worker will come
  serve();
  EXPECT_NE(scheduler.status_with(R"("application_id":"shop")"), "");
  scheduler.order("c-1", "biz.runtime.invoke",
                  R"({"application_id":"shop","function":"work","data":{"n":7}})");
  const std::string done = scheduler.result("c-1");
  EXPECT_NE(done.find(R"("ok":true,"return":{"got":{"n":7}})"), std::string::npos) << done;
  EXPECT_NE(done.find(R"("logs":["working on id-work"])"), std::string::npos) << done;
  EXPECT_NE(done.find(R"("worker":"i-1.1")"), std::string::npos) << done;

  scheduler.order("c-2", "biz.runtime.invoke", R"({"application_id":"shop","function":"fail"})");
  const std::string failed = scheduler.result("c-2");
  EXPECT_NE(failed.find(R"("ok":false)"), std::string::npos) << failed;
  EXPECT_NE(failed.find("boom"), std::string::npos) << failed;
  scheduler.order("c-6", "biz.runtime.invoke",
                  R"({"application_id":"shop","function":"hello",)"
                  R"("traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})");
  const std::string traced = scheduler.result("c-6");
  EXPECT_NE(traced.find("00-0af7651916cd43dd8448eb211c80319c-"), std::string::npos) << traced;
  scheduler.order("c-3", "biz.runtime.invoke", R"({"application_id":"other","function":"work"})");
  EXPECT_NE(scheduler.result("c-3").find("E.CMD.UNKNOWN"), std::string::npos);
  scheduler.order("c-4", "biz.runtime.split", R"({"application_id":"shop","weights":{"c1":100}})");
  EXPECT_EQ(scheduler.result("c-4"), R"({"ok":true})");
  scheduler.order("c-5", "biz.runtime.drain_worker", R"({"worker":"i-1.1"})");
  EXPECT_EQ(scheduler.result("c-5"), R"({"ok":true})");
  EXPECT_TRUE(eventually([&] { return agent->script.terminations.load() == 1; }));
}

TEST_F(SchedulerSessionTest, AnOrderThatCameBeforeItsWorkersWaitsForThem) {
  ScriptedScheduler scheduler;
  listen_to(scheduler.port());
  start();
  const HttpSaid early = ask_http(http, "GET", "/api/hello/world");
  EXPECT_EQ(early.status, 503) << "who asks by HTTP is told to come again";
  EXPECT_NE(early.head.find("Retry-After: 1"), std::string::npos) << early.head;
  ASSERT_TRUE(logs("the session to the scheduler is established"));
  scheduler.order("c-1", "biz.runtime.invoke",
                  R"({"application_id":"shop","function":"work","data":{"n":7}})");
  scheduler.order("c-2", "biz.runtime.invoke",
                  R"({"application_id":"other","function":"work","timeout_ms":50})");
  ASSERT_TRUE(logs("an order waits for the first worker of its application"));
  EXPECT_NE(scheduler.result("c-2").find("E.LIMIT.CAPACITY"), std::string::npos)
      << "nobody waits for it longer";
  come();
  const std::string done = scheduler.result("c-1");
  EXPECT_NE(done.find(R"("ok":true,"return":{"got":{"n":7}})"), std::string::npos) << done;
  scheduler.order("c-3", "biz.runtime.invoke", R"({"application_id":"third","function":"work"})");
  ASSERT_TRUE(logs(R"("application":"third")"));
  runtime->stop();
  EXPECT_NE(scheduler.result("c-3").find("E.SESSION.DRAINING"), std::string::npos);
}

TEST_F(SchedulerSessionTest, OrdersOfOneKeyGoToOneWorker) {
  ScriptedScheduler scheduler;
  listen_to(scheduler.port());
  config.core.routing = runtime::RoutingStrategy::Sticky;
  serve();
  ScriptedAgent other{runtime->port(), "i-2", kToken};
  other.send(other.script.start("i-2.1"));
  ASSERT_TRUE(logs(R"("a worker is initialized","worker":"i-2.1")"));
  other.send(other.script.specialized("i-2.1", "shop"));
  ASSERT_TRUE(eventually([&] { return other.script.is_specialized.load(); }));
  EXPECT_NE(scheduler.status_with("i-2.1"), "");
  std::set<std::string> workers;
  for (int i = 0; i < 8; ++i) {
    const std::string id = "k-" + std::to_string(i);
    scheduler.order(id, "biz.runtime.invoke",
                    R"({"application_id":"shop","function":"work","data":1,"sticky_key":"cart-7"})");
    const std::string done = scheduler.result(id);
    ASSERT_NE(done.find(R"("worker":")"), std::string::npos) << done;
    workers.insert(done.substr(done.find(R"("worker":")")));
  }
  EXPECT_EQ(workers.size(), 1U);
}

TEST_F(SchedulerSessionTest, TheSchedulersDrainAndOneSignalLetWhatIsUnderWayEnd) {
  ScriptedScheduler scheduler;
  listen_to(scheduler.port());
  config.core.invocation_timeout = seconds{20};  // a test that fails does not hang
  serve();
  EXPECT_NE(scheduler.status_with(R"("application_id":"shop")"), "");
  ASSERT_TRUE(logs("the scheduler says what is served here"));
  HttpSaid said;
  std::jthread asker{[&] { said = ask_http(http, "GET", "/api/hang"); }};
  ASSERT_TRUE(eventually([&] { return !agent->script.hung().empty(); }));
  scheduler.drain();
  ASSERT_TRUE(logs("ends what is under way"));
  runtime->stop();
  agent->send(agent->script.answered(agent->script.hung()));
  asker.join();
  EXPECT_EQ(said.status, 200);
  thread.join();  // and then it ends by itself
}

class AbsentSchedulerTest : public SchedulerSessionTest {
 protected:
  // Hears once from the scheduler what it is to serve, and serves it while the scheduler is away.
  void serve_alone() {
    auto scheduler = std::make_unique<ScriptedScheduler>();
    port = scheduler->port();
    config.session.backoff_first = milliseconds{20};
    config.session.backoff_cap = milliseconds{100};
    listen_to(port);
    serve();
    ASSERT_TRUE(logs("the scheduler says what is served here"));
    scheduler.reset();
  }
  std::uint16_t port = 0;
};

TEST_F(AbsentSchedulerTest, AFullHouseIsSaidToEachSessionAndAfterEachResume) {
  config.core.slots_per_worker = 1;
  serve_alone();
  std::jthread first{[this] { ask_http(http, "GET", "/api/hang"); }};
  ASSERT_TRUE(eventually([&] { return !agent->script.hung().empty(); }));
  const std::string hung = agent->script.hung();
  std::jthread second{[this] { ask_http(http, "GET", "/api/hang"); }};
  ASSERT_TRUE(logs("NoFreeSlot"));
  ScriptedScheduler scheduler{port};
  EXPECT_NE(scheduler.signal_with("NoFreeSlot"), "");
  scheduler.cut();
  EXPECT_NE(scheduler.signal_with("NoFreeSlot", 2), "");
  agent->send(agent->script.answered(hung));
  ASSERT_TRUE(eventually([&] { return agent->script.hung() != hung; }));
  agent->send(agent->script.answered(agent->script.hung()));
  EXPECT_NE(scheduler.signal_with("SlotFree"), "");
}

TEST_F(AbsentSchedulerTest, ALostWorkerIsSaidOnceSomebodyHears) {
  config.core.invocation_timeout = milliseconds{100};
  serve_alone();
  EXPECT_EQ(ask_http(http, "GET", "/api/hang").status, 504);
  ASSERT_TRUE(logs(R"("kind":"Replace")"));
  ScriptedScheduler scheduler{port};
  EXPECT_NE(scheduler.signal_with(R"("kind":"Replace","application_id":"shop")"), "");
}

}  // namespace
}  // namespace windlass::testing
