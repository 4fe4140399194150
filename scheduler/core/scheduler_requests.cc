// What operators ask for. Each request is owed one reply, and gets it when what it asked for is durable.
#include <algorithm>
#include <utility>

#include "protocol/base/clip.h"
#include "protocol/base/mutant.h"
#include "protocol/crypto/text_encoding.h"
#include "scheduler/core/scheduler_core.h"
#include "scheduler/core/submission.h"

namespace windlass {

void SchedulerCore::on(SubmitCommand& request, Now now) {
  if (const auto checked = check(request, reader_); !checked) return refuse(request.request, checked.error());
  // What is stored already can be said at any time; anything new needs a store that writes and a worker that
  // takes work.
  const bool is_known =
      !request.id.empty() && outbox_.find(CommandKey{request.worker.tenant, request.id}) != nullptr;
  if (!is_known) {
    if (refuse_if_failing(request.request)) return;
    if (const auto checked = check_target(request); !checked) return refuse(request.request, checked.error());
    if (request.id.empty()) request.id = new_command_id(request.worker.tenant);
  }
  auto accepted = outbox_.submit(request, now);
  if (!accepted) return refuse(request.request, accepted.error());
  const Command* const command = outbox_.find(accepted->key);
  const bool needs_store = !command->is_stored;
  reply_to(request.request, std::move(*accepted), needs_store);
}

void SchedulerCore::on(DrainWorker& request, Now now) {
  Worker* const worker = find_or_refuse(request.request, request.worker);
  if (worker == nullptr || refuse_if_failing(request.request)) return;
  const Duration deadline = std::clamp<Duration>(request.deadline, milliseconds{1}, limits::kIntervalMax);
  const std::string reason{clip(request.reason, limits::kReasonBytesMax)};
  std::string row = drain_row(request.worker);
  Stored<DrainIntent>& drain = drains_[row];
  drain.value = {request.worker, reason, std::chrono::floor<milliseconds>(now.wall + deadline)};
  drain.until = now.steady + deadline;
  sweep_at(drain.until);
  dirty_.mark(row);
  answer(request.request, DrainSession{*worker->session, reason, deadline}, true);
}

void SchedulerCore::on(ResetWorker& request, Now) {
  const Worker* const worker = find_or_refuse(request.request, request.worker);
  if (worker == nullptr) return;
  answer(request.request,
         ResetSession{*worker->session, ErrorCode::SessionStaleBinding,
                      std::string{clip(request.reason, limits::kReasonBytesMax)}},
         false);
}

void SchedulerCore::on(RotateToken& request, Now now) {
  const Worker* const worker = find_or_refuse(request.request, request.worker);
  if (worker == nullptr) return;
  note_issued(now);
  answer(request.request, RotateSession{*worker->session}, false);
}

void SchedulerCore::on(RevokeWorker& request, Now now) {
  if (const auto checked = check(request.worker); !checked) return refuse(request.request, checked.error());
  if (refuse_if_failing(request.request)) return;
  std::string row = revocation_row(request.worker);
  if (!revocations_.contains(row) && revocations_.size() >= options_.revocations_max) {
    return refuse(request.request,
                  {ErrorCode::LimitCapacity, Blame::Local,
                   "too many workers were revoked lately; each is forgotten a token's lifetime later"});
  }
  std::size_t denied = 0;
  denials_.for_each([&](const std::string&, const Denial&) { ++denied; });
  if (denied >= options_.denials_max && !is_denied(request.worker)) {
    return refuse(request.request, {ErrorCode::LimitCapacity, Blame::Local,
                                    "too many workers are kept out; allow those that are gone for good"});
  }
  Stored<Revocation>& revocation = revocations_[row];
  // A wall clock that was set back must not leave out the newest tokens.
  const WallTime until = std::max({now.wall, issued_last_, revocation.value.until});
  revocation.value = {request.worker, until};
  revocation.until = now.steady + (until - now.wall) + options_.token_lifetime;
  sweep_at(revocation.until);
  dirty_.mark(row);
  if (!is_denied(request.worker)) {
    denials_.propose(denial_row(request.worker),
                     Denial{request.worker, std::chrono::floor<milliseconds>(now.wall)});
  }
  const Worker* const worker = fleet_.find(request.worker);
  answer(request.request, RevokeTokens{revocation.value, worker == nullptr ? std::nullopt : worker->session},
         true);
}

void SchedulerCore::on(AllowWorker& request, Now) {
  if (const auto checked = check(request.worker); !checked) return refuse(request.request, checked.error());
  if (!is_denied(request.worker)) {
    return refuse(request.request, {ErrorCode::SessionUnknown, Blame::Peer,
                                    "worker '" + request.worker.instance.value() + "' of tenant '" +
                                        request.worker.tenant.value() + "' is not revoked"});
  }
  if (refuse_if_failing(request.request)) return;
  denials_.propose(denial_row(request.worker), std::nullopt);
  answer(request.request, AllowInstance{request.worker}, true);
}

Worker* SchedulerCore::find_or_refuse(RequestId request, const WorkerKey& key) {
  Worker* const worker = fleet_.find(key);
  if (worker != nullptr && worker->session) return worker;
  refuse(request, {ErrorCode::SessionUnknown, Blame::Peer,
                   "worker '" + key.instance.value() + "' of tenant '" + key.tenant.value() +
                       (worker == nullptr ? "' is not known; run 'windlass workers' to list the known ones"
                                          : "' has no session now")});
  return nullptr;
}

// While the store is being tried again the answer is not known yet, and the request waits for it.
bool SchedulerCore::refuse_if_failing(RequestId request) {
  if (!health_.is_failing || MUTANT(core_sends_unstored)) return false;
  const bool is_being_tried = is_retry_due_ || (outstanding_ && outstanding_->has_writes);
  if (is_being_tried && !health_.is_fenced) return false;
  refuse(request, {health_.code, Blame::Local,
                   "nothing can be stored now: " + health_.reason + "; it is tried again by itself"});
  return true;
}

void SchedulerCore::refuse(RequestId request, Error error) {
  reply_to(request, std::move(error), false);
}

void SchedulerCore::answer(RequestId request, SessionCommand command, bool needs_store) {
  reply_to(request, Done{}, needs_store);
  orders_.back().command = std::move(command);
}

std::string SchedulerCore::random_name(std::string_view prefix) {
  Bytes bytes;
  for (const std::uint64_t word : {random_.next(), random_.next()}) {
    for (unsigned shift = 0; shift < 64; shift += 8)
      bytes.push_back(static_cast<char>(word >> shift & 0xffU));
  }
  return std::string{prefix} + hex_encode(bytes);
}

std::string SchedulerCore::new_command_id(const TenantId& tenant) {
  for (;;) {
    std::string id = random_name("c-");
    if (outbox_.find(CommandKey{tenant, id}) == nullptr) return id;
  }
}

}  // namespace windlass
