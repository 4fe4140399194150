// A real admin listener on the loopback with a Control over the memory store. Everything runs on the test's
// own thread, but for the store's.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "protocol/http/http_listener.h"
#include "scheduler/adapters/memory_store.h"
#include "scheduler/shell/admin_api.h"
#include "scheduler/shell/session_loop.h"
#include "tests/support/loop_world.h"
#include "tests/support/raw_http_client.h"

namespace windlass::testing {

class NobodyAdmitted final : public Admission {
 public:
  Result<Done> admit(const AdmissionRequest&) const override {
    return Error{ErrorCode::SessionDenied, Blame::Peer, "nobody"};
  }
  Result<Done> admit_resume(const ResumeRequest&) const override { return Done{}; }
};

class AdminWorld : public ::testing::Test {
 protected:
  static constexpr const char* kToken = "correct-horse-battery";

  AdminWorld() {
    http_options.tokens = {sha256("another-token"), sha256(kToken)};
    tick.set(loop.now().steady);
  }

  void start() {
    auto core = SchedulerCore::restore(core_options, {}, 7, loop.now());
    ASSERT_TRUE(core.has_value());
    http.reset();
    api.reset();
    control =
        std::make_unique<Control>(loop, std::move(*core), std::make_unique<MemoryStore>(image), metrics);
    SessionLoopOptions options;
    options.keys = {{"k1", std::string(32, 'k')}};
    auto made = SessionLoop::create(std::move(options), nobody, *control, metrics);
    ASSERT_TRUE(made.has_value()) << made.error().reason;
    session_loop = std::move(*made);
    control->set_loops({session_loop.get()});
    api = std::make_unique<AdminApi>(*control, metrics, admin_options);
    auto listening = HttpListener::listen(loop, http_options, *api);
    ASSERT_TRUE(listening.has_value()) << listening.error().reason;
    http = std::move(*listening);
  }

  RawClient connect() { return RawClient{runner, http->port()}; }

  static std::string request(const std::string& method, const std::string& target,
                             const std::string& body = {},
                             const std::string& more = std::string{"Authorization: Bearer "} + kToken +
                                                       "\r\n") {
    std::string text = method + " " + target + " HTTP/1.1\r\nHost: localhost\r\n" + more;
    if (!body.empty()) text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    return text + "\r\n" + body;
  }

  Answered ask(const std::string& method, const std::string& target, const std::string& body = {}) {
    RawClient client = connect();
    client.send(request(method, target, body));
    return client.receive(method != "HEAD").value_or(Answered{});
  }

  // A worker with a session, as its loop would tell it. The loop itself never runs.
  SessionRef open_worker(const std::string& instance, const std::string& tenant = "acme") {
    const SessionRef session{0, ++sessions};
    SessionOpened opened;
    opened.session = session;
    opened.worker = {TenantId{tenant}, InstanceId{instance}};
    opened.session_id = "s-" + instance;
    opened.address = "192.0.2.1:1000";
    control->post_inputs({opened});
    EXPECT_TRUE(runner.run_until([&] { return control->core().fleet().find(opened.worker) != nullptr; }));
    return session;
  }

  void say(SessionRef session, SessionEvent event) {
    control->post_inputs({SessionSaid{session, std::move(event)}});
  }

  EventLoop loop;
  LoopRunner runner{loop};
  // The loop does not watch the client's side of a connection, so it looks there now and then.
  LoopAlarm tick{loop, [this] { tick.set(loop.now().steady + milliseconds{2}); }};
  CoreOptions core_options;
  HttpListenerOptions http_options;
  AdminOptions admin_options;
  Metrics metrics;
  // Shared with the store, which the test closes and looks into.
  std::shared_ptr<MemoryImage> image = std::make_shared<MemoryImage>();
  NobodyAdmitted nobody;
  std::unique_ptr<Control> control;
  std::unique_ptr<SessionLoop> session_loop;
  std::unique_ptr<AdminApi> api;
  std::unique_ptr<HttpListener> http;
  std::uint64_t sessions = 0;
};

}  // namespace windlass::testing
