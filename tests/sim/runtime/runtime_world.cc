#include "tests/sim/runtime/runtime_world.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace windlass::sim {

using namespace runtime;

namespace {

constexpr std::size_t kQueueMax = 8;  // of a channel, before it is blocked
constexpr Duration kChaos = seconds{150};

FunctionRef function_named(const std::string& name, bool has_retry) {
  auto function = std::make_shared<Function>();
  function->id = FunctionId{name};
  function->name = name;
  function->has_retry = has_retry;
  function->retry = {RetryOptions::Strategy::FixedDelay, 2, milliseconds{300}, {}, {}};
  return function;
}

}  // namespace

RuntimeWorld::RuntimeWorld(std::uint64_t seed, bool is_logged) : random_(seed), is_logged_(is_logged) {
  options_.slots_per_worker = 1 + static_cast<std::uint32_t>(random_.below(std::uint64_t{4}));
  options_.pending_max = 5 + random_.below(std::uint64_t{40});
  options_.tracked_max = 20 + random_.below(std::uint64_t{400});
  options_.held_max = 3 + random_.below(std::uint64_t{30});
  options_.recycle_on_timeout = chance(60);
  options_.routing = static_cast<RoutingStrategy>(random_.below(std::uint64_t{3}));
  options_.load_retry_first = seconds{1};
  options_.load_retry_cap = seconds{60};  // so that all are replaced before the end
  options_.sticky_keys_max = 1 + random_.below(std::uint64_t{8});
  core_ = std::make_unique<RuntimeCore>(options_, seed);
  functions_ = {function_named("one", false), function_named("again", true), function_named("bad", false)};
  ConfiguredApplication application;
  application.version = {{"app0", "m0"}, "v1"};
  application.directory = "/app0";
  core_->add_application(std::move(application));
}

std::optional<BrokenPromise> RuntimeWorld::run() {
  const std::uint64_t agents = 2 + random_.below(std::uint64_t{8});
  for (std::uint64_t i = 0; i < agents; ++i) {
    dial(!chance(20), "agent" + std::to_string(i), between(milliseconds{0}, seconds{3}));
  }
  after(milliseconds{10}, [this] { act(); });
  run_until(now_ + kChaos);
  if (broken_) return broken_;
  if (chance(15)) {
    stop();
  } else {
    calm_down();
  }
  return broken_;
}

void RuntimeWorld::after(Duration delay, std::function<void()> act) {
  events_.push({now_ + delay, ++next_event_, std::move(act)});
}

void RuntimeWorld::run_until(Instant end) {
  while (!broken_) {
    const std::optional<Instant> alarm = core_->poll_timeout();
    const Instant next_act = events_.empty() ? end : events_.top().at;
    const Instant next = std::max(now_, alarm ? std::min(*alarm, next_act) : next_act);
    if (next >= end) break;
    now_ = next;
    if (alarm && *alarm <= now_) {
      core_->handle_timeout(now_);
    } else {
      const std::function<void()> act = events_.top().act;
      events_.pop();
      act();
    }
    poll();
  }
  now_ = end;
}

void RuntimeWorld::act() {
  if (is_calm_ || is_stopping_) return;
  const std::uint64_t what = random_.below(std::uint64_t{1000});
  if (what < 860) {
    submit();
  } else if (what < 960) {
    if (ModelChannel* const channel = any_channel()) hurt(*channel);
  } else if (what < 970) {
    hurt_host();
  } else if (what < 975) {
    const bool is_high = chance(50);
    has_been_short_ = has_been_short_ || is_high;
    core_->handle_memory(is_high ? 0.95 : 0.5, now_);
    after(seconds{5}, [this] { core_->handle_memory(0.5, now_); });
  } else if (what < 985) {
    const JobHostKey key = random_host();
    std::vector<std::pair<std::string, std::uint32_t>> weights{{"v1", 80}, {"v2", chance(50) ? 20U : 0U}};
    if (chance(30)) weights.clear();
    if (core_->set_split(key, weights)) splits_[key] = {weights.begin(), weights.end()};
  } else if (what < 990) {
    ModelChannel* const channel = any_channel();
    if (channel != nullptr && core_->drain(WorkerId{channel->worker}, "by hand", now_)) {
      channel->may_be_lost = true;
    }
  } else if (next_invocation_ > 0) {
    core_->cancel(InvocationId{"i" + std::to_string(1 + random_.below(next_invocation_))}, now_);
  }
  poll();
  check_bounds();
  after(between(milliseconds{5}, milliseconds{250}), [this] { act(); });
}

