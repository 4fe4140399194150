#include "tests/sim/scheduler/fleet_world.h"

#include <algorithm>
#include <utility>

#include "scheduler/core/row_text.h"
#include "scheduler/core/runtime_text.h"

namespace windlass::sim {
namespace {

constexpr int kFleetSteps = 1200;
const TenantId& kTenant = kFleetTenant;
const std::string& kApp = kFleetApp;

// The value of one member of a flat part of JSON that the core wrote.
std::string member(const std::string& payload, const std::string& name) {
  const std::string key = '"' + name + "\":";
  const std::size_t at = payload.find(key);
  if (at == std::string::npos) return {};
  std::size_t begin = at + key.size();
  const bool is_text = payload[begin] == '"';
  if (is_text) ++begin;
  return payload.substr(begin, payload.find_first_of(is_text ? "\"" : ",}", begin) - begin);
}

std::uint64_t number_in(const std::string& version) {
  return version.size() < 2 ? 0 : std::stoull(version.substr(1));
}

}  // namespace

FleetWorld::FleetWorld(std::uint64_t seed) : random_(Random{seed}.next()) {
  options_.store_retry_first = milliseconds{50};
  options_.store_retry_cap = milliseconds{400};
  options_.resume_after = seconds{5};
  options_.runtime_addresses = {"r1", "r2"};  // or nobody could be sent to them
  for (const char* const name : {"r1", "r2"}) {
    peers_.push_back(std::make_unique<Peer>(Peer{.key = {kTenant, InstanceId{name}}, .role = Role::Runtime}));
  }
  for (std::uint64_t i = 0; i < 3 + random_.below(std::uint64_t{4}); ++i) {
    peers_.push_back(std::make_unique<Peer>(Peer{.key = {kTenant, InstanceId{"w" + std::to_string(i)}}}));
  }
  start_process();
}

void FleetWorld::fail(std::string oracle, std::string what) {
  if (!broken_) broken_ = BrokenPromise{std::move(oracle), std::move(what)};
}

std::optional<BrokenPromise> FleetWorld::run() {
  deploy();
  for (int i = 0; i < kFleetSteps && !broken_; ++i) act();
  if (!broken_) calm_down();
  return broken_;
}

void FleetWorld::start_process() {
  const auto snapshot = MemoryStore{image_}.load();
  auto core = SchedulerCore::restore(options_, *snapshot, random_.next(), now_);
  if (!core) return fail("restores", core.error().reason);
  core_ = std::move(*core);
}

void FleetWorld::crash() {
  ++stats_.crashes;
  batch_.reset();
  for (const auto& peer : peers_) {
    peer->session.reset();
    peer->pressed_since.reset();
  }
  start_process();
}

std::size_t FleetWorld::alive() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      peers_, [](const auto& each) { return each->role == Role::Worker && !each->is_dead; }));
}

void FleetWorld::act() {
  Peer& peer = *peers_[random_.below(peers_.size())];
  switch (random_.below(std::uint64_t{16})) {
    case 0:
      return chance(25) ? operate() : static_cast<void>(0);
    case 1:
      return chance(6) ? deploy() : static_cast<void>(0);
    case 2:
      return chance(12) ? hurt(peer) : static_cast<void>(0);
    case 3:
    case 4:
      return heal(peer);
    case 5:
    case 6:
    case 7:
      return work(peer);
    case 8:
      beat();
      return pass(random_.below(chance(20) ? Duration{seconds{20}} : Duration{milliseconds{400}}));
    case 9:
      if (chance(6)) is_store_full_ = !is_store_full_;
      return;
    case 10:
      if (chance(2)) crash();
      return;
    default:
      return batch_ ? finish_batch(true) : poll();
  }
}

// Assigns while there are places to be had, so that in the end all can be filled.
void FleetWorld::operate() {
  const RequestId request{++next_request_};
  const auto workers = static_cast<std::uint32_t>(1 + random_.below(std::uint64_t{2}));
  if (chance(70)) {
    core_->handle(
        AssignWorkers{request, kTenant, kApp, "", workers, "", true, "as" + std::to_string(++next_id_)},
        now_);
  } else {
    core_->handle(UnassignWorkers{request, kTenant, kApp, "", workers, "un" + std::to_string(++next_id_)},
                  now_);
  }
}

