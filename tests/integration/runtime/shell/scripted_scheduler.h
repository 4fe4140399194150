// As much of a scheduler as a runtime needs: it sends orders and writes down what it is told. Own thread.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "protocol/adapters/websocket_server.h"
#include "protocol/driver/scheduler_driver.h"

namespace windlass::testing {

class EverybodyMay final : public Admission {
 public:
  Result<Done> admit(const AdmissionRequest& request) const override {
    if (request.role == Role::Runtime) return Done{};
    return Error{ErrorCode::SessionDenied, Blame::Peer, "runtimes only"};
  }
  Result<Done> admit_resume(const ResumeRequest&) const override { return Done{}; }
};

class ScriptedScheduler final : private ConnectionEvents, private TurnEnd {
 public:
  explicit ScriptedScheduler(std::uint16_t port = 0)
      : tokens_(*TokenAuthority::with_keys({{"k1", std::string(32, 'k')}})),
        endpoint_({.scheduler_id = "s-1"}, config_, admission_, tokens_, 7),
        alarm_(loop_, [this] { driver_.on_alarm(); }),
        driver_(endpoint_, decoder_, loop_.clock(), alarm_) {
    loop_.add_turn_end(TurnPhase::Decide, *this);
    ServerOptions options;
    options.rules.paths = {"/ws/worker"};
    options.port = port;
    server_ = *WebSocketServer::listen(loop_, options, *this);
    port_ = server_->port();
    thread_ = std::jthread{[this] { loop_.run(); }};
  }
  ~ScriptedScheduler() override {
    loop_.stop();
    thread_.join();
    loop_.remove_turn_end(TurnPhase::Decide, *this);
  }

  std::uint16_t port() const { return port_; }
  void order(std::string id, std::string type, std::string payload) {
    loop_.post([this, id = std::move(id), type = std::move(type), payload = std::move(payload)] {
      waiting_.push_back({id, type, payload});
    });
  }
  // The n-th signal that has the text; empty: it did not come in time.
  std::string signal_with(const std::string& text, std::size_t count = 1) {
    return wait([this, text, count]() -> std::string {
      std::size_t seen = 0;
      for (const std::string& each : signals_) {
        if (each.find(text) != std::string::npos && ++seen == count) return each;
      }
      return "";
    });
  }
  // Breaks the connections under the sessions, which resume.
  void cut() {
    loop_.post([this] { server_->close_all(1001, "cut"); });
  }
  // Wants the runtime to end.
  void drain() {
    loop_.post([this] { EXPECT_TRUE(endpoint_.drain(*session_, "test", seconds{20}, loop_.now())); });
  }
  // The result of an order; empty: none came in time.
  std::string result(const std::string& id) {
    return wait([this, id]() -> std::string {
      const auto found = results_.find(id);
      return found == results_.end() ? "" : found->second;
    });
  }
  // The first status from now on, or before, that has the text.
  std::string status_with(const std::string& text) {
    return wait([this, text]() -> std::string {
      for (const std::string& each : statuses_) {
        if (each.find(text) != std::string::npos) return each;
      }
      return "";
    });
  }

 private:
  struct Order {
    std::string id;
    std::string type;
    std::string payload;
  };

  template <class Look>
  std::string wait(const Look& look) {
    std::unique_lock lock{mutex_};
    std::string found;
    changed_.wait_for(lock, std::chrono::seconds{20}, [&] { return !(found = look()).empty(); });
    return found;
  }

  void on_opened(ConnectionId id, WebSocketConnection& connection) override {
    driver_.on_opened(id, connection, {connection.peer().address, {}, {}, {}});
  }
  void on_message(ConnectionId id, BytesView message, MessageKind kind) override {
    driver_.on_message(id, message, kind);
  }
  void on_idle(ConnectionId id) override { driver_.on_idle(id); }
  void on_blocked(ConnectionId id) override { driver_.on_blocked(id); }
  void on_writable(ConnectionId id) override { driver_.on_writable(id); }
  void on_closed(ConnectionId id, const CloseFacts&) override { driver_.on_closed(id); }
  void on_turn_end(TurnPhase) override {
    bool is_more = true;
    while (std::exchange(is_more, false)) {
      while (auto event = driver_.poll_event()) {
        is_more = true;
        handle(*event);
      }
      send_waiting();
      driver_.flush();
    }
  }
  void handle(OwnerEvent& event) {
    if (const auto* established = std::get_if<Established>(&event.event)) {
      session_ = event.session;
      if (!established->resumed) assign();
    }
    const auto* delivered = std::get_if<Delivered>(&event.event);
    if (delivered == nullptr) return;
    const Message& message = delivered->message;
    {
      const std::lock_guard lock{mutex_};
      if (message.type() == "biz.result") results_[std::string{message.corr()}] = message.payload();
      if (message.type() == "biz.runtime.status") statuses_.emplace_back(message.payload());
      if (message.type() == "biz.runtime.signal") signals_.emplace_back(message.payload());
    }
    changed_.notify_all();
    endpoint_.own(event.session, delivered->seq + 1, loop_.now());
  }

  // A runtime serves nobody before it knows what it is to serve, and which agents may.
  void assign() {
    waiting_.clear();
    waiting_.push_back({"grants", "biz.runtime.grants",
                        R"({"epoch":1,"whole":true,"granted":[{"instance":"i-1","application_id":"shop"},)"
                        R"({"instance":"i-2","application_id":"shop"}]})"});
    waiting_.push_back({"applications", "biz.runtime.applications",
                        R"({"applications":[{"application_id":"shop","metadata_version":"m1"}]})"});
  }
  // A session that has just begun takes nothing until the runtime has announced its credit.
  void send_waiting() {
    while (session_ && !waiting_.empty()) {
      const Order& next = waiting_.front();
      Message message{{.type = next.type, .id = next.id, .payload = next.payload}};
      const auto sent = endpoint_.send(*session_, std::move(message), loop_.now());
      if (!sent && sent.error().code == ErrorCode::SessionWouldBlock) return;
      EXPECT_TRUE(sent) << sent.error().reason;
      waiting_.pop_front();
    }
  }

  EventLoop loop_;
  SessionConfig config_;
  EverybodyMay admission_;
  TokenAuthority tokens_;
  SchedulerEndpoint endpoint_;
  Decoder decoder_;
  LoopAlarm alarm_;
  SchedulerDriver driver_;
  std::unique_ptr<WebSocketServer> server_;
  std::uint16_t port_ = 0;
  std::optional<SessionHandle> session_;
  std::deque<Order> waiting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> results_;
  std::deque<std::string> statuses_;
  std::deque<std::string> signals_;
  std::jthread thread_;
};

}  // namespace windlass::testing
