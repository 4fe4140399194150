#include "tests/sim/world.h"

#include <algorithm>
#include <array>
#include <set>

#include "tests/sim/faults.h"

namespace windlass::sim {
namespace {

std::string text_of(Random& random, std::size_t bytes_max) {
  std::string text(random.below(bytes_max + 1), ' ');
  for (char& c : text) c = static_cast<char>('a' + random.below(26));
  return text;
}

std::string numbered(std::string_view prefix, std::uint64_t number) {
  return std::string{prefix}.append(std::to_string(number));
}

}  // namespace

World::World(const WorldOptions& options, bool log_is_on)
    : options_(options),
      context_(options.seed, log_is_on),
      sessions_(context_, options.tokens_stay_valid),
      duties_(context_, options.has_twins),
      network_(context_, sessions_),
      scheduler_({context_, network_, sessions_, duties_, decoder_}, options_),
      faults_(std::make_unique<Faults>(*this)) {
  network_.set_listener(&scheduler_);
  for (std::size_t i = 0; i < options_.workers.size(); ++i) {
    workers_.push_back(std::make_unique<WorkerMachine>(
        MachineParts{context_, network_, sessions_, duties_, decoder_}, numbered("w", i + 1),
        numbered("i-", i + 1), options_.workers[i], options_.own_delay_max));
  }
  context_.stats.workers = workers_.size();
}

World::~World() = default;

bool World::run() {
  scheduler_.start();
  for (auto& worker : workers_) {
    context_.timeline.after(context_.random.below(Duration{seconds{2}}), [&worker] { worker->start(); });
  }
  plan_work();
  faults_->start();
  context_.timeline.run_until(options_.safety_time);
  if (!context_.violation) {
    faults_->stop();
    if (converge()) check_ends();
  }
  context_.stats.simulated_ms =
      static_cast<std::uint64_t>(std::chrono::duration_cast<milliseconds>(context_.now()).count());
  context_.stats.actions = context_.timeline.actions();
  return !context_.violation;
}

void World::plan_work() {
  context_.stats.commands = options_.commands;
  context_.stats.events = options_.events;
  std::array<Duration, 4> bursts{};
  for (Duration& burst : bursts) burst = context_.random.below(options_.safety_time);
  const auto when = [&] {
    if (!options_.comes_in_bursts) return context_.random.below(options_.safety_time);
    return bursts[context_.random.below(bursts.size())] + context_.random.below(Duration{milliseconds{300}});
  };
  for (std::uint64_t i = 0; i < options_.commands; ++i) plan_command(i, when());
  for (std::uint64_t i = 0; i < options_.events; ++i) plan_event(i, when());
}

void World::plan_command(std::uint64_t number, Duration when) {
  const WorkerMachine& worker = *workers_[context_.random.below(workers_.size())];
  Row row;
  row.id = numbered("c", number);
  row.instance = worker.instance();
  row.payload = R"({"do":")" + text_of(context_.random, options_.payload_bytes_max) + "\"}";
  if (worker.plan().sends_attachments && context_.chance(30)) {
    row.attachment = text_of(context_.random, options_.payload_bytes_max) + "!";
  }
  context_.timeline.at(when, [this, row] { submit(row); });
}

void World::plan_event(std::uint64_t number, Duration when) {
  WorkerMachine& worker = *workers_[context_.random.below(workers_.size())];
  Outgoing event{"biz.event", numbered("e", number), "", "", ""};
  event.payload = R"({"seen":")" + text_of(context_.random, options_.payload_bytes_max) + "\"}";
  if (worker.plan().sends_attachments && context_.chance(30)) {
    event.attachment = text_of(context_.random, options_.payload_bytes_max) + "!";
  }
  context_.timeline.at(when, [&worker, event] { worker.accept_event(event); });
}

struct World::Pending {
  Row row;
  bool is_confirmed = false;
  std::uint64_t submitted_to = 0;  // which life of the scheduler
};

