#include "tests/sim/worker_owner.h"

#include <algorithm>
#include <utility>

namespace windlass::sim {
namespace {

constexpr std::string_view kRefusal = R"({"code":"E.RESULT.DUPLICATE"})";

Message message_of(const Outgoing& out) {
  MessageParts parts{.type = out.type, .id = out.id, .payload = out.payload, .corr = out.corr};
  if (!out.attachment.empty()) parts.attachment = Attachment{"application/octet-stream", out.attachment};
  return Message{parts};
}

std::string answer_id(const std::string& command) {
  return "r-" + command;
}

}  // namespace

WorkerOwner::WorkerOwner(const OwnerParts& parts, WorkerEndpoint& endpoint, Disk& disk, WorkerStore& store,
                         Duration own_delay_max, Duration work_time_max)
    : parts_(parts),
      endpoint_(endpoint),
      disk_(disk),
      store_(store),
      own_delay_max_(own_delay_max),
      work_time_max_(work_time_max) {
  recover_journal();
}

void WorkerOwner::recover_journal() {
  auto recovered = recover(disk_.log());
  if (!recovered) {
    parts_.context.fail("journal-recovers", recovered.error().reason);
    journal_log_ = std::make_unique<JournalLog>(Duration{}, now().steady);
    return;
  }
  disk_.truncate_log(recovered->valid_bytes);
  journal_.restore(recovered->entries, now().steady);
  journal_log_ = std::make_unique<JournalLog>(recovered->run_time, now().steady);
  std::set<std::string> completed;
  std::vector<std::string> interrupted;
  for (const JournalEntry& entry : recovered->entries) {
    const std::string id{entry.key.id};
    entry.result ? static_cast<void>(completed.insert(id)) : interrupted.push_back(id);
  }
  parts_.duties.journal_recovered(parts_.machine.name(), completed);
  // Effect and completion are one commit here, so what was interrupted had no effect.
  for (const std::string& id : interrupted) {
    journal_.forget({id, ""});
    disk_.commit({journal_log_->encode_forget({id, ""}, now().steady), {}, {}});
  }
  if (interrupted.empty() && parts_.context.chance(30)) {
    disk_.replace_log(journal_log_->compact(journal_, now().steady));
  }
}

void WorkerOwner::handle(OwnerEvent owner_event) {
  Stats& stats = parts_.context.stats;
  SessionEvent& event = owner_event.event;
  if (const auto* established = std::get_if<Established>(&event)) {
    parts_.context.note(parts_.machine.name(), " established, resumed ", established->resumed, " replayed ",
                        established->replayed);
    stats.replayed += established->replayed;
    if (!established->resumed) start_session(owner_event.session);
  } else if (auto* delivered = std::get_if<Delivered>(&event)) {
    deliver(std::move(*delivered));
  } else if (const auto* acknowledged = std::get_if<Acknowledged>(&event)) {
    acknowledge(acknowledged->next);
  } else if (std::holds_alternative<Writable>(event)) {
    blocked_ = false;
  } else if (std::holds_alternative<DrainRequested>(event)) {
    parts_.context.note(parts_.machine.name(), " is asked to drain");
    draining_ = true;
  } else if (const auto* ended = std::get_if<Ended>(&event)) {
    end_session(*ended);
  } else if (const auto* refused = std::get_if<Refused>(&event)) {
    parts_.context.note(parts_.machine.name(), " refused: ", refused->info);
    ++stats.refused_frames;
  } else if (const auto* backing_off = std::get_if<BackingOff>(&event)) {
    parts_.context.note(parts_.machine.name(), " backs off ", backing_off->delay, ": ", backing_off->cause);
  } else if (std::holds_alternative<ClockJumped>(event)) {
    ++stats.clock_jumps;
  }
}

void WorkerOwner::start_session(SessionHandle handle) {
  session_ = endpoint_.session()->identity().session_id;
  handle_ = handle;
  settled_.clear();
  owned_next_ = 0;
  sent_.clear();
  outbox_.clear();
  queued_.clear();
  blocked_ = complete_said_ = false;
  draining_ = drain_is_ours_;
  for (const auto& [number, message] : store_.outbox) queue(number, message);
}

void WorkerOwner::end_session(const Ended& ended) {
  parts_.context.note(parts_.machine.name(), " session ", session_, " ended: ", ended.code, " ", ended.reason,
                      ", returned ", ended.returned.size());
  ++parts_.context.stats.ends;
  if (session_.empty()) return parts_.context.fail("ends-once", "a session ended that never began");
  parts_.sessions.on_ended(session_, End::Worker, ended);
  session_.clear();
  handle_ = SessionHandle{0};
  if (ended.code.empty()) drained_ = true;
}

void WorkerOwner::lose_process() {
  if (!session_.empty()) parts_.sessions.on_process_lost(session_, End::Worker);
}

void WorkerOwner::deliver(Delivered delivered) {
  parts_.sessions.on_delivered(session_, End::Worker, delivered);
  ++unstarted_;
  const Waiting from{handle_, delivered.seq};
  const Duration delay = parts_.context.random.below(own_delay_max_ + Duration{1});
  parts_.machine.later(delay, [this, from, message = std::move(delivered.message)] {
    --unstarted_;
    start_work(message, from);
  });
}

void WorkerOwner::start_work(const Message& message, Waiting from) {
  const std::string id{message.id()};
  const JournalAnswer answer = journal_.begin(message, now().steady);
  parts_.duties.journal_answered(parts_.machine.name(), id, content_hash(message), answer.verdict);
  switch (answer.verdict) {
    case JournalVerdict::New: {
      in_progress_[id].push_back(from);
      const std::string result =
          R"({"of":")" + id + R"(","bytes":)" + std::to_string(message.payload().size()) + "}";
      disk_.commit(
          {journal_log_->encode_begin({id, ""}, answer.digest, now().steady), {}, [this, id, result] {
             const Duration work = parts_.context.random.below(work_time_max_ + Duration{1});
             parts_.machine.later(work, [this, id, result] { finish_work(id, result); });
           }});
      return;
    }
    case JournalVerdict::InProgress:
      in_progress_[id].push_back(from);
      return;
    case JournalVerdict::Done:
      ++parts_.context.stats.answers_from_journal;
      if (from.session == handle_)
        queue(0, {"biz.result", answer_id(id), id, std::string{answer.result}, ""});
      return settle(from);
    case JournalVerdict::Conflict:
      return refuse(id, from);
    case JournalVerdict::Full:
      return parts_.context.fail("journal-has-room", "a journal of this size cannot be full");
  }
}

void WorkerOwner::finish_work(const std::string& id, const std::string& result) {
  const std::uint64_t number = ++store_.next_number;
  const Outgoing answer{"biz.result", answer_id(id), id, result, ""};
  disk_.commit({journal_log_->encode_complete({id, ""}, result, now().steady),
                [this, number, answer, id, machine = parts_.machine.name()] {
                  store_.outbox.emplace(number, answer);
                  parts_.duties.effect_durable(id, machine);
                },
                [this, id, result, number, answer] {
                  static_cast<void>(journal_.complete({id, ""}, result, now().steady));
                  queue(number, answer);
                  for (const Waiting& from : in_progress_[id]) settle(from);
                  in_progress_.erase(id);
                }});
}

// Like work: one refusal is stored, however often it is asked for.
void WorkerOwner::refuse(const std::string& id, Waiting from) {
  const Outgoing answer{"biz.result", "x-" + id, id, std::string{kRefusal}, ""};
  const bool is_stored =
      std::ranges::any_of(store_.outbox, [&](const auto& row) { return row.second.id == answer.id; });
  if (is_stored || queued_.contains(answer.id)) return settle(from);
  auto& waiting = in_progress_[answer.id];
  waiting.push_back(from);
  if (waiting.size() > 1) return;
  const std::uint64_t number = ++store_.next_number;
  disk_.commit({{},
                [this, number, answer] { store_.outbox.emplace(number, answer); },
                [this, number, answer] {
                  queue(number, answer);
                  for (const Waiting& each : in_progress_[answer.id]) settle(each);
                  in_progress_.erase(answer.id);
                }});
}

void WorkerOwner::settle(const Waiting& from) {
  if (from.session != handle_ || session_.empty()) return;
  settled_.insert(from.seq);
  const Seq before = owned_next_;
  while (settled_.erase(owned_next_) > 0) ++owned_next_;
  if (owned_next_ == before) return;
  parts_.sessions.on_owned(session_, End::Worker, owned_next_);
  endpoint_.own(handle_, owned_next_, now());
}

void WorkerOwner::acknowledge(Seq next) {
  parts_.sessions.on_acknowledged(session_, End::Worker, next);
  while (!sent_.empty() && sent_.front().seq < next) {
    const Sent done = std::move(sent_.front());
    sent_.pop_front();
    if (done.message.corr.empty()) {
      parts_.duties.event_acknowledged(done.message.id);
    } else if (done.message.id[0] == 'r') {
      parts_.duties.result_acknowledged(done.message.corr);
    }
    if (done.number == 0) continue;
    disk_.commit({{}, [this, number = done.number] { store_.outbox.erase(number); }, {}});
  }
}

void WorkerOwner::queue(std::uint64_t number, Outgoing message) {
  if (!queued_.insert(message.id).second) return;
  outbox_.push_back({0, number, std::move(message)});
}

void WorkerOwner::accept_event(Outgoing event) {
  const std::uint64_t number = ++store_.next_number;
  disk_.commit({{},
                [this, number, event] {
                  store_.outbox.emplace(number, event);
                  parts_.duties.event_accepted(event.id);
                },
                [this, number, event] { queue(number, event); }});
}

void WorkerOwner::drain(Duration deadline) {
  draining_ = drain_is_ours_ = true;
  endpoint_.drain("the machine goes away", deadline, now());
}

std::string WorkerOwner::unfinished() const {
  if (!in_progress_.empty()) return "works on " + in_progress_.begin()->first;
  if (unstarted_ > 0) return "has not begun a command";
  if (!outbox_.empty()) return "has not sent " + outbox_.front().message.id;
  if (!sent_.empty()) return "has no ack of " + sent_.front().message.id;
  if (!store_.outbox.empty()) return "keeps " + store_.outbox.begin()->second.id + " in its outbox";
  return "";
}

void WorkerOwner::pump() {
  while (!blocked_ && !session_.empty() && !outbox_.empty()) {
    const Message message = message_of(outbox_.front().message);
    Message given = message;
    const auto seq = endpoint_.send(std::move(given), now());
    if (!seq) {
      if (given != message) parts_.context.fail("refused-stays-with-caller", "message ", message.id());
      ++parts_.context.stats.would_block;
      const bool is_late = complete_said_ && seq.error().code == ErrorCode::SessionDraining;
      if (seq.error().code != ErrorCode::SessionWouldBlock && !is_late) {
        parts_.context.fail("send-says-why", "a worker's send was refused: ", seq.error().reason);
      }
      blocked_ = true;
      wants_credit_ = !is_late;
      blocked_since_ = parts_.context.now();
      break;
    }
    parts_.sessions.on_send_accepted(session_, End::Worker, *seq, message);
    outbox_.front().seq = *seq;
    sent_.push_back(std::move(outbox_.front()));
    outbox_.pop_front();
  }
  LoadFacts load;
  load.inflight = in_progress_.size() + unstarted_ + outbox_.size() + sent_.size();
  load.mem_pct = memory_percent_;
  endpoint_.set_load(load);
  // All is done and given to the session: that it is acknowledged too is for the session to wait for.
  if (!draining_ || complete_said_ || !in_progress_.empty() || unstarted_ > 0 || !outbox_.empty()) return;
  complete_said_ = true;
  endpoint_.complete_drain(now());
}

}  // namespace windlass::sim
