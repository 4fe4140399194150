// The session to the scheduler: orders come in, each is answered once, status and signals go out. Orders are
// journalled in memory only: what a runtime had under way ends with it, and the scheduler asks again.
// Loop thread only.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/adapters/event_loop.h"
#include "protocol/adapters/websocket_client.h"
#include "protocol/codec/decode.h"
#include "protocol/driver/worker_driver.h"
#include "protocol/session/journal.h"
#include "protocol/shell/json_log.h"
#include "runtime/shell/config.h"

namespace windlass::runtime {

// Names an order until it is answered.
struct OrderKey {
  std::string id;
  std::string corr;
};

class SchedulerLinkHost {
 public:
  virtual ~SchedulerLinkHost() = default;
  // answer() follows, at once or later, exactly once.
  virtual void on_order(const OrderKey& key, std::string_view type, std::string_view payload) = 0;
  virtual void on_grants(std::string_view payload) = 0;        // is not answered
  virtual void on_applications(std::string_view payload) = 0;  // is not answered
  virtual void on_scheduler_connected() = 0;                   // a session, new or resumed: say everything
  virtual void on_scheduler_drains() = 0;                      // it wants this runtime to end
};

class SchedulerLink final : private ConnectionEvents {
 public:
  static Result<std::unique_ptr<SchedulerLink>> open(EventLoop& loop, const SchedulerSettings& settings,
                                                     const std::string& id, const SessionConfig& session,
                                                     SchedulerLinkHost& host, JsonLog& log,
                                                     std::uint64_t seed);
  ~SchedulerLink() override;

  void start();
  void answer(const OrderKey& key, std::string payload);
  // Transient: dropped where there is no session, or no credit.
  void say(std::string_view type, std::string_view payload);
  // Said once there is a session and credit; of several with one key the newest. A session that ends before
  // it was taken leaves it to the next.
  void say_surely(std::string key, std::string_view type, std::string payload);
  std::size_t orders() const { return orders_; }  // not answered yet
  bool is_connected() const;

  bool take_events();
  void flush();
  // Ends the session once every answer was taken.
  void leave();
  bool is_gone() const { return endpoint_.state() == SessionState::Closed; }
  void set_inflight(std::uint64_t count) {  // for its heartbeats
    LoadFacts load;
    load.inflight = count;
    endpoint_.set_load(load);
  }
  void set_token(std::string token) { endpoint_.set_auth_token(std::move(token)); }
  const TlsContext* tls() const { return tls_.get(); }
  // The fingerprint is that of our own certificate; empty without one.
  Result<Done> reload_tls(std::string fingerprint);

 private:
  SchedulerLink(EventLoop& loop, WorkerOptions options, const SessionConfig& session, SchedulerLinkHost& host,
                JsonLog& log, std::uint64_t seed);

  void on_opened(ConnectionId id, WebSocketConnection& connection) override;
  void on_message(ConnectionId id, BytesView message, MessageKind kind) override;
  void on_idle(ConnectionId) override { is_idle_ = true; }
  void on_blocked(ConnectionId id) override { driver_->on_blocked(id); }
  void on_writable(ConnectionId id) override { driver_->on_writable(id); }
  void on_closed(ConnectionId id, const CloseFacts& facts) override;

  void handle(OwnerEvent& event);
  void handle_order(const Message& message);
  void queue_result(std::string corr, std::string payload);
  void send_results();
  void send_sure();
  void take_back(const std::vector<Message>& returned);
  std::string next_id();

  struct Waiting {
    std::string id;
    std::string corr;
    std::string payload;
  };

  EventLoop& loop_;
  SchedulerLinkHost& host_;
  JsonLog& log_;
  std::string prefix_;
  std::uint64_t counter_ = 0;
  Decoder decoder_;
  WorkerEndpoint endpoint_;
  LoopAlarm alarm_;
  std::unique_ptr<TlsContext> tls_;
  std::unique_ptr<WebSocketClient> client_;
  std::unique_ptr<WorkerDriver> driver_;
  Journal journal_;
  std::deque<Waiting> results_;  // for credit; bounded by the journal
  struct Sure {
    std::string type;
    std::string payload;
  };
  std::map<std::string, Sure> sure_;                         // by key; bounded by kSureMax
  std::deque<std::pair<std::string, std::string>> trusted_;  // ids given to the session, and keys; likewise
  std::size_t orders_ = 0;
  bool is_idle_ = false;
  bool is_leaving_ = false;
};

}  // namespace windlass::runtime
