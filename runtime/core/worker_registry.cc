#include "runtime/core/worker_registry.h"

#include <algorithm>
#include <array>
#include <utility>

namespace windlass::runtime {
namespace {

using enum WorkerState;

struct Step {
  WorkerState from;
  WorkerState to;
};

// The whole life of a worker. What is not listed cannot happen.
constexpr std::array kSteps = {
    Step{Connecting, Placeholder},    // initialized
    Step{Connecting, Unhealthy},      // is blocked
    Step{Placeholder, Specializing},  // it holds an application, or is told to load one
    Step{Placeholder, Unhealthy},    Step{Placeholder, Draining},
    Step{Specializing, Specialized},  // its JobHost runs and has it
    Step{Specializing, Unhealthy},   Step{Specializing, Draining},
    Step{Specialized, Ready},  // all functions are answered for
    Step{Specialized, Specializing}, Step{Specialized, Unhealthy},
    Step{Specialized, Draining},     Step{Ready, Specializing},  // another application, or other code
    Step{Ready, Unhealthy},          Step{Ready, Draining},
    Step{Unhealthy, Connecting},  // recovered to where it was
    Step{Unhealthy, Placeholder},    Step{Unhealthy, Specializing},
    Step{Unhealthy, Specialized},    Step{Unhealthy, Ready},
    Step{Unhealthy, Draining},       Step{Connecting, Abandoned},  // given up from here, at any time
    Step{Placeholder, Abandoned},    Step{Specializing, Abandoned},
    Step{Specialized, Abandoned},    Step{Ready, Abandoned},
    Step{Unhealthy, Abandoned},      Step{Draining, Abandoned},
    Step{Connecting, Disconnected},  // gone, at any time
    Step{Placeholder, Disconnected}, Step{Specializing, Disconnected},
    Step{Specialized, Disconnected}, Step{Ready, Disconnected},
    Step{Unhealthy, Disconnected},   Step{Draining, Disconnected},
    Step{Abandoned, Connecting},  // the same id comes back
    Step{Disconnected, Connecting},
};

constexpr std::array<std::string_view, 9> kStateNames = {"Connecting",  "Placeholder", "Specializing",
                                                         "Specialized", "Ready",       "Unhealthy",
                                                         "Draining",    "Abandoned",   "Disconnected"};

}  // namespace

bool may_become(WorkerState from, WorkerState to) {
  return std::ranges::any_of(kSteps, [&](const Step& step) { return step.from == from && step.to == to; });
}

std::string_view to_string(WorkerState state) {
  return kStateNames[static_cast<std::size_t>(state)];
}

WorkerRegistry::~WorkerRegistry() {
  channels_.for_each([&](Channel& channel) { channel_timers_.clear(channel.timer); });
  for (auto& [id, worker] : workers_) worker_timers_.clear(worker->timer);
}

Channel& WorkerRegistry::open(ChannelId id, ChannelFacts facts) {
  ++waiting_;
  return channels_.insert(id, std::make_unique<Channel>(id, std::move(facts)));
}

void WorkerRegistry::erase(Channel& channel) {
  CHECK(channel.worker == nullptr);
  --waiting_;
  channel_timers_.clear(channel.timer);
  channels_.erase(channel.id);
}

std::vector<Channel*> WorkerRegistry::channels() const {
  std::vector<Channel*> all;
  channels_.for_each([&](Channel& channel) { all.push_back(&channel); });
  return all;
}

Worker* WorkerRegistry::find(const WorkerId& id) const {
  const auto found = workers_.find(id);
  return found == workers_.end() ? nullptr : found->second.get();
}

Worker& WorkerRegistry::connect(WorkerId id, Channel& channel, Instant now) {
  CHECK(channel.worker == nullptr);
  std::uint32_t deadlines_exceeded = 0;
  if (Worker* const gone = find(id)) {
    CHECK(gone->is_gone());
    deadlines_exceeded = gone->deadlines_exceeded;
    forget(*gone);
  }
  auto made = std::make_unique<Worker>(id);
  Worker& worker = *made;
  workers_.emplace(std::move(id), std::move(made));
  worker.deadlines_exceeded = deadlines_exceeded;
  worker.channel = &channel;
  worker.peer = channel.facts.peer;
  worker.connected_at = worker.heard_at = now;
  worker.route.slots = std::clamp(options_.slots_per_worker, 1U, VersionPool::kBucketsMax - 1);
  channel.worker = &worker;
  channel.has_started = true;
  --waiting_;
  ++present_;
  channel_timers_.clear(channel.timer);
  return worker;
}

void WorkerRegistry::disconnect(Worker& worker) {
  CHECK(!worker.is_gone());
  std::exchange(worker.channel, nullptr)->worker = nullptr;
  --present_;
  ++waiting_;
}

void WorkerRegistry::forget(Worker& worker) {
  CHECK(worker.is_gone() && worker.host == nullptr && worker.in_flight.empty() && worker.waiting.empty());
  worker_timers_.clear(worker.timer);
  workers_.erase(workers_.find(worker.id));
}

void WorkerRegistry::transition(Worker& worker, WorkerState to) {
  CHECK(may_become(worker.state_, to));
  if (to == Unhealthy) worker.recovers_to = worker.state_;
  worker.state_ = to;
}

void WorkerRegistry::advance(Worker& worker, WorkerState to) {
  if (worker.state_ != Unhealthy) return transition(worker, to);
  CHECK(may_become(worker.recovers_to, to));
  worker.recovers_to = to;
}

std::optional<Instant> WorkerRegistry::next() const {
  const auto workers = worker_timers_.next();
  const auto channels = channel_timers_.next();
  if (!workers) return channels;
  return channels ? std::min(*workers, *channels) : *workers;
}

}  // namespace windlass::runtime