JobHostKey RuntimeWorld::random_host() {
  return {"app" + std::to_string(random_.below(std::uint64_t{3})), chance(90) ? "m0" : "m1"};
}

void RuntimeWorld::hurt_host() {
  ++stats_.host_failures;
  const JobHostKey key = random_host();
  log("JobHost %s fails", key.text().c_str());
  for (const auto& [id, channel] : channels_) {
    // Behind a cut link the core may still know a worker of this JobHost that was replaced meanwhile.
    if (channel->told.job_host == key || channel->leaving.contains(key) || !channel->configured.empty() ||
        channel->is_detached) {
      channel->may_be_lost = true;
    }
  }
  core_->handle_job_host_failed(key, "its listener broke", now_);
}

void RuntimeWorld::submit() {
  const JobHostKey key = random_host();
  const std::uint64_t burst = 1 + (chance(20) ? random_.below(std::uint64_t{12}) : 0);
  for (std::uint64_t i = 0; i < burst; ++i) {
    Invocation invocation;
    invocation.job_host = key;
    invocation.function = functions_[random_.below(functions_.size())]->name;
    invocation.is_idempotent = chance(30);
    if (chance(20)) invocation.sticky_key = "key" + std::to_string(random_.below(std::uint64_t{6}));
    if (chance(3)) invocation.timeout = between(seconds{1}, seconds{8});
    if (chance(10)) invocation.patience = between(milliseconds{20}, seconds{3});
    submit_one(std::move(invocation));
  }
}

void RuntimeWorld::submit_one(Invocation invocation) {
  invocation.id = InvocationId{"i" + std::to_string(++next_invocation_)};
  invocation.body = std::make_shared<const std::string>();
  ModelInvocation model{invocation.job_host, invocation.function, invocation.is_idempotent};
  model.is_retried = invocation.function == "again";
  model.is_idempotent =
      model.is_idempotent || model.is_retried;  // who may fail and run again may be lost too
  model.has_short_time = invocation.timeout.has_value();
  model.must_complete = is_calm_;
  if (invocation.patience) model.patience_until = now_ + *invocation.patience;
  const std::string id = invocation.id.value();
  invocations_[id] = model;  // before: what it causes names it
  ++stats_.submitted;
  if (!core_->submit(std::move(invocation), now_)) {
    invocations_.erase(id);
    ++stats_.refused;
    if (is_calm_) fail("calm", "an invocation was refused although workers are ready");
  }
  poll();
}

void RuntimeWorld::poll() {
  if (broken_) return;
  while (auto send = core_->poll_send()) do_send(std::move(*send));
  while (const auto close = core_->poll_close()) do_close(*close);
  while (const auto outcome = core_->poll_outcome()) do_outcome(*outcome);
  while (const auto signal = core_->poll_signal()) do_signal(*signal);
  while (const auto said = core_->poll_log()) do_log(*said);
  while (const auto note = core_->poll_note()) {
    if (note->kind == Note::Kind::JobHostStopped) {
      starved_[note->job_host] = false;
      splits_.erase(note->job_host);
    }
    if (note->kind == Note::Kind::MessageHeld) ++stats_.held;
    if (note->kind == Note::Kind::WorkerDraining) draining_since_.try_emplace(note->worker.value(), now_);
    if (note->kind == Note::Kind::WorkerDraining) note_draining(note->worker.value());
    log("  note %d %s %s %s", static_cast<int>(note->kind), note->worker.value().c_str(),
        note->job_host.text().c_str(), note->reason.c_str());
  }
}

void RuntimeWorld::do_send(Send send) {
  const auto found = channels_.find(send.channel.value());
  if (found == channels_.end()) return fail("closed", "something was sent on a channel that is over");
  ModelChannel& channel = *found->second;
  const bool is_last_word = std::holds_alternative<Terminate>(send.message);
  if (channel.is_blocked && !is_last_word && !channel.may_be_lost) {
    return fail("blocked", "something was sent on a channel that is blocked");
  }
  if (const auto* const request = std::get_if<InvocationRequest>(&send.message))
    check_request(channel, *request);
  channel.down.push_back(std::move(send.message));
  if (channel.down.size() >= kQueueMax && !channel.is_blocked) {
    channel.is_blocked = true;
    core_->handle_blocked(channel.id, now_);
  }
  pump_down(channel);
}

