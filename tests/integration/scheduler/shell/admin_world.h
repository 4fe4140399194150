// A real admin listener on the loopback with a Control over the memory store, and a client of plain sockets
// that shares no HTTP code with it. Everything runs on the test's own thread, but for the store's.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "protocol/adapters/socket.h"
#include "protocol/http/http_listener.h"
#include "scheduler/adapters/memory_store.h"
#include "scheduler/shell/admin_api.h"
#include "scheduler/shell/session_loop.h"
#include "tests/support/loop_world.h"

namespace windlass::testing {

struct Answered {
  int status = 0;
  std::string head;  // lower case
  std::string body;
  bool has(std::string_view text) const { return body.find(text) != std::string::npos; }
  bool head_has(std::string_view text) const { return head.find(text) != std::string::npos; }
};

// One connection that writes what it is told and takes answers from what came.
class RawClient final {
 public:
  RawClient(LoopRunner& runner, std::uint16_t port) : runner_(runner) {
    auto begun = begin_connect(*numeric_address("127.0.0.1", port));
    EXPECT_TRUE(begun.has_value());
    socket_ = std::move(*begun);
  }

  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      std::size_t sent = 0;
      const bool is_done = runner_.run_until([&] {
        const IoResult result = write_some(socket_.fd(), bytes);
        sent = result.bytes;
        return result.state != IoState::WouldBlock || result.bytes > 0;
      });
      if (!is_done || sent == 0) return;  // the listener closed; the answer tells why
      bytes.remove_prefix(sent);
    }
  }

  // The next answer; none when the connection ended instead.
  std::optional<Answered> receive(bool has_body = true) {
    std::optional<Answered> answered;
    EXPECT_TRUE(runner_.run_until([&] {
      read();
      answered = take(has_body);
      return answered.has_value() || has_ended_;
    })) << "neither an answer nor an end came";
    return answered;
  }

  bool ends() {
    return runner_.run_until([&] {
      read();
      return has_ended_;
    });
  }
  bool is_quiet() {
    read();
    return received_.empty() && !has_ended_;
  }
  void finish_sending() { finish_writing(socket_.fd()); }
  void reset() { socket_ = Socket{}; }

 private:
  void read() {
    std::array<char, 65536> buffer;
    for (;;) {
      const IoResult got = read_some(socket_.fd(), buffer);
      if (got.state == IoState::Done) {
        received_.append(buffer.data(), got.bytes);
        continue;
      }
      if (got.state != IoState::WouldBlock) has_ended_ = true;
      return;
    }
  }

  std::optional<Answered> take(bool has_body) {
    const std::size_t end = received_.find("\r\n\r\n");
    if (end == std::string::npos) return std::nullopt;
    Answered answered;
    answered.head = received_.substr(0, end + 2);
    std::ranges::transform(answered.head, answered.head.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    answered.status = std::stoi(answered.head.substr(9, 3));
    const std::size_t length_at = answered.head.find("content-length: ");
    std::size_t length =
        length_at == std::string::npos ? 0 : std::stoul(answered.head.substr(length_at + 16));
    if (!has_body) length = 0;
    if (received_.size() < end + 4 + length) return std::nullopt;
    answered.body = received_.substr(end + 4, length);
    received_.erase(0, end + 4 + length);
    return answered;
  }

  LoopRunner& runner_;
  Socket socket_;
  std::string received_;
  bool has_ended_ = false;
};

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