// Another metadata version, or the last one with another setting.
void FleetWorld::deploy() {
  AppRecord app;
  if (deployed_ == 0 || chance(30)) ++deployed_;
  const std::string number = std::to_string(deployed_);
  app.key = {kTenant, kApp, "v" + number};
  app.metadata_version = "m" + number;
  app.language = "node";
  app.digest = std::string(64, 'a');
  app.bytes = 10;
  app.settings = {{"K", std::to_string(++settings_)}};
  core_->handle(DeployApp{RequestId{++next_request_}, std::move(app), {}}, now_);
}

void FleetWorld::hurt(Peer& peer) {
  if (peer.is_dead) return;
  if (peer.role == Role::Worker && !peer.is_unable && chance(15)) {
    peer.is_unable = true;
    peer.drained = chance(30)   ? Peer::Drained::ForMemory
                   : chance(20) ? Peer::Drained::ByOrder
                                : Peer::Drained::No;
    peer.stays_unable = peer.drained != Peer::Drained::No || chance(33);
    ++stats_.unable;
    return say_status(peer);
  }
  if (peer.role == Role::Runtime && !peer.is_pressed && chance(30)) {
    peer.is_pressed = true;
    return say_status(peer);
  }
  if (peer.session && !peer.is_detached && chance(40)) {
    peer.is_detached = true;
    return core_->handle(SessionSaid{*peer.session, Detached{}}, now_);
  }
  if (peer.session && chance(30)) {
    core_->handle(SessionSaid{*peer.session, Ended{"E.TIMEOUT", "over", Blame::Peer, {}, {}}}, now_);
    peer.session.reset();
    return;
  }
  // It is killed, and its connection with it; a third of those stay dead.
  if (peer.session && !peer.is_detached) core_->handle(SessionSaid{*peer.session, Detached{}}, now_);
  if (peer.session) peer.is_detached = true;
  peer.is_dead = true;
  peer.orders.clear();
  peer.is_reloading = false;
  const bool stays = chance(33) && (peer.role == Role::Runtime || alive() > 1);
  if (stays && peer.role == Role::Worker) ++stats_.left_dead;
  peer.back_at = now_.steady + (stays ? Duration{seconds{100'000}} : random_.below(Duration{seconds{100}}));
}

void FleetWorld::heal(Peer& peer) {
  if (peer.is_dead) {
    if (peer.back_at > now_.steady && !is_calm_) return;
    if (is_calm_ && peer.back_at > now_.steady + seconds{1000} && peer.role == Role::Worker) return;
    peer.is_dead = false;
    return open(peer);
  }
  if (!peer.session) return open(peer);
  if (peer.is_pressed && (is_calm_ || chance(10))) {
    peer.is_pressed = false;
    say_status(peer);
  }
  if (peer.is_unable && !peer.stays_unable && (is_calm_ || chance(5))) {
    peer.is_unable = false;
    say_status(peer);
  }
  if (!peer.is_detached) return;
  peer.is_detached = false;
  core_->handle(SessionSaid{*peer.session, Established{true, 0}}, now_);
}

void FleetWorld::open(Peer& peer) {
  peer.session = SessionRef{0, ++next_session_};
  peer.is_detached = false;
  peer.next_seq = 0;
  peer.told.clear();
  core_->handle(SessionOpened{*peer.session, peer.key, "s", peer.role, Revision::Two, "peer"}, now_);
  say_status(peer);
}

void FleetWorld::say(Peer& peer, std::string_view type, const std::string& payload, const std::string& corr) {
  const std::string id = "m" + std::to_string(++next_id_);
  const Message message{{.type = type, .id = id, .payload = payload, .corr = corr}};
  core_->handle(SessionSaid{*peer.session, Delivered{peer.next_seq++, message}}, now_);
}

void FleetWorld::say_status(Peer& peer) {
  if (!peer.session || peer.is_detached) return;
  const std::string& name = peer.key.instance.value();
  if (peer.role == Role::Runtime) {
    if (!peer.is_pressed) peer.pressed_since.reset();
    if (peer.is_pressed && !peer.pressed_since) peer.pressed_since = now_.wall;
    return say(peer, "biz.runtime.status",
               R"({"url":"wss://)" + name + R"(","health":"Healthy","memory_pressure":")" +
                   (peer.is_pressed ? "critical" : "normal") + R"(","applications":[],"workers":[]})");
  }
  std::string text = R"({"worker_id":")" + name + R"(.1","language":"node","runtime":")" + peer.runtime + '"';
  const bool is_placeholder = peer.held.code_version.empty();
  const bool is_drained = peer.drained != Peer::Drained::No;
  text += R"(,"state":")" +
          std::string{is_drained          ? "drained"
                      : peer.is_unable    ? "failed"
                      : is_placeholder    ? "placeholder"
                      : peer.is_reloading ? "specializing"
                                          : "ready"} +
          '"';
  if (peer.drained == Peer::Drained::ForMemory) {
    peer.was_short = true;
    text += R"(,"drained_for":"memory")";
  }
  if (!is_placeholder) {
    text += R"(,"application":{"application_id":")" + kApp + R"(","metadata_version":")" +
            peer.held.metadata_version + R"(","code_version":")" + peer.held.code_version + "\"}";
  }
  say(peer, "biz.worker.status", text + '}');
}