void World::submit(const Row& row) {
  if (!row.is_conflict) {
    MessageParts parts{.type = "biz.command.run", .id = row.id, .payload = row.payload};
    if (!row.attachment.empty()) parts.attachment = Attachment{"application/octet-stream", row.attachment};
    duties_.command_submitted(row.id, content_hash(Message{parts}));
  }
  ++unconfirmed_;
  try_submit(std::make_shared<Pending>(Pending{row}));
}

void World::try_submit(const std::shared_ptr<Pending>& pending) {
  if (pending->is_confirmed) return;
  if (scheduler_.is_up() && pending->submitted_to != scheduler_.life()) {
    pending->submitted_to = scheduler_.life();
    scheduler_.submit(pending->row, [this, pending] {
      pending->is_confirmed = true;
      --unconfirmed_;
    });
  }
  context_.timeline.after(milliseconds{500}, [this, pending] { try_submit(pending); });
}

WorkerMachine& World::add_twin(std::size_t worker) {
  const WorkerMachine& original = *workers_[worker];
  WorkerPlan plan = original.plan();
  plan.changes_revision = false;
  twins_.push_back(std::make_unique<WorkerMachine>(
      MachineParts{context_, network_, sessions_, duties_, decoder_},
      numbered(original.name() + "-twin", twins_.size()), original.instance(), plan, options_.own_delay_max));
  return *twins_.back();
}

// What the commands take where a window of one frame has them done one after the other.
Duration World::serial_time() const {
  Duration each{};
  for (const WorkerPlan& plan : options_.workers) {
    const Duration commits = 2 * 20 * std::max(plan.commit_time_max, options_.scheduler_commit_time_max);
    each = std::max(each, plan.work_time_max + 2 * options_.own_delay_max + commits +
                              4 * (plan.link.latency + plan.link.jitter) + plan.config.retransmit_floor);
  }
  return each * static_cast<Duration::rep>(options_.commands + options_.events);
}

bool World::converge() {
  context_.note("faults are over");
  const Duration end = context_.now() + options_.liveness_time_max + serial_time();
  while (context_.now() < end) {
    if (!context_.timeline.run_until(context_.now() + milliseconds{500})) return false;
    if (unconverged().empty()) return true;
  }
  context_.fail("converges", unconverged());
  return false;
}

std::string World::unconverged() const {
  for (const auto& twin : twins_) {
    if (twin->is_up()) return twin->name() + " is still there";
  }
  if (unconfirmed_ > 0) return "a command could not be submitted";
  for (const auto& worker : workers_) {
    if (!worker->is_ready()) return worker->name() + " is not ready";
    if (const auto left = worker->unfinished(); !left.empty()) return worker->name() + " " + left;
    const Session* const session = scheduler_.session_of(worker->instance());
    if (session == nullptr || session->state() != SessionState::Ready ||
        session->identity().session_id != worker->session()) {
      return "the scheduler has no ready session of " + worker->name();
    }
  }
  if (!scheduler_.is_idle()) return "the scheduler has something left to send";
  for (const auto& [number, row] : scheduler_.store().rows) {
    if (!row.is_done) return "row " + std::to_string(number) + " of command " + row.id + " is not done";
  }
  if (scheduler_.endpoint()->sessions() != workers_.size()) return "there are sessions of nobody";
  if (scheduler_.endpoint()->connections() != workers_.size()) return "there are connections of nobody";
  return duties_.unsettled();
}

// Every session that is not live now must have ended with an event.
void World::check_ends() {
  std::set<std::string> live;
  for (const auto& worker : workers_) live.insert(worker->session());
  for (const End at : {End::Worker, End::Scheduler}) {
    for (const std::string& session : sessions_.open_sessions(at)) {
      if (!live.contains(session)) {
        context_.fail("every-end-is-told", "session ", session, " is gone and its owner was not told");
      }
    }
  }
}

}  // namespace windlass::sim
