// A runtime with an agent whose worker serves the application "shop".
#pragma once

#include "tests/integration/runtime/shell/runtime_world.h"
#include "tests/integration/runtime/shell/scripted_agent.h"

namespace windlass::testing {

class SessionWorkerTest : public RuntimeTest {
 protected:
  void serve() {
    start();
    come();
  }
  void come() {
    agent = std::make_unique<ScriptedAgent>(runtime->port(), "i-1", kToken, window);
    agent->send(agent->script.start("i-1.1"));
    ASSERT_TRUE(logs("a worker is initialized"));
    agent->send(agent->script.specialized("i-1.1", "shop"));
    ASSERT_TRUE(eventually([&] { return agent->script.is_specialized.load(); }));
  }
  std::uint32_t window = limits::kWindowFrames;  // of the agent
  std::unique_ptr<ScriptedAgent> agent;
};

}  // namespace windlass::testing
