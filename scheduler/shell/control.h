// The one thread that steps the scheduler's core: takes what loops and operators say, has the store commit
// what the core wants durable, and only then lets anything leave.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "protocol/adapters/event_loop.h"
#include "protocol/shell/json_log.h"
#include "scheduler/adapters/metrics.h"
#include "scheduler/core/scheduler_core.h"
#include "scheduler/shell/denying_admission.h"
#include "scheduler/shell/loop_messages.h"
#include "scheduler/shell/session_report.h"
#include "scheduler/shell/store_thread.h"

namespace windlass {

class PackageDesk;
class SessionLoop;

// Whom the control tells, on its loop, what concerns the whole process.
struct ControlHooks {
  JsonLog* log = nullptr;                                        // must outlive the control
  std::function<void(const StoreHealth& store)> on_fenced = {};  // the store is another scheduler's: stop
  DeniedInstances* denied = nullptr;                             // likewise
};

class Control final : public ControlInbox, private TurnEnd {
 public:
  using ReplyHandler = std::function<void(const Reply&)>;
  using FinishHandler = std::function<void()>;

  // All references must outlive the control.
  Control(EventLoop& loop, std::unique_ptr<SchedulerCore> core, std::unique_ptr<StateStore> store,
          Metrics& metrics, ControlHooks hooks = {});
  ~Control() override;

  // Before anything runs.
  void set_loops(std::vector<SessionLoop*> loops) { loops_ = std::move(loops); }
  void set_packages(PackageDesk* packages) { packages_ = packages; }  // none: nobody can fetch any

  // From any thread.
  void post_inputs(std::vector<Input> inputs) override;

  // Loop thread only from here on.
  const SchedulerCore& core() const { return *core_; }
  EventLoop& loop() { return loop_; }
  void set_tenant_lost_after(std::map<TenantId, Duration> lost_after) {
    core_->set_tenant_lost_after(std::move(lost_after));
  }
  // The request's number is filled in; `handler` is called once, in a later turn.
  template <class Request>
  void ask(Request request, ReplyHandler handler) {
    request.request = RequestId{++requests_};
    replies_.emplace(request.request, std::move(handler));
    core_->handle(std::move(request), loop_.now());
  }
  // Called once when the command has its outcome; at once if it has one, or is not known. The number cancels.
  std::uint64_t wait_for(const CommandKey& command, FinishHandler handler);
  void stop_waiting(std::uint64_t number);

 private:
  void on_turn_end(TurnPhase phase) override;
  void handle_committed(StoreThread::Answer answer);
  void handle_refused(const Error& error);
  void execute(Effects effects);
  void hand_out(Effects& effects);
  void tell_finished(const CommandKey& command);
  void tell(SessionRef session, Message message);
  void handle_news(const CoreEvent& event);

  EventLoop& loop_;
  std::unique_ptr<SchedulerCore> core_;
  Metrics& metrics_;
  ControlHooks hooks_;
  CoreReport report_;
  StoreThread store_;
  LoopAlarm alarm_;
  std::vector<SessionLoop*> loops_;
  PackageDesk* packages_ = nullptr;
  std::optional<Effects> committing_;
  std::uint64_t requests_ = 0;
  std::unordered_map<RequestId, ReplyHandler> replies_;
  struct Waiter {
    std::uint64_t number;
    FinishHandler handler;
  };
  std::multimap<CommandKey, Waiter> waiters_;
  std::uint64_t waits_ = 0;
};

}  // namespace windlass
