#include "tests/sim/scheduler/core_world.h"

#include <algorithm>
#include <utility>

#include "scheduler/core/row_text.h"

namespace windlass::sim {
namespace {

constexpr int kSteps = 400;
constexpr int kCalmRounds = 400;
constexpr int kAlarmsMax = 100;
constexpr std::string_view kForged = R"({"forged":true})";

const WorkerKey kWorkers[] = {
    {TenantId{"acme"}, InstanceId{"w1"}},
    {TenantId{"acme"}, InstanceId{"w2"}},
    {TenantId{"other"}, InstanceId{"w1"}},
};

}  // namespace

CoreWorld::CoreWorld(std::uint64_t seed) : random_(Random{seed}.next()) {
  options_.in_flight_per_worker_max = 1 + random_.below(std::uint64_t{6});
  options_.finished_per_tenant_max = random_.one_in(3) ? 4 : 1000;
  options_.pending_per_tenant_max = random_.one_in(4) ? 6 : 1000;
  options_.store_retry_first = milliseconds{50};
  options_.store_retry_cap = milliseconds{400};
  options_.command_timeout = seconds{500};
  options_.lost_after = seconds{1 + random_.below(std::uint64_t{45})};
  options_.inbox_per_tenant_max = random_.one_in(3) ? 2 : 1000;
  for (const WorkerKey& key : kWorkers) workers_.push_back(std::make_unique<ModelWorker>(key));
  start_process();
}

void CoreWorld::fail(std::string oracle, std::string what) {
  if (!broken_) broken_ = BrokenPromise{std::move(oracle), std::move(what)};
}

std::optional<BrokenPromise> CoreWorld::run() {
  for (int i = 0; i < kSteps && !broken_; ++i) act();
  if (!broken_) calm_down();
  return broken_;
}

void CoreWorld::start_process() {
  const auto snapshot = MemoryStore{image_}.load();
  auto core = SchedulerCore::restore(options_, *snapshot, random_.next(), now_);
  if (!core) return fail("restores", core.error().reason);
  core_ = std::move(*core);
  for (const WorkerKey& key : kWorkers) note_absence(key);
}

// Whoever waited for an answer learns nothing; every session is over on this side, and soon on the other.
void CoreWorld::crash() {
  ++stats_.crashes;
  batch_.reset();
  asked_.clear();
  for (const auto& worker : workers_) worker->end();
  start_process();
}

void CoreWorld::act() {
  ModelWorker& worker = *workers_[random_.below(workers_.size())];
  switch (random_.below(std::uint64_t{16})) {
    case 0:
    case 1:
      return submit();
    case 2:
      return chance(30) ? ask_something() : submit();
    case 3:
      if (!worker.session()) return open_session(worker);
      return chance(20) ? end_session(worker, "E.TIMEOUT") : static_cast<void>(0);
    case 4:
    case 5: {
      const auto work = worker.session() ? worker.work() : ModelWorker::Work::None;
      if (work == ModelWorker::Work::Mixed) fail("one id, one body", worker.key().instance.value());
      stats_.from_journal += work == ModelWorker::Work::Repeated ? 1U : 0U;
      return;
    }
    case 6:
    case 7:
    case 8:
      return deliver_one(worker);
    case 9:
      return pass(random_.below(chance(10) ? Duration{seconds{30}} : Duration{milliseconds{200}}));
    case 10:
      if (chance(20)) is_store_full_ = !is_store_full_;
      return;
    case 11:
      if (chance(8)) crash();
      return;
    case 12:
      if (worker.is_drained() && worker.session()) return end_session(worker, "");
      if (!chance(30)) return;
      worker.is_healthy = !worker.is_healthy;
      return report(worker);
    default:
      return batch_ ? finish_batch(true) : poll();
  }
}

void CoreWorld::submit() {
  const RequestId request{++next_request_};
  Asked asked;
  WorkerKey worker = kWorkers[random_.below(std::uint64_t{3})];
  CommandKey key{worker.tenant, ""};
  if (!used_.empty() && chance(25)) {
    key = used_[random_.below(used_.size())];
    worker = target_.at(key).worker;
    // Another body under an id that is known: it must be refused.
    asked.has_other_body = chance(40) && core_->outbox().view(key).has_value();
  } else {
    key.id = "c" + std::to_string(++next_command_);
    used_.push_back(key);
    Target target{worker, chance(30), chance(50), now_.wall, {}};
    if (target.is_language) target.worker.instance = InstanceId{};
    worker = target.worker;
    target_.emplace(key, std::move(target));
  }
  asked.command = key;
  asked_.emplace(request, asked);
  std::optional<Duration> timeout;
  if (chance(15)) timeout = milliseconds{1 + random_.below(std::uint64_t{20'000})};
  const std::string payload = asked.has_other_body ? R"({"other":"body"})" : payload_of(key);
  Target& target = target_.at(key);
  if (!core_->outbox().view(key))
    target = {target.worker, target.is_language, target.is_idempotent, now_.wall, {}};
  const CommandTarget whom =
      target.is_language ? CommandTarget{CommandTarget::Kind::Language, "any"} : CommandTarget{};
  core_->handle(SubmitCommand{request, worker, key.id, "biz.run", payload, timeout, whom,
                              target.is_language && target.is_idempotent},
                now_);
}

void CoreWorld::ask_something() {
  const RequestId request{++next_request_};
  const WorkerKey& worker = kWorkers[random_.below(std::uint64_t{3})];
  asked_.emplace(request, Asked{});
  switch (random_.below(std::uint64_t{4})) {
    case 0:
      return core_->handle(DrainWorker{request, worker, "for a while", seconds{5}}, now_);
    case 1:
      return core_->handle(ResetWorker{request, worker, "anew"}, now_);
    case 2:
      return core_->handle(RevokeWorker{request, worker}, now_);
    default:
      return core_->handle(RotateToken{request, worker}, now_);
  }
}

void CoreWorld::open_session(ModelWorker& worker) {
  const SessionRef session{0, ++next_session_};
  ++stats_.sessions;
  worker.open(session);
  core_->handle(SessionOpened{session, worker.key(), "s", Role::Worker, Revision::Two, "peer"}, now_);
  auto profile = std::make_shared<WorkerProfile>();
  profile->max_parallel = worker.parallel_max =
      static_cast<std::uint32_t>(1 + random_.below(std::uint64_t{4}));
  profile->runtimes = {"any"};
  core_->handle(SessionSaid{session, Registered{std::move(profile)}}, now_);
  away_since_.erase(worker.key());
  absences_[worker.key()].back().until = now_.wall;
}

void CoreWorld::end_session(ModelWorker& worker, const std::string& code) {
  core_->handle(SessionSaid{*worker.session(), Ended{code, "over", Blame::Peer, {}, {}}}, now_);
  note_absence(worker.key());
  worker.end();
}

void CoreWorld::deliver_one(ModelWorker& worker) {
  if (!worker.session()) return;
  if (!is_calm_ && chance(8)) worker.send({"e" + std::to_string(++next_command_), "", R"({"event":1})"});
  if (!is_calm_ && !used_.empty() && chance(5)) {
    // A stranger's word, or a second one, about somebody's command.
    const CommandKey& key = used_[random_.below(used_.size())];
    const bool is_own = target_.at(key).is_language || target_.at(key).worker == worker.key();
    // Where commands are soon forgotten and submitted anew, a second word could be the new one's first. So it
    // could where a lost worker's answer counts for nothing, and the command comes back to it later.
    const bool may_move = target_.at(key).is_language && target_.at(key).is_idempotent;
    const bool has_spoken = options_.finished_per_tenant_max > 4 && worker.has_done(key.id) && !may_move;
    if (!is_own || has_spoken)
      worker.send({"x" + std::to_string(++next_command_), key.id, std::string{kForged}});
  }
  const auto frame = worker.next_up();
  if (!frame) return;
  const ModelWorker::Outgoing& out = frame->second;
  const bool is_result = !out.corr.empty() && out.payload != kForged;
  const Message message{{.type = is_result ? "biz.result" : "biz.said",
                         .id = out.id,
                         .payload = out.payload,
                         .corr = out.corr}};
  core_->handle(SessionSaid{*worker.session(), Delivered{frame->first, message}}, now_);
}

void CoreWorld::report(const ModelWorker& worker) {
  if (!worker.session()) return;
  LoadReported load;
  load.healthy = worker.is_healthy;
  core_->handle(SessionSaid{*worker.session(), std::move(load)}, now_);
}

void CoreWorld::pass(Duration time) {
  // Alarms come when they are due: one that comes late means that the process stood still.
  Duration left = std::chrono::floor<milliseconds>(time);  // whole, so that the two clocks agree
  for (int i = 0; i < kAlarmsMax; ++i) {
    const auto alarm = core_->poll_timeout();
    const Duration step =
        alarm ? std::clamp<Duration>(std::chrono::ceil<milliseconds>(*alarm - now_.steady), Duration{}, left)
              : left;
    now_.steady += step;
    now_.wall += std::chrono::duration_cast<milliseconds>(step);
    core_->handle_timeout(now_);
    left -= step;
    if (left == Duration{}) break;
  }
  now_.steady += left;
  now_.wall += std::chrono::duration_cast<milliseconds>(left);
  core_->handle_timeout(now_);
  for (const auto& worker : workers_) report(*worker);
}

void CoreWorld::poll() {
  batch_ = core_->poll_effects();
  for (const Send& send : batch_ ? batch_->sends : std::vector<Send>{}) {
    const ModelWorker* const worker = owner_of(send.session);
    if (worker != nullptr && !worker->is_healthy)
      fail("no work for one that is not well", text_of(send.command));
  }
  for (const auto& worker : workers_) {
    const bool is_done = !batch_ && !core_->store_health().is_failing;
    if (is_done && worker->session() && worker->has_unowned())
      fail("nothing is left unowned", worker->key().instance.value());
  }
  for (const WorkerKey& key : kWorkers) {
    if (core_->outbox().in_flight(key) > options_.in_flight_per_worker_max)
      fail("in flight is bounded", key.instance.value());
  }
  for (const auto& worker : workers_) {
    if (worker->session() && core_->outbox().in_flight(worker->key()) > worker->parallel_max)
      fail("no more than a worker takes", worker->key().instance.value());
  }
  if (!batch_ && !core_->store_health().is_failing) check_loss();
}

void CoreWorld::finish_batch(bool may_hurt) {
  if (may_hurt && chance(3)) return crash();  // before the commit
  const Effects effects = std::move(*batch_);
  batch_.reset();
  Version version = effects.expected;
  if (!effects.writes.empty()) {
    if (may_hurt && (is_store_full_ || chance(5))) {
      ++stats_.commits_failed;
      return core_->effects_failed({ErrorCode::StoreFull, Blame::Local, "the disk is full"}, now_);
    }
    const auto committed = MemoryStore{image_}.commit(effects.writes, effects.expected);
    if (!committed) return fail("commits in turn", committed.error().reason);
    version = *committed;
    ++stats_.commits;
    apply(effects.writes);
    if (may_hurt && chance(3)) return crash();  // after the commit, before anything left
  }
  core_->effects_committed(version);
  const bool dies_within = may_hurt && chance(2);
  const std::size_t all =
      effects.owns.size() + effects.sends.size() + effects.session_commands.size() + effects.replies.size();
  do_effects(effects, dies_within ? random_.below(all + 1) : all);
  if (dies_within) crash();
}

void CoreWorld::do_effects(const Effects& effects, std::size_t count) {
  check_denials(effects);
  const auto each = [&count](const auto& list, const auto& action) {
    for (const auto& item : list) {
      if (count == 0) return;
      --count;
      action(item);
    }
  };
  each(effects.owns, [this](const Own& own) { do_own(own); });
  each(effects.sends, [this](const Send& send) { do_send(send); });
  each(effects.session_commands, [this](const SessionCommand& command) { do_command(command); });
  each(effects.replies, [this](const Reply& reply) { do_reply(reply); });
  for (const CoreEvent& event : effects.events) {
    if (const auto* dispatched = std::get_if<Dispatched>(&event)) {
      stats_.resent += dispatched->cause == DispatchCause::First ? 0U : 1U;
    }
    const auto* const finished = std::get_if<Finished>(&event);
    if (finished == nullptr) continue;
    if (!known_[finished->command].is_finished) fail("news are durable", text_of(finished->command));
    if (!announced_.insert(finished->command).second) fail("news come once", text_of(finished->command));
  }
}

ModelWorker* CoreWorld::owner_of(SessionRef session) {
  for (const auto& worker : workers_) {
    if (worker->session() == session) return worker.get();
  }
  return nullptr;
}

void CoreWorld::do_own(const Own& own) {
  ModelWorker* const worker = owner_of(own.session);
  if (worker == nullptr) return;
  for (const ModelWorker::Outgoing& frame : worker->acknowledge(own.next)) {
    const CommandKey key{worker->key().tenant, frame.corr};
    const bool is_result = !frame.corr.empty() && frame.payload != kForged;
    // A command that was finished and forgotten has no row any more; its result may be kept as a message
    // then.
    const bool has_outcome = is_result && was_finished_.contains(key);
    const bool is_kept = messages_.contains(message_row(worker->key(), frame.id, frame.corr));
    // Of one that may go to another worker the lost one's answer counts for nothing.
    const auto target = target_.find(key);
    const bool may_move =
        target != target_.end() && target->second.is_language && target->second.is_idempotent;
    if (is_result && !has_outcome && !is_kept && !may_move) fail("stored, then owned", text_of(key));
    if (frame.corr.empty() && !is_kept) fail("stored, then owned", frame.id);
  }
}

void CoreWorld::do_send(const Send& send) {
  const Known& known = known_[send.command];
  if (!known.is_stored) fail("stored, then sent", text_of(send.command));
  if (send.message.payload() != payload_of(send.command)) fail("byte for byte", text_of(send.command));
  ModelWorker* const worker = owner_of(send.session);
  if (worker == nullptr) return;
  Target& target = target_.at(send.command);
  target.given_to.insert(worker->key());
  if (target.is_language) {
    if (worker->key().tenant != target.worker.tenant) return fail("to its tenant", text_of(send.command));
    if (target.given_to.size() > 1 && !target.is_idempotent)
      fail("to one worker only", text_of(send.command));
    stats_.moved += target.given_to.size() > 1 ? 1U : 0U;
  } else {
    if (worker->key() != target.worker) return fail("to its worker", text_of(send.command));
    if (!worker->note_sent(known.number)) fail("in order, once a session", text_of(send.command));
  }
  worker->receive(send.message);
}

void CoreWorld::do_command(const SessionCommand& command) {
  if (const auto* drain = std::get_if<DrainSession>(&command)) {
    ModelWorker* const worker = owner_of(drain->session);
    if (worker == nullptr) return;
    worker->drain();
  } else if (const auto* reset = std::get_if<ResetSession>(&command)) {
    ModelWorker* const worker = owner_of(reset->session);
    if (worker == nullptr) return;
    end_session(*worker, "E.SESSION.STALE_BINDING");
    // A revoked worker that comes back is turned away until somebody allows it.
    if (!core_->is_denied(worker->key())) return;
    const RequestId request{++next_request_};
    asked_.emplace(request, Asked{});
    core_->handle(AllowWorker{request, worker->key()}, now_);
  } else if (const auto* revoke = std::get_if<RevokeTokens>(&command)) {
    if (!image_->rows.contains(revocation_row(revoke->revocation.worker))) {
      fail("stored, then revoked", revoke->revocation.worker.instance.value());
    }
    ModelWorker* const worker = revoke->session ? owner_of(*revoke->session) : nullptr;
    if (worker != nullptr) end_session(*worker, "E.AUTH.INVALID_TOKEN");
  }
}

void CoreWorld::do_reply(const Reply& reply) {
  const auto found = asked_.find(reply.request);
  if (found == asked_.end()) return fail("one reply each", "to nobody, or a second one");
  const Asked asked = found->second;
  asked_.erase(found);
  const auto* const error = std::get_if<Error>(&reply.outcome);
  if (!asked.command) return;
  const std::string name = text_of(*asked.command);
  if (error != nullptr) {
    ++stats_.refused;
    if (error->code == ErrorCode::ResultDuplicate && !asked.has_other_body)
      fail("same body, same record", name);
    return;
  }
  if (asked.has_other_body) return fail("another body is refused", name);
  Known& known = known_[*asked.command];
  // A repetition may be answered by a record that was finished and is forgotten at the same moment.
  const bool is_past =
      std::get<CommandAccepted>(reply.outcome).is_repeated && was_finished_.contains(*asked.command);
  if (!known.is_stored && !is_past) fail("stored, then accepted", name);
  known.is_accepted = true;
  ++stats_.accepted;
}

// No more faults: everything that was promised must come true.
void CoreWorld::calm_down() {
  is_calm_ = true;
  is_store_full_ = false;
  for (int i = 0; i < kCalmRounds && !broken_; ++i) {
    for (const auto& worker : workers_) worker->is_healthy = true;
    pass(milliseconds{100});
    for (const auto& worker : workers_) {
      if (!worker->session()) open_session(*worker);
      while (worker->work() != ModelWorker::Work::None) {
      }
      while (!broken_ && worker->session()) {
        const auto before = worker->is_idle();
        deliver_one(*worker);
        if (before || worker->is_idle()) break;
        if (batch_) break;
        poll();
        if (!batch_) break;
        finish_batch(false);
      }
      if (worker->session() && worker->is_drained()) end_session(*worker, "");
    }
    if (batch_) finish_batch(false);
    while (!broken_ && !batch_) {
      poll();
      if (!batch_) break;
      finish_batch(false);
    }
    if (i > 10 && unsettled().empty()) return;
  }
  if (!broken_) fail("converges", unsettled());
}

std::string CoreWorld::unsettled() const {
  for (const auto& [key, known] : known_) {
    if (known.is_stored && !known.is_finished) return text_of(key) + " has no outcome";
  }
  for (const auto& worker : workers_) {
    if (!worker->is_idle()) return worker->key().instance.value() + " keeps a message";
  }
  if (!asked_.empty()) return "a request has no reply";
  if (core_->store_health().is_failing) return "the store is still said to fail";
  return {};
}

}  // namespace windlass::sim
