#include "worker-agent/core/agent_core.h"

#include <algorithm>
#include <array>
#include <utility>

#include "protocol/base/check.h"
#include "protocol/crypto/text_encoding.h"
#include "worker-agent/core/result_text.h"

namespace windlass::agent {
namespace {

constexpr JournalConfig kEchoes{
    .entries_max = 4096, .bytes_max = 2 * 1024 * 1024, .result_bytes_reserved = 0};

TextPairView key_of(const Message& message) {
  return {message.id(), message.corr()};
}

JournalKey journal_key(TextPairView key) {
  return {key.first, key.second};
}

RunId run_id(TextPairView key) {
  const std::array<BytesView, 2> parts{key.first, key.second};
  return RunId{hex_encode(view_of(sha256_parts(parts)))};
}

}  // namespace

AgentCore::AgentCore(AgentConfig config, Instant now)
    : config_(std::move(config)),
      journal_(config_.journal),
      echoes_(kEchoes),
      log_(Duration{}, now),
      clock_due_(now + config_.clock_record) {}

Result<Recovered> AgentCore::recover(BytesView log, Instant now) {
  auto found = windlass::recover(log);
  if (!found) return found.error();
  journal_.restore(found->entries, now);
  log_ = JournalLog{found->run_time, now};
  log_bytes_ = found->valid_bytes;
  Recovered recovered{.valid_bytes = found->valid_bytes, .interrupted = {}};
  for (const JournalEntry& entry : found->entries) {
    if (entry.result) continue;
    const TextPairView key{entry.key.id, entry.key.corr};
    recovered.interrupted.push_back({std::string{key.first}, std::string{key.second}, run_id(key)});
  }
  return recovered;
}

void AgentCore::handle_never_begun(const Interrupted& interrupted, Instant now) {
  forget({interrupted.id, interrupted.corr}, now);
}

void AgentCore::handle_still_running(const Interrupted& interrupted) {
  const TextPair key{TextPairView{interrupted.id, interrupted.corr}};
  runs_.emplace(interrupted.run, key);
  RunRequest request;
  request.id = interrupted.run;
  work_.emplace(key, Work{.state = Work::State::Running, .job = std::move(request), .waiting = {}});
}

void AgentCore::handle(OwnerEvent owner_event, Instant now) {
  SessionEvent& event = owner_event.event;
  if (const auto* delivered = std::get_if<Delivered>(&event)) {
    deliver(*delivered, now);
  } else if (const auto* established = std::get_if<Established>(&event)) {
    // A frame may come again after as long as a session is kept, so what was done is remembered for longer.
    //= IDM-3
    journal_.set_ttl(config_.journal.ttl +
                     std::max(established->resume_ttl - limits::kResumeTtl, Duration::zero()));
    if (!established->resumed) start_session(owner_event.session);
  } else if (const auto* acknowledged = std::get_if<Acknowledged>(&event)) {
    acknowledge(acknowledged->next);
  } else if (std::holds_alternative<Writable>(event)) {
    blocked_ = false;
  } else if (std::holds_alternative<DrainRequested>(event)) {
    draining_ = true;
  } else if (const auto* ended = std::get_if<Ended>(&event)) {
    end_session(*ended, now);
  }
}

void AgentCore::deliver(const Delivered& delivered, Instant now) {
  const Message& message = delivered.message;
  const Waiting from{session_, delivered.seq};
  if (message.type() == kPackagePart) {
    parts_.push_back(message);
    return settle({from});
  }
  note(AgentNote::Kind::Received, message, {}, delivered.seq);
  // An id means one message, whichever of the two journals remembers it.
  //= IDM-2
  const bool is_echo = message.type() == kEcho;
  if ((is_echo ? journal_ : echoes_).contains(journal_key(key_of(message)))) {
    return refuse(message, ErrorCode::ResultDuplicate, "this id was used for another command", from);
  }
  if (is_echo) return deliver_echo(message, from, now);
  const JournalAnswer verdict = journal_.begin(message, now);
  switch (verdict.verdict) {
    case JournalVerdict::New:
      return begin(message, verdict.digest, from, now);
    case JournalVerdict::InProgress: {
      const auto work = work_.find(key_of(message));
      CHECK(work != work_.end());
      work->second.dropped = false;  // its next session asks for it before it was forgotten
      work->second.waiting.push_back(from);
      return own_begun();
    }
    case JournalVerdict::Done:
      note(AgentNote::Kind::Repeated, message, {}, delivered.seq);
      return answer(key_of(message), {.type = kResult, .id = {}, .payload = verdict.result}, {from}, true);
    case JournalVerdict::Conflict:
    case JournalVerdict::Full:
      return refuse(message, *refusal_code(verdict.verdict),
                    verdict.verdict == JournalVerdict::Full
                        ? "the journal is full of recent commands; try again later or raise its bounds"
                        : "this id was used for another command",
                    from);
  }
}

void AgentCore::deliver_echo(const Message& message, Waiting from, Instant now) {
  const JournalAnswer verdict = echoes_.begin(message, now);
  if (verdict.verdict == JournalVerdict::Conflict) {
    return refuse(message, ErrorCode::ResultDuplicate, "this id was used for another command", from);
  }
  if (verdict.verdict == JournalVerdict::New) {
    CHECK(echoes_.complete(journal_key(key_of(message)), {}, now).has_value());
  }
  answer(key_of(message),
         {.type = kResult, .id = {}, .payload = message.payload(), .attachment = message.attachment()},
         {from}, true);
}

void AgentCore::begin(const Message& message, const Digest& digest, Waiting from, Instant now) {
  Command command = parse_command(message, config_.rules, config_.has_worker);
  if (const auto* refusal = std::get_if<Refusal>(&command)) {
    journal_.forget(journal_key(key_of(message)));  // never recorded: nothing happened
    return refuse(message, refusal->code, refusal->reason, from);
  }
  const TextPair key{key_of(message)};
  pending_.bytes += log_.encode_begin(journal_key(key), digest, now);
  pending_.begun.push_back(key);
  Work work{.state = Work::State::Recording,
            .job = {},
            .type = std::string{message.type()},
            .waiting = {from},
            .bytes = message.credit_bytes()};
  if (auto* run = std::get_if<RunRequest>(&command)) {
    work.job = std::move(*run);
  } else {
    work.job = std::get<WorkerCommand>(std::move(command));
  }
  work_.emplace(key, std::move(work));
}

void AgentCore::forget(TextPairView key, Instant now) {
  journal_.forget(journal_key(key));
  pending_.bytes += log_.encode_forget(journal_key(key), now);
}

// Takes responsibility for commands whose begin record is on the disk, as far as there is room, oldest first.
void AgentCore::own_begun() {
  std::size_t count = outbox_.size();
  std::size_t bytes = 0;
  for (const Answer& each : outbox_) bytes += each.message.credit_bytes();
  std::vector<Work*> unowned;
  for (auto& [key, work] : work_) {
    if (work.state == Work::State::Recording) continue;
    if (!work.waiting.empty()) {
      unowned.push_back(&work);
      continue;
    }
    ++count;
    bytes += work.bytes;
  }
  std::ranges::sort(unowned, {}, [](const Work* work) { return work->waiting.front().seq; });
  for (Work* const work : unowned) {
    bytes += work->bytes;
    if (++count > config_.owned_max || bytes > config_.owned_bytes_max) return;
    //= ACK-1
    settle(std::exchange(work->waiting, {}));
  }
}

// What has not begun when its session ends is the scheduler's again: it may give it to another worker, so it
// must not begin here by itself.
void AgentCore::drop_unbegun(Instant now) {
  for (auto& [key, work] : work_) {
    if (work.state == Work::State::Recording) work.dropped = true;
  }
  for (const TextPair& key : std::exchange(queue_, {})) drop(key, now);
  const std::ptrdiff_t kept = running_worker_ ? 1 : 0;
  const std::vector<TextPair> unbegun(worker_queue_.begin() + kept, worker_queue_.end());
  worker_queue_.erase(worker_queue_.begin() + kept, worker_queue_.end());
  for (const TextPair& key : unbegun) drop(key, now);
}

void AgentCore::drop(const TextPair& key, Instant now) {
  const auto work = work_.find(key);
  notes_.push_back({AgentNote::Kind::Dropped,
                    work == work_.end() ? std::string{kExec} : work->second.type,
                    key.first,
                    key.second,
                    {}});
  forget(key, now);
  if (work != work_.end()) work_.erase(work);
}

void AgentCore::handle_finished(const RunId& run, const RunOutcome& outcome, Instant now) {
  const auto running = runs_.find(run);
  CHECK(running != runs_.end());
  const TextPair key = running->second;
  runs_.erase(running);
  const auto work = work_.find(key);
  CHECK(work != work_.end());
  Work done = std::move(work->second);
  work_.erase(work);
  std::string result = outcome_text(outcome, config_.result_bytes_max);
  if (!journal_.complete(journal_key(key), result, now)) {
    RunOutcome shorter = outcome;
    shorter.standard_output.clear();
    shorter.standard_error.clear();
    shorter.is_cut = true;
    result = outcome_text(shorter, config_.journal.result_bytes_reserved);
    CHECK(journal_.complete(journal_key(key), result, now).has_value());
  }
  pending_.finished.push_back(run);
  complete(key, std::move(done), result,
           {AgentNote::Kind::Finished, std::string{kExec}, key.first, key.second,
            std::string{outcome_code(outcome)}, std::nullopt, outcome.took},
           now);
  start_runs();
}

void AgentCore::handle_worker_command_done(const RunId& run, std::string result, Duration took, Instant now) {
  CHECK(running_worker_ && !worker_queue_.empty());
  const TextPair key = std::move(worker_queue_.front());
  worker_queue_.pop_front();
  running_worker_ = false;
  const auto work = work_.find(key);
  CHECK(work != work_.end() && std::get<WorkerCommand>(work->second.job).id == run);
  Work done = std::move(work->second);
  work_.erase(work);
  if (!journal_.complete(journal_key(key), result, now)) {
    const bool is_refusal = result.starts_with(R"({"ok":false)");
    result = is_refusal ? R"({"ok":false,"truncated":true})" : R"({"ok":true,"truncated":true})";
    CHECK(journal_.complete(journal_key(key), result, now).has_value());
  }
  AgentNote finished{AgentNote::Kind::Finished, done.type, key.first, key.second, {}, std::nullopt, took};
  complete(key, std::move(done), result, std::move(finished), now);
  start_worker_command();
}

void AgentCore::complete(const TextPair& key, Work work, const std::string& result, AgentNote finished,
                         Instant now) {
  pending_.bytes += log_.encode_complete(journal_key(key), result, now);
  notes_.push_back(std::move(finished));
  answer(key, {.type = kResult, .id = {}, .payload = result}, std::move(work.waiting), true);
}

std::optional<Batch> AgentCore::poll_batch(Instant now) {
  if (committing_) return std::nullopt;
  if (pending_.bytes.empty()) {
    // Nothing to record, and everything recorded before is on the disk.
    if (!pending_.empty()) release(std::exchange(pending_, {}), now);
    return std::nullopt;
  }
  committing_ = std::exchange(pending_, {});
  Batch batch{.bytes = std::move(committing_->bytes)};
  log_bytes_ += batch.bytes.size();
  if (log_bytes_ > config_.compact_bytes_min && log_bytes_ / 4 > compacted_bytes_) {
    batch = {.bytes = log_.compact(journal_, now), .replaces = true};
    log_bytes_ = compacted_bytes_ = batch.bytes.size();
  }
  clock_due_ = now + config_.clock_record;
  return batch;
}

void AgentCore::handle_committed(Instant now) {
  CHECK(committing_.has_value());
  release(*std::exchange(committing_, std::nullopt), now);
}

void AgentCore::release(Step step, Instant now) {
  for (TextPair& key : step.begun) {
    const auto work = work_.find(key);
    CHECK(work != work_.end());
    if (work->second.dropped) {
      drop(key, now);
      continue;
    }
    work->second.state = Work::State::Queued;
    const bool is_run = std::holds_alternative<RunRequest>(work->second.job);
    (is_run ? queue_ : worker_queue_).push_back(std::move(key));
  }
  for (Answer& each : step.answers) queue(std::move(each));
  for (RunId& run : step.finished) finished_.push_back(std::move(run));
  own_begun();
  start_runs();
  start_worker_command();
}

void AgentCore::start_worker_command() {
  if (running_worker_ || worker_queue_.empty()) return;
  const TextPair& key = worker_queue_.front();
  const auto work = work_.find(key);
  CHECK(work != work_.end());
  running_worker_ = true;
  work->second.state = Work::State::Running;
  notes_.push_back({AgentNote::Kind::Started, work->second.type, key.first, key.second, {}});
  to_do_ = std::get<WorkerCommand>(work->second.job);
}

void AgentCore::start_runs() {
  while (!queue_.empty() && runs_.size() < config_.max_parallel) {
    const TextPair key = std::move(queue_.front());
    queue_.pop_front();
    const auto work = work_.find(key);
    CHECK(work != work_.end());
    work->second.state = Work::State::Running;
    const RunRequest& request = std::get<RunRequest>(work->second.job);
    runs_.emplace(request.id, key);
    notes_.push_back({AgentNote::Kind::Started, std::string{kExec}, key.first, key.second, {}});
    to_run_.push_back(request);
  }
}

void AgentCore::handle_timeout(Instant now) {
  journal_.handle_timeout(now);
  echoes_.handle_timeout(now);
  if (now < clock_due_ || journal_.size() == 0) return;
  pending_.bytes += log_.encode_clock(now);
  clock_due_ = now + config_.clock_record;
}

std::optional<Instant> AgentCore::poll_timeout() const {
  std::optional<Instant> next = journal_.poll_timeout();
  if (journal_.size() > 0 && (!next || clock_due_ < *next)) next = clock_due_;
  return next;
}

std::optional<RunRequest> AgentCore::poll_run() {
  if (to_run_.empty()) return std::nullopt;
  RunRequest request = std::move(to_run_.front());
  to_run_.pop_front();
  return request;
}

std::optional<WorkerCommand> AgentCore::poll_worker_command() {
  return std::exchange(to_do_, std::nullopt);
}

std::optional<Message> AgentCore::poll_part() {
  if (parts_.empty()) return std::nullopt;
  Message part = std::move(parts_.front());
  parts_.pop_front();
  return part;
}

std::optional<RunId> AgentCore::poll_finished_run() {
  if (finished_.empty()) return std::nullopt;
  RunId run = std::move(finished_.front());
  finished_.pop_front();
  return run;
}

std::optional<AgentNote> AgentCore::poll_note() {
  if (notes_.empty()) return std::nullopt;
  return notes_.pop_front();
}

void AgentCore::note(AgentNote::Kind kind, const Message& message, std::string_view code,
                     std::optional<Seq> seq) {
  notes_.push_back({kind, std::string{message.type()}, std::string{message.id()}, std::string{message.corr()},
                    std::string{code}, seq});
}

}  // namespace windlass::agent
