// Batches: what is dirty becomes one commit, and what waits for it goes out with it or is taken back.
#include <algorithm>
#include <iterator>
#include <utility>

#include "protocol/base/check.h"
#include "protocol/base/mutant.h"
#include "scheduler/core/scheduler_core.h"

namespace windlass {

std::optional<Effects> SchedulerCore::poll_effects() {
  if (outstanding_) return std::nullopt;
  // The alarm may come after the session that a command waited for: at a start, or after a sleep. What ran
  // out of time is over all the same, and is not sent.
  outbox_.handle_timeout(now_);
  settle_orders(now_);
  for (const auto& [tenant, application_id] : std::exchange(versions_due_, {})) {
    settle_active(tenant, application_id);
  }
  const bool is_writing = may_write();
  if (is_writing && health_.is_failing && dirty_.empty()) dirty_.mark(kProbeRow);
  Effects effects;
  Outstanding batch;
  effects.expected = version_;
  if (is_writing) {
    place_commands();
    take_writes(effects, batch);
  }
  // A frame is owned when everything it changed is stored, so a batch that writes nothing while rows are
  // dirty owns nothing.
  if (is_writing || MUTANT(core_owns_unstored)) take_owns(effects, batch);
  take_grants(effects, batch, is_writing);
  take_sends(effects, batch, is_writing || MUTANT(core_sends_unstored));
  take_orders(effects, batch, is_writing);
  batch.packages_asked = effects.packages_asked = std::exchange(packages_asked_, {});
  batch.tells = tells_;
  std::ranges::move(std::exchange(tells_, {}), std::back_inserter(effects.tells));
  take_applications(effects, batch, is_writing);
  if (is_writing) {
    batch.events = std::exchange(events_, {});
    effects.events.insert(effects.events.end(), batch.events.begin(), batch.events.end());
  }
  if (effects.writes.empty() && effects.owns.empty() && effects.sends.empty() &&
      effects.session_commands.empty() && effects.packages_asked.empty() && effects.tells.empty() &&
      effects.replies.empty() && effects.events.empty()) {
    return std::nullopt;
  }
  batch.has_writes = !effects.writes.empty();
  if (batch.has_writes) is_retry_due_ = false;
  outstanding_ = std::move(batch);
  return effects;
}

void SchedulerCore::take_writes(Effects& effects, Outstanding& batch) {
  batch.rows = dirty_.take();
  effects.writes.reserve(batch.rows.size());
  for (const std::string& row : batch.rows) effects.writes.push_back({row, begin_store(row, effects)});
}

void SchedulerCore::take_owns(Effects& effects, Outstanding& batch) {
  for (const SessionRef session : std::exchange(owning_, {})) {
    Worker* const worker = fleet_.find(session);
    if (worker == nullptr) continue;
    worker->is_own_queued = false;
    worker->owned_next = worker->handled_next;
    effects.owns.push_back({session, worker->owned_next});
    batch.owns.push_back(session);
  }
}

// An assignment and the word to its runtime that the worker may serve it leave with one commit.
void SchedulerCore::take_grants(Effects& effects, const Outstanding& batch, bool is_writing) {
  const auto is_concerned = [](const std::string& row) {
    const RowKind kind = kind_of(row);
    return kind == RowKind::Assignment || kind == RowKind::Denial;
  };
  const bool is_changed = std::ranges::any_of(batch.rows, is_concerned);
  if (!is_changed && !grants_.is_any_owed()) return;
  GrantTable granted;
  const auto add = [&](const AssignmentRecord& each) {
    if (each.state == AssignmentState::Lost || is_denied(each.worker)) return;
    granted[each.worker.tenant].push_back({each.worker.instance.value(), each.application_id, each.runtime});
  };
  // Undecided assignments are excluded: no batch has stored them.
  is_writing ? apps_.for_each_decided(add) : apps_.for_each_assignment(add);
  for (GrantUpdate& update : grants_.update(granted)) {
    effects.tells.push_back({update.session, Message{{.type = kGrantsType,
                                                      .id = random_name("g-"),
                                                      .payload = grants_payload(update, version_.value())}}});
  }
}

void SchedulerCore::take_sends(Effects& effects, Outstanding& batch, bool is_writing) {
  for (const WorkerKey& key : outbox_.take_ready()) {
    Worker* const worker = fleet_.find(key);
    // Others are marked ready again when a session begins.
    if (worker == nullptr || !worker->session || worker->is_draining) continue;
    const DispatchTerms terms{parallel_max(*worker), holds_work_back(*worker), worker->role == Role::Runtime};
    while (Command* const command = outbox_.next_to_send(key, terms, is_writing)) {
      const CommandRecord& record = command->record;
      outbox_.mark_sent(*command);
      ++worker->counters.commands_sent;
      effects.sends.push_back(
          {*worker->session, record.key,
           Message{{.type = record.type, .id = record.key.id, .payload = record.payload}}});
      effects.events.emplace_back(Dispatched{record.key, key, record.type, command->next_cause});
      batch.sends.push_back({*worker->session, command->row});
    }
  }
}

void SchedulerCore::take_orders(Effects& effects, Outstanding& batch, bool is_writing) {
  std::vector<Order> kept;
  for (Order& order : orders_) {
    if (order.needs_store && !is_writing) {
      kept.push_back(std::move(order));
      continue;
    }
    if (order.command) effects.session_commands.push_back(*order.command);
    if (order.reply) effects.replies.push_back(*order.reply);
    batch.orders.push_back(std::move(order));
  }
  orders_ = std::move(kept);
}

std::optional<Bytes> SchedulerCore::begin_store(std::string_view row, Effects& effects) {
  const auto begin = [row](auto& rows) -> std::optional<Bytes> {
    const auto found = rows.find(row);
    if (found == rows.end()) return std::nullopt;
    found->second.is_in_batch = true;
    return to_row_value(found->second.value);
  };
  switch (kind_of(row)) {
    case RowKind::Command:
      if (auto finished = outbox_.begin_store(row)) effects.events.emplace_back(std::move(*finished));
      return outbox_.row_value(row);
    case RowKind::Message:
      inbox_.begin_store(row);
      return inbox_.row_value(row);
    case RowKind::Revocation:
      return begin(revocations_);
    case RowKind::Denial: {
      const auto denial = denials_.begin_store(row);
      return denial ? std::optional{to_row_value(*denial)} : std::nullopt;
    }
    case RowKind::Drain:
      return begin(drains_);
    case RowKind::App:
    case RowKind::Assignment:
    case RowKind::Active:
      return apps_.begin_store(row);
    case RowKind::Issued:
      return to_row_value(IssuedUntil{issued_until_});
    case RowKind::Probe:
      return to_row_value(StoreProbe{health_.failures});
    case RowKind::Unknown:
      break;
  }
  CHECK(false);
  return std::nullopt;
}

void SchedulerCore::end_store(std::string_view row, bool is_committed) {
  outbox_.end_store(row, is_committed);
  inbox_.end_store(row, is_committed);
  apps_.end_store(row, is_committed);
  denials_.end_store(row, is_committed);
  const auto end = [row, is_committed](auto& rows) {
    const auto found = rows.find(row);
    if (found == rows.end() || !std::exchange(found->second.is_in_batch, false)) return;
    if (is_committed) found->second.is_stored = true;
  };
  end(revocations_);
  end(drains_);
}

void SchedulerCore::effects_committed(Version version) {
  CHECK(outstanding_.has_value());
  Outstanding batch = std::move(*outstanding_);
  outstanding_.reset();
  for (const Order& order : batch.orders) {
    const auto* const drain = order.command ? std::get_if<DrainSession>(&*order.command) : nullptr;
    Worker* const worker = drain == nullptr ? nullptr : fleet_.find(drain->session);
    if (worker == nullptr) continue;
    fleet_.start_draining(*worker, now_);
    note_fitness(*worker);
  }
  if (!batch.has_writes) return CHECK(version == version_);
  version_ = version;
  ++health_.commits;
  health_.is_failing = false;
  health_.reason.clear();
  retry_at_.reset();
  retry_delay_ = Duration{0};
  for (const std::string& row : batch.rows) end_store(row, true);
}

void SchedulerCore::effects_failed(const Error& error, Now now) {
  CHECK(outstanding_.has_value());
  CHECK(outstanding_->has_writes);
  now_ = now;
  Outstanding batch = std::move(*outstanding_);
  outstanding_.reset();
  note_failure(error, now);
  take_back(batch, error);
  drop_unstored();
  settle_reverted();
  // What they were to be told went with the batch.
  grants_.owe_all();
  applications_told_.clear();
  are_applications_due_ = true;
}

void SchedulerCore::note_failure(const Error& error, Now now) {
  health_.is_failing = true;
  health_.is_fenced = health_.is_fenced || error.code == ErrorCode::StoreStale;
  health_.code = error.code;
  health_.reason = error.reason;
  ++health_.failures;
  is_retry_due_ = false;
  retry_at_.reset();
  if (health_.is_fenced) return;
  retry_delay_ = std::clamp(retry_delay_ * 2, options_.store_retry_first, options_.store_retry_cap);
  retry_at_ = now.steady + retry_delay_;
}

void SchedulerCore::take_back(Outstanding& batch, const Error& error) {
  for (const std::string& row : batch.rows) {
    end_store(row, false);
    if (!MUTANT(core_forgets_failed_rows)) dirty_.mark(row);
  }
  for (const SessionRef session : batch.owns) {
    if (MUTANT(core_forgets_owns)) break;
    if (Worker* const worker = fleet_.find(session)) queue_own(*worker);
  }
  for (const Sent& sent : batch.sends) {
    if (MUTANT(core_keeps_sent_marks)) break;
    const Worker* const worker = fleet_.find(sent.session);
    Command* const command = outbox_.find(sent.row);
    if (worker == nullptr || command == nullptr || !command->is_sent || command->record.is_finished())
      continue;
    --command->sends;
    outbox_.mark_unsent(*command, command->next_cause);
    outbox_.mark_ready(worker->key);
  }
  // What needed no store goes out all the same; the rest is refused, in the order in which it was asked.
  std::vector<Order> orders = std::move(batch.orders);
  orders.insert(orders.end(), std::make_move_iterator(orders_.begin()),
                std::make_move_iterator(orders_.end()));
  orders_.clear();
  for (Order& order : orders) {
    if (!order.needs_store || MUTANT(core_accepts_unstored)) {
      orders_.push_back(std::move(order));
    } else if (order.reply) {
      refuse(order.reply->request, {error.code, Blame::Local, "it could not be stored: " + error.reason});
    }
  }
  packages_asked_.insert(packages_asked_.begin(), std::make_move_iterator(batch.packages_asked.begin()),
                         std::make_move_iterator(batch.packages_asked.end()));
  tells_.insert(tells_.begin(), std::make_move_iterator(batch.tells.begin()),
                std::make_move_iterator(batch.tells.end()));
  batch.events.insert(batch.events.end(), std::make_move_iterator(events_.begin()),
                      std::make_move_iterator(events_.end()));
  events_ = std::move(batch.events);
}

// Nobody was promised these, and those who asked for them are told so.
void SchedulerCore::drop_unstored() {
  outbox_.drop_unstored();
  apps_.drop_unstored();
  denials_.drop_unstored();
  const auto drop = [this](auto& rows) {
    for (auto at = rows.begin(); at != rows.end();) {
      if (at->second.is_stored) {
        ++at;
        continue;
      }
      dirty_.mark(at->first);
      at = rows.erase(at);
    }
  };
  drop(revocations_);
  drop(drains_);
}

}  // namespace windlass
