// As much of a scheduler as an agent needs: it keeps orders until their results come, and on every new
// session sends again what has none. Real endpoint, driver and listener, in the test's own thread.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "protocol/driver/scheduler_driver.h"
#include "tests/support/loop_world.h"

namespace windlass::testing {

inline constexpr std::string_view kTestToken = "the-token-of-this-test";

class OneToken final : public Admission {
 public:
  Result<Done> admit(const AdmissionRequest& request) const override {
    if (request.handshake.token == kTestToken) return Done{};
    return Error{ErrorCode::AuthInvalidToken, Blame::Peer, "wrong token"};
  }
  Result<Done> admit_resume(const ResumeRequest&) const override { return Done{}; }
};

class LittleScheduler final : private ConnectionEvents, private TurnEnd {
 public:
  struct Order {
    std::string type;
    std::string payload;
    std::optional<std::string> result = std::nullopt;
    int results = 0;
  };

  LittleScheduler()
      : tokens_(*TokenAuthority::with_keys({{"k1", std::string(32, 'k')}})),
        endpoint_({.scheduler_id = "s-1"}, config_, admission_, tokens_, 7),
        alarm_(loop_, [this] { driver_.on_alarm(); }),
        driver_(endpoint_, decoder_, loop_.clock(), alarm_),
        tick_(loop_, [this] { tick(); }) {
    tick();
    config_.heartbeat_interval = seconds{1};
    config_.resume_ttl = seconds{2};
    loop_.add_turn_end(TurnPhase::Decide, *this);
    runner_ = std::make_unique<LoopRunner>(loop_);
    ServerOptions options;
    options.rules.paths = {"/ws/worker"};
    auto server = WebSocketServer::listen(loop_, options, *this);
    EXPECT_TRUE(server);
    server_ = *std::move(server);
  }
  ~LittleScheduler() override { loop_.remove_turn_end(TurnPhase::Decide, *this); }

  std::string url() const { return "ws://127.0.0.1:" + std::to_string(server_->port()); }
  bool run_until(std::function<bool()> condition, Duration patience = seconds{20}) {
    return runner_->run_until(std::move(condition), patience);
  }
  void order(const std::string& id, std::string type, std::string payload) {
    orders_[id] = {std::move(type), std::move(payload)};
    if (session_) waiting_.push_back(id);
  }
  // Messages that are no results, and messages that no result is awaited for.
  std::function<void(const Message&)> when_other;
  void send(Message message) { EXPECT_TRUE(endpoint_.send(*session_, std::move(message), loop_.now())); }
  EventLoop& loop() { return loop_; }
  void drain() { endpoint_.drain(*session_, "test", seconds{20}, loop_.now()); }
  bool has_session() const { return session_.has_value(); }
  std::size_t sessions() const { return sessions_; }
  std::size_t answered() const { return answered_; }
  const std::map<std::string, Order>& orders() const { return orders_; }
  const std::optional<std::string>& result(const std::string& id) const { return orders_.at(id).result; }
  const std::optional<LoadReported>& load() const { return load_; }

 private:
  void on_opened(ConnectionId id, WebSocketConnection& connection) override {
    connection.set_message_bytes_max(limits::kFrameBytesMax);
    driver_.on_opened(id, connection, {connection.peer().address, {}, {}, {}});
  }
  void on_message(ConnectionId id, BytesView message, MessageKind kind) override {
    driver_.on_message(id, message, kind);
  }
  void on_idle(ConnectionId id) override { driver_.on_idle(id); }
  void on_blocked(ConnectionId id) override { driver_.on_blocked(id); }
  void on_writable(ConnectionId id) override { driver_.on_writable(id); }
  void on_closed(ConnectionId id, const CloseFacts& /*facts*/) override { driver_.on_closed(id); }

  // Conditions may be about files and processes, which wake no loop.
  void tick() { tick_.set(loop_.now().steady + milliseconds{10}); }

  void on_turn_end(TurnPhase /*phase*/) override {
    bool is_any = true;
    while (std::exchange(is_any, false)) {
      while (auto event = driver_.poll_event()) {
        is_any = true;
        handle(*std::move(event));
      }
      send_waiting();
      driver_.flush();
    }
  }

  void handle(OwnerEvent owner_event) {
    if (const auto* established = std::get_if<Established>(&owner_event.event)) {
      if (established->resumed) return;
      ++sessions_;
      session_ = owner_event.session;
      waiting_.clear();
      for (const auto& [id, order] : orders_) {
        if (!order.result) waiting_.push_back(id);
      }
    } else if (const auto* delivered = std::get_if<Delivered>(&owner_event.event)) {
      take(delivered->message);
      endpoint_.own(owner_event.session, delivered->seq + 1, loop_.now());
    } else if (const auto* load = std::get_if<LoadReported>(&owner_event.event)) {
      load_ = *load;
    } else if (std::holds_alternative<Ended>(owner_event.event)) {
      if (session_ == owner_event.session) session_.reset();
    }
  }

  void take(const Message& message) {
    if (message.type() != "biz.result" && when_other) return when_other(message);
    const auto order = orders_.find(std::string{message.corr()});
    ASSERT_NE(order, orders_.end()) << message.corr();
    EXPECT_EQ(message.type(), "biz.result");
    ++order->second.results;
    if (order->second.result) {
      EXPECT_EQ(*order->second.result, message.payload()) << "two different answers to " << message.corr();
      return;
    }
    order->second.result = message.payload();
    ++answered_;
  }

  void send_waiting() {
    while (session_ && !waiting_.empty()) {
      const Order& order = orders_.at(waiting_.front());
      Message message{{.type = order.type, .id = waiting_.front(), .payload = order.payload}};
      if (!endpoint_.send(*session_, std::move(message), loop_.now())) return;
      waiting_.pop_front();
    }
  }

  EventLoop loop_;
  SessionConfig config_;
  OneToken admission_;
  TokenAuthority tokens_;
  SchedulerEndpoint endpoint_;
  Decoder decoder_;
  LoopAlarm alarm_;
  SchedulerDriver driver_;
  LoopAlarm tick_;
  std::unique_ptr<LoopRunner> runner_;
  std::unique_ptr<WebSocketServer> server_;
  std::map<std::string, Order> orders_;
  std::deque<std::string> waiting_;
  std::optional<SessionHandle> session_;
  std::optional<LoadReported> load_;
  std::size_t sessions_ = 0;
  std::size_t answered_ = 0;
};

}  // namespace windlass::testing
