// What must hold of every row that becomes durable, and of workers that are gone.
#include <algorithm>

#include "scheduler/core/row_text.h"
#include "tests/sim/scheduler/core_world.h"

namespace windlass::sim {
namespace {

std::string outcome_of(const CommandRecord& record) {
  if (record.result) return record.result->payload;
  if (record.failure) return std::string{to_string(record.failure->code)};
  return {};
}

}  // namespace

void CoreWorld::note_absence(const WorkerKey& worker) {
  away_since_[worker] = now_.wall;
  auto& all = absences_[worker];
  if (!all.empty() && !all.back().until) all.back().until = now_.wall;
  all.push_back({now_.wall, std::nullopt});
}

bool CoreWorld::is_away_since(const WorkerKey& worker, WallTime since) const {
  const auto found = away_since_.find(worker);
  return found != away_since_.end() && found->second <= since;
}

// Nothing waits for a worker that is lost.
void CoreWorld::check_loss() {
  for (const auto& [key, known] : known_) {
    if (!known.is_stored || known.is_finished || target_.at(key).is_language) continue;
    const WallTime since = now_.wall - std::chrono::ceil<milliseconds>(options_.lost_after);
    if (target_.at(key).asked_at <= since && is_away_since(target_.at(key).worker, since))
      fail("a lost worker's commands end", text_of(key));
  }
}

// Every row as it becomes durable.
void CoreWorld::apply(const WriteBatch& writes) {
  for (const Write& write : writes) {
    const RowKind kind = kind_of(write.key);
    if (kind == RowKind::Message && write.value) {
      ++messages_[write.key];
      const auto message = reader_.read({write.key, *write.value});
      if (!message) return fail("rows can be read", message.error().reason);
      note_message(std::get<InboxRecord>(*message), write.key);
    }
    if (kind != RowKind::Command) continue;
    if (!write.value) {
      for (auto& [key, known] : known_) {
        if (command_row(key) != write.key) continue;
        if (known.is_stored && !known.is_finished)
          fail("nothing accepted is lost", text_of(key) + " was erased");
        known = Known{};
        announced_.erase(key);
      }
      continue;
    }
    const auto record = reader_.read({write.key, *write.value});
    if (!record) return fail("rows can be read", record.error().reason);
    note_command(write.key, std::get<CommandRecord>(*record));
  }
}

void CoreWorld::note_message(const InboxRecord& record, const std::string& row) {
  if (record.message.type == "biz.result") fail("a result is no message", row);
  stats_.dropped += record.digest.empty() ? 0U : 1U;
  const auto [at, is_new] = message_number_.emplace(row, record.number);
  if (!is_new && at->second != record.number) fail("a message is kept once", row);
}

// Only expiries, and only of commands whose worker was gone for long enough.
void CoreWorld::note_failure(const std::string& row, const CommandRecord& record) {
  if (record.failure->code == ErrorCode::WorkerLost) {
    const WallTime since = record.finished_at - std::chrono::floor<milliseconds>(options_.lost_after);
    ++stats_.lost;
    // It may be back, and gone again, by the time that this is stored.
    const bool was_lost = std::ranges::any_of(absences_.at(record.worker_key()), [&](const Absence& each) {
      return each.from <= since && (!each.until || record.finished_at <= *each.until);
    });
    if (!was_lost) fail("only lost workers lose commands", row);
    const bool was_given = !target_.at(record.key).given_to.empty();
    if (was_given && !record.failure->may_have_run) fail("it says that it may have run", row);
    return;
  }
  ++stats_.expired;
  if (record.failure->code != ErrorCode::Timeout) fail("failures are expiries", row);
  if (record.finished_at < record.created_at + record.timeout) fail("nothing expires early", row);
}

void CoreWorld::note_command(const std::string& row, const CommandRecord& record) {
  Known& known = known_[record.key];
  const std::string outcome = outcome_of(record);
  if (known.is_stored && record.number != known.number) {
    // Forgotten and submitted anew within one batch: that is another command.
    if (!known.is_finished) fail("nothing accepted is lost", row + " was replaced");
    announced_.erase(record.key);
    known = Known{};
  }
  if (known.is_finished && outcome != known.outcome) fail("one outcome for ever", row + " became " + outcome);
  if (record.result) {
    if (record.result->payload != result_of(record.worker_key(), record.key.id))
      fail("results are the worker's own", row);
    stats_.results += known.is_finished ? 0U : 1U;
  } else if (record.failure && !known.is_finished) {
    note_failure(row, record);
  }
  known.is_stored = true;
  known.is_finished = record.is_finished();
  if (known.is_finished) was_finished_.insert(record.key);
  known.outcome = outcome;
  known.number = record.number;
}

// A worker can be revoked and allowed again within one batch: what was asked last is what the commit stored.
void CoreWorld::check_denials(const Effects& effects) {
  std::map<WorkerKey, bool> is_denied;
  for (const SessionCommand& command : effects.session_commands) {
    if (const auto* revoke = std::get_if<RevokeTokens>(&command)) is_denied[revoke->revocation.worker] = true;
    if (const auto* allow = std::get_if<AllowInstance>(&command)) is_denied[allow->worker] = false;
  }
  for (const auto& [worker, denied] : is_denied) {
    if (image_->rows.contains(denial_row(worker)) == denied) continue;
    fail(denied ? "stored, then denied" : "stored, then allowed", worker.instance.value());
  }
}

}  // namespace windlass::sim
