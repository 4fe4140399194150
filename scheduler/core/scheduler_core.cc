#include "scheduler/core/scheduler_core.h"

#include <algorithm>
#include <utility>

#include "protocol/base/check.h"

namespace windlass {

SchedulerCore::SchedulerCore(const CoreOptions& options, std::uint64_t seed)
    : options_(options),
      random_(seed),
      fleet_(options_),
      outbox_(options_, dirty_),
      inbox_(options_, dirty_),
      apps_(options_, dirty_),
      vacancies_(options_),
      resumes_(options_),
      denials_(dirty_) {}

Result<std::unique_ptr<SchedulerCore>> SchedulerCore::restore(const CoreOptions& options,
                                                              const Snapshot& snapshot, std::uint64_t seed,
                                                              Now now) {
  auto core = std::unique_ptr<SchedulerCore>(new SchedulerCore(options, seed));
  core->version_ = snapshot.version;
  core->now_ = now;
  core->started_ = now.steady;
  std::vector<CommandRecord> commands;
  std::vector<InboxRecord> messages;
  for (const Row& row : snapshot.rows) {
    auto record = core->reader_.read(row);
    if (!record) return record.error();
    if (auto* const command = std::get_if<CommandRecord>(&*record)) {
      commands.push_back(std::move(*command));
    } else if (auto* const message = std::get_if<InboxRecord>(&*record)) {
      messages.push_back(std::move(*message));
    } else if (auto* const revocation = std::get_if<Revocation>(&*record)) {
      core->restore_record(std::move(*revocation), now);
    } else if (auto* const denial = std::get_if<Denial>(&*record)) {
      std::string denied = denial_row(denial->worker);
      core->denials_.restore(std::move(denied), std::move(*denial));
    } else if (auto* const drain = std::get_if<DrainIntent>(&*record)) {
      core->restore_record(std::move(*drain), now);
    } else if (auto* const app = std::get_if<AppRecord>(&*record)) {
      core->apps_.restore(std::move(*app));
    } else if (auto* const assignment = std::get_if<AssignmentRecord>(&*record)) {
      core->expect(*assignment, now.steady);
      core->versions_due_.emplace(assignment->worker.tenant, assignment->application_id);
      core->apps_.restore(std::move(*assignment), now);
    } else if (auto* const active = std::get_if<ActiveVersion>(&*record)) {
      core->apps_.restore(std::move(*active));
    } else if (const auto* const issued = std::get_if<IssuedUntil>(&*record)) {
      core->issued_until_ = core->issued_last_ = issued->at;
    }
  }
  // Numbers order commands and messages; two of one number were not written by us.
  const auto is_twice = [](auto& records) {
    std::ranges::sort(records, {}, [](const auto& record) { return record.number; });
    return std::ranges::adjacent_find(records, {}, [](const auto& record) { return record.number; }) !=
           records.end();
  };
  if (is_twice(commands) || is_twice(messages)) {
    return Error{ErrorCode::StoreInvalid, Blame::Local,
                 "two rows of the store have one number; restore it from a copy"};
  }
  core->outbox_.restore(std::move(commands), now);
  if (!core->outbox_.unplaced().empty()) core->unserved_at_ = now.steady;
  for (InboxRecord& message : messages) core->inbox_.restore(std::move(message), now);
  return core;
}

void SchedulerCore::restore_record(Revocation&& revocation, Now now) {
  const Instant until = now.steady + (revocation.until - now.wall) + options_.token_lifetime;
  std::string row = revocation_row(revocation.worker);
  revocations_.emplace(std::move(row), Stored<Revocation>{std::move(revocation), until, false, true});
  sweep_at(until);
}

void SchedulerCore::restore_record(DrainIntent&& drain, Now now) {
  const Instant until = now.steady + (drain.until - now.wall);
  std::string row = drain_row(drain.worker);
  drains_.emplace(std::move(row), Stored<DrainIntent>{std::move(drain), until, false, true});
  sweep_at(until);
}

void SchedulerCore::handle(Input input, Now now) {
  now_ = now;
  std::visit([this, now](auto& each) { on(each, now); }, input);
  if (places_at_ && *places_at_ <= now.steady) fill_places(now);
  if (resumes_at_ && *resumes_at_ <= now.steady) resume_workers(now);
}

void SchedulerCore::handle_timeout(Now now) {
  now_ = now;
  outbox_.handle_timeout(now);
  fail_unserved(now);
  inbox_.handle_timeout(now.steady);
  settle_lost(now);
  fleet_.handle_timeout(now.steady);
  settle_assignments(now);
  if (places_at_ && *places_at_ <= now.steady) fill_places(now);
  if (resumes_at_ && *resumes_at_ <= now.steady) resume_workers(now);
  if (sweep_at_ && *sweep_at_ <= now.steady) sweep(now.steady);
  if (retry_at_ && *retry_at_ <= now.steady) {
    retry_at_.reset();
    is_retry_due_ = true;
  }
}

std::optional<Instant> SchedulerCore::poll_timeout() const {
  std::optional<Instant> next;
  for (const auto& each :
       {outbox_.poll_timeout(), inbox_.poll_timeout(), fleet_.poll_timeout(), apps_.poll_timeout(), sweep_at_,
        retry_at_, places_at_, resumes_at_, unserved_at_}) {
    if (each && (!next || *each < *next)) next = each;
  }
  return next;
}

void SchedulerCore::sweep_at(Instant at) {
  if (!sweep_at_ || at < *sweep_at_) sweep_at_ = at;
}

void SchedulerCore::sweep(Instant now) {
  sweep_at_.reset();
  const auto sweep_one = [this, now](auto& rows) {
    for (auto at = rows.begin(); at != rows.end();) {
      if (at->second.until > now) {
        sweep_at((at++)->second.until);
        continue;
      }
      dirty_.mark(at->first);
      at = rows.erase(at);
    }
  };
  sweep_one(revocations_);
  sweep_one(drains_);
}

std::vector<Revocation> SchedulerCore::revocations() const {
  std::vector<Revocation> all;
  for (const auto& [row, revocation] : revocations_) all.push_back(revocation.value);
  return all;
}

std::optional<DrainIntent> SchedulerCore::drain_of(const WorkerKey& worker) const {
  const auto found = drains_.find(drain_row(worker));
  if (found == drains_.end() || !found->second.is_stored) return std::nullopt;
  return found->second.value;
}

}  // namespace windlass
