// An agent with its worker, as far as a runtime can see: a real session whose FunctionRpc messages a script
// answers. Own loop, own thread.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <latch>
#include <memory>
#include <thread>

#include "protocol/adapters/websocket_client.h"
#include "protocol/driver/worker_driver.h"
#include "protocol/function_rpc/session_channel.h"
#include "tests/integration/runtime/shell/worker_script.h"

namespace windlass::testing {

class ScriptedAgent final : private ConnectionEvents, private TurnEnd {
 public:
  ScriptedAgent(std::uint16_t port, const std::string& instance, const std::string& token,
                std::uint32_t window = limits::kWindowFrames)
      : endpoint_(options(instance, token), config(window), 11),
        alarm_(loop_, [this] { driver_->on_alarm(); }),
        receiver_(limits_) {
    auto address = parse_address("ws://127.0.0.1:" + std::to_string(port) + "/ws/worker");
    auto client = WebSocketClient::create(loop_, {.address = *address}, *this);
    EXPECT_TRUE(client);
    client_ = *std::move(client);
    driver_ = std::make_unique<WorkerDriver>(endpoint_, decoder_, loop_.clock(), alarm_, *client_);
    loop_.add_turn_end(TurnPhase::Decide, *this);
    endpoint_.start(loop_.now());
    loop_.turn_again();
    thread_ = std::jthread{[this] { loop_.run(); }};
  }
  ~ScriptedAgent() override {
    loop_.stop();
    thread_.join();
    loop_.remove_turn_end(TurnPhase::Decide, *this);
  }

  void send(std::string bytes) {
    loop_.post([this, bytes = std::move(bytes)]() mutable { outbox_.push_back(std::move(bytes)); });
  }
  // One part of a message, which the session's channel does not know of.
  void send_part(std::string payload, std::string bytes) {
    loop_.post([this, payload = std::move(payload), bytes = std::move(bytes)] {
      const std::string id = "part-" + std::to_string(++parts_);
      parts_waiting_.push_back(Message{{.type = function_rpc::kMessageType,
                                        .id = id,
                                        .payload = payload,
                                        .attachment = Attachment{function_rpc::kAttachmentType, bytes}}});
    });
  }
  // Breaks the connection under the session, which resumes.
  void cut() {
    loop_.post([this] { client_->close_all(1001, "cut"); });
  }
  // Reads nothing until the result is called.
  std::function<void()> stall() {
    auto gate = std::make_shared<std::latch>(1);
    loop_.post([gate] { gate->wait(); });
    return [gate] { gate->count_down(); };
  }
  // As an agent that goes to another runtime: nothing new is wanted; then, what it had is done.
  void drain() {
    loop_.post([this] { endpoint_.drain("test", seconds{10}, loop_.now()); });
  }
  void complete_drain() {
    loop_.post([this] { endpoint_.complete_drain(loop_.now()); });
  }

  WorkerScript script;
  std::atomic<int> sessions{0};
  std::atomic<int> resumes{0};
  std::atomic<int> ended{0};
  std::atomic<int> heard{0};  // whole messages

 private:
  static WorkerOptions options(const std::string& instance, const std::string& token) {
    WorkerOptions options;
    options.tenant = "acme";
    options.instance_id = instance;
    options.auth_token = token;
    options.profile.worker_name = instance;
    options.profile.version = "1";
    options.profile.hostname = "test";
    options.profile.runtimes = {"test"};
    options.profile.payload_types = {std::string{function_rpc::kMessageType}};
    return options;
  }
  static SessionConfig config(std::uint32_t window) {
    SessionConfig config;
    config.receive_credit.frames = window;
    config.backoff_first = milliseconds{5};
    config.backoff_cap = milliseconds{50};
    return config;
  }

  void on_opened(ConnectionId id, WebSocketConnection& connection) override {
    driver_->on_opened(id, connection);
  }
  void on_message(ConnectionId id, BytesView message, MessageKind kind) override {
    driver_->on_message(id, message, kind);
  }
  void on_idle(ConnectionId) override { idle_ = true; }
  void on_blocked(ConnectionId id) override { driver_->on_blocked(id); }
  void on_writable(ConnectionId id) override { driver_->on_writable(id); }
  void on_closed(ConnectionId id, const CloseFacts& facts) override {
    driver_->on_closed(id, facts.code, facts.reason);
  }

  void on_turn_end(TurnPhase) override {
    bool is_more = true;
    while (std::exchange(is_more, false)) {
      while (auto event = driver_->poll_event()) {
        is_more = true;
        handle(*event);
      }
      if (sender_) {
        while (!parts_waiting_.empty()) {
          Message part = parts_waiting_.front();
          if (!endpoint_.send(std::move(part), loop_.now())) break;
          parts_waiting_.pop_front();
        }
        while (parts_waiting_.empty() && !outbox_.empty() && !sender_->is_full()) {
          EXPECT_TRUE(sender_->push(std::move(outbox_.front())));
          outbox_.pop_front();
        }
        const auto refused =
            sender_->pump([&](Message&& message) { return endpoint_.send(std::move(message), loop_.now()); });
        static_cast<void>(refused);
      }
      driver_->flush(std::exchange(idle_, false));
    }
  }

  void handle(OwnerEvent& owner_event) {
    if (const auto* established = std::get_if<Established>(&owner_event.event)) {
      ++(established->resumed ? resumes : sessions);
      if (!established->resumed) sender_.emplace(limits_, "a" + std::to_string(sessions.load()) + "-");
    } else if (const auto* delivered = std::get_if<Delivered>(&owner_event.event)) {
      EXPECT_TRUE(receiver_.take(delivered->message, [this](std::string_view message) {
        ++heard;
        for (std::string& each : script.answer(message)) outbox_.push_back(std::move(each));
      }));
      endpoint_.own(owner_event.session, delivered->seq + 1, loop_.now());
    } else if (std::holds_alternative<Ended>(owner_event.event)) {
      ++ended;
      sender_.reset();
    }
  }

  EventLoop loop_;
  Decoder decoder_;
  WorkerEndpoint endpoint_;
  LoopAlarm alarm_;
  function_rpc::ChannelLimits limits_;
  function_rpc::ChannelReceiver receiver_;
  std::optional<function_rpc::ChannelSender> sender_;
  std::unique_ptr<WebSocketClient> client_;
  std::unique_ptr<WorkerDriver> driver_;
  std::deque<std::string> outbox_;
  std::deque<Message> parts_waiting_;
  std::uint64_t parts_ = 0;
  bool idle_ = false;
  std::jthread thread_;
};

}  // namespace windlass::testing
