// The workers of a simulated world and the links to them.
#include <algorithm>
#include <utility>

#include "tests/sim/runtime/runtime_world.h"

namespace windlass::sim {

using namespace runtime;

namespace {

template <class... Bodies>
struct Choose : Bodies... {
  using Bodies::operator()...;
};
template <class... Bodies>
Choose(Bodies...) -> Choose<Bodies...>;

RpcResult good() {
  return RpcResult{RpcStatus::Success};
}

}  // namespace

void RuntimeWorld::dial(bool is_agent, std::string identity, Duration delay) {
  after(delay, [this, is_agent, identity = std::move(identity)] {
    if (is_stopping_) return;
    const std::uint64_t id = ++next_channel_;
    ModelChannel& channel = *(channels_[id] = std::make_unique<ModelChannel>());
    channel.id = ChannelId{id};
    channel.is_agent = is_agent;
    channel.identity = identity;
    if (!is_agent && chance(70)) channel.configured = "app0";
    core_->handle_opened(
        channel.id,
        {is_agent ? ChannelKind::Session : ChannelKind::Grpc, identity, is_agent, channel.configured, "peer"},
        now_);
    spawn(channel);
  });
}

// A fresh process: nothing of the last one is left.
void RuntimeWorld::spawn(ModelChannel& channel) {
  channel.worker =
      channel.identity + "." + std::to_string(channel.id.value()) + "-" + std::to_string(++channel.spawns);
  channel.running.clear();
  channel.is_hung = false;
  channel.is_initialized = false;
  channel.is_awaiting_init = channel.is_agent;
  channel.has_status = chance(80);
  channel.has_collections = chance(40);
  channel.has_cancel = chance(40);
  say(channel, StartStream{WorkerId{channel.worker}});
}

void RuntimeWorld::say(ModelChannel& channel, WorkerMessage message) {
  if (channel.is_hung || !channel.is_open) return;
  channel.up.push_back(std::move(message));
  pump_up(channel);
}

void RuntimeWorld::say_later(const ModelChannel& channel, Duration delay, WorkerMessage message) {
  after(delay, [this, id = channel.id.value(), worker = channel.worker, said = std::move(message)]() mutable {
    if (ModelChannel* const there = live(id, worker)) say(*there, std::move(said));
  });
}

ModelChannel* RuntimeWorld::live(std::uint64_t id, const std::string& worker) {
  const auto found = channels_.find(id);
  if (found == channels_.end() || found->second->worker != worker) return nullptr;
  return found->second.get();
}

ModelChannel* RuntimeWorld::any_channel() {
  if (channels_.empty()) return nullptr;
  auto at = channels_.begin();
  std::advance(at, static_cast<std::ptrdiff_t>(random_.below(channels_.size())));
  return at->second.get();
}

void RuntimeWorld::pump_up(ModelChannel& channel) {
  if (channel.is_up_pumping || channel.is_detached || channel.up.empty()) return;
  channel.is_up_pumping = true;
  after(between(milliseconds{1}, milliseconds{15}), [this, id = channel.id.value()] {
    const auto found = channels_.find(id);
    if (found == channels_.end()) return;
    ModelChannel& there = *found->second;
    there.is_up_pumping = false;
    if (there.is_detached || there.up.empty()) return;
    WorkerMessage message = std::move(there.up.front());
    there.up.pop_front();
    if (const auto* const response = std::get_if<InvocationResponse>(&message)) note_answer(there, *response);
    if (const auto* const told = std::get_if<WorkerSpecialized>(&message)) {
      there.leaving.insert(std::exchange(there.told, told->application).job_host);
      ++there.changes_asked;
    }
    if (const auto* const ended = std::get_if<WorkerEnded>(&message)) note_end(there, *ended);
    if (std::holds_alternative<StartStream>(message)) {
      there.is_ended = false;
      there.given.clear();
      there.answers.clear();
      there.told = {};
      there.leaving.clear();
      there.changes_asked = 0;
      there.has_started = true;
      there.logs_heard = 0;  // numbers go on: the new worker may have spoken while the link was cut
    }
    core_->handle_message(there.id, std::move(message), now_);
    poll();
    if (channels_.contains(id)) pump_up(there);
  });
}

// What is not named never reached the process, and may go to another.
void RuntimeWorld::note_end(ModelChannel& channel, const WorkerEnded& ended) {
  channel.is_ended = true;
  for (const std::string& id : channel.given) {
    if (std::ranges::find(ended.running, InvocationId{id}) == ended.running.end()) {
      invocations_[id].may_be_sent = true;
    }
  }
  channel.given.clear();
}

// Its process is gone: the agent says so at once, and brings the next one in a while.
void RuntimeWorld::die(ModelChannel& channel) {
  WorkerEnded ended{WorkerId{channel.worker}, "killed", {}, is_calm_ || chance(80) ? 1U : 2U};
  for (const std::string& id : channel.running) ended.running.emplace_back(id);
  log("process of %s dies, and its agent says so", channel.worker.c_str());
  channel.running.clear();
  channel.is_initialized = false;
  channel.is_awaiting_init = true;
  say(channel, std::move(ended));
  after(between(milliseconds{1}, seconds{4}), [this, id = channel.id.value(), worker = channel.worker] {
    if (ModelChannel* const there = live(id, worker)) spawn(*there);
  });
}

void RuntimeWorld::note_answer(ModelChannel& channel, const InvocationResponse& response) {
  const std::string& id = response.invocation.value();
  if (channel.given.erase(id) == 0) return;
  ModelInvocation& invocation = invocations_[id];
  if (response.result.status == RpcStatus::Failure && invocation.is_retried) invocation.may_be_sent = true;
  if (!response.result.is_ok() || invocation.is_done) return;
  invocation.was_answered = true;
  channel.answers.push_back(id);
}

void RuntimeWorld::pump_down(ModelChannel& channel) {
  if (channel.is_down_pumping || channel.is_detached || channel.is_stalled || channel.down.empty()) return;
  channel.is_down_pumping = true;
  after(between(milliseconds{1}, milliseconds{15}), [this, id = channel.id.value()] {
    const auto found = channels_.find(id);
    if (found == channels_.end()) return;
    ModelChannel& there = *found->second;
    there.is_down_pumping = false;
    if (there.is_detached || there.is_stalled || there.down.empty()) return;
    const HostMessage message = std::move(there.down.front());
    there.down.pop_front();
    hear(there, message);
    if (!channels_.contains(id)) return;
    if (there.is_blocked && there.down.size() <= 4) {
      there.is_blocked = false;
      core_->handle_writable(there.id, now_);
      poll();
    }
    if (channels_.contains(id)) pump_down(there);
  });
}

void RuntimeWorld::hear(ModelChannel& channel, const HostMessage& message) {
  if (channel.is_hung) return;
  if (channel.is_awaiting_init && !std::holds_alternative<InitRequest>(message)) return;
  const Duration soon = between(milliseconds{1}, milliseconds{200});
  std::visit(
      Choose{
          [&](const InitRequest&) {
            TextMap capabilities;
            if (channel.has_status) capabilities["WorkerStatus"] = "true";
            if (channel.has_collections) capabilities["SupportsLoadResponseCollection"] = "true";
            if (channel.has_collections) capabilities["HandlesWorkerWarmupMessage"] = "true";
            if (channel.has_cancel) capabilities["HandlesInvocationCancelMessage"] = "true";
            capabilities["HandlesWorkerTerminateMessage"] = "true";
            channel.is_initialized = true;
            channel.is_awaiting_init = false;
            say(channel, InitResponse{good(), capabilities, "node", "22", "1"});
            if (!channel.is_agent) return;
            after(between(milliseconds{10}, seconds{4}), [this, id = channel.id.value(), w = channel.worker] {
              if (ModelChannel* const there = live(id, w)) specialize(*there);
            });
          },
          [&](const MetadataRequest&) {
            const bool is_bad = !is_calm_ && chance(3);
            if (is_bad) channel.may_be_lost = true;
            MetadataResponse response{is_bad ? RpcResult{RpcStatus::Failure, "no index"} : good(), false, {}};
            if (!is_bad) response.functions = functions_;
            // And now and then a worker does not register what others of its version do.
            if (!is_bad && !is_calm_ && chance(5)) {
              channel.may_be_lost = true;
              std::erase_if(response.functions, [](const FunctionRef& each) { return each->name == "bad"; });
            }
            say_later(channel, soon, std::move(response));
          },
          [&](const LoadRequest& load) { answer_load(channel, load.function); },
          [&](const LoadRequests& load) {
            LoadResponses all;
            for (const FunctionRef& function : load.functions) {
              all.responses.push_back({function->id, good()});
            }
            say_later(channel, soon, std::move(all));
          },
          [&](const InvocationRequest& request) { run_function(channel, request); },
          [&](const InvocationCancel& cancel) {
            if (!channel.running.erase(cancel.invocation.value())) return;
            say(channel, InvocationResponse{cancel.invocation, {RpcStatus::Cancelled, "cancelled"}, {}});
          },
          [&](const EnvironmentReload&) {
            say_later(channel, soon, ReloadResponse{good(), {}, false});
          },
          [&](const StatusRequest& status) { say(channel, StatusResponse{status.request_id}); },
          [&](const WarmupRequest&) { say_later(channel, soon, WarmupResponse{good()}); },
          [&](const StayDown&) {},
          [&](const Terminate&) {
            if (channel.is_agent && chance(30)) return die(channel);
            if (channel.is_agent && chance(50)) return spawn(channel);
            crash(channel, ChannelEnd::Closed);
          },
          [&](const SpecializedResponse& answer) {
            if (channel.changes_asked > 0) --channel.changes_asked;
            if (answer.result.is_ok() && channel.changes_asked == 0) channel.leaving.clear();
          },
      },
      message);
}

void RuntimeWorld::answer_load(ModelChannel& channel, const FunctionRef& function) {
  bool is_bad = function->name == "bad" && channel.told.code_version == "v2";
  // And now and then a worker cannot load what others of its version can.
  if (function->name == "bad" && !is_calm_ && chance(10)) is_bad = true;
  if (is_bad) channel.may_be_lost = true;  // replaced by one that can
  say_later(channel, between(milliseconds{1}, milliseconds{300}),
            LoadResponse{function->id, is_bad ? RpcResult{RpcStatus::Failure, "no module"} : good()});
}

void RuntimeWorld::run_function(ModelChannel& channel, const InvocationRequest& request) {
  const std::string& id = request.invocation.value();
  channel.running.insert(id);
  Log said;
  said.invocation = request.invocation;
  said.message = std::to_string(++channel.logs_said);
  say(channel, said);
  Duration time = between(milliseconds{2}, milliseconds{150});
  if (!is_calm_ && chance(4)) {
    time = between(seconds{1}, seconds{15});
    // Its agent wants it to end while it is busy.
    if (channel.is_agent && channel.is_initialized && chance(15)) {
      say(channel, ActionResponse{true, "other work"});
    }
  }
  after(time, [this, at = channel.id.value(), worker = channel.worker, id] {
    ModelChannel* const there = live(at, worker);
    if (there == nullptr || there->running.erase(id) == 0) return;
    const bool is_failure = !is_calm_ && chance(15);
    InvocationResponse response{InvocationId{id}, good(), "answer"};
    if (is_failure) response.result = {RpcStatus::Failure, "threw"};
    say(*there, response);
    if (is_calm_) return;
    if (chance(3)) say(*there, response);  // a second answer
    if (chance(10)) {
      Log late;
      late.invocation = InvocationId{id};
      late.message = "late";
      say(*there, late);
    }
  });
}

void RuntimeWorld::specialize(ModelChannel& channel) {
  if (!channel.is_agent || !channel.is_initialized || channel.is_hung) return;
  WorkerSpecialized told;
  told.worker = WorkerId{channel.worker};
  told.application = {random_host(), chance(60) ? "v1" : "v2"};
  told.directory = "/app";
  told.correlation_id = "c";
  told.reload.result = good();
  ++stats_.switches;
  log("specialize %s to %s", channel.worker.c_str(), told.application.text().c_str());
  say(channel, std::move(told));
  Log said;  // right behind it: what is held must come out in order
  said.source = LogSource::System;
  for (int i = 0; i < 3; ++i) {
    said.message = std::to_string(++channel.logs_said);
    say(channel, said);
  }
}

void RuntimeWorld::hurt(ModelChannel& channel) {
  const std::uint64_t id = channel.id.value();
  switch (random_.below(std::uint64_t{10})) {
    case 0:
      if (chance(50)) return crash(channel, ChannelEnd::Unavailable);
      return crash(channel, static_cast<ChannelEnd>(random_.below(std::uint64_t{7})));
    case 1:
      if (!channel.is_agent || !channel.has_started) return;
      if (channel.is_initialized && chance(50)) {
        log("agent of %s wants it to end", channel.worker.c_str());
        return say(channel, ActionResponse{true, "other work"});
      }
      ++stats_.crashes;  // its agent starts another
      if (chance(60)) return die(channel);
      log("process of %s dies", channel.worker.c_str());
      channel.running.clear();
      return spawn(channel);
    case 2:
      if (!channel.has_status || !channel.is_initialized || channel.is_hung) return;
      ++stats_.hangs;
      log("%s hangs", channel.worker.c_str());
      channel.is_hung = channel.may_be_lost = true;
      channel.silent_since = now_;
      return;
    case 3:
    case 4:
    case 5:
      return detach(channel,
                    chance(70) ? between(milliseconds{10}, seconds{3}) : between(seconds{30}, seconds{100}));
    case 6:
    case 7:
      ++stats_.stalls;
      channel.is_stalled = true;
      log("%s stalled", channel.worker.c_str());
      channel.may_be_lost = true;  // its phases and invocations may run out of time
      after(between(milliseconds{100}, seconds{15}), [this, id] {
        if (const auto found = channels_.find(id); found != channels_.end()) heal(*found->second);
      });
      return;
    case 8:
      return specialize(channel);
    default:
      return misbehave(channel);
  }
}

void RuntimeWorld::detach(ModelChannel& channel, Duration time) {
  if (!channel.is_agent || channel.is_detached) return;
  ++stats_.detaches;
  channel.is_detached = true;
  channel.detached_at = now_;
  log("%s detached", channel.worker.c_str());
  core_->handle_detached(channel.id, now_);
  after(time, [this, id = channel.id.value()] {
    if (const auto found = channels_.find(id); found != channels_.end()) heal(*found->second);
  });
}

// Now and then the link breaks just then, and is back when the time for draining is over.
void RuntimeWorld::note_draining(const std::string& worker) {
  for (const auto& [id, channel] : channels_) {
    if (channel->worker != worker) continue;
    if (has_been_short_) channel->may_be_lost = true;
    if (is_calm_ || is_stopping_ || !chance(50)) continue;
    after(Duration{0}, [this, at = id, worker] {
      ModelChannel* const there = live(at, worker);
      if (there != nullptr) detach(*there, between(options_.drain_timeout, options_.lost_after));
    });
  }
}

void RuntimeWorld::heal(ModelChannel& channel) {
  channel.is_stalled = false;
  if (std::exchange(channel.is_detached, false)) {
    log("%s attached", channel.worker.c_str());
    channel.silent_since = std::max(channel.silent_since, now_);
    core_->handle_attached(channel.id, now_);
    poll();
    if (!channel.is_open) return;
  }
  pump_up(channel);
  pump_down(channel);
}

void RuntimeWorld::misbehave(ModelChannel& channel) {
  ++stats_.bad_peers;
  switch (random_.below(std::uint64_t{4})) {
    case 0:
      return say(channel, InvocationResponse{InvocationId{"nobody"}, good(), {}});
    case 1: {
      // An answer to what another has.
      if (invocations_.empty()) return;
      return say(channel, InvocationResponse{InvocationId{invocations_.rbegin()->first + "x"}, good(), {}});
    }
    case 2:
      channel.may_be_lost = true;
      log("garbage from %s", channel.worker.c_str());
      core_->handle_bad_message(channel.id, "no protobuf", now_);
      return poll();
    default: {
      // Somebody else claims its name.
      const std::uint64_t id = ++next_channel_;
      ModelChannel& thief = *(channels_[id] = std::make_unique<ModelChannel>());
      thief.id = ChannelId{id};
      thief.may_be_lost = true;
      thief.is_agent = false;
      thief.identity = "thief";
      thief.worker = channel.worker;
      core_->handle_opened(thief.id, {ChannelKind::Grpc, {}, false, {}, "thief"}, now_);
      const bool is_known = channel.has_started;
      core_->handle_message(thief.id, StartStream{WorkerId{is_known ? channel.worker : ""}}, now_);
      poll();
      const bool is_gone = !channels_.contains(id);
      // A name whose worker is gone already may be taken; the thief then is a worker like any other.
      if (!is_gone) crash(thief, ChannelEnd::Closed);
    }
  }
}

void RuntimeWorld::crash(ModelChannel& channel, ChannelEnd why) {
  ++stats_.crashes;
  log("channel of %s ends", channel.worker.c_str());
  core_->handle_closed(channel.id, why, "gone", now_);
  end(channel);
  poll();
}

// It is over on both sides; whoever it was comes again as somebody new.
void RuntimeWorld::end(ModelChannel& channel) {
  channel.is_open = false;
  if (channel.identity != "thief")
    dial(channel.is_agent, channel.identity, between(milliseconds{100}, seconds{5}));
  after(Duration{}, [keep = std::shared_ptr<ModelChannel>{std::move(channels_[channel.id.value()])}] {});
  channels_.erase(channel.id.value());
}

}  // namespace windlass::sim
