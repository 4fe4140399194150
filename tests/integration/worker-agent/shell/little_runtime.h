// As much of a runtime as an agent's relay needs: sessions that carry FunctionRpc messages, on the test's
// loop. It initialises every worker that announces itself; the rest is up to the test.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "protocol/driver/scheduler_driver.h"
#include "protocol/function_rpc/peek.h"
#include "protocol/function_rpc/session_channel.h"
#include "schema/proto/function_rpc.pb.h"
#include "tests/integration/worker-agent/shell/little_scheduler.h"

namespace windlass::testing {

namespace rpc = AzureFunctionsRpcMessages;

class LittleRuntime final : private ConnectionEvents, private TurnEnd {
 public:
  explicit LittleRuntime(EventLoop& loop, const TlsContext* tls = nullptr)
      : loop_(loop),
        config_(quick()),
        tokens_(*TokenAuthority::with_keys({{"k1", std::string(32, 'k')}})),
        endpoint_({.scheduler_id = "rt-1", .role = Role::Runtime}, config_, admission_, tokens_, 9),
        alarm_(loop_, [this] { driver_.on_alarm(); }),
        driver_(endpoint_, decoder_, loop_.clock(), alarm_) {
    loop_.add_turn_end(TurnPhase::Decide, *this);
    ServerOptions options;
    options.rules.paths = {"/ws/worker"};
    options.tls = tls;
    auto server = WebSocketServer::listen(loop_, options, *this);
    EXPECT_TRUE(server);
    server_ = *std::move(server);
  }
  ~LittleRuntime() override { loop_.remove_turn_end(TurnPhase::Decide, *this); }

  std::string url() const { return "ws://127.0.0.1:" + std::to_string(server_->port()); }
  std::string secure_url() const { return "wss://127.0.0.1:" + std::to_string(server_->port()); }
  void send(const rpc::StreamingMessage& message) { send_bytes(message.SerializeAsString()); }
  void send_bytes(std::string bytes) {
    ASSERT_TRUE(sender_.has_value());
    if (function_rpc::peek(bytes)->content == function_rpc::Content::InvocationRequest) ++unanswered_;
    ASSERT_TRUE(sender_->push(std::move(bytes)).has_value());
  }
  // The connection ends without a word; its session may be resumed.
  void cut() {
    for (const auto& [id, connection] : open_) connection->abandon("cut by the test");
  }
  // The session ends for good.
  void reset() {
    endpoint_.reset(*session_, ErrorCode::SessionRestarting, "the test restarts it", loop_.now());
  }

  std::vector<std::string> workers;  // of StartStream, in order
  std::vector<rpc::WorkerInitResponse> inits;
  std::function<void(const rpc::WorkerInitResponse&)> when_initialised;
  std::vector<std::string> answers;  // InvocationResponse messages, whole
  std::vector<rpc::WorkerSpecialized> specialized;
  std::vector<rpc::FunctionLoadResponse> loads;
  std::string load;  // the name of a function that is loaded before the answer
  std::size_t initialised = 0;
  std::size_t partings = 0;  // WorkerActionResponse: it is to be given nothing more
  std::size_t sessions = 0;
  std::size_t resumes = 0;
  std::size_t ended = 0;

 private:
  static SessionConfig quick() {
    SessionConfig config;
    config.heartbeat_interval = seconds{1};
    config.resume_ttl = seconds{10};
    return config;
  }

  void on_opened(ConnectionId id, WebSocketConnection& connection) override {
    open_[id] = &connection;
    connection.set_message_bytes_max(limits::kFrameBytesMax);
    driver_.on_opened(id, connection, {connection.peer().address, {}, {}, {}});
  }
  void on_message(ConnectionId id, BytesView message, MessageKind kind) override {
    driver_.on_message(id, message, kind);
  }
  void on_idle(ConnectionId id) override { driver_.on_idle(id); }
  void on_blocked(ConnectionId id) override { driver_.on_blocked(id); }
  void on_writable(ConnectionId id) override { driver_.on_writable(id); }
  void on_closed(ConnectionId id, const CloseFacts& /*facts*/) override {
    open_.erase(id);
    driver_.on_closed(id);
  }