// One step of a worker: an order is begun, or ended and answered.
void FleetWorld::work(Peer& peer) {
  if (peer.is_dead || !peer.session || peer.is_detached) return;
  if (peer.role == Role::Runtime || peer.orders.empty())
    return chance(10) ? say_status(peer) : static_cast<void>(0);
  const Order order = peer.orders.front();
  if (const auto known = peer.journal.find(order.id); known != peer.journal.end()) {
    peer.orders.erase(peer.orders.begin());
    return say(peer, "biz.result", known->second, order.id);
  }
  // Whatever it is told to do, it starts again for it.
  if (peer.drained != Peer::Drained::No) {
    peer.drained = Peer::Drained::No;
    peer.is_unable = peer.stays_unable = false;
  }
  Held next;
  if (order.type == kResumeType) next = peer.held;
  if (order.type == kSpecializeType) {
    next = {member(order.payload, "code_version"), member(order.payload, "metadata_version"),
            member(order.payload, "K")};
  }
  if (peer.held != next && !peer.held.code_version.empty() && !std::exchange(peer.is_reloading, true)) {
    return say_status(peer);  // it takes a while, in which it serves nothing
  }
  peer.orders.erase(peer.orders.begin());
  peer.is_reloading = false;
  if (order.type == kSpecializeType && !order.id.starts_with("as") && !is_calm_ && chance(25)) {
    return refuse(peer, order);
  }
  peer.held = next;
  const std::string where = member(order.payload, "url");
  if (!where.empty()) {
    const std::string runtime = where.substr(std::string{"wss://"}.size());
    stats_.moves += runtime != peer.runtime ? 1U : 0U;
    peer.runtime = runtime;
  }
  peer.journal[order.id] = R"({"ok":true})";
  say(peer, "biz.result", R"({"ok":true})", order.id);
  say_status(peer);
}

// Of a worker that was told again, or got the place of another: that place stays.
void FleetWorld::refuse(Peer& peer, const Order& order) {
  ++stats_.refused;
  peer.held = {};
  peer.journal[order.id] = R"({"ok":false,"reason":"no disk"})";
  say(peer, "biz.result", peer.journal[order.id], order.id);
  say_status(peer);
}

void FleetWorld::beat() {
  for (const auto& peer : peers_) {
    if (!peer->is_dead && peer->session && !peer->is_detached) {
      core_->handle(SessionSaid{*peer->session, LoadReported{}}, now_);
    }
  }
}

// In steps that no alarm is late by.
void FleetWorld::pass(Duration time) {
  const auto whole = std::chrono::floor<milliseconds>(time);
  const Instant end = now_.steady + whole;
  while (now_.steady < end) {
    const auto due = core_->poll_timeout();
    const Instant next = std::clamp(due.value_or(end), now_.steady + milliseconds{1}, end);
    const auto step = std::chrono::ceil<milliseconds>(next - now_.steady);
    now_.steady += step;
    now_.wall += step;
    core_->handle_timeout(now_);
  }
}

