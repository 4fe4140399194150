// What the scheduler decides, as a value that is stepped: facts in, one batch of effects out. Owns the fleet,
// the outbox, the inbox, drains and revocations. No I/O, no clock, no thread.
//
// Drive loop: handle or handle_timeout, then poll_effects. With effects in hand: commit `writes`, then
// effects_committed, then do the rest in its order; or effects_failed, and throw the rest away. Meanwhile
// handle goes on, and what it decides forms the next batch. Then set the alarm to poll_timeout.
//
// After effects_failed the core is failing (store_health): whatever was not durable is refused, new
// submissions are refused at once, frames are not owned, and the store is tried again after a delay until it
// takes what it owes. Nothing that anybody was promised is touched.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "protocol/base/random.h"
#include "protocol/base/result.h"
#include "scheduler/core/apps.h"
#include "scheduler/core/assignment_plan.h"
#include "scheduler/core/core_options.h"
#include "scheduler/core/dirty_rows.h"
#include "scheduler/core/durable_rows.h"
#include "scheduler/core/effects.h"
#include "scheduler/core/fleet.h"
#include "scheduler/core/grants.h"
#include "scheduler/core/inbox.h"
#include "scheduler/core/input.h"
#include "scheduler/core/outbox.h"
#include "scheduler/core/place_view.h"
#include "scheduler/core/resumes.h"
#include "scheduler/core/row_text.h"
#include "scheduler/core/rows.h"
#include "scheduler/core/runtime_text.h"
#include "scheduler/core/vacancies.h"

namespace windlass {

struct StoreHealth {
  bool is_failing = false;
  bool is_fenced = false;                   // another scheduler writes to the store: this one must stop
  ErrorCode code = ErrorCode::StoreFailed;  // what the store said last, while failing
  std::string reason;
  std::uint64_t failures = 0;
  std::uint64_t commits = 0;
};

// How often the fleet was looked through, which is what decisions cost.
struct Searches {
  std::uint64_t placements = 0;  // for workers of commands
  std::uint64_t plans = 0;       // for workers of places
};

class SchedulerCore final {
 public:
  // From what the store holds. Refuses a row that it cannot read, naming it. The seed makes command ids, so
  // it must differ from process to process. The options are copied.
  static Result<std::unique_ptr<SchedulerCore>> restore(const CoreOptions& options, const Snapshot& snapshot,
                                                        std::uint64_t seed, Now now);
  SchedulerCore(const SchedulerCore&) = delete;
  SchedulerCore& operator=(const SchedulerCore&) = delete;

  // In.
  void handle(Input input, Now now);
  void handle_timeout(Now now);
  // For sessions that begin from now on, as the heartbeats of tenants are.
  void set_tenant_lost_after(std::map<TenantId, Duration> lost_after) {
    options_.tenant_lost_after = std::move(lost_after);
  }

  // Out. Nothing while a batch is outstanding.
  [[nodiscard]] std::optional<Effects> poll_effects();
  void effects_committed(Version version);
  void effects_failed(const Error& error, Now now);
  [[nodiscard]] std::optional<Instant> poll_timeout() const;

  // To look at. Of commands and messages only what is durable shows.
  const Fleet& fleet() const { return fleet_; }
  const Outbox& outbox() const { return outbox_; }
  const Inbox& inbox() const { return inbox_; }
  const Apps& apps() const { return apps_; }
  PlaceState state_of(const AssignmentRecord& assignment) const {
    return place_state(fleet_, assignment, vacancies_.is_missing(assignment.worker));
  }
  // What plan_assignment decides from.
  FleetView fleet_view(const TenantId& tenant, const std::string& application_id) const;
  const StoreHealth& store_health() const { return health_; }
  const Searches& searches() const { return searches_; }
  Version version() const { return version_; }
  // What every token authority must be told before it issues anything: revoke(tenant, instance, until) for
  // each.
  std::vector<Revocation> revocations() const;
  std::optional<DrainIntent> drain_of(const WorkerKey& worker) const;
  // Who is not let in; what is durable.
  const DurableRows<Denial>& denials() const { return denials_; }
  bool is_denied(const WorkerKey& worker) const { return denials_.find(denial_row(worker)) != nullptr; }

 private:
  // Something that leaves once its batch is through.
  struct Order {
    std::optional<SessionCommand> command;
    std::optional<Reply> reply;
    bool needs_store = false;  // void if the store refuses
  };
  struct Sent {
    SessionRef session;
    std::string row;
  };
  // What the outstanding batch was made of, to take it back.
  struct Outstanding {
    bool has_writes = false;
    std::vector<std::string> rows;
    std::vector<SessionRef> owns;
    std::vector<Sent> sends;
    std::vector<Order> orders;
    std::vector<PackageAsked> packages_asked;
    std::vector<Tell> tells;
    std::vector<CoreEvent> events;
  };
  template <class T>
  struct Stored {
    T value;
    Instant until{};  // by this process's clock
    bool is_in_batch = false;
    bool is_stored = false;
  };

