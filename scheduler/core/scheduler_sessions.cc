// What sessions say: who comes and goes, and the frames of workers.
#include <algorithm>
#include <utility>

#include "protocol/base/check.h"
#include "scheduler/core/runtime_address.h"
#include "scheduler/core/scheduler_core.h"

namespace windlass {
namespace {

// Tokens are issued by the loops without asking the core, so the store says in advance how late one may be.
constexpr Duration kIssuedAhead = seconds{600};
constexpr Duration kIssuedAheadMin = seconds{300};

}  // namespace

void SchedulerCore::on(SessionOpened& opened, Now now) {
  if (Worker* const before = fleet_.find(opened.worker); before != nullptr && before->session) {
    end_session(
        *before,
        {std::string{to_string(ErrorCode::SessionSuperseded)}, "a new session began", Blame::Peer, {}, {}},
        now);
  }
  Worker& worker = fleet_.open(opened, now);
  is_placement_due_ = true;
  are_applications_due_ |= opened.role == Role::Runtime;
  note_issued(now);
  outbox_.worker_came(worker.key);
  outbox_.mark_ready(worker.key);
  // It was let in while it was being revoked.
  if (is_denied(worker.key)) {
    orders_.emplace_back().command =
        ResetSession{opened.session, ErrorCode::SessionDenied, "the worker was revoked"};
  }
  // A drain outlives the session in which it was asked for.
  const auto drain = drains_.find(drain_row(worker.key));
  if (drain == drains_.end() || drain->second.until <= now.steady) return;
  if (drain->second.is_stored) fleet_.start_draining(worker, now);
  Order& order = orders_.emplace_back();  // built in place: GCC 12 warns of a moved optional variant
  order.command = DrainSession{opened.session, drain->second.value.reason, drain->second.until - now.steady};
  order.needs_store = !drain->second.is_stored;
}

void SchedulerCore::on(SessionSaid& said, Now now) {
  Worker* const worker = fleet_.find(said.session);
  if (worker == nullptr) return;  // a session that is over has nothing to say
  if (const auto* delivered = std::get_if<Delivered>(&said.event)) return deliver(*worker, *delivered, now);
  if (const auto* ended = std::get_if<Ended>(&said.event)) return end_session(*worker, *ended, now);
  const bool was_short = worker->is_short();
  const bool held_back = holds_work_back(*worker);
  const std::string_view unfitness = unfitness_of(*worker);
  fleet_.apply(*worker, said.event, now);
  // What it registers says how much it takes, and of which types.
  is_placement_due_ |= unfitness_of(*worker) != unfitness || std::holds_alternative<Registered>(said.event);
  if (const auto* registered = std::get_if<Registered>(&said.event);
      registered != nullptr && worker->role == Role::Runtime) {
    const auto& understood = registered->profile->payload_types;
    if (std::ranges::find(understood, kGrantsType) != understood.end()) {
      grants_.open(worker->key.tenant, worker->key.instance.value(), said.session);
    }
  }
  if (std::holds_alternative<Detached>(said.event)) resumes_.runtime_left(worker->key);
  note_load(*worker, was_short);
  if (held_back && !holds_work_back(*worker)) outbox_.mark_ready(worker->key);
  note_presence(*worker, said.event, now);
  note_fitness(*worker);
  if (std::holds_alternative<Registered>(said.event)) refuse_types(*worker, now);
  if (std::holds_alternative<Established>(said.event)) outbox_.mark_ready(worker->key);
  if (std::holds_alternative<Established>(said.event) || std::holds_alternative<LoadReported>(said.event)) {
    note_issued(now);
  }
}

void SchedulerCore::deliver(Worker& worker, const Delivered& delivered, Now now) {
  CHECK(delivered.seq >= worker.handled_next);
  worker.handled_next = delivered.seq + 1;
  is_placement_due_ |= worker.is_lost;
  fleet_.note_heard(worker, now);
  ++worker.counters.frames_in;
  const Message& message = delivered.message;
  if (take_transient(worker, message, now)) return queue_own(worker);
  const auto ignore = [&](Ignored why) {
    ++worker.counters.duplicates;
    events_.emplace_back(
        FrameIgnored{worker.key, std::string{message.id()}, std::string{message.corr()}, why});
  };
  switch (outbox_.take_result(worker.key, worker.role, message, now)) {
    case Outbox::Answer::NotACommand:
      //= WRK-2
      if (message.type() == "biz.result" && !message.corr().empty()) {
        ignore(Ignored::ForgottenResult);
      } else {
        keep(worker, message, now);
      }
      break;
    case Outbox::Answer::Recorded:
      ++worker.counters.results;
      break;
    case Outbox::Answer::Duplicate:
      ignore(Ignored::DuplicateResult);
      break;
    case Outbox::Answer::Late:
      ignore(Ignored::LateResult);
      break;
  }
  queue_own(worker);
}

// Each is news only as long as it is new, so it is owned at once and nothing of it is stored.
bool SchedulerCore::take_transient(Worker& worker, const Message& message, Now now) {
  const std::string_view type = message.type();
  if (type == "biz.package.get") {
    serve_package(worker, message);
  } else if (type == "biz.worker.status" && worker.role == Role::Worker) {
    auto status = std::make_shared<LanguageWorkerStatus>(runtime_reader_.worker_status(message.payload()));
    is_placement_due_ |=
        worker.language_worker == nullptr || worker.language_worker->language != status->language;
    worker.language_worker = std::move(status);
    resumes_.note_worker(worker.key, *worker.language_worker);
    look_at_resumes(now.steady);
    compare_assignment(worker, now);
  } else if (type == "biz.runtime.status" && worker.role == Role::Runtime) {
    auto status = std::make_shared<RuntimeStatus>(runtime_reader_.runtime_status(message.payload()));
    status->at = now.wall;
    check_address(worker, *status);
    if (worker.runtime != nullptr) note_unserved(worker, status.get());
    const auto before = std::exchange(worker.runtime, std::move(status));
    resumes_.note_runtime(worker.key, *worker.runtime, now.steady);
    look_at_resumes(now.steady);
    is_placement_due_ |= std::ranges::any_of(outbox_.unplaced(), [](const UnplacedKey& each) {
      return each.target.kind == CommandTarget::Kind::Serving;
    });
    follow_runtime(worker, now);
    want_places(now.steady);
    tell_splits(worker, before.get(), now);
  } else if (type == "biz.runtime.signal" && worker.role == Role::Runtime) {
    worker.signals.push_back(runtime_reader_.signal(message.payload()));
    worker.signals.back().at = now.wall;
    events_.emplace_back(RuntimeSignalled{worker.key, worker.signals.back()});
    replace_missing(worker, worker.signals.back(), now);
    if (worker.signals.size() > options_.signals_per_runtime_max) worker.signals.pop_front();
  } else {
    return false;
  }
  return true;
}

// Agents show their token to whatever they are sent to, so a runtime's word for where it is does not do.
void SchedulerCore::check_address(Worker& runtime, RuntimeStatus& status) {
  if (status.url.empty() ||
      is_vouched_for(status.url, options_.runtime_addresses, runtime.certificate_names)) {
    return;
  }
  const bool is_news = runtime.runtime == nullptr || runtime.runtime->url_refused != status.url;
  if (is_news) events_.emplace_back(RuntimeAddressRefused{runtime.key, status.url});
  status.url_refused = std::exchange(status.url, {});
}

// Only of the application that the worker is assigned to, also if its place is still its own to take back:
// whoever knows a digest does not thereby own the package.
void SchedulerCore::serve_package(const Worker& worker, const Message& message) {
  const auto request = runtime_reader_.package_request(message.payload());
  std::string id{message.id()};
  const bool may_fetch = request && apps_.may_fetch(worker.key, request->digest);
  if (!may_fetch || request->offset == 0) events_.emplace_back(PackageRequested{worker.key, may_fetch});
  if (may_fetch) {
    packages_asked_.push_back({*worker.session, std::move(id), *request});
    return;
  }
  const std::string payload = package_refusal_payload(
      request.value_or(PackageRequest{}), request ? ErrorCode::SessionDenied : ErrorCode::ProtoSchema,
      request ? "this worker is assigned to no deployed application that has this package"
              : "a digest and an offset are wanted");
  tells_.push_back(
      {*worker.session,
       Message{{.type = "biz.package.part", .id = random_name("p-"), .payload = payload, .corr = id}}});
}

void SchedulerCore::keep(Worker& worker, const Message& message, Now now) {
  std::vector<InboxRecord> dropped;
  //= REV-16
  const std::string session = worker.revision == Revision::One ? worker.session_id : std::string{};
  const Inbox::Added added = inbox_.add(worker.key, session, message, now, dropped);
  if (added == Inbox::Added::Kept) {
    events_.emplace_back(MessageStored{worker.key, std::string{message.id()}, std::string{message.type()}});
  } else {
    ++worker.counters.duplicates;
    events_.emplace_back(
        FrameIgnored{worker.key, std::string{message.id()}, std::string{message.corr()},
                     added == Inbox::Added::Known ? Ignored::DuplicateMessage : Ignored::ConflictingMessage});
  }
  for (InboxRecord& each : dropped)
    events_.emplace_back(MessageDropped{each.worker, std::move(each.message.id)});
}

void SchedulerCore::queue_own(Worker& worker) {
  if (std::exchange(worker.is_own_queued, true)) return;
  owning_.push_back(*worker.session);
}

void SchedulerCore::end_session(Worker& worker, const Ended& ended, Now now) {
  outbox_.end_session(worker.key);
  grants_.close(*worker.session);
  // No code: the worker said that it has finished. What the operator wanted is done.
  if (ended.code.empty()) {
    const auto drain = drains_.find(drain_row(worker.key));
    if (drain != drains_.end()) {
      dirty_.mark(drain->first);
      drains_.erase(drain);
    }
  }
  apps_.worker_left(worker.key);
  resumes_.session_ended(worker.key);
  applications_told_.erase(worker.key);
  outbox_.worker_left(worker.key, now.steady + worker.lost_after);
  outbox_.give_back(worker.key);
  if (worker.runtime != nullptr) note_unserved(worker, nullptr);
  fleet_.end(worker, ended.code, ended.reason, now);
  if (ended.code.empty()) leave_place(worker, now);
}

void SchedulerCore::on(SendRefused& refused, Now now) {
  Worker* const worker = fleet_.find(refused.session);
  if (worker == nullptr) return;  // it goes again in the next session anyway
  Command* const command = outbox_.find(refused.command);
  if (command == nullptr || !command->is_sent || command->record.worker_key() != worker->key) return;
  if (command->record.is_finished()) return;
  if (command->sends > 0) --command->sends;  // it never left
  if (refused.error.code == ErrorCode::LimitFrame) {
    // No session will ever take it.
    return outbox_.fail(*command, {ErrorCode::LimitFrame, refused.error.reason}, now);
  }
  if (refused.error.code == ErrorCode::SessionDraining) fleet_.start_draining(*worker, now);
  // Not marked ready: as long as this session lives it would only be refused again.
  outbox_.mark_unsent(*command, DispatchCause::SessionEnded);
}

void SchedulerCore::note_issued(Now now) {
  issued_last_ = std::max(issued_last_, now.wall);
  if (issued_until_ >= now.wall + kIssuedAheadMin) return;
  issued_until_ = std::chrono::floor<milliseconds>(now.wall + kIssuedAhead);
  dirty_.mark(kIssuedRow);
}

}  // namespace windlass