void RuntimeWorld::check_request(ModelChannel& channel, const InvocationRequest& request) {
  const std::string& id = request.invocation.value();
  const auto found = invocations_.find(id);
  if (found == invocations_.end()) return fail("refused", "an invocation was sent that was not taken");
  ModelInvocation& invocation = found->second;
  log("  %s (%s) to %s", id.c_str(), invocation.function.c_str(), channel.worker.c_str());
  if (invocation.is_done) return fail("after the end", id + " was sent after its outcome");
  if (channel.is_blocked) return fail("blocked", id + " was sent on a channel that is blocked");
  if (channel.is_detached) return fail("detached", id + " was routed to a worker that is not connected");
  if (channel.is_ended) return fail("ended", id + " was routed to a worker whose end was told");
  if (lacks(channel.worker, invocation.function)) {
    return fail("load", id + " went to a worker that could not load " + invocation.function);
  }
  if (!channel.given.insert(id).second) return fail("once", id + " is on this worker already");
  if (channel.given.size() > options_.slots_per_worker) {
    return fail("slots", channel.worker + " has more invocations than slots");
  }
  const JobHostKey told = channel.configured.empty() ? channel.told.job_host : JobHostKey{"app0", "m0"};
  if (told != invocation.job_host) return fail("switch", id + " went to a worker of another application");
  if (!invocation.may_be_sent && !invocation.is_idempotent) {
    return fail("once", id + " is not idempotent and was sent to a second worker");
  }
  if (invocation.sends > 0) ++stats_.rerouted;
  invocation.may_be_sent = false;
  if (++invocation.sends > options_.tries_max + 3) return fail("tries", id + " was sent too often");
  if (invocation.has_short_time) channel.may_be_lost = true;
  const auto split = splits_.find(invocation.job_host);
  if (split == splits_.end() || !channel.configured.empty()) return;
  const auto weight = split->second.find(channel.told.code_version);
  if (weight != split->second.end() && weight->second == 0) {
    fail("split", id + " went to a version that weighs nothing");
  }
}

void RuntimeWorld::do_close(const CloseChannel& close) {
  const auto found = channels_.find(close.channel.value());
  if (found == channels_.end()) return fail("closed", "a channel that is over was closed");
  ModelChannel& channel = *found->second;
  log("  close %s: %s", channel.worker.c_str(), close.reason.c_str());
  const bool is_away = channel.is_detached && now_ - channel.detached_at >= options_.lost_after;
  if (!channel.may_be_lost && !is_stopping_ && !is_away) {
    return fail("lost for nothing", channel.worker + " was given up: " + close.reason);
  }
  end(channel);
}

void RuntimeWorld::do_outcome(const Outcome& outcome) {
  const std::string& id = outcome.id.value();
  const auto found = invocations_.find(id);
  if (found == invocations_.end()) return fail("refused", "an outcome of what was not taken: " + id);
  ModelInvocation& invocation = found->second;
  log("  outcome %s %d %s", id.c_str(), static_cast<int>(outcome.cause), outcome.reason.c_str());
  if (std::exchange(invocation.is_done, true)) return fail("one outcome", id + " has a second one");
  const bool is_complete = outcome.settlement == Settlement::Complete;
  ++(is_complete                                 ? stats_.completed
     : outcome.settlement == Settlement::Abandon ? stats_.abandoned
                                                 : stats_.dead);
  if (invocation.patience_until && now_ > *invocation.patience_until) {
    return fail("patience", id + " ended after its caller's patience");
  }
  if (outcome.cause == Cause::LoadFailed) check_load_failure(id, invocation);
  check_grace(outcome);
  if (outcome.cause == Cause::Orphaned) return fail("orphan", id + " was forgotten and swept up");
  if (invocation.must_complete && !is_complete) return fail("calm", id + " failed: " + outcome.reason);
  if (!is_complete) return;
  if (!invocation.was_answered) return fail("answer", id + " is complete without an answer");
  for (const auto& [number, channel] : channels_) {
    if (channel->worker != outcome.worker.value()) continue;
    // Answers of one worker are taken in the order they came.
    while (!channel->answers.empty() && channel->answers.front() != id) {
      if (!invocations_[channel->answers.front()].is_done) {
        return fail("order", id + " ended before " + channel->answers.front() + ", answered earlier");
      }
      channel->answers.pop_front();
    }
    if (!channel->answers.empty()) channel->answers.pop_front();
  }
}