  SchedulerCore(const CoreOptions& options, std::uint64_t seed);
  void restore_record(Revocation&& revocation, Now now);
  void restore_record(DrainIntent&& drain, Now now);
  void sweep(Instant now);  // revocations and drains whose time is over
  void sweep_at(Instant at);

  // Sessions (scheduler_sessions.cc).
  void on(SessionOpened& opened, Now now);
  void on(SessionSaid& said, Now now);
  void on(SendRefused& refused, Now now);
  void deliver(Worker& worker, const Delivered& delivered, Now now);
  void keep(Worker& worker, const Message& message, Now now);
  void end_session(Worker& worker, const Ended& ended, Now now);
  void note_issued(Now now);
  // Status and the like: used at once and never stored. False for anything else.
  bool take_transient(Worker& worker, const Message& message, Now now);
  void serve_package(const Worker& worker, const Message& message);
  void queue_own(Worker& worker);
  void check_address(Worker& runtime, RuntimeStatus& status);

  // Requests (scheduler_requests.cc).
  void on(SubmitCommand& request, Now now);
  void on(DrainWorker& request, Now now);
  void on(ResetWorker& request, Now now);
  void on(RotateToken& request, Now now);
  void on(RevokeWorker& request, Now now);
  void on(AllowWorker& request, Now now);
  // Drained workers that are started again (scheduler_resumes.cc).
  void on(ResumeWorker& request, Now now);
  void order_resume(const WorkerKey& worker, Now now);
  void look_at_resumes(Instant at);  // then, if not before, and if anybody waits for it
  const Worker* runtime_of_drained(const Worker& worker) const;
  struct Resumable;
  std::vector<Resumable> find_resumable() const;
  void resume_workers(Now now);
  // Applications (scheduler_apps.cc).
  void on(DeployApp& request, Now now);
  void on(UndeployApp& request, Now now);
  void on(SplitApp& request, Now now);
  void tell_splits(const Worker& runtime, const RuntimeStatus* before, Now now);
  void on(AssignWorkers& request, Now now);
  void on(UnassignWorkers& request, Now now);
  // `key` is what the commands' ids begin with. True: the request has its answer.
  bool answer_repeated(RequestId request, const CommandKey& key, std::string_view type,
                       const std::string& application_id);
  bool refuse_if_taken(RequestId request, const CommandKey& key, std::size_t count);
  Availability availability_of(const Worker& worker) const;
  void order(const AssignmentRecord& assignment, std::string_view type, std::string payload, Now now,
             std::uint64_t package_bytes = 0);  // that the worker fetches first
  // What becomes of assignments (scheduler_assignments.cc).
  void compare_assignment(const Worker& worker, Now now);
  void release_stray(const Worker& worker, Now now);
  void follow_runtime(const Worker& runtime, Now now);
  std::string runtime_url_of(const AssignmentRecord& assignment) const;
  bool has_runtime_moved(const AssignmentRecord& assignment) const;
  void settle_orders(Now now);
  void settle_assignments(Now now);
  void settle_reverted();
  void specialize_again(const AssignmentRecord& assignment, Now now);
  // Tells the worker, with a new epoch, to be what `next` says. False: no command could be stored for it.
  bool tell_assignment(AssignmentRecord next, const AppRecord& app, Now now);
  void note_assignment(AssignmentRecord assignment, bool is_over = false);
  // Those that are gone for too long, and their places (scheduler_loss.cc).
  void expect(const AssignmentRecord& assignment, Instant now);
  void settle_lost(Now now);
  void lose_assignment(const WorkerKey& worker, const std::string& reason, Now now);
  void leave_place(const Worker& worker, Now now);
  void want_places(Instant now);    // something may be placed now that could not be before
  void look_at_places(Instant at);  // then, if not before
  void replace_missing(const Worker& runtime, const RuntimeSignal& signal, Now now);
  struct Vacant;
  void fill_places(Now now);
  Vacant find_vacant(Now now);
  enum class Filled : std::uint8_t { Yes, No, NoPlan };
  Filled fill_place(const AssignmentRecord& vacant, Now now);
  std::optional<AssignmentRecord> plan_successor(const AssignmentRecord& vacant, const AppRecord& app);
  bool can_take_back(const AssignmentRecord& vacant) const;
  void give_up_place(AssignmentRecord assignment, const InstanceId& successor, Now now);
  bool take_back_place(const AssignmentRecord& lost, const AppRecord& app, Now now);
  bool leave_lost_runtime(const AssignmentRecord& assignment, Now now);
  // Settings that changed (scheduler_reload.cc).
  struct Reload;
  void reload_workers(Now now);
  void judge_settings(const AssignmentRecord& told, bool is_ready);
  // The version that serves (scheduler_versions.cc).
  void settle_active(const TenantId& tenant, const std::string& application_id);
  void take_applications(Effects& effects, const Outstanding& batch, bool is_writing);

