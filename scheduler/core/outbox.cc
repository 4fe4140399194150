#include "scheduler/core/outbox.h"

#include <algorithm>
#include <utility>

#include "protocol/base/check.h"
#include "protocol/base/mutant.h"
#include "scheduler/core/row_text.h"

namespace windlass {
namespace {

constexpr std::size_t kCommandRecordBytes = 512;  // what a record costs beside its texts, about

std::size_t size_of(const StoredMessage& message) {
  return message.id.size() + message.corr.size() + message.type.size() + message.payload.size() +
         (message.attachment ? message.attachment->type.size() + message.attachment->bytes.size() : 0);
}

std::size_t size_of(const CommandRecord& record) {
  return kCommandRecordBytes + record.key.id.size() + record.type.size() + record.payload.size() +
         (record.result ? size_of(*record.result) : 0) + (record.failure ? record.failure->reason.size() : 0);
}

// The cost of a command is fixed when it comes, so that what is added is what is taken away.
std::size_t pending_size_of(const CommandRecord& record) {
  return kCommandRecordBytes + record.key.id.size() + record.type.size() + record.payload.size();
}

Error no_room(const TenantId& tenant, std::string what) {
  return {ErrorCode::LimitCapacity, Blame::Peer,
          "tenant '" + tenant.value() + "' has " + std::move(what) + " without a result; wait for some"};
}

}  // namespace

Outbox::~Outbox() {
  for (auto& [number, command] : by_number_) expiries_.clear(command->expiry);
}

void Outbox::restore(std::vector<CommandRecord> records, Now now) {
  CHECK(commands_.empty());
  // The oldest outcome first, which is the order of forgetting.
  std::ranges::sort(records, {}, [](const CommandRecord& r) { return std::pair{r.finished_at, r.number}; });
  for (CommandRecord& record : records) {
    const bool is_finished = record.is_finished();
    const Duration age =
        is_finished ? std::max<Duration>(now.wall - record.finished_at, Duration{0}) : Duration{0};
    Command& command = add(std::move(record), now);
    command.is_stored = true;
    command.was_given_before = command.was_given_here = !command.record.worker.value().empty();
    command.next_cause = DispatchCause::Restarted;
    if (!is_finished) continue;
    command.is_finish_stored = true;
    settle(command, now.steady - age);
  }
}

Result<CommandAccepted> Outbox::submit(const SubmitCommand& request, Now now) {
  const CommandKey key{request.worker.tenant, request.id};
  if (const Command* const known = find(key)) {
    const CommandRecord& record = known->record;
    const bool is_same_target =
        record.target == request.target &&
        (record.target.kind != CommandTarget::Kind::Worker || record.worker == request.worker.instance);
    const bool is_same = is_same_target && record.type == request.type && record.payload == request.payload;
    if (is_same || MUTANT(outbox_ignores_body)) {
      ++counters_.repeated;
      return CommandAccepted{key, true};
    }
    ++counters_.refused;
    return Error{ErrorCode::ResultDuplicate, Blame::Peer,
                 "command '" + request.id + "' is known with another worker, type or payload"};
  }
  CommandRecord record;
  record.key = key;
  const bool is_chosen = request.target.kind == CommandTarget::Kind::Worker ||
                         request.target.kind == CommandTarget::Kind::Serving;
  if (is_chosen) record.worker = request.worker.instance;
  record.target = request.target;
  record.is_idempotent = request.is_idempotent;
  record.type = request.type;
  record.payload = request.payload;
  if (auto room = check_room(key.tenant, 1, pending_size_of(record) - kCommandRecordBytes); !room) {
    ++counters_.refused;
    return room.error();
  }
  record.number = next_number_;
  record.created_at = now.wall;
  record.timeout = std::chrono::ceil<milliseconds>(request.timeout.value_or(options_.command_timeout));
  ++counters_.submitted;
  dirty_.mark(add(std::move(record), now).row);
  return CommandAccepted{key, false};
}

Result<Done> Outbox::check_room(const TenantId& name, std::size_t commands, std::size_t payload_bytes) const {
  const auto found = tenants_.find(name);
  const std::size_t pending = found == tenants_.end() ? 0 : found->second.pending;
  const std::size_t bytes = found == tenants_.end() ? 0 : found->second.pending_bytes;
  if (pending + commands > options_.pending_per_tenant_max) {
    return no_room(name, std::to_string(pending) + " commands");
  }
  if (bytes + commands * kCommandRecordBytes + payload_bytes > options_.pending_bytes_per_tenant_max) {
    return no_room(name, std::to_string(bytes) + " bytes of commands");
  }
  return Done{};
}

Command& Outbox::add(CommandRecord record, Now now) {
  auto made = std::make_unique<Command>(std::move(record));
  Command& command = *made;
  const CommandRecord& facts = command.record;
  command.row = command_row(facts.key);
  command.created = now.steady - std::max<Duration>(now.wall - facts.created_at, Duration{0});
  CHECK(commands_.emplace(command.row, std::move(made)).second);
  CHECK(by_number_.emplace(facts.number, &command).second);
  next_number_ = std::max(next_number_, facts.number + 1);
  if (facts.is_finished()) return command;
  Tenant& tenant = tenants_[facts.key.tenant];
  ++tenant.pending;
  tenant.pending_bytes += pending_size_of(facts);
  enter_queue(command);
  if (!facts.worker.value().empty() && !present_.contains(facts.worker_key())) {
    note_absence(facts.worker_key(), now.steady + options_.lost_after_of(facts.key.tenant));
  }
  // By the steady clock from here on: a wall clock that jumps expires nothing.
  const Duration left =
      std::clamp<Duration>(facts.created_at + facts.timeout - now.wall, Duration{0}, facts.timeout);
  expiries_.set(command.expiry, now.steady + left);
  return command;
}

Outbox::Answer Outbox::take_result(const WorkerKey& worker, Role role, const Message& message, Now now) {
  //= WRK-2
  if (message.corr().empty()) return Answer::NotACommand;
  Command* const command = find(CommandKey{worker.tenant, std::string{message.corr()}});
  if (command == nullptr || !command->is_stored) return Answer::NotACommand;
  if (command->is_for_runtimes() && role != Role::Runtime) return Answer::NotACommand;
  CommandRecord& record = command->record;
  if (record.worker != worker.instance && !MUTANT(outbox_believes_strangers)) {
    return record.moves > 0 ? Answer::Late : Answer::NotACommand;
  }
  if (record.failure) return Answer::Late;
  if (record.result && !MUTANT(outbox_last_result_wins)) return Answer::Duplicate;
  const bool is_first = !record.result;
  record.result = StoredMessage{std::string{message.id()}, std::string{message.corr()},
                                std::string{message.type()}, std::string{message.payload()}, std::nullopt};
  if (const auto attachment = message.attachment()) {
    record.result->attachment = StoredAttachment{std::string{attachment->type}, Bytes{attachment->bytes}};
  }
  if (is_first) {
    ++counters_.done;
    finish(*command, now);
  }
  dirty_.mark(command->row);
  return Answer::Recorded;
}

void Outbox::fail(Command& command, Failure failure, Now now) {
  CHECK(!command.record.is_finished());
  failure.may_have_run = command.may_have_begun();
  command.record.failure = std::move(failure);
  ++counters_.failed;
  finish(command, now);
  dirty_.mark(command.row);
}

// From pending to finished.
void Outbox::finish(Command& command, Now now) {
  const WorkerKey worker = command.record.worker_key();
  leave_queue(command);
  Tenant& tenant = tenants_[worker.tenant];
  --tenant.pending;
  tenant.pending_bytes -= pending_size_of(command.record);
  command.record.finished_at = now.wall;
  if (command.is_order()) finished_orders_.push_back(command.record.key);
  settle(command, now.steady);
  mark_ready(worker);  // there is room on its session now
}

void Outbox::settle(Command& command, Instant finished) {
  Tenant& tenant = tenants_[command.record.key.tenant];
  command.finished = finished;
  command.finished_bytes = size_of(command.record);
  tenant.finished_bytes += command.finished_bytes;
  tenant.finished.push_back(&command);
  command.place = std::prev(tenant.finished.end());
  by_age_.emplace(std::pair{finished, command.record.number}, &command);
  forget_beyond_bounds(tenant);
}

void Outbox::leave_queue(Command& command) {
  expiries_.clear(command.expiry);
  const std::uint64_t number = command.record.number;
  if (command.record.worker.value().empty()) {
    const auto found = unplaced_.find({command.record.key.tenant, command.record.target});
    CHECK(found != unplaced_.end() && found->second.erase(number) == 1);
    if (found->second.empty()) unplaced_.erase(found);
    return;
  }
  is_placement_due_ = true;  // the worker has less to do
  const auto found = queues_.find(command.record.worker_key());
  CHECK(found != queues_.end());
  found->second.waiting_for(command).erase(number);
  if (found->second.in_flight.erase(number) == 1 && command.is_order()) --found->second.orders_in_flight;
  if (found->second.empty()) forget_absence(command.record.worker_key());
}

void Outbox::enter_queue(Command& command) {
  const CommandRecord& record = command.record;
  if (record.worker.value().empty()) {
    unplaced_[{record.key.tenant, record.target}].emplace(record.number, &command);
    is_placement_due_ = true;
    return;
  }
  queues_[record.worker_key()].waiting_for(command).emplace(record.number, &command);
  mark_ready(record.worker_key());
}

Command* Outbox::next_to_send(const WorkerKey& worker, const DispatchTerms& terms, bool is_writing) {
  const auto found = queues_.find(worker);
  if (found == queues_.end()) return nullptr;
  const Queue& queue = found->second;
  if (queue.in_flight.size() >= options_.in_flight_per_worker_max) return nullptr;
  const auto first_of = [&](const std::map<std::uint64_t, Command*>& commands) -> Command* {
    const auto may_go = [&](const auto& each) { return terms.is_runtime || !each.second->is_for_runtimes(); };
    const auto found_one = std::ranges::find_if(commands, may_go);
    return found_one == commands.end() ? nullptr : found_one->second;
  };
  Command* next = first_of(queue.orders);
  const std::size_t work = queue.in_flight.size() - queue.orders_in_flight;
  const bool has_room = !terms.orders_only && (work < terms.parallel_max || MUTANT(outbox_overfills_workers));
  Command* const first = has_room ? first_of(queue.waiting) : nullptr;
  if (first != nullptr && (next == nullptr || first->record.number < next->record.number)) next = first;
  if (next == nullptr) return nullptr;
  const bool is_durable = next->is_stored && !next->is_choice_unstored;
  return is_durable || is_writing ? next : nullptr;
}

void Outbox::mark_sent(Command& command) {
  Queue& queue = queues_[command.record.worker_key()];
  CHECK(queue.waiting_for(command).erase(command.record.number) == 1);
  queue.in_flight.emplace(command.record.number, &command);
  if (command.is_order()) ++queue.orders_in_flight;
  command.is_sent = true;
  ++command.sends;
}

void Outbox::mark_unsent(Command& command, DispatchCause cause) {
  if (!command.is_sent || command.record.is_finished()) return;
  Queue& queue = queues_[command.record.worker_key()];
  CHECK(queue.in_flight.erase(command.record.number) == 1);
  queue.waiting_for(command).emplace(command.record.number, &command);
  if (command.is_order()) --queue.orders_in_flight;
  command.is_sent = false;
  command.next_cause = cause;
}

void Outbox::end_session(const WorkerKey& worker) {
  if (MUTANT(outbox_forgets_in_flight)) return;
  const auto found = queues_.find(worker);
  if (found == queues_.end()) return;
  //= WRK-4
  while (!found->second.in_flight.empty()) {
    mark_unsent(*found->second.in_flight.begin()->second, DispatchCause::SessionEnded);
  }
}

Command* Outbox::find(std::string_view row) const {
  const auto found = commands_.find(row);
  return found == commands_.end() ? nullptr : found->second.get();
}

Command* Outbox::find(const CommandKey& key) const {
  return find(command_row(key));
}

std::optional<CommandView> Outbox::view(const CommandKey& key) const {
  const Command* const command = find(key);
  if (command == nullptr || !command->is_stored) return std::nullopt;
  return view_of(*command);
}

CommandView Outbox::view_of(const Command& command) const {
  const CommandRecord& record = command.record;
  CommandView view{record, command.is_sent ? CommandState::Sent : CommandState::Waiting, command.sends};
  if (!command.is_finish_stored) return view;
  view.state = record.result ? CommandState::Done : CommandState::Failed;
  view.result = record.result ? &*record.result : nullptr;
  view.failure = record.failure ? &*record.failure : nullptr;
  return view;
}

void Outbox::for_each(const CommandFilter& filter,
                      const std::function<void(const CommandView&)>& visit) const {
  std::size_t count = 0;
  auto at = filter.before_number ? by_number_.lower_bound(*filter.before_number) : by_number_.end();
  while (at != by_number_.begin()) {
    const Command& command = *(--at)->second;
    if (!command.is_stored) continue;
    if (filter.tenant && command.record.key.tenant != *filter.tenant) continue;
    if (filter.worker && command.record.worker != *filter.worker) continue;
    const CommandView view = view_of(command);
    if (filter.state && view.state != *filter.state) continue;
    if (++count > filter.count_max) return;
    visit(view);
  }
}

std::optional<Bytes> Outbox::row_value(std::string_view row) const {
  const Command* const command = find(row);
  if (command == nullptr) return std::nullopt;
  return to_row_value(command->record);
}

std::optional<Finished> Outbox::begin_store(std::string_view row) {
  Command* const command = find(row);
  if (command == nullptr) return std::nullopt;
  command->is_in_batch = true;
  command->is_choice_in_batch = command->is_choice_unstored;
  const CommandRecord& record = command->record;
  if (!record.is_finished() || command->is_finish_stored) return std::nullopt;
  command->is_finish_in_batch = true;
  return Finished{record.key, record.worker_key(), record.type,
                  record.failure ? std::optional(record.failure->code) : std::nullopt,
                  std::chrono::duration_cast<milliseconds>(command->finished - command->created)};
}

void Outbox::end_store(std::string_view row, bool is_committed) {
  Command* const command = find(row);
  // One that was submitted under a forgotten id while that one's row was erased is not in the batch.
  if (command == nullptr || !std::exchange(command->is_in_batch, false)) return;
  const bool has_finish = std::exchange(command->is_finish_in_batch, false);
  if (!is_committed) return;
  command->is_stored = true;
  // It may have been passed over while the store did not know for whom it is.
  if (std::exchange(command->is_choice_in_batch, false)) {
    command->is_choice_unstored = false;
    mark_ready(command->record.worker_key());
  }
  if (!has_finish) return;
  command->is_finish_stored = true;
  forget_beyond_bounds(tenants_[command->record.key.tenant]);
}

void Outbox::drop_unstored() {
  for (auto at = by_number_.begin(); at != by_number_.end();) {
    Command& command = *(at++)->second;
    if (command.is_stored) continue;
    dirty_.mark(command.row);  // a commit that failed may have happened after all
    remove(command);
  }
}

// Only outcomes that are stored: until then somebody may wait for the news.
void Outbox::forget_beyond_bounds(Tenant& tenant) {
  while (!tenant.finished.empty() && (tenant.finished.size() > options_.finished_per_tenant_max ||
                                      tenant.finished_bytes > options_.finished_bytes_per_tenant_max)) {
    Command& oldest = *tenant.finished.front();
    if (!oldest.is_finish_stored) return;
    forget(oldest);
  }
}

void Outbox::forget(Command& command) {
  ++counters_.forgotten;
  dirty_.mark(command.row);
  remove(command);
}

void Outbox::remove(Command& command) {
  Tenant& tenant = tenants_[command.record.key.tenant];
  if (command.record.is_finished()) {
    tenant.finished.erase(command.place);
    tenant.finished_bytes -= command.finished_bytes;
    by_age_.erase({command.finished, command.record.number});
  } else {
    leave_queue(command);
    --tenant.pending;
    tenant.pending_bytes -= pending_size_of(command.record);
  }
  by_number_.erase(command.record.number);
  const auto node =
      commands_.extract(command.row);  // its key is a view of the command, which goes with the node
  CHECK(!node.empty());
}

void Outbox::handle_timeout(Now now) {
  while (Command* const command = expiries_.pop_due(now.steady)) {
    const std::string time = std::to_string(command->record.timeout.count()) + " ms";
    const bool has_worker = !command->record.worker.value().empty();
    fail(*command,
         {ErrorCode::Timeout,
          has_worker ? "no result came within " + time : "no worker could take it within " + time},
         now);
  }
  excuse_absences(now.steady);
  while (const auto lost = first_lost(now.steady)) lose(*lost, now);
  while (!by_age_.empty() && by_age_.begin()->second->is_finish_stored &&
         by_age_.begin()->first.first + options_.finished_age_max <= now.steady) {
    forget(*by_age_.begin()->second);
  }
}

std::optional<Instant> Outbox::poll_timeout() const {
  std::optional<Instant> next = expiries_.next();
  // One whose outcome is not stored cannot be forgotten; it is looked at again when it is.
  if (!by_age_.empty() && by_age_.begin()->second->is_finish_stored) {
    const Instant due = by_age_.begin()->first.first + options_.finished_age_max;
    next = next ? std::min(*next, due) : due;
  }
  if (!by_loss_.empty()) next = next ? std::min(*next, by_loss_.begin()->first) : by_loss_.begin()->first;
  return next;
}

std::vector<WorkerKey> Outbox::take_ready() {
  for (const WorkerKey& worker : ready_) {
    const auto found = queues_.find(worker);
    if (found == queues_.end()) continue;
    found->second.is_ready = false;
    if (found->second.empty()) queues_.erase(found);
  }
  return std::exchange(ready_, {});
}

void Outbox::mark_ready(const WorkerKey& worker) {
  const auto found = queues_.find(worker);
  if (found == queues_.end() || std::exchange(found->second.is_ready, true)) return;
  ready_.push_back(worker);
}

std::size_t Outbox::pending(const TenantId& tenant) const {
  const auto found = tenants_.find(tenant);
  return found == tenants_.end() ? 0 : found->second.pending;
}

std::size_t Outbox::in_flight(const WorkerKey& worker) const {
  const auto found = queues_.find(worker);
  return found == queues_.end() ? 0 : found->second.in_flight.size();
}

std::size_t Outbox::under_way(const WorkerKey& worker) const {
  const auto found = queues_.find(worker);
  if (found == queues_.end()) return 0;
  return found->second.waiting.size() + found->second.in_flight.size() - found->second.orders_in_flight;
}

std::size_t Outbox::waiting(const WorkerKey& worker) const {
  const auto found = queues_.find(worker);
  return found == queues_.end() ? 0 : found->second.waiting.size() + found->second.orders.size();
}

bool Outbox::has_pending(const WorkerKey& worker, std::string_view type) const {
  const auto found = queues_.find(worker);
  if (found == queues_.end()) return false;
  const auto is_it = [&](const auto& each) { return each.second->record.type == type; };
  return std::ranges::any_of(found->second.waiting, is_it) ||
         std::ranges::any_of(found->second.orders, is_it) ||
         std::ranges::any_of(found->second.in_flight, is_it);
}

}  // namespace windlass
