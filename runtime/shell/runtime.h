// windlass-runtime as one object: wires the core, sessions of agents, the gRPC server, the HTTP front, the
// scheduler's session and the admin listener on one loop, runs them, and takes them down in order.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "protocol/adapters/event_loop.h"
#include "protocol/adapters/tls_context.h"
#include "protocol/base/log_pace.h"
#include "protocol/http/http_listener.h"
#include "protocol/shell/certificate_watch.h"
#include "protocol/shell/credentials.h"
#include "protocol/shell/json_log.h"
#include "protocol/shell/reloader.h"
#include "runtime/adapters/command_text.h"
#include "runtime/adapters/grpc_server.h"
#include "runtime/adapters/http_front.h"
#include "runtime/adapters/status_text.h"
#include "runtime/core/early_orders.h"
#include "runtime/core/unseen_applications.h"
#include "runtime/shell/agent_sessions.h"
#include "runtime/shell/config.h"
#include "runtime/shell/core_desk.h"
#include "runtime/shell/scheduler_link.h"
#include "runtime/shell/tenant_admission.h"

namespace windlass::runtime {

// Whether the files that the settings name can be used. Opens no socket and changes nothing; an error is one
// sentence that names the file.
Result<Done> check_files(const RuntimeConfig& config);

class Runtime final : private TurnEnd, private HttpFrontHost, private HttpHandler, private SchedulerLinkHost {
 public:
  // Everything is open and listening when it returns, but nothing runs. The error is one sentence.
  static Result<std::unique_ptr<Runtime>> create(RuntimeConfig config, JsonLog& log);
  ~Runtime() override;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // Until stopped; the calling thread becomes the loop's. Gives the process's exit code.
  int run();

  // From any thread. The first call ends what is under way and lets agents go; the second stops at once.
  void stop();
  // Credentials, keys, tokens and certificates anew, as also happens when their files change.
  void reload();

  std::uint16_t port() const { return sessions_->port(); }
  std::uint16_t admin_port() const { return admin_->port(); }
  std::uint16_t http_port() const { return http_ ? http_->port() : std::uint16_t{0}; }
  std::uint16_t grpc_port() const { return grpc_ ? grpc_->port() : std::uint16_t{0}; }

  // On the loop, or while it does not run.
  EventLoop& loop() { return loop_; }
  CoreDesk& desk() { return desk_; }

 private:
  Runtime(RuntimeConfig config, JsonLog& log);
  Result<Done> open();
  Result<Done> open_sessions();
  Result<Done> open_admin();
  Result<Done> open_http();
  Result<Done> open_grpc();
  Result<StreamIdentity> identify(const GrpcCaller& caller) const;
  Result<Done> open_scheduler();
  Result<Done> add_applications();
  void watch_files();
  void watch_certificates();
  Result<Done> reload_certificate(TlsContext& tls);
  Result<Done> reload_scheduler_tls();

  void on_turn_end(TurnPhase phase) override;
  void tick();
  void sample();
  void handle_stop();
  void begin_stop();
  void check_ended();

  std::vector<Application> http_applications() override;
  std::vector<Absent> http_absent() override;
  std::vector<std::string> awaited_applications();  // not here, and a worker of theirs is to come
  bool http_awaits() override { return desk_.core().is_awaiting(); }
  bool http_has_unseen() override { return unseen_.is_any(loop_.now().steady); }
  const TextMap* http_capabilities(const JobHostKey& key) override;
  Result<Done> http_ready() override;
  Result<InvocationId> http_invoke(HttpFrontHost::Call call,
                                   std::function<void(const Outcome&)> done) override;
  void http_cancel(const InvocationId& invocation) override { desk_.cancel(invocation); }
  void http_answered(std::uint16_t status) override { metrics_.count_http(status); }
  void stream_send(const InvocationId& invocation, std::string message) override {
    desk_.stream_send(invocation, std::move(message));
  }
  void stream_over(const InvocationId& invocation, bool is_cancelled) override;
  Result<HttpKeys> read_http_keys() const;

  // Of the admin listener.
  bool is_probe(const HttpRequest& request) const override;
  void handle(HttpRequest request, HttpAnswer answer) override;
  std::string metrics_text();

  void on_order(const OrderKey& key, std::string_view type, std::string_view payload) override;
  void on_grants(std::string_view payload) override;
  void on_applications(std::string_view payload) override;
  void on_scheduler_connected() override;
  void on_scheduler_drains() override { begin_stop(); }
  Result<Done> invoke(const OrderKey& key, std::string_view payload);
  CoreDesk::CallDone stream_invocation(CoreDesk::Call& call, const OrderKey& key, HttpInput input);
  Result<Done> hold_early(const OrderKey& key, const InvokeCommand& command, std::string_view payload);
  void begin_early();
  void give_up_early(const std::vector<EarlyOrder>& orders, const Error& why);
  Result<Done> split(std::string_view payload);
  void send_status(bool is_wanted);
  void send_signal(const Signal& signal);

  RuntimeConfig config_;
  JsonLog& log_;
  Random random_;
  EventLoop loop_;
  RuntimeMetrics metrics_;
  Reloader reloader_;
  CertificateWatch certificates_;
  LiveTenants tenants_;
  CoreDesk desk_;
  std::unique_ptr<LiveAdmission> admission_;
  std::unique_ptr<TenantAdmission> own_admission_;
  std::unique_ptr<TlsContext> tls_;
  std::unique_ptr<TlsContext> http_tls_;
  std::unique_ptr<TlsContext> admin_tls_;
  std::unique_ptr<TlsContext> grpc_tls_;  // gRPC reads the files itself; this one tells when they expire
  std::unique_ptr<AgentSessions> sessions_;
  std::unique_ptr<HttpFront> front_;
  std::unique_ptr<HttpListener> http_;
  std::unique_ptr<HttpListener> admin_;
  std::unique_ptr<GrpcServer> grpc_;
  std::atomic<std::uint16_t> grpc_port_{0};
  LogPace refusals_{seconds{10}};
  std::unique_ptr<SchedulerLink> scheduler_;
  LoopAlarm tick_;
  LoopAlarm sample_;
  LoopAlarm deadline_;  // of the drain
  UnseenApplications unseen_;
  LoopAlarm unseen_alarm_;
  EarlyOrders early_;
  LoopAlarm early_alarm_;
  StatusPlaces places_;
  std::string status_;  // as it was said last
  Instant status_at_{};
  bool is_stopping_ = false;
  bool is_signalled_ = false;  // stop() was called; the next one ends it at once
  bool is_leaving_ = false;    // all is done; sessions are being ended
};

}  // namespace windlass::runtime