// What runs beside an invocation that times out has a grace to end.
void RuntimeWorld::check_grace(const Outcome& outcome) {
  const std::string& worker = outcome.worker.value();
  const bool is_hurt =
      outcome.cause == Cause::WorkerLost && outcome.reason.starts_with("worker " + worker + ": invocation ");
  if (!is_hurt) return;
  const auto since = draining_since_.find(worker);
  if (since == draining_since_.end() || now_ - since->second < options_.timeout_grace) {
    fail("grace", outcome.id.value() + " was ended with its worker, at once: " + outcome.reason);
  }
}

// As the core heard it: where loads follow each other quickly, an answer may be taken for that of the next.
bool RuntimeWorld::lacks(const std::string& worker, const std::string& function) const {
  if (function != "bad") return false;  // the only one that ever fails
  for (const WorkerView& view : core_->workers()) {
    const auto is_it = [&](const auto& failure) { return failure.first == function; };
    if (view.worker.value() == worker && std::ranges::any_of(view.load_failures, is_it)) return true;
  }
  return false;
}

// Only what no worker here has loaded has failed. When the last worker that registers a function is lost, the
// same turn drops the function, and with it the note that the others lack it.
void RuntimeWorld::check_load_failure(const std::string& id, const ModelInvocation& invocation) {
  if (splits_.contains(invocation.job_host)) return;  // some may be out of service
  if (!is_registered(invocation.job_host, invocation.function)) return;
  for (const WorkerView& worker : core_->workers()) {
    const bool is_its = worker.state == WorkerState::Ready && worker.application &&
                        worker.application->job_host == invocation.job_host;
    const auto is_it = [&](const auto& failure) { return failure.first == invocation.function; };
    if (is_its && std::ranges::none_of(worker.load_failures, is_it)) {
      return fail("load", id + " failed though " + worker.worker.value() + " has loaded its function");
    }
  }
}

bool RuntimeWorld::is_registered(const JobHostKey& key, const std::string& function) const {
  for (const JobHostView& host : core_->job_hosts()) {
    const auto is_it = [&](const FunctionView& each) { return each.function->name == function; };
    if (host.key == key) return std::ranges::any_of(host.functions, is_it);
  }
  return false;
}

void RuntimeWorld::do_signal(const Signal& signal) {
  if (signal.kind == Signal::Kind::NoFreeSlot && std::exchange(starved_[signal.job_host], true)) {
    fail("signals", "NoFreeSlot was said twice of " + signal.job_host.text());
  }
  if (signal.kind == Signal::Kind::SlotFree && !std::exchange(starved_[signal.job_host], false)) {
    fail("signals", "SlotFree was said of " + signal.job_host.text() + ", which had slots");
  }
}

void RuntimeWorld::do_log(const WorkerLog& said) {
  if (said.log.message == "late") {
    const auto found = invocations_.find(said.log.invocation.value());
    const bool may_run_again = found != invocations_.end() && found->second.is_retried;
    if (!may_run_again) fail("logs", "a user's log came after the response");
    return;
  }
  for (const auto& [number, channel] : channels_) {
    if (channel->worker != said.worker.value()) continue;
    const std::uint64_t count = std::stoull(said.log.message);
    if (count <= channel->logs_heard) return fail("order", "logs of " + channel->worker + " changed places");
    channel->logs_heard = count;
  }
}

// As the core knows it: the process of a detached channel may have ended before, and then there is nobody to
// lose. A new process is unknown until its StartStream arrives, which waits for the connection.
bool RuntimeWorld::has_worker(const ModelChannel& channel) const {
  const std::string prefix = channel.identity + "." + std::to_string(channel.id.value()) + "-";
  return std::ranges::any_of(core_->workers(), [&](const WorkerView& view) {
    const bool is_gone = view.state == WorkerState::Abandoned || view.state == WorkerState::Disconnected;
    return !is_gone && view.worker.value().starts_with(prefix);
  });
}