  void on_turn_end(TurnPhase /*phase*/) override {
    bool is_any = true;
    while (std::exchange(is_any, false)) {
      while (auto event = driver_.poll_event()) {
        is_any = true;
        handle(*std::move(event));
      }
      if (sender_ && session_) {
        static_cast<void>(sender_->pump(
            [&](Message&& message) { return endpoint_.send(*session_, std::move(message), loop_.now()); }));
      }
      driver_.flush();
    }
  }

  void handle(OwnerEvent event) {
    if (const auto* established = std::get_if<Established>(&event.event)) {
      if (established->resumed) {
        ++resumes;
        return;
      }
      ++sessions;
      session_ = event.session;
      sender_.emplace(limits_, "rt" + std::to_string(sessions) + "-");
      receiver_ = function_rpc::ChannelReceiver{limits_};
    } else if (const auto* delivered = std::get_if<Delivered>(&event.event)) {
      const auto taken =
          receiver_.take(delivered->message, [this](std::string_view message) { take(message); });
      ASSERT_TRUE(taken.has_value()) << taken.error().reason;
      endpoint_.own(event.session, delivered->seq + 1, loop_.now());
    } else if (std::holds_alternative<Ended>(event.event)) {
      ++ended;
      if (session_ == event.session) session_.reset();
    }
  }

  void take(std::string_view bytes) {
    const auto peeked = function_rpc::peek(bytes);
    ASSERT_TRUE(peeked.has_value());
    if (peeked->content == function_rpc::Content::InvocationResponse) {
      answers.emplace_back(bytes);
      --unanswered_;
      return end_if_wanted();
    }
    rpc::StreamingMessage message;
    ASSERT_TRUE(message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
    rpc::StreamingMessage reply;
    if (message.has_start_stream()) {
      workers.push_back(message.start_stream().worker_id());
      unanswered_ = 0;
      is_end_wanted_ = false;
      reply.set_request_id("init-" + std::to_string(workers.size()));
      reply.mutable_worker_init_request()->set_host_version("test");
      send(reply);
    } else if (message.has_worker_init_response()) {
      EXPECT_EQ(message.request_id(), "init-" + std::to_string(workers.size()));
      ++initialised;
      inits.push_back(message.worker_init_response());
      if (when_initialised) when_initialised(inits.back());
    } else if (message.has_worker_action_response()) {
      is_end_wanted_ = true;
      ++partings;
      end_if_wanted();
    } else if (message.has_function_load_response()) {
      loads.push_back(message.function_load_response());
    } else if (message.has_worker_specialized()) {
      specialized.push_back(message.worker_specialized());
      if (!load.empty()) {
        rpc::StreamingMessage request;
        request.mutable_function_load_request()->set_function_id(load);
        request.mutable_function_load_request()->mutable_metadata()->set_name(load);
        send(request);
      }
      reply.set_request_id(message.request_id());
      reply.mutable_worker_specialized_response()->mutable_result()->set_status(rpc::StatusResult::Success);
      send(reply);
    }
  }

  void end_if_wanted() {
    if (unanswered_ > 0 || !std::exchange(is_end_wanted_, false)) return;
    rpc::StreamingMessage terminate;
    terminate.mutable_worker_terminate();
    send(terminate);
  }

  EventLoop& loop_;
  SessionConfig config_;
  OneToken admission_;
  TokenAuthority tokens_;
  SchedulerEndpoint endpoint_;
  Decoder decoder_;
  LoopAlarm alarm_;
  SchedulerDriver driver_;
  std::unique_ptr<WebSocketServer> server_;
  function_rpc::ChannelLimits limits_;
  std::optional<function_rpc::ChannelSender> sender_;
  function_rpc::ChannelReceiver receiver_{limits_};
  std::optional<SessionHandle> session_;
  int unanswered_ = 0;
  bool is_end_wanted_ = false;
  std::map<ConnectionId, WebSocketConnection*> open_;
};

}  // namespace windlass::testing
