// Commands as records: each is stored before it is sent, sent again in the next session until it has a
// result, and has exactly one outcome for ever. Keeps the order per worker and the bounds per tenant. Does
// not know sessions, only whether a worker has one.
//
// A command for an application or a language waits until a worker is chosen for it, which is stored before it
// is sent. Once it was given to a worker it stays with that one, unless the worker is lost and the command is
// idempotent: nobody can know whether it ran.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "protocol/base/result.h"
#include "protocol/base/timer_queue.h"
#include "protocol/messages/message.h"
#include "scheduler/core/core_options.h"
#include "scheduler/core/dirty_rows.h"
#include "scheduler/core/effects.h"
#include "scheduler/core/input.h"
#include "scheduler/core/values.h"

namespace windlass {

struct Command {
  explicit Command(CommandRecord r) : record(std::move(r)), expiry(this) {}

  CommandRecord record;
  std::string row;           // its key
  bool is_stored = false;    // the row is in the store, as it was at some time
  bool is_in_batch = false;  // the outstanding batch writes it
  bool is_finish_in_batch = false;
  bool is_finish_stored = false;
  bool is_sent = false;  // given to the worker's present session
  bool is_choice_in_batch = false;
  bool is_choice_unstored = false;  // the store does not know yet which worker it is for
  bool was_given_before = false;    // perhaps, by an earlier process
  bool was_given_here = false;      // likewise, to the present worker
  DispatchCause next_cause = DispatchCause::First;
  std::uint32_t sends = 0;            // by this process
  std::uint32_t sends_elsewhere = 0;  // of those, to workers that it was taken from
  Instant created{};
  Instant finished{};
  TimerQueue<Command>::Node expiry;
  std::size_t finished_bytes = 0;
  std::list<Command*>::iterator place;  // among its tenant's finished ones

  // Anywhere, at any time.
  bool may_have_begun() const { return was_given_before || sends > 0; }
  bool may_be_with_its_worker() const { return was_given_here || sends > sends_elsewhere; }
  // An order of the scheduler's own, which a worker must be able to follow whatever else it does.
  bool is_order() const;
  bool is_for_runtimes() const { return record.type.starts_with("biz.runtime."); }
};

// How much a worker may be given.
struct DispatchTerms {
  std::size_t parallel_max = 0;  // commands under way, without orders
  bool orders_only = false;
  // Only a runtime gets biz.runtime.*, and only its results of them count: a worker may have taken its id.
  bool is_runtime = false;
};

// Of commands for which no worker is chosen yet.
struct UnplacedKey {
  TenantId tenant;
  CommandTarget target;
  friend auto operator<=>(const UnplacedKey&, const UnplacedKey&) = default;
};

// A command as anybody outside may see it: an outcome that is not stored yet does not show.
struct CommandView {
  const CommandRecord& record;  // without a look at its outcome: that is below
  CommandState state = CommandState::Waiting;
  std::uint32_t sends = 0;
  const StoredMessage* result = nullptr;  // of Done
  const Failure* failure = nullptr;       // of Failed
};

struct CommandFilter {
  std::optional<TenantId> tenant;
  std::optional<InstanceId> worker;
  std::optional<CommandState> state;
  std::optional<std::uint64_t> before_number;  // for the next page: the last one's
  std::size_t count_max = 100;
};

struct OutboxCounters {
  std::uint64_t submitted = 0;
  std::uint64_t repeated = 0;
  std::uint64_t refused = 0;
  std::uint64_t done = 0;
  std::uint64_t failed = 0;
  std::uint64_t forgotten = 0;  // finished ones, by count, bytes or age
  std::uint64_t moved = 0;      // to be given to another worker than the one that was chosen
  std::uint64_t lost = 0;       // failed because their worker was lost
};

class Outbox final {
 public:
  Outbox(const CoreOptions& options, DirtyRows& dirty) : options_(options), dirty_(dirty) {}
  ~Outbox();
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  // After a restart, into an empty outbox, in any order.
  void restore(std::vector<CommandRecord> records, Now now);

  // The request has been checked (submission.h) and has an id.
  Result<CommandAccepted> submit(const SubmitCommand& request, Now now);

  enum class Answer : std::uint8_t { NotACommand, Recorded, Duplicate, Late };
  // Whether the message is a result of a command given to this very worker; the first one is recorded.
  Answer take_result(const WorkerKey& worker, Role role, const Message& message, Now now);
  void fail(Command& command, Failure failure, Now now);

  // The next command of the worker that is on no session and has room on one, in order; one whose row is not
  // in the store yet only if the batch under way writes it. Then give it to mark_sent.
  Command* next_to_send(const WorkerKey& worker, const DispatchTerms& terms, bool is_writing);
  void mark_sent(Command& command);
  void mark_unsent(Command& command, DispatchCause cause);
  void end_session(const WorkerKey& worker);  // everything it was given and has no result goes again