void RuntimeWorld::check_bounds() {
  if (core_->in_flight() > options_.tracked_max) fail("bounds", "tracked_max is exceeded");
  for (const auto& [id, channel] : channels_) {
    const bool is_away =
        channel->is_detached && now_ - channel->detached_at > options_.lost_after + seconds{1};
    if (is_away && has_worker(*channel)) {
      return fail("loss", channel->worker + " was without a connection for too long and is still here");
    }
    if (!channel->is_hung || channel->is_detached) continue;
    if (now_ - channel->silent_since > options_.status_lost + options_.status_interval + seconds{5}) {
      return fail("hang", channel->worker + " has hung for too long and is still here");
    }
  }
  if (next_event_ % 16 != 0) return;
  const std::size_t slots = channels_.size() * options_.slots_per_worker;
  for (const JobHostView& host : core_->job_hosts()) {
    // What comes back from a worker finds its place even in a full queue.
    if (host.pending > options_.pending_max + slots + 50) fail("bounds", "pending_max is exceeded");
  }
}

void RuntimeWorld::calm_down() {
  is_calm_ = true;
  log("--- calm");
  core_->handle_memory(0.3, now_);
  for (const auto& [key, split] : splits_) static_cast<void>(core_->set_split(key, {}));
  splits_.clear();
  std::vector<std::uint64_t> ids;
  for (const auto& [id, channel] : channels_) ids.push_back(id);
  for (const std::uint64_t id : ids) {
    if (!channels_.contains(id)) continue;
    ModelChannel& channel = *channels_[id];
    if (channel.is_hung) {
      crash(channel, ChannelEnd::Unavailable);
    } else {
      heal(channel);
    }
  }
  poll();
  run_until(now_ + seconds{150});
  for (const JobHostView& host : core_->job_hosts()) {
    if (host.ready == 0 || host.key == placeholder_job_host()) continue;
    for (int i = 0; i < 6 && core_->in_flight() < options_.tracked_max; ++i) {
      Invocation probe;
      probe.job_host = host.key;
      probe.function = "one";
      submit_one(std::move(probe));
    }
  }
  run_until(now_ + seconds{350});
  if (!broken_) check_calm();
}

void RuntimeWorld::check_calm() {
  for (const auto& [id, invocation] : invocations_) {
    if (!invocation.is_done) return fail("no loss", id + " never ended");
  }
  if (core_->in_flight() != 0) return fail("no loss", "something is still tracked");
  for (const WorkerView& worker : core_->workers()) {
    const bool is_ready = worker.state == WorkerState::Ready;
    if (is_ready && worker.in_flight != 0)
      return fail("slots", worker.worker.value() + " did not get its slots back");
    if (worker.state == WorkerState::Connecting || worker.state == WorkerState::Specializing ||
        worker.state == WorkerState::Specialized || worker.state == WorkerState::Draining) {
      return fail("calm", worker.worker.value() + " is still " + std::string{to_string(worker.state)});
    }
  }
  for (const JobHostView& host : core_->job_hosts()) {
    if (host.pending != 0) return fail("calm", host.key.text() + " has invocations waiting");
    if (host.free_slots > 0 && starved_[host.key]) return fail("signals", "SlotFree never came");
    if (host.state == JobHostState::Starting) return fail("calm", host.key.text() + " never started");
  }
}

void RuntimeWorld::stop() {
  is_stopping_ = true;
  log("--- stop");
  core_->stop(now_);
  poll();
  run_until(now_ + options_.drain_timeout + seconds{2});
  if (broken_) return;
  for (const auto& [id, invocation] : invocations_) {
    if (!invocation.is_done) return fail("no loss", id + " has no outcome after the stop");
  }
  for (const auto& [id, channel] : channels_) {
    if (channel->has_started) return fail("stop", channel->worker + " is still connected after the stop");
  }
}

void RuntimeWorld::fail(std::string oracle, std::string what) {
  if (broken_) return;
  if (is_logged_) std::printf("BROKEN %s: %s\n", oracle.c_str(), what.c_str());
  broken_ = BrokenPromise{std::move(oracle), std::move(what)};
}

}  // namespace windlass::sim