void FleetWorld::poll() {
  batch_ = core_->poll_effects();
}

void FleetWorld::finish_batch(bool may_hurt) {
  if (may_hurt && chance(2)) return crash();
  const Effects effects = std::move(*batch_);
  batch_.reset();
  Version version = effects.expected;
  if (!effects.writes.empty()) {
    if (may_hurt && (is_store_full_ || chance(3))) {
      return core_->effects_failed({ErrorCode::StoreFull, Blame::Local, "the disk is full"}, now_);
    }
    const auto committed = MemoryStore{image_}.commit(effects.writes, effects.expected);
    if (!committed) return fail("commits in turn", committed.error().reason);
    version = *committed;
    apply(effects.writes);
    if (may_hurt && chance(2)) return crash();
  }
  core_->effects_committed(version);
  do_effects(effects);
}

// Every row as it becomes durable. Requests alone change how many places there are: each of their commands
// makes or takes one.
void FleetWorld::apply(const WriteBatch& writes) {
  const std::string served = active_[kApp];
  std::set<std::string> assigned;  // ids of what operators assign in this batch
  for (const Write& write : writes) {
    const RowKind kind = kind_of(write.key);
    if (kind == RowKind::Command && write.value && commands_.insert(write.key).second) {
      const std::string id = write.key.substr(write.key.rfind('/') + 1);
      places_ += id.starts_with("as") ? 1 : id.starts_with("un") ? -1 : 0;
      stats_.assigned += id.starts_with("as") ? 1U : 0U;
      if (id.starts_with("as")) assigned.insert(id);
    }
    if (kind == RowKind::Active) {
      const auto record =
          write.value ? reader_.read({write.key, *write.value}) : Result<AnyRecord>{StoreProbe{}};
      const std::string next =
          write.value ? std::get<ActiveVersion>(*record).metadata_version : std::string{};
      active_[kApp] = next;
    }
    if (kind != RowKind::Assignment) continue;
    const std::string name = write.key.substr(write.key.rfind('/') + 1);
    const WorkerKey worker{kTenant, InstanceId{name}};
    if (!write.value) {
      rows_.erase(worker);
      continue;
    }
    const auto record = reader_.read({write.key, *write.value});
    if (!record) return fail("rows can be read", record.error().reason);
    const auto before = rows_.find(worker);
    note_assignment(before == rows_.end() ? nullptr : &before->second, std::get<AssignmentRecord>(*record));
    rows_.insert_or_assign(worker, std::get<AssignmentRecord>(*record));
  }
  const auto held = std::ranges::count_if(rows_, [](const auto& each) { return each.second.holds_place(); });
  if (held != places_) {
    fail("no place is lost or made up",
         std::to_string(held) + " places, and operators want " + std::to_string(places_));
  }
  // What serves is newer than what served, or nobody was to run that any more: it may be assigned anew in
  // the batch that stores so, and serves again once a worker is ready with it.
  std::uint64_t newest = 0;
  for (const auto& [worker, row] : rows_) {
    if (row.state == AssignmentState::Ready) newest = std::max(newest, number_in(row.metadata_version));
  }
  const bool is_back = number_in(active_[kApp]) < number_in(served);
  for (const auto& [worker, row] : rows_) {
    const bool is_kept = row.holds_place() && !assigned.contains(row.command);
    if (is_back && !active_[kApp].empty() && is_kept && row.metadata_version == served) {
      fail("no way back", served + " is to be run, and " + active_[kApp] + " serves");
    }
  }
  if (number_in(active_[kApp]) < newest)
    fail("the newest serves", active_[kApp] + " serves, and a newer one is ready");
}