  // Placement (outbox_placement.cc). Choosing is the core's business.
  std::vector<UnplacedKey> unplaced() const;
  std::vector<Command*> unplaced_of(const UnplacedKey& key, std::size_t count_max) const;
  void place(Command& command, const InstanceId& worker);
  // Commands that were chosen for the worker and never given to it go to another one.
  void give_back(const WorkerKey& worker);
  void fail_unless(const WorkerKey& worker, const std::function<bool(const std::string& type)>& is_taken,
                   Now now);
  // A worker that is not there by then is lost, and so are its commands.
  void worker_came(const WorkerKey& worker);
  void worker_left(const WorkerKey& worker, Instant lost_at);

  Command* find(std::string_view row) const;
  Command* find(const CommandKey& key) const;
  std::optional<CommandView> view(const CommandKey& key) const;
  // The newest first.
  void for_each(const CommandFilter& filter, const std::function<void(const CommandView&)>& visit) const;

  // Storing. row() answers nothing for what is to be erased.
  std::optional<Bytes> row_value(std::string_view row) const;
  std::optional<Finished> begin_store(std::string_view row);  // its outcome, if this batch makes it durable
  void end_store(std::string_view row, bool is_committed);
  void drop_unstored();  // the store refuses: what nobody was promised is no more

  // Gives up what ran out of time and forgets what was finished long ago.
  void handle_timeout(Now now);
  std::optional<Instant> poll_timeout() const;

  // Whether so many further commands, with so many bytes of payload, would be taken.
  Result<Done> check_room(const TenantId& tenant, std::size_t commands, std::size_t payload_bytes) const;

  // Commands to workers themselves (biz.worker.*) that got their outcome since the last call: what they were
  // for is the core's business.
  std::vector<CommandKey> take_finished_orders() { return std::exchange(finished_orders_, {}); }
  void name_again(const CommandKey& order) { finished_orders_.push_back(order); }

  // Workers that may have something to send since the last call.
  std::vector<WorkerKey> take_ready();
  void mark_ready(const WorkerKey& worker);
  // Whether a command without a worker came, or a worker has less to do, since the last call.
  bool take_placement_due() { return std::exchange(is_placement_due_, false); }

  std::size_t size() const { return commands_.size(); }
  std::size_t pending(const TenantId& tenant) const;
  std::size_t in_flight(const WorkerKey& worker) const;
  std::size_t under_way(const WorkerKey& worker) const;  // chosen for it or given to it, without orders
  std::size_t waiting(const WorkerKey& worker) const;
  bool has_pending(const WorkerKey& worker, std::string_view type) const;
  const OutboxCounters& counters() const { return counters_; }

 private:
  struct Queue {
    std::map<std::uint64_t, Command*> orders;   // that wait, by number
    std::map<std::uint64_t, Command*> waiting;  // the others
    std::map<std::uint64_t, Command*> in_flight;
    std::size_t orders_in_flight = 0;
    std::map<std::uint64_t, Command*>& waiting_for(const Command& command) {
      return command.is_order() ? orders : waiting;
    }
    bool empty() const { return orders.empty() && waiting.empty() && in_flight.empty(); }
    bool is_ready = false;  // listed in ready_
  };
  struct Tenant {
    std::size_t pending = 0;
    std::size_t pending_bytes = 0;
    std::list<Command*> finished;  // oldest first
    std::size_t finished_bytes = 0;
  };

  Command& add(CommandRecord record, Now now);
  void finish(Command& command, Now now);
  void settle(Command& command, Instant finished);
  void enter_queue(Command& command);
  void leave_queue(Command& command);
  void note_absence(const WorkerKey& worker, Instant lost_at);
  void forget_absence(const WorkerKey& worker);
  void excuse_absences(Instant now);
  std::optional<WorkerKey> first_lost(Instant now) const;
  void lose(const WorkerKey& worker, Now now);
  void unplace(Command& command);
  void forget_beyond_bounds(Tenant& tenant);
  void forget(Command& command);  // finished and stored
  void remove(Command& command);  // which is no more afterwards
  CommandView view_of(const Command& command) const;

  const CoreOptions& options_;
  DirtyRows& dirty_;
  std::unordered_map<std::string_view, std::unique_ptr<Command>> commands_;  // keys are views of Command::row
  std::map<std::uint64_t, Command*> by_number_;
  std::map<WorkerKey, Queue> queues_;
  std::map<UnplacedKey, std::map<std::uint64_t, Command*>> unplaced_;  // by number
  std::set<WorkerKey> present_;
  std::map<WorkerKey, Instant> lost_at_;             // of workers that are not, where commands wait for them
  std::set<std::pair<Instant, WorkerKey>> by_loss_;  // the same
  std::map<TenantId, Tenant> tenants_;
  std::map<std::pair<Instant, std::uint64_t>, Command*> by_age_;
  TimerQueue<Command> expiries_;
  std::vector<WorkerKey> ready_;
  std::vector<CommandKey> finished_orders_;
  OutboxCounters counters_;
  std::uint64_t next_number_ = 1;
  bool is_placement_due_ = false;
};

}  // namespace windlass
