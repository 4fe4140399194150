#include "tests/sim/scheduler_owner.h"

#include <algorithm>
#include <utility>

namespace windlass::sim {

SchedulerOwner::SchedulerOwner(const OwnerParts& parts, SchedulerEndpoint& endpoint, Disk& disk,
                               SchedulerStore& store, Duration own_delay_max, bool trusts_acks)
    : parts_(parts),
      endpoint_(endpoint),
      disk_(disk),
      store_(store),
      own_delay_max_(own_delay_max),
      trusts_acks_(trusts_acks) {}

void SchedulerOwner::handle(OwnerEvent owner_event) {
  Stats& stats = parts_.context.stats;
  const SessionHandle handle = owner_event.session;
  SessionEvent& event = owner_event.event;
  if (std::holds_alternative<Registered>(event) && !links_.contains(handle)) {
    return start_session(handle, endpoint_.session(handle)->identity().peer_id);
  }
  const auto found = links_.find(handle);
  if (found == links_.end()) return parts_.context.fail("events-of-known-sessions", "an event of no session");
  Link& link = found->second;
  if (const auto* established = std::get_if<Established>(&event)) {
    parts_.context.note("scheduler established ", link.instance, " resumed ", established->resumed,
                        " replayed ", established->replayed);
    established->resumed ? ++stats.resumes : ++stats.sessions;
    stats.replayed += established->replayed;
  } else if (auto* delivered = std::get_if<Delivered>(&event)) {
    deliver(handle, std::move(*delivered));
  } else if (const auto* acknowledged = std::get_if<Acknowledged>(&event)) {
    acknowledge(link, acknowledged->next);
  } else if (std::holds_alternative<Writable>(event)) {
    link.blocked = false;
  } else if (const auto* drain = std::get_if<DrainRequested>(&event)) {
    link.draining = true;
    expect_drained(handle, drain->deadline);
  } else if (const auto* ended = std::get_if<Ended>(&event)) {
    end_session(handle, *ended);
  } else if (const auto* load = std::get_if<LoadReported>(&event)) {
    link.is_short = load->is_short();
  } else if (const auto* level = std::get_if<LivenessChanged>(&event)) {
    if (level->level == Liveness::Lost) ++stats.lost_levels;
  } else if (std::holds_alternative<TwinSuspected>(event)) {
    ++stats.twins_suspected;
  } else if (std::holds_alternative<ClockJumped>(event)) {
    ++stats.clock_jumps;
  } else if (const auto* refused = std::get_if<Refused>(&event)) {
    parts_.context.note("scheduler refused of ", link.instance, ": ", refused->info);
    ++stats.refused_frames;
  }
}

void SchedulerOwner::start_session(SessionHandle handle, const std::string& instance) {
  Link& link = links_[handle];
  link.instance = instance;
  link.session = endpoint_.session(handle)->identity().session_id;
  parts_.context.note("scheduler opens session ", link.session, " of ", instance);
  for (const auto& [number, row] : store_.rows) {
    if (row.instance != instance || row.is_done) continue;
    if (trusts_acks_ && row.is_acknowledged) continue;
    queue(link, number);
  }
}

void SchedulerOwner::expect_drained(SessionHandle handle, Duration deadline) {
  const auto found = links_.find(handle);
  if (found != links_.end()) found->second.drain_due = now().steady + deadline;
}

std::optional<Instant> SchedulerOwner::drain_due(SessionHandle handle) const {
  const auto found = links_.find(handle);
  return found == links_.end() ? std::nullopt : found->second.drain_due;
}

void SchedulerOwner::queue(Link& link, std::uint64_t row) {
  if (link.known.insert(row).second) link.queue.push_back(row);
}

void SchedulerOwner::end_session(SessionHandle handle, const Ended& ended) {
  Stats& stats = parts_.context.stats;
  const Link& link = links_.at(handle);
  parts_.context.note("scheduler ends session ", link.session, " of ", link.instance, ": ", ended.code, " ",
                      ended.reason, ", returned ", ended.returned.size());
  ++stats.ends;
  if (ended.code.empty()) ++stats.drained;
  if (ended.code == to_string(ErrorCode::SessionSuperseded)) ++stats.superseded;
  if (ended.reason == "the resume window passed") ++stats.expired;
  parts_.sessions.on_ended(link.session, End::Scheduler, ended);
  links_.erase(handle);
}

void SchedulerOwner::lose_process() {
  for (const auto& [handle, link] : links_) parts_.sessions.on_process_lost(link.session, End::Scheduler);
}

void SchedulerOwner::deliver(SessionHandle handle, Delivered delivered) {
  const Link& link = links_.at(handle);
  parts_.sessions.on_delivered(link.session, End::Scheduler, delivered);
  const bool is_stranger = parts_.sessions.is_stranger(link.session);
  const Duration delay = parts_.context.random.below(own_delay_max_ + Duration{1});
  parts_.machine.later(
      delay, [this, handle, is_stranger, seq = delivered.seq, id = std::string{delivered.message.id()},
              corr = std::string{delivered.message.corr()}] {
        std::function<void()> apply = [this, id, corr] { store_delivered(id, corr); };
        if (is_stranger) apply = nullptr;  // nothing that the fleet waits for
        disk_.commit({{}, std::move(apply), [this, handle, seq] { settle(handle, seq); }});
      });
}

// Part of a commit: an event, a result, or the refusal of a conflicting command.
void SchedulerOwner::store_delivered(const std::string& id, const std::string& corr) {
  if (corr.empty()) {
    if (store_.events.insert(id).second) return parts_.duties.event_durable(id);
    ++parts_.context.stats.events_again;
    return;
  }
  const bool is_conflict = id[0] == 'x';
  for (auto& [number, row] : store_.rows) {
    if (row.id != corr || row.is_conflict != is_conflict || row.is_done) continue;
    row.is_done = true;
    if (!is_conflict) parts_.duties.result_durable(corr);
  }
}

void SchedulerOwner::settle(SessionHandle handle, Seq seq) {
  const auto found = links_.find(handle);
  if (found == links_.end()) return;
  Link& link = found->second;
  link.settled.insert(seq);
  const Seq before = link.owned_next;
  while (link.settled.erase(link.owned_next) > 0) ++link.owned_next;
  if (link.owned_next == before) return;
  parts_.sessions.on_owned(link.session, End::Scheduler, link.owned_next);
  endpoint_.own(handle, link.owned_next, now());
}

void SchedulerOwner::acknowledge(Link& link, Seq next) {
  parts_.sessions.on_acknowledged(link.session, End::Scheduler, next);
  while (!link.sent.empty() && link.sent.front().first < next) {
    const std::uint64_t number = link.sent.front().second;
    link.sent.pop_front();
    parts_.duties.command_acknowledged(store_.rows.at(number).id);
    disk_.commit({{}, [this, number] { store_.rows.at(number).is_acknowledged = true; }, {}});
  }
}

void SchedulerOwner::submit(const Row& row, std::function<void()> confirm) {
  // The client asks again when it heard nothing, and the row may be there all the same.
  for (const auto& [known, stored] : store_.rows) {
    if (stored.id == row.id && stored.is_conflict == row.is_conflict) return confirm();
  }
  const std::uint64_t number = ++store_.next_row;
  disk_.commit({{},
                [this, number, row] { store_.rows.emplace(number, row); },
                [this, number, row, confirm = std::move(confirm)] {
                  confirm();
                  for (auto& [handle, link] : links_) {
                    if (link.instance != row.instance || link.known.contains(number)) continue;
                    if (!row.is_conflict) {
                      queue(link, number);
                      continue;
                    }
                    // One id names one frame of a session, so a conflicting command wants a new one.
                    ++parts_.context.stats.owner_resets;
                    endpoint_.reset(handle, ErrorCode::Internal, "the owner starts over", now());
                  }
                }});
}

void SchedulerOwner::pump() {
  for (auto& [handle, link] : links_) send_rows(handle, link);
}

void SchedulerOwner::send_rows(SessionHandle handle, Link& link) {
  //= LIV-7
  while (!link.blocked && !link.draining && !link.is_short && !link.queue.empty()) {
    const Row& row = store_.rows.at(link.queue.front());
    if (row.is_done) {
      link.queue.pop_front();
      continue;
    }
    MessageParts parts{.type = "biz.command.run", .id = row.id, .payload = row.payload};
    if (!row.attachment.empty()) parts.attachment = Attachment{"application/octet-stream", row.attachment};
    parts.ack_request = parts_.context.random.one_in(10);
    const Message message{parts};
    Message given = message;
    const auto seq = endpoint_.send(handle, std::move(given), now());
    if (!seq) {
      if (given != message) parts_.context.fail("refused-stays-with-caller", "command ", row.id);
      ++parts_.context.stats.would_block;
      switch (seq.error().code) {
        case ErrorCode::SessionWouldBlock:
          link.blocked = true;
          break;
        case ErrorCode::SessionDraining:
          link.draining = true;
          break;
        case ErrorCode::SessionStaleBinding:  // ended, and the event is on its way
          return;
        default:
          return parts_.context.fail("send-says-why", "a command was refused: ", seq.error().reason);
      }
      return;
    }
    //= DRN-2
    if (endpoint_.session(handle)->is_draining()) {
      return parts_.context.fail("no-new-work-while-draining", "command ", row.id, " for ", link.instance);
    }
    if (row.is_acknowledged) ++parts_.context.stats.commands_again;
    parts_.sessions.on_send_accepted(link.session, End::Scheduler, *seq, message);
    link.sent.emplace_back(*seq, link.queue.front());
    link.queue.pop_front();
  }
}

bool SchedulerOwner::is_idle() const {
  return std::ranges::all_of(links_, [](const auto& entry) {
    return entry.second.queue.empty() && entry.second.sent.empty() && entry.second.settled.empty();
  });
}

std::optional<SessionHandle> SchedulerOwner::session_of(const std::string& instance) const {
  return endpoint_.find("acme", instance);
}

std::vector<SessionHandle> SchedulerOwner::sessions() const {
  std::vector<SessionHandle> handles;
  for (const auto& [handle, link] : links_) handles.push_back(handle);
  return handles;
}

const std::string* SchedulerOwner::session_id(SessionHandle handle) const {
  const auto found = links_.find(handle);
  return found == links_.end() ? nullptr : &found->second.session;
}

}  // namespace windlass::sim