void FleetWorld::note_assignment(const AssignmentRecord* before, const AssignmentRecord& now) {
  const bool is_back =
      before != nullptr && before->state == AssignmentState::Lost && now.state == AssignmentState::Pending;
  if (is_back) coming_back_.insert(now.worker);
  if (now.state == AssignmentState::Ready) coming_back_.erase(now.worker);
  if (before != nullptr && now.epoch < before->epoch) {
    fail("epochs grow", now.worker.instance.value() + " goes back to " + std::to_string(now.epoch));
  }
  const bool is_given = before == nullptr || before->state == AssignmentState::Lost ||
                        before->state == AssignmentState::Failed || before->runtime != now.runtime;
  for (const auto& peer : peers_) {
    const bool is_there = now.state == AssignmentState::Pending && peer->key == now.runtime_key();
    if (is_given && is_there && peer->pressed_since && *peer->pressed_since < now.since) {
      fail("nobody is sent to where the memory is critical", now.worker.instance.value());
    }
  }
  if (now.state != AssignmentState::Lost) return;
  if (before == nullptr || before->state != AssignmentState::Lost) ++stats_.lost;
  if (before != nullptr && before->is_owed && !now.is_owed) ++stats_.replaced;
}

void FleetWorld::do_effects(const Effects& effects) {
  // Who is back before its loss is stored has its place again in the same batch: only the event tells.
  for (const CoreEvent& event : effects.events) {
    const auto* const changed = std::get_if<AssignmentChanged>(&event);
    const bool is_lost = changed != nullptr && changed->assignment.state == AssignmentState::Lost;
    if (is_lost) coming_back_.insert(changed->assignment.worker);
  }
  for (const Send& send : effects.sends) do_send(send);
  for (const Tell& tell : effects.tells) do_tell(tell);
}

void FleetWorld::do_send(const Send& send) {
  Peer* const peer = owner_of(send.session);
  if (peer == nullptr || peer->role == Role::Runtime) return;
  const Order order{std::string{send.message.id()}, std::string{send.message.type()},
                    std::string{send.message.payload()}};
  const bool is_new = peer->seen.insert(order.id).second;
  if (is_new && order.type == kSpecializeType) {
    const std::uint64_t epoch = std::stoull(member(order.payload, "epoch"));
    if (epoch <= peer->epoch) fail("epochs grow", peer->key.instance.value() + " is told an old one");
    peer->epoch = epoch;
    // A reload: the code stays, the settings do not. One that is to be released next serves nothing anyway.
    const auto row = rows_.find(peer->key);
    const bool is_wanted = row != rows_.end() && row->second.command == order.id;
    const bool is_reload = is_wanted && peer->held.code_version == member(order.payload, "code_version") &&
                           peer->held.settings != member(order.payload, "K") &&
                           member(order.payload, "url") == "wss://" + peer->runtime;
    if (is_reload && !coming_back_.contains(peer->key)) {
      ++stats_.reloads;
      for (const auto& other : peers_) {
        const bool is_busy = other.get() != peer && !coming_back_.contains(other->key) &&
                             other->is_reloading && !other->is_dead && !other->is_detached &&
                             other->session && other->held.code_version == peer->held.code_version &&
                             rows_.contains(other->key) &&
                             rows_.at(other->key).state == AssignmentState::Pending;
        if (is_busy) fail("capacity is kept", "two workers are reloaded at once");
      }
    }
  }
  if (is_new && order.type == kResumeType) {
    ++stats_.resumed;
    if (!peer->was_short) fail("what was ordered stays", peer->key.instance.value() + " is resumed");
  }
  // A dead one never sees it.
  if (!peer->is_dead) peer->orders.push_back(order);
}

void FleetWorld::do_tell(const Tell& tell) {
  Peer* const peer = owner_of(tell.session);
  if (peer == nullptr || tell.message.type() != kApplicationsType) return;
  const std::string version = member(std::string{tell.message.payload()}, "metadata_version");
  const std::string before = peer->told[kApp];
  peer->told[kApp] = version;
  // While the store refuses, a runtime that comes is told what is decided so far rather than nothing.
  if (version != active_[kApp] && !version.empty() && !core_->store_health().is_failing) {
    fail("what is told is stored", version + " was told, and " + active_[kApp] + " is stored");
  }
}

FleetWorld::Peer* FleetWorld::owner_of(SessionRef session) {
  const auto found = std::ranges::find_if(peers_, [&](const auto& each) { return each->session == session; });
  return found == peers_.end() ? nullptr : found->get();
}

}  // namespace windlass::sim