  // Who gets which command (scheduler_placement.cc).
  std::size_t parallel_max(const Worker& worker) const;
  std::vector<const Worker*> workers_for(const UnplacedKey& key) const;
  void place_commands();  // if anything changed that can matter
  void note_unserved(const Worker& runtime, const RuntimeStatus* next);
  void fail_unserved(Now now);
  void note_fitness(const Worker& worker);
  void note_load(Worker& worker, bool was_short);
  void note_presence(const Worker& worker, const SessionEvent& event, Now now);
  void refuse_types(const Worker& worker, Now now);
  Result<Done> check_target(const SubmitCommand& request) const;
  Result<Done> check_shared_target(const SubmitCommand& request) const;

  Worker* find_or_refuse(RequestId request, const WorkerKey& worker);
  bool refuse_if_failing(RequestId request);
  // Built in place: GCC 12 warns of a moved optional variant.
  template <class Outcome>
  void reply_to(RequestId request, Outcome outcome, bool needs_store) {
    Order& order = orders_.emplace_back();
    order.reply.emplace().request = request;
    order.reply->outcome = std::move(outcome);
    order.needs_store = needs_store;
  }
  void refuse(RequestId request, Error error);
  void answer(RequestId request, SessionCommand command, bool needs_store);
  std::string new_command_id(const TenantId& tenant);
  std::string random_name(std::string_view prefix);

  // Batches (scheduler_batch.cc).
  bool may_write() const { return !health_.is_failing || (is_retry_due_ && !health_.is_fenced); }
  void take_writes(Effects& effects, Outstanding& batch);
  void take_owns(Effects& effects, Outstanding& batch);
  void take_grants(Effects& effects, const Outstanding& batch, bool is_writing);
  void take_sends(Effects& effects, Outstanding& batch, bool is_writing);
  void take_orders(Effects& effects, Outstanding& batch, bool is_writing);
  std::optional<Bytes> begin_store(std::string_view row, Effects& effects);
  void end_store(std::string_view row, bool is_committed);
  void note_failure(const Error& error, Now now);
  void take_back(Outstanding& batch, const Error& error);
  void drop_unstored();

  CoreOptions options_;
  Random random_;
  RowReader reader_;
  DirtyRows dirty_;
  Fleet fleet_;
  Outbox outbox_;
  Inbox inbox_;
  Apps apps_;
  Vacancies vacancies_;
  Resumes resumes_;
  RuntimeReader runtime_reader_;
  std::map<std::string, Stored<Revocation>, std::less<>> revocations_;  // by row
  std::map<std::string, Stored<DrainIntent>, std::less<>> drains_;      // by row
  DurableRows<Denial> denials_;
  Grants grants_;
  // Somebody failed for a reason that may strike the next too: until then no other is told new settings.
  std::map<AppKey, Instant> reloads_held_;
  std::optional<Instant> sweep_at_;
  std::optional<Instant> places_at_;    // when places are looked at
  std::optional<Instant> resumes_at_;   // when drained workers are next considered for a resume
  Instant places_done_{};               // when they were last
  Instant started_{};                   // when this process began
  std::optional<Instant> unserved_at_;  // when invocations without a runtime are
  std::map<std::pair<TenantId, std::string>, Instant> served_again_;  // by application: waited for until then
  std::set<std::pair<TenantId, std::string>> versions_due_;  // applications whose assignments changed
  std::map<WorkerKey, std::pair<SessionRef, std::string>> applications_told_;  // by runtime; of live sessions
  bool are_applications_due_ = false;                                          // somebody was told nothing
  WallTime issued_until_{};  // no token was issued later than this, as the store knows it
  WallTime issued_last_{};   // and as this process does
  Now now_{};                // of the last input

  Version version_{0};
  StoreHealth health_;
  Searches searches_;
  bool is_placement_due_ = true;  // workers or assignments changed
  bool is_retry_due_ = false;
  Duration retry_delay_{};
  std::optional<Instant> retry_at_;

  std::vector<SessionRef> owning_;  // sessions with frames that are handled and not owned
  std::vector<Order> orders_;
  std::vector<PackageAsked> packages_asked_;
  std::vector<Tell> tells_;
  std::vector<CoreEvent> events_;
  std::optional<Outstanding> outstanding_;
};

}  // namespace windlass
